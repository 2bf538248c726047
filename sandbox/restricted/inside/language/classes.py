"""Classes of the program's own: how they are made, and which attributes are theirs."""

from __future__ import annotations

import builtins
import functools
import types
import typing
from abc import ABCMeta
from collections.abc import Callable, Iterable
from typing import Any

from .names import kind_of
from .typeguard import ABC_META, ENUM_TYPE, TYPE, TypeGuard

__all__ = ["ProgramClasses", "checked_new"]

_FUNCTIONS_AS_BASES = (typing.NamedTuple, getattr(typing, "TypedDict", None))


class ProgramClasses:
    """Makes the classes of one program, and remembers them.

    Args:
        bases: the classes beside its own that a program may inherit from.
        enum_type: the metaclass of its enumerations.
    """

    def __init__(self, bases: Iterable[type], enum_type: type) -> None:
        self.made: set[type] = set()
        self._building = 0
        self._bases = frozenset(bases)
        self._metaclasses: dict[TypeGuard, type] = {TYPE: type, ABC_META: ABCMeta, ENUM_TYPE: enum_type}
        self._private: dict[tuple[type, str], bool] = {}
        self.owners: dict[str, set[type]] = {}

    def allow_bases(self, bases: Iterable[type]) -> None:
        """Lets a program inherit from these classes too."""
        self._bases |= frozenset(bases)

    def build(self, body: types.FunctionType, name: str, /, *bases: Any, **keywords: Any) -> Any:
        """Does what a class statement does (`__build_class__`).

        Raises:
            TypeError: where a base or the metaclass is not one that a program may use.
        """
        self.check_bases(bases)
        if "metaclass" in keywords:
            meta = keywords["metaclass"]
            if type(meta) is not TypeGuard or meta not in self._metaclasses:
                raise TypeError("a metaclass can only be ABCMeta, EnumType or type in this sandbox")
            keywords["metaclass"] = self._metaclasses[meta]
        self._building += 1
        try:
            made = builtins.__build_class__(body, name, *bases, **keywords)
        finally:
            self._building -= 1
        return self.adopt(made)

    def check_bases(self, bases: Iterable[Any]) -> None:
        """Raises TypeError where a program may not inherit from one of `bases`."""
        bases = tuple(bases)
        for base, resolved in ((base, types.resolve_bases((base,))) for base in bases):
            if any(base is known for known in _FUNCTIONS_AS_BASES):
                continue
            for one in resolved:
                if not issubclass(type(one), type) or not (self.owns(one) or self._may_inherit(one)):
                    shown = getattr(one, "__name__", None) or repr(one)
                    raise TypeError(f"a class cannot inherit from {shown} in this sandbox")

    def _may_inherit(self, base: type) -> bool:
        return base in self._bases or issubclass(base, BaseException)

    def adopt(self, made: Any) -> Any:
        """Remembers a class as the program's own, and returns it."""
        if issubclass(type(made), type):
            self.made.add(made)
            _restrict_match_args(made)
        return made

    def owns(self, kind: type) -> bool:
        """Tells whether a class is the program's own.

        While a class statement runs, the class may be used before it is remembered: by `__init_subclass__`, by
        `__set_name__`, and by the members of an enumeration. It is known then by its module, which no program can
        give to a class in another way.
        """
        if kind in self.made:
            return True
        if not self._building:
            return False
        names = vars(kind)
        if names.get("__module__") != "__main__" or "__getattribute__" in names:
            return False
        self.made.add(kind)
        return True

    def is_private_of_program(self, kind: type, name: str) -> bool:
        """Tells whether the attribute `name`, which starts with an underscore, is the program's own on `kind`.

        It is not where a base that the program did not define, or the metaclass, has it, even if it is overridden:
        what is overridden can be uncovered.
        """
        known = self._private.get((kind, name))
        if known is None:
            behind = [base for base in (*type.mro(kind), *type.mro(type(kind))) if base not in self.made]
            known = self.owns(kind) and not any(name in vars(base) for base in behind if base is not kind)
            self._private[kind, name] = known
            if known:
                self.owners.setdefault(name, set()).add(kind)
        return known


def _restrict_match_args(made: type) -> None:
    # A class pattern reads these names in C: those that would need a guard end the list.
    names = vars(made).get("__match_args__")
    if names is None:
        return
    kept: list[str] = []
    for name in names if type(names) is tuple else ():
        if type(name) is not str or kind_of(name) != "public":
            break
        kept.append(name)
    if len(kept) != len(names):
        type.__setattr__(made, "__match_args__", tuple(kept))


def checked_new(method: Any) -> Callable[..., Any]:
    """Makes a program's `__new__` give an instance of the class that it was asked for.

    Copying makes an instance with `__new__` and then fills in its state. On another object that would write any
    attribute at all.
    """
    function = method.__func__ if type(method) is staticmethod else method

    @functools.wraps(function)
    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        made = function(cls, *args, **kwargs)
        if not issubclass(type(cls), type) or not issubclass(type(made), cls):
            shown = getattr(cls, "__name__", cls)
            raise TypeError(f"__new__ of {shown} must return an instance of it, not of {type(made).__name__}")
        return made

    return __new__
