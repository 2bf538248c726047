"""The builtins as they are before a program comes, for the guest's own modules.

A program may change what `builtins` holds. What it sends and what comes of it must not depend on that (contract F42),
so each module of the guest takes `INTRINSICS` as its `__builtins__`: its functions look their names up there.
"""

from __future__ import annotations

import builtins
from typing import Any, Final

__all__ = ["INTRINSICS"]

INTRINSICS: Final[dict[str, Any]] = dict(vars(builtins))
