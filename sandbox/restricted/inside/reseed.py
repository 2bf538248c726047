"""Fresh random states for a worker: what its template had loaded would give the same numbers in every run.

`random` is seeded by the guest with what the host sends; `secrets`, `uuid`, `random.SystemRandom` and
`numpy.random.default_rng()` ask the kernel each time. Left are the states that packages of the host keep: the known
ones are listed here. The seed of `hash()` of texts belongs to the template, and all its workers share it.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import Any, Final

__all__ = ["reseed"]

_WORDS: Final = struct.Struct("<8I")


def _numpy(module: Any) -> None:
    module.seed(list(_WORDS.unpack(os.urandom(_WORDS.size))))


_RESEEDERS: Final = {"numpy.random": _numpy}
"""How the state of a module is made anew, by the module's name."""


def reseed() -> None:
    """Makes the random states of loaded packages anew, from the kernel's entropy."""
    for name, make_anew in _RESEEDERS.items():
        module = sys.modules.get(name)
        if module is not None:
            make_anew(module)
