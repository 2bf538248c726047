"""The names under which the compiled program finds its guards."""

from __future__ import annotations

from typing import Final

__all__ = [
    "CHECKED_NEW",
    "DUNDER",
    "GUARDED_READ",
    "IMPORT",
    "IMPORT_FROM",
    "IMPORT_STAR",
    "KIND_NAME",
    "MADE",
    "OWN",
    "OWNERS",
    "TYPE_OF",
    "WRITE",
]

# Not identifiers, so no source can spell them, and far from any name that Python could suggest for a misspelt one.
GUARDED_READ: Final = "<guard: read by name>"
DUNDER: Final = "<guard: read special name>"
OWN: Final = "<guard: own private name>"
WRITE: Final = "<guard: write to>"
KIND_NAME: Final = "<guard: name of the class of>"
IMPORT: Final = "<guard: import module>"
IMPORT_FROM: Final = "<guard: import from module>"
IMPORT_STAR: Final = "<guard: import all of module>"
MADE: Final = "<guard: classes of the program>"
OWNERS: Final = "<guard: owners of private name> "
TYPE_OF: Final = "<guard: type of>"
CHECKED_NEW: Final = "<guard: checked __new__>"
