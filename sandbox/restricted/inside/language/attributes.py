"""Reading and writing attributes at run time, where the name or the target calls for a look.

The compiled program reads a public name directly. It comes here for the names in `names.GUARDED`, for private and
special names, for every write, and through `getattr` and its kin, whose names are known at run time only.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from decimal import Context
from typing import Any, Final

from ....guest.namespaces import CalledObject
from ....guest.program import FILENAME
from .classes import ProgramClasses
from .formatting import TemplateGuard
from .names import READABLE_DUNDERS, WRITABLE_DUNDERS, is_dunder, kind_of
from .refusals import attribute_refusal
from .typeguard import class_of

__all__ = ["AttributeGuards", "is_program_code"]

_MISSING: Final = object()
_CALLABLES = (
    types.BuiltinFunctionType,
    types.FunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
_TEXT_DUNDERS = frozenset({"__name__", "__qualname__", "__doc__", "__version__"})
_OF_PROGRAM_ONLY = frozenset({"__getattr__", "__get__", "__set__", "__delete__", "__set_name__"})
_DATA_TYPES = frozenset(
    {int, float, str, bytes, bool, list, dict, tuple, set, frozenset, type(None), complex, bytearray}
)
"""Types whose instances have no private attributes and take no new ones: Python's own error tells that best."""
_WRITABLE = frozenset({types.SimpleNamespace, Context})


def is_program_code(value: object) -> bool:
    """Tells whether a value is a function or a method that the program defined."""
    if type(value) is types.MethodType:
        value = value.__func__
    return type(value) is types.FunctionType and value.__code__.co_filename == FILENAME


def _may_be_given(name: str, value: object, target: object) -> bool:
    if name in _TEXT_DUNDERS:
        return value is None or isinstance(value, str)
    if name in _OF_PROGRAM_ONLY:
        return is_program_code(value) or (name == "__get__" and is_program_code(target))
    return True


