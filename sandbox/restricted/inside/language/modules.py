"""Modules as programs see them: objects that hold the names of the catalogue, and lead nowhere else."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import sys
import types
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from ....guest.absence import absence
from .catalogue import CATALOGUE
from .names import kind_of
from .typeguard import SandboxObject

__all__ = ["Importer", "ModuleProxy", "host_module", "public_names"]

_C_IMPORTS = """
    __future__ _collections_abc _pydecimal _pylong _strptime _typing abc annotationlib asyncio collections
    collections.abc copyreg datetime decimal enum functools io json json.decoder numbers operator re re._parser
    string.templatelib time traceback types typing unicodedata warnings zoneinfo
"""
_INTERNAL = frozenset(_C_IMPORTS.split())
"""What functions written in C import while a program calls them."""


class ModuleProxy(SandboxObject, shown_as="module"):
    """A module with listed names only. Reading one costs what it costs on any object."""

    def __init__(self, name: str, names: Mapping[str, object]) -> None:
        own = vars(self)
        own.update(names)
        own["__name__"] = name

    def __getattr__(self, name: str) -> NoReturn:
        module = vars(self).get("__name__", "?")
        near = difflib.get_close_matches(name, [one for one in vars(self) if not one.startswith("_")], n=3)
        meant = f"; did you mean {' or '.join(near)}?" if near else " in this sandbox"
        raise AttributeError(f"module {module!r} has no attribute {name!r}{meant}", name=name)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"module {vars(self).get('__name__')!r} cannot be changed in this sandbox", name=name)

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"module {vars(self).get('__name__')!r} cannot be changed in this sandbox", name=name)

    def __dir__(self) -> list[str]:
        return sorted(name for name in vars(self) if not name.startswith("_"))

    def __repr__(self) -> str:
        return f"<module {vars(self).get('__name__')!r}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a module cannot be copied")


def public_names(module: types.ModuleType, listed: str) -> dict[str, object]:
    """Returns the values of the names that the catalogue lists for a module."""
    names: Iterable[str] = listed.split()
    if listed == "*":
        names = getattr(module, "__all__", None) or dir(module)
    values = {name: getattr(module, name) for name in names if not name.startswith("_") and hasattr(module, name)}
    return {name: value for name, value in values.items() if not isinstance(value, types.ModuleType)}


def host_module(name: str) -> dict[str, ModuleProxy]:
    """Returns a module that the host allows with the modules below it, by name: every public name of each.

    Raises:
        ImportError: when there is no such module.
    """
    made: dict[str, ModuleProxy] = {}
    _add_host_module(importlib.import_module(name), name, made)
    return made


def _add_host_module(module: types.ModuleType, name: str, made: dict[str, ModuleProxy]) -> ModuleProxy:
    proxy = made[name] = ModuleProxy(name, {})
    names = vars(proxy)
    names["__version__"] = getattr(module, "__version__", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in dir(module):
            if one.startswith("_") or kind_of(one) != "public":
                continue
            try:
                value = getattr(module, one)
            except Exception:  # noqa: BLE001, S112 - what a module lists and cannot give is not there
                continue
            if not isinstance(value, types.ModuleType):
                names[one] = value
            elif value.__name__ == f"{name}.{one}":
                names[one] = made.get(value.__name__) or _add_host_module(value, value.__name__, made)
    return proxy


class Importer:
    """What import statements do.

    Args:
        stand_ins: what takes the place of names, or is added, by module.
        host: the names of modules that the host allows beside the catalogue.
    """

    def __init__(self, stand_ins: Mapping[str, Mapping[str, object]], host: Iterable[str]) -> None:
        for name in sorted(_INTERNAL):  # now, because a worker has no files to load them from
            with contextlib.suppress(ImportError):  # not every Python has all of them
                importlib.import_module(name)
        self._modules: dict[str, ModuleProxy] = {}
        for name in sorted({*CATALOGUE, *stand_ins}):
            shown = public_names(importlib.import_module(name), CATALOGUE[name]) if name in CATALOGUE else {}
            self._modules[name] = ModuleProxy(name, {**shown, **stand_ins.get(name, {})})
        for name in host:
            self._modules.update(host_module(name))
        for name in list(self._modules):
            self._link(name)

    def _link(self, name: str) -> None:
        parent, _, last = name.rpartition(".")
        if not parent:
            return
        if parent not in self._modules:
            self._modules[parent] = ModuleProxy(parent, {})
            self._link(parent)
        vars(self._modules[parent])[last] = self._modules[name]

    @property
    def modules(self) -> Mapping[str, ModuleProxy]:
        """The modules, by name."""
        return self._modules

    def import_module(self, name: str, whole: bool) -> ModuleProxy:
        """Does `import name` (its first part is the result) or `import name as x` (`whole`)."""
        found = self._find(name)
        return found if whole else self._modules[name.partition(".")[0]]

    def import_from(self, module: str, name: str) -> object:
        """Does `from module import name`.

        Raises:
            ImportError: when the module does not show the name.
        """
        found = vars(self._find(module))
        if name in found and not name.startswith("_"):
            return found[name]
        shown = [one for one in found if not one.startswith("_")]
        near = difflib.get_close_matches(name, shown, n=3)
        meant = f"; did you mean {' or '.join(near)}?" if near else f"; there are: {', '.join(sorted(shown)[:40])}"
        raise ImportError(f"cannot import name {name!r} from {module!r} in this sandbox{meant}", name=module)

    def import_star(self, module: str) -> None:
        """Does `from module import *` for the function that calls it."""
        found = vars(self._find(module))
        sys._getframe(1).f_globals.update((name, value) for name, value in found.items() if not name.startswith("_"))

    def internal(self, name: str, *_rest: Any) -> types.ModuleType:
        """Imports a module for a function written in C that runs on the program's behalf: `__import__`, as such see it.

        A program has no way to call this: its own import statements are compiled to the methods above, and the name
        cannot be spelled.
        """
        if name in _INTERNAL:
            return importlib.import_module(name)
        raise ImportError(f"{name!r} is not available in this sandbox", name=name)

    def _find(self, name: str) -> ModuleProxy:
        found = self._modules.get(name)
        if found is None:
            raise ModuleNotFoundError(absence(name, self._modules), name=name)
        return found
