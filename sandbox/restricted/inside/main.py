"""The first file of a template process, run as a script with an empty environment and without site-packages.

The package that holds this file is imported under a name of its own, without what the host's package imports.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

__all__: list[str] = []

_NAME = "ptc_sandbox"


def _bare(name: str, directory: Path) -> None:
    """Makes a package whose own module is empty."""
    package = types.ModuleType(name)
    package.__path__ = [str(directory)]
    sys.modules[name] = package


if __name__ == "__main__":
    _inside = Path(__file__).resolve().parent
    _bare(_NAME, _inside.parent.parent)
    _bare(f"{_NAME}.restricted", _inside.parent)
    importlib.import_module(f"{_NAME}.restricted.inside.template").main(int(sys.argv[1]))
