"""What stands for `type` and its kin, whose real ones would make classes that nobody has looked at."""

from __future__ import annotations

import asyncio
import types
import typing
from abc import ABCMeta
from collections.abc import Callable, Mapping
from enum import EnumMeta
from typing import Any, ClassVar, Final

__all__ = ["ABC_META", "ENUM_TYPE", "FUTURE", "TASK", "TYPE", "SandboxObject", "TypeGuard", "class_of"]


class TypeGuard:
    """Stands for a class that programs may ask about and not call.

    Args:
        name: its name.
        real: the class that it stands for.
        tells_class: whether it may be called with one object, for that object's class.
        make: what it does when it is called without arguments, if it may be.
    """

    __slots__ = ("__name__", "__qualname__", "_make", "_real", "_tells_class")

    def __init__(
        self, name: str, real: type, *, tells_class: bool = False, make: Callable[[], Any] | None = None
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self._real = real
        self._tells_class = tells_class
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._tells_class and len(args) == 1 and not kwargs:
            return class_of(args[0])
        if self._tells_class:
            raise TypeError("type() takes one argument in this sandbox; write a class statement to make a class")
        if self._make is not None and not args and not kwargs:
            return self._make()
        raise TypeError(f"cannot create {self.__name__!r} instances in this sandbox")

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._real)

    def __subclasscheck__(self, subclass: object) -> bool:
        return subclass is self or (isinstance(subclass, type) and issubclass(subclass, self._real))

    def __getitem__(self, item: Any) -> Any:
        if not issubclass(self._real, type):
            return self
        # The alias in `typing` cannot be called; the one of the builtin would make classes.
        return typing.Type[item]  # noqa: UP006

    def __or__(self, other: Any) -> Any:
        return typing.Union[typing.Type, other]  # noqa: UP006, UP007

    def __ror__(self, other: Any) -> Any:
        return typing.Union[other, typing.Type]  # noqa: UP006, UP007

    def __repr__(self) -> str:
        return f"<class {self.__name__!r}>"

    def __copy__(self) -> TypeGuard:
        return self

    def __deepcopy__(self, _memo: object) -> TypeGuard:
        return self


TYPE: Final = TypeGuard("type", type, tells_class=True)
ABC_META: Final = TypeGuard("ABCMeta", ABCMeta)
ENUM_TYPE: Final = TypeGuard("EnumType", EnumMeta)

FUTURE: Final = TypeGuard("Future", asyncio.Future, make=lambda: asyncio.get_event_loop().create_future())
TASK: Final = TypeGuard("Task", asyncio.Task)

_STANDS_FOR: Final[Mapping[type, TypeGuard]] = {
    type: TYPE,
    TypeGuard: TYPE,
    **{
        kind: TypeGuard(kind.__name__, kind)
        for kind in (
            types.FunctionType,
            types.CodeType,
            types.FrameType,
            types.TracebackType,
            types.ModuleType,
            types.CellType,
        )
    },
}


class SandboxObject:
    """A base for what the sandbox itself gives to programs: its class has another name there, and is not handed out."""

    __slots__ = ()
    _stand_in: ClassVar[TypeGuard]

    def __init_subclass__(cls, shown_as: str) -> None:
        cls.__name__ = cls.__qualname__ = shown_as
        cls._stand_in = TypeGuard(shown_as, cls)


def class_of(target: object) -> Any:
    """Returns what `type(target)` is to a program: the class, or what stands for it."""
    kind = type(target)
    stand_in = _STANDS_FOR.get(kind)
    if stand_in is not None:
        return stand_in
    if issubclass(kind, asyncio.Future):
        return TASK if issubclass(kind, asyncio.Task) else FUTURE
    if issubclass(kind, SandboxObject):
        return kind._stand_in
    if issubclass(kind, type):
        if issubclass(kind, EnumMeta):
            return ENUM_TYPE
        return ABC_META if issubclass(kind, ABCMeta) else TYPE
    return kind
