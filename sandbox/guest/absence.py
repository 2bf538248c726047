"""What is told of a module that is not there: what to use instead, or which are near."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Final

from .preload import OMITTED

__all__ = ["WAYS_OUT", "absence"]

_NETWORK: Final = "there is no network; use the tools"
_FILES: Final = "there are no files; use the tools"
_TABLES: Final = "it is not part of Python; use lists and dicts, with csv, collections and statistics"
_NUMBERS: Final = "it is not part of Python; use lists, with math, statistics and random"
_SIDE_BY_SIDE: Final = "use asyncio.gather(...) or asyncio.TaskGroup"

WAYS_OUT: Final = {
    "aiohttp": _NETWORK,
    "anyio": _SIDE_BY_SIDE,
    "bs4": "it is not part of Python; use html or re",
    "concurrent": _SIDE_BY_SIDE,
    "ctypes": "use struct or array",
    "dateutil": "it is not part of Python; use datetime, as in datetime.fromisoformat(...)",
    "httpx": _NETWORK,
    "http": _NETWORK,
    "importlib": "write an import statement",
    "inspect": "use callable(...), isinstance(...) or asyncio.iscoroutinefunction(...)",
    "matplotlib": "there is no display; return the numbers",
    "multiprocessing": _SIDE_BY_SIDE,
    "nest_asyncio": "it is not needed: `await` and asyncio.run(...) work as they are",
    "numpy": _NUMBERS,
    "os": "there are no files and no environment; use the tools",
    "pandas": _TABLES,
    "pathlib": "there are no files; use the tools, and plain strings for paths",
    "pickle": "use json",
    "polars": _TABLES,
    "pydantic": "it is not part of Python; use dataclasses",
    "pytz": "it is not part of Python; use zoneinfo",
    "requests": _NETWORK,
    "scipy": _NUMBERS,
    "shutil": _FILES,
    "simplejson": "use json",
    "socket": _NETWORK,
    "subprocess": "there are no processes; use the tools",
    "tempfile": "there are no files; use io.StringIO or io.BytesIO",
    "threading": _SIDE_BY_SIDE,
    "ujson": "use json",
    "urllib.request": _NETWORK,
    "yaml": "it is not part of Python; use json where you can",
}
"""What to use instead of a module."""

_CUTOFF: Final = 0.75
_MOST_LISTED: Final = 60


def absence(name: str, modules: Collection[str]) -> str:
    """Returns the text for a module that cannot be imported.

    Args:
        name: the module's name.
        modules: the names of those that can.
    """
    text = f"No module named {name!r} in this sandbox"
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        way_out = WAYS_OUT.get(".".join(parts[:end]))
        if way_out:
            return f"{text}: {way_out}"
    if parts[0] in OMITTED:
        return f"{text}: it {OMITTED[parts[0]]}"
    near = difflib.get_close_matches(name, modules, n=3, cutoff=_CUTOFF)
    if near:
        return f"{text}; did you mean {' or '.join(near)}?"
    top = sorted({one for one in modules if "." not in one and not one.startswith("_")})
    if len(top) > _MOST_LISTED:
        return f"{text}; only the standard library is there, without files, network and processes"
    return f"{text}; modules that can be imported: {', '.join(top)}"
