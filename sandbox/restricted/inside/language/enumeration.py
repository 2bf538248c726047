"""Enumerations whose functional form makes the same classes as a class statement, and no others."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

from .names import kind_of
from .typeguard import ENUM_TYPE

__all__ = ["enumeration_names", "make_enum_type"]

_FAMILY = ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")


def make_enum_type(adopt: Callable[[Any], Any], check_bases: Callable[[Any], None]) -> type[enum.EnumMeta]:
    """Makes the metaclass of a program's enumerations.

    Args:
        adopt: remembers a class as the program's own.
        check_bases: refuses what a program may not inherit from.
    """

    class EnumType(enum.EnumMeta):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            functional = bool(kwargs) or (len(args) > 1 and not cls.__members__)
            if not functional:
                return super().__call__(*args, **kwargs)
            for option in ("module", "qualname"):
                kwargs.pop(option, None)
            if kwargs.get("type") is not None:
                check_bases((kwargs["type"],))
            kwargs["names"] = _members(kwargs.pop("names", args[1] if len(args) > 1 else ()))
            return adopt(super().__call__(*args[:1], **kwargs, module="__main__"))

    EnumType.__module__ = "enum"
    return EnumType


def _members(names: Any) -> list[Any]:
    """Returns the members as plain pairs or plain names, so that what was checked is what is used."""
    listed = names.replace(",", " ").split() if isinstance(names, str) else names
    pairs = list(listed.items()) if isinstance(listed, Mapping) else list(listed)
    members: list[Any] = []
    for one in pairs:
        name, *value = (one,) if isinstance(one, str) else one
        if not issubclass(type(name), str):
            raise TypeError("the names of members are strings")
        plain = str.__str__(name)
        if kind_of(plain) not in ("public", "guarded"):
            raise ValueError(f"a member cannot be called {plain!r} in this sandbox")
        members.append((plain, *value) if value else plain)
    return members


def enumeration_names(enum_type: type[enum.EnumMeta]) -> dict[str, object]:
    """Returns what takes the place of names in `enum`: its base classes, made again with the program's metaclass."""
    made: dict[str, object] = {"EnumMeta": ENUM_TYPE, "EnumType": ENUM_TYPE}
    for name in _FAMILY:
        original = getattr(enum, name)
        body = enum_type.__prepare__(name, (original,))
        body["__module__"] = "enum"
        body["__qualname__"] = name
        body["__doc__"] = original.__doc__
        made[name] = enum_type(name, (original,), body)
    return made
