"""Time zones: their files are read while there are files, and kept, because a program has none to read them from.

They come from the package `tzdata` in every sandbox, whatever the machine has: a program gives the same on all of them.
"""

from __future__ import annotations

import difflib
import importlib
import io
import zoneinfo
from pathlib import Path
from typing import BinaryIO
from zoneinfo import _common  # type: ignore[attr-defined] - where `zoneinfo` looks up a zone that is no file

__all__ = ["keep_zones"]


def keep_zones() -> None:
    """Reads all zones, and has `zoneinfo` find them in memory.

    Raises:
        ImportError: the package `tzdata` is not there.
        OSError: its files cannot be read.
    """
    package = Path(next(iter(importlib.import_module("tzdata").__path__)))
    names = (package / "zones").read_text("utf-8").split()
    files = {name: (package / "zoneinfo" / name).read_bytes() for name in names}

    def load_tzdata(key: str) -> BinaryIO:
        if key in files:
            return io.BytesIO(files[key])
        near = difflib.get_close_matches(key, files, n=3)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}{meant}")

    def available_timezones() -> set[str]:
        return set(files)

    zoneinfo.reset_tzpath(to=())
    _common.load_tzdata = load_tzdata
    zoneinfo.available_timezones = available_timezones
