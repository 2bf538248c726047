"""The restricted language as the guest takes it: how source becomes code, and what a program finds as its builtins."""

from __future__ import annotations

import ast
import builtins
import importlib
import types
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from ....guest.program import compile_program
from .attributes import AttributeGuards
from .catalogue import BASES
from .classes import ProgramClasses, checked_new
from .enumeration import make_enum_type
from .formatting import as_function
from .guard_names import (
    CHECKED_NEW,
    DUNDER,
    GUARDED_READ,
    IMPORT,
    IMPORT_FROM,
    IMPORT_STAR,
    KIND_NAME,
    MADE,
    OWN,
    OWNERS,
    TYPE_OF,
    WRITE,
)
from .modules import Importer, public_names
from .policy import rewrite
from .standins import stand_ins
from .typeguard import TYPE
from .worker_library import prepare_library

__all__ = ["RestrictedDialect"]

_SAFE_BUILTINS = """
    Ellipsis False None NotImplemented True __debug__
    abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter
    float format frozenset hash hex id int isinstance issubclass iter len list map max memoryview min next object oct
    ord pow print property range repr reversed round set slice sorted staticmethod str sum super tuple zip
"""


class RestrictedDialect:
    """Python narrowed to what a program needs to work on data and call tools.

    Everyday Python is admitted as it is, `except*` and metaclasses of the program's own apart. What is narrowed is what
    leads out of a program: special attributes, private attributes of objects that are not the program's, modules.

    One dialect serves one run: it remembers the classes that the program makes. Make it before the fork; making it
    loads and prepares all modules.

    It is containment in depth, not a boundary by itself: the operating system's limits around the worker are the other
    half (ruling 41). `except:` and `except BaseException:` catch what they catch in Python, `SystemExit` and
    `CancelledError` included; the host ends a run by killing the process, which no handler sees.

    Args:
        modules: import names that the host allows beside the catalogue, for example `numpy`. All public names of such
            a module and of the modules below it are shown. The host answers for what they can do.

    Raises:
        ImportError: when one of `modules` is not there.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        enum_type = make_enum_type(self._adopt, self._check_bases)
        self._classes = ProgramClasses((), enum_type)
        prepare_library(self._classes.owns)
        self._guards = AttributeGuards(self._classes)
        names = stand_ins(self._guards, self._classes, enum_type)
        self._importer = Importer(names, modules)
        self._classes.allow_bases(_allowed_bases(self._importer, modules))
        self._classes.made.clear()

    def compile(self, source: str) -> tuple[types.CodeType, dict[str, object]]:
        """Compiles a program.

        Returns:
            the code, and the names that the namespace must hold: the guards, under names that no source can spell.

        Raises:
            SyntaxError: where the program holds what the language does not have, told with its line and a way out.
            RecursionError, MemoryError, ValueError: where the source is beyond what the compiler takes.
        """
        private_names: set[str] = set()

        def check(module: ast.Module) -> ast.Module:
            checked, names = rewrite(module, source)
            private_names.update(names)
            return checked

        code, needs = compile_program(source, check)
        owners = self._classes.owners
        needs.update((OWNERS + name, owners.setdefault(name, set())) for name in private_names)
        guards, importer = self._guards, self._importer
        needs.update(
            {
                CHECKED_NEW: checked_new,
                DUNDER: guards.dunder,
                GUARDED_READ: guards.guarded,
                IMPORT: importer.import_module,
                IMPORT_FROM: importer.import_from,
                IMPORT_STAR: importer.import_star,
                KIND_NAME: guards.kind_name,
                MADE: self._classes.made,
                OWN: guards.own,
                TYPE_OF: type,
                WRITE: guards.write,
            }
        )
        return code, needs

    def builtins(self) -> dict[str, object]:
        """Returns the builtins of a run."""
        guards = self._guards
        return {
            **{name: getattr(builtins, name) for name in _SAFE_BUILTINS.split()},
            **{
                name: value
                for name, value in vars(builtins).items()
                if isinstance(value, type) and issubclass(value, BaseException)
            },
            "__build_class__": self._classes.build,
            "__import__": self._importer.internal,
            "exit": _exit,
            "quit": _exit,
            "type": TYPE,
            **{
                method.__name__: as_function(method)
                for method in (guards.delattr, guards.dir, guards.getattr, guards.hasattr, guards.setattr, guards.vars)
            },
        }

    def modules(self) -> Collection[str]:
        """Returns the names of the modules that a program may import."""
        return self._importer.modules

    def _adopt(self, made: Any) -> Any:
        return self._classes.adopt(made)

    def _check_bases(self, bases: Any) -> None:
        self._classes.check_bases(bases)


def _allowed_bases(importer: Importer, host: Sequence[str]) -> set[type]:
    allowed: set[type] = set()
    for name, listed in BASES.items():
        allowed.update(
            value for value in public_names(importlib.import_module(name), listed).values() if isinstance(value, type)
        )
    for name, proxy in importer.modules.items():
        if name in ("enum", "logging") or name.partition(".")[0] in host:
            allowed.update(value for value in vars(proxy).values() if isinstance(value, type))
    formatter = vars(importer.modules["string"])["Formatter"]
    return {*allowed, formatter}


def _exit(status: Any = None, /) -> NoReturn:
    raise SystemExit(status)
