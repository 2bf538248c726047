"""The names of attributes, sorted by what it takes to read them.

Most names are harmless on every object that a program can hold, so reading them costs nothing extra. That rests on two
things: programs are never given an object that holds a dangerous one under a public name (`catalogue` lists what they
are given, and a test walks all of it), and the names below are the exceptions.
"""

from __future__ import annotations

import types
from typing import Literal

from RestrictedPython.transformer import INSPECT_ATTRIBUTES

__all__ = [
    "DEFINABLE",
    "DENIED",
    "GUARDED",
    "LITERAL_ONLY",
    "MODULE_DUNDERS",
    "PROTOCOL",
    "READABLE_DUNDERS",
    "TUPLE_NAMES",
    "WRITABLE_DUNDERS",
    "Kind",
    "is_dunder",
    "kind_of",
]

Kind = Literal["public", "guarded", "private", "dunder", "denied"]


def _public_names(*kinds: type) -> frozenset[str]:
    return frozenset(name for kind in kinds for name in dir(kind) if not name.startswith("_"))


_PREFIXES = ("gi_", "cr_", "ag_", "tb_", "f_", "co_")
_INTERPRETER_TYPES = (
    types.FrameType,
    types.CodeType,
    types.TracebackType,
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
)

DENIED = frozenset(INSPECT_ATTRIBUTES) | frozenset(
    name for name in _public_names(*_INTERPRETER_TYPES) if name.startswith(_PREFIXES)
)
"""Public names that lead from a generator, a coroutine or a traceback into the interpreter; no program needs one."""

GUARDED = frozenset(
    {
        "evaluate",  # of a forward reference: evaluates its text
        "format",  # of str: its template reads attributes
        "format_map",
        "get_context",  # of a task
        "get_coro",
        "get_loop",
        "get_stack",
        "mro",  # of a class: the bases that stand behind it
        "obj",  # of AttributeError: the object, where only its error was given
        "print_stack",
    }
)
"""Public names that are harmless on a program's own objects and not on some others: looked at when they are read."""

TUPLE_NAMES = frozenset({"_asdict", "_field_defaults", "_fields", "_make", "_name_", "_replace", "_value_"})
"""Underscored names that are public by their documentation, of named tuples and enumerations."""

_PROTOCOL = """
    abs add aenter aexit aiter and anext await bool bytes call ceil complex contains copy deepcopy delitem
    divmod enter eq exit float floor floordiv format ge getitem gt hash iadd iand ifloordiv ilshift imatmul
    imod imul index int invert ior ipow irshift isub iter itruediv ixor le len length_hint lshift lt matmul
    missing mod mul ne neg next or pos pow radd rand rdivmod reversed rfloordiv rlshift rmatmul rmod rmul ror
    round rpow rrshift rshift rsub rtruediv rxor setitem str repr sub truediv trunc xor
"""
PROTOCOL = frozenset(f"__{name}__" for name in _PROTOCOL.split())
"""Methods that an operator or a builtin calls: a program that reads one can do no more than with the operator."""

_MAKING = frozenset({"__init__", "__init_subclass__", "__new__", "__post_init__"})
_DESCRIPTOR = frozenset({"__delete__", "__get__", "__set__", "__set_name__"})
_ACCESS = frozenset({"__delattr__", "__getattr__", "__setattr__"})

DEFINABLE = (
    PROTOCOL
    | _MAKING
    | _DESCRIPTOR
    | _ACCESS
    | {"__class_getitem__", "__del__", "__dir__", "__fspath__", "__replace__"}
)
"""Methods that a class of the program may define."""

LITERAL_ONLY = frozenset({"__match_args__", "__slots__"})
"""Names of a class body that may only be given a literal: Python takes them for names of attributes."""

READABLE_DUNDERS = (
    PROTOCOL
    | _MAKING
    | _DESCRIPTOR
    | _ACCESS
    | {
        "__annotations__",
        "__cause__",
        "__class__",
        "__dataclass_fields__",
        "__dict__",
        "__doc__",
        "__match_args__",
        "__members__",
        "__module__",
        "__name__",
        "__notes__",
        "__qualname__",
        "__slots__",
        "__suppress_context__",
        "__version__",
    }
)
"""Names that may be read, each under its own rule (`attributes.AttributeGuards.dunder`)."""

MODULE_DUNDERS = frozenset({"__all__", "__author__", "__version__"})
"""What a module says of itself; plain names to Python."""

WRITABLE_DUNDERS = frozenset({"__doc__", "__name__", "__qualname__"})
"""What a decorator gives to the function that it makes."""


def is_dunder(name: str) -> bool:
    """Tells whether a name belongs to the language itself."""
    return name.startswith("__") and name.endswith("__") and len(name) > 4


def kind_of(name: str) -> Kind:
    """Tells how an attribute of this name may be read."""
    if not name.startswith("_"):
        if name in DENIED:
            return "denied"
        return "guarded" if name in GUARDED else "public"
    if name == "_" or name in TUPLE_NAMES:
        return "public"
    return "dunder" if is_dunder(name) else "private"