class AttributeGuards:
    """The guards of one program's attributes.

    Args:
        classes: the classes that the program has made.
    """

    def __init__(self, classes: ProgramClasses) -> None:
        self._classes = classes
        self._made = classes.made
        self.templates = TemplateGuard(self.getattr)

    # Called by the compiled program

    def own(self, target: Any, name: str) -> Any:
        """Returns `target` when the program may read and write its private attribute `name`."""
        kind = type(target)
        if kind in self._made or self._classes.owns(kind):
            if self._classes.is_private_of_program(kind, name):
                return target
        elif kind in _DATA_TYPES or is_program_code(target):
            return target
        elif kind is super:
            if self._classes.is_private_of_program(target.__self_class__, name):
                return target
        elif self._is_class(target) and self._classes.is_private_of_program(target, name):
            return target
        elif issubclass(kind, CalledObject):
            getattr(target, name)  # which refuses it, and says how it is written
        raise AttributeError(
            f"{kind.__name__!r} object: the attribute {name!r} is private; only attributes of classes that the program"
            " defines itself may start with an underscore",
            name=name,
        )

    def write(self, target: Any, name: str) -> Any:
        """Returns `target` when the program may write its public attribute `name`."""
        kind = type(target)
        if name[0] == "_" and is_dunder(name):
            of_program = self._classes.owns(kind) or is_program_code(target) or self._is_class(target)
            if of_program and name in WRITABLE_DUNDERS:
                return target
        elif (
            kind in self._made
            or kind in _DATA_TYPES
            or kind in _WRITABLE
            or is_program_code(target)
            or self._is_class(target)
            or issubclass(kind, BaseException)
            or self._classes.owns(kind)
        ):
            return target
        shown = f"type object {target.__name__!r}" if issubclass(kind, type) else f"{kind.__name__!r} object"
        raise AttributeError(f"{shown} attribute {name!r} is read-only in this sandbox", name=name)

    def guarded(self, target: Any, name: str) -> Any:
        """Reads an attribute whose name is in `names.GUARDED`."""
        value = getattr(target, name)
        if name == "obj":
            return None if isinstance(target, AttributeError) else value
        # Not by identity: a method written in C may be of a subclass of its type, and is since 3.12.
        if not issubclass(type(value), _CALLABLES) or is_program_code(value):
            return value
        if name in ("format", "format_map"):
            return self._template_method(name, value)
        raise AttributeError(attribute_refusal(name), name=name)

    def _template_method(self, name: str, value: Any) -> Any:
        bound = issubclass(type(value), types.BuiltinFunctionType)
        if bound and issubclass(type(value.__self__), str):
            template: Any = value.__self__
            return self.templates.bound(template) if name == "format" else self.templates.bound_map(template)
        if type(value) is types.MethodDescriptorType and value.__objclass__ is str:
            return self.templates.unbound if name == "format" else self.templates.unbound_map
        return value

    def dunder(self, target: Any, name: str) -> Any:
        """Reads an attribute whose name belongs to the language itself."""
        kind = type(target)
        if name in ("__setattr__", "__delattr__"):
            return self._checked_access(target, name)
        if name in ("__annotations__", "__module__", "__slots__", "__match_args__", "__dataclass_fields__"):
            return self._of_program(target, name)
        if name == "__class__":
            if self._classes.owns(kind) or self._is_class(target) or issubclass(kind, BaseException):
                return class_of(target)
        elif name == "__dict__":
            if kind is types.SimpleNamespace or self._classes.owns(kind):
                return target.__dict__
        elif name in ("__init__", "__new__", "__init_subclass__", "__post_init__"):
            if kind is super or issubclass(kind, type) or self._classes.owns(kind):
                return getattr(target, name)
        elif name in READABLE_DUNDERS:
            value = getattr(target, name)
            if _may_be_given(name, value, target):
                return value
        raise AttributeError(attribute_refusal(name), name=name)

    def _of_program(self, target: Any, name: str) -> Any:
        if self._classes.owns(type(target)) or self._is_class(target) or is_program_code(target):
            value = getattr(target, name)
            # What is changed in a copy changes no class; of fields, a class that is derived would become source text.
            return dict(value) if name in ("__annotations__", "__dataclass_fields__") else value
        raise AttributeError(attribute_refusal(name), name=name)

    def _checked_access(self, target: Any, name: str) -> Callable[..., None]:
        """Returns `__setattr__` or `__delattr__` of a class or of `super()`, for the program's objects only."""
        raw = getattr(target, name)
        if is_program_code(raw):
            return raw
        unbound = issubclass(type(target), type)

        def access(*args: Any) -> None:
            place = 1 if unbound else 0
            receiver = args[0] if unbound and args else getattr(raw, "__self__", None)
            if len(args) > place:
                named = _exact_name(args[place])
                self._may_write(receiver, named)
                args = (*args[:place], named, *args[place + 1 :])
            raw(*args)

        access.__name__ = name
        return access

    def kind_name(self, target: Any, name: str) -> str:
        """Reads `target.__class__.__name__`, which is harmless on any object."""
        return self.dunder(class_of(target), name)

    # The builtins that take a name

    def getattr(self, target: Any, name: str, default: Any = _MISSING, /) -> Any:
        """The program's `getattr`."""
        try:
            return self._read(target, _exact_name(name))
        except AttributeError:
            if default is _MISSING:
                raise
            return default

    def _read(self, target: Any, name: str) -> Any:
        kind = kind_of(name)
        if kind == "public":
            return getattr(target, name)
        if kind == "private":
            return getattr(self.own(target, name), name)
        if kind == "guarded":
            return self.guarded(target, name)
        if kind == "dunder":
            return self.dunder(target, name)
        raise AttributeError(attribute_refusal(name), name=name)

    def hasattr(self, target: Any, name: str, /) -> bool:
        """The program's `hasattr`."""
        try:
            self._read(target, _exact_name(name))
        except AttributeError:
            return False
        return True

    def setattr(self, target: Any, name: str, value: Any, /) -> None:
        """The program's `setattr`."""
        named = _exact_name(name)
        setattr(self._may_write(target, named), named, value)

    def delattr(self, target: Any, name: str, /) -> None:
        """The program's `delattr`."""
        named = _exact_name(name)
        delattr(self._may_write(target, named), named)

    def _may_write(self, target: Any, name: str) -> Any:
        return self.own(target, name) if kind_of(name) == "private" else self.write(target, name)

    def vars(self, *target: Any) -> Any:
        """The program's `vars`, for objects of its own classes."""
        if not target:
            raise TypeError("vars() without an argument is not available in this sandbox; keep a dict of your own")
        (one,) = target
        if self._classes.owns(type(one)) or type(one) is types.SimpleNamespace:
            return vars(one)
        if self._is_class(one):
            return {name: value for name, value in vars(one).items() if kind_of(name) in ("public", "private")}
        raise TypeError("vars() argument must be an object of a class that the program defines")

    def dir(self, *target: Any) -> list[str]:
        """The program's `dir`, without what it may not read."""
        if not target:
            raise TypeError("dir() without an argument is not available in this sandbox")
        own = self._classes.owns(type(target[0])) or self._is_class(target[0])
        shown = ("public", "guarded", "private") if own else ("public", "guarded")
        return [name for name in dir(*target) if isinstance(name, str) and kind_of(name) in shown]

    def _is_class(self, target: object) -> bool:
        return issubclass(type(target), type) and self._classes.owns(target)  # type: ignore[arg-type]


def _exact_name(name: object) -> str:
    """Returns an attribute's name as a plain string: what a subclass says of itself must not be believed."""
    if type(name) is str:
        return name
    if not issubclass(type(name), str):
        raise TypeError(f"attribute name must be string, not {type(name).__name__!r}")
    return str.__str__(name)  # type: ignore[arg-type]
