"""What a program calls: one object for each namespace, its members, and calls that are still to be awaited.

`await tools.search(query="x")`, `await tools.search({"query": "x"})` and `await tools["search"](query="x")` are the
same call (ruling 35). A call that is never awaited does not run, and the program is told so (ruling 37).
"""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import types
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from typing import Any, Final

from .intrinsics import INTRINSICS
from .jsontext import LossyValueError, encode
from .loop import GuestLoop
from .program import FILENAME
from .tracebacks import MadeCall, remember_call

__all__ = ["CallLedger", "CalledObject", "PendingCall", "make_error_class", "make_namespace", "written"]

__builtins__ = INTRINSICS

_CUTOFF: Final = 0.6
_CLEARLY: Final = 0.8
"""Likeness of names from which on less like ones are not told."""
_MOST_LISTED: Final = 20
_COROUTINE: Final = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class CallLedger:
    """The calls of one run that were made but not started yet."""

    def __init__(self) -> None:
        self.waiting: dict[int, PendingCall] = {}

    def never_awaited(self) -> list[str]:
        """Returns one phrase for each place where the program made calls and never awaited them, in order."""
        counted: dict[str, int] = {}  # no `Counter`: it is made of builtins that a program may have changed
        for call in self.waiting.values():
            place = f"{call.title} on line {call.line}"
            counted[place] = counted.get(place, 0) + 1
        return [f"{one} ({count} times)" if count > 1 else one for one, count in counted.items()]


class PendingCall(Coroutine[Any, Any, Any]):
    """A call that has been written down; awaiting it makes it.

    It is a coroutine to asyncio, so `gather`, `create_task` and `wait_for` take it. Anything else that a program
    might do with it as if it were the value fails, and says to await it.
    """

    __slots__ = ("__weakref__", "_inner", "_ledger", "line", "title")

    def __init__(self, title: str, line: int, inner: Coroutine[Any, Any, Any], ledger: CallLedger) -> None:
        self.title = title
        self.line = line
        self._inner = inner
        self._ledger = ledger
        ledger.waiting[id(self)] = self

    def __await__(self) -> Generator[Any, Any, Any]:
        self._started()
        return self._inner.__await__()

    def send(self, value: Any) -> Any:
        self._started()
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        self._started()
        return self._inner.throw(*error)

    def close(self) -> None:
        self._started()
        self._inner.close()

    def _started(self) -> None:
        self._ledger.waiting.pop(id(self), None)

    def __repr__(self) -> str:
        return f"<{self.title}, not awaited>"

    def _refusal(self, part: str = "") -> str:
        text = f"{self.title} on line {self.line} was not awaited; write `await {self.title}`"
        if part:
            text += f", with parentheses to go on from there: `(await {self.title}){part}`"
        around = _function_around()
        return f"{text}; for that `{around}` must be an `async def`, and be awaited itself" if around else text

    def _misused(self, *_args: object) -> Any:
        raise TypeError(self._refusal())

    def _subscripted(self, *_args: object) -> Any:
        raise TypeError(self._refusal("[...]"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "cr_", "gi_", "_asyncio")):
            raise AttributeError(name)
        # `{**call}` asks for `keys`, and so may a program.
        raise TypeError(self._refusal("" if name == "keys" else f".{name}"))

    __getitem__ = __setitem__ = __delitem__ = _subscripted
    __iter__ = __reversed__ = __len__ = __bool__ = __contains__ = __str__ = __format__ = _misused
    __aiter__ = __enter__ = __exit__ = __aenter__ = __aexit__ = _misused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _misused
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = __round__ = _misused
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __invert__ = _misused
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __index__ = __call__ = _misused


PendingCall.__module__ = "builtins"  # where Python tells a type's module, this one's says nothing to a program


def _function_around() -> str | None:
    """Returns the name of the program's function that runs now, when it is one that cannot await."""
    frame = _program_frame()
    if frame is None or frame.f_code.co_flags & _COROUTINE or frame.f_code.co_name.startswith("<"):
        return None
    return frame.f_code.co_name


def make_error_class(name: str, member_property: str) -> type[Exception]:
    """Makes the run's own error class, whose instances tell which member failed (contract F13)."""

    def initialise(self: Exception, message: str = "", member: str = "") -> None:
        Exception.__init__(self, message)
        setattr(self, member_property, member)
        self.message = message  # type: ignore[attr-defined]

    return type(
        name,
        (Exception,),
        {"__init__": initialise, "__module__": "__main__", "__doc__": "A tool call failed.", "name": name},
    )


class CalledObject:
    """The object behind a global name such as `tools`; each is the only one of a class of its own."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        """The names of the members."""
        raise NotImplementedError

    def __contains__(self, member: object) -> bool:
        raise NotImplementedError


def written(namespace: str, member: str) -> str:
    """Returns how a program writes a member of a namespace."""
    return f"{namespace}.{member}" if _is_attribute(member) else f"{namespace}[{member!r}]"


class _UnknownMemberError(KeyError):
    def __str__(self) -> str:
        return str(self.args[0])


_UnknownMemberError.__module__ = "builtins"
_UnknownMemberError.__name__ = _UnknownMemberError.__qualname__ = "KeyError"


def _is_attribute(member: str) -> bool:
    return member.isidentifier() and not member.startswith("_")


def make_namespace(
    name: str,
    members: Mapping[str, list[str]],
    fail: Callable[[str, str], Exception],
    loop: GuestLoop,
    ledger: CallLedger,
) -> object:
    """Makes the object behind a global name such as `tools`.

    Args:
        name: the global name.
        members: each member's name, and the names of its parameters in order, for positional arguments.
        fail: makes what a failed call raises, of its message and the member's name.
        loop: the run's loop.
        ledger: where calls wait that were not awaited yet.
    """
    functions = {member: _make_member(name, member, names, fail, loop, ledger) for member, names in members.items()}

    def unknown(member: object) -> str:
        near = [repr(one) if _is_attribute(one) else written(name, one) for one in _near(str(member), functions)]
        if near:
            return f"{name} has no member {member!r}; did you mean {' or '.join(near)}?"
        listed = ", ".join(sorted(functions)[:_MOST_LISTED]) or "none"
        more = ", ..." if len(functions) > _MOST_LISTED else ""
        return f"{name} has no member {member!r}; there are: {listed}{more}"

    def getattribute(_self: object, member: str) -> object:
        if not member.startswith("_"):
            found = functions.get(member)
            if found is not None:
                return found
            raise AttributeError(unknown(member))
        if member in ("__class__", "__dir__", "__doc__"):
            return object.__getattribute__(_self, member)
        if member in functions:
            raise AttributeError(f"{name}.{member} starts with an underscore; write {name}[{member!r}]")
        raise AttributeError(unknown(member))

    def getitem(_self: object, member: str) -> object:
        try:
            return functions[member]
        except (KeyError, TypeError):
            raise _UnknownMemberError(unknown(member)) from None

    def refuse(_self: object, *_args: object) -> None:
        raise AttributeError(f"{name} cannot be changed")

    def called(_self: object, *_args: object, **_kwargs: object) -> None:
        raise TypeError(f"{name} is no function; call a member of it, as in `await {name}.<name>(...)`")

    kind = type(
        name,
        (CalledObject,),
        {
            "__slots__": (),
            "__module__": "__main__",
            "__doc__": "The tools that this program may call.",
            "__getattribute__": getattribute,
            "__getitem__": getitem,
            "__setattr__": refuse,
            "__delattr__": refuse,
            "__call__": called,
            "__dir__": lambda _self: sorted(functions),
            "__iter__": lambda _self: iter(sorted(functions)),
            "__contains__": lambda _self, member: member in functions,
            "__repr__": lambda _self: f"<{name}: {len(functions)} members>",
        },
    )
    return kind()


def _near(member: str, functions: Mapping[str, object]) -> list[str]:
    """Returns the names that may have been meant, most like first."""
    # `tools.get-weather` asks for `get`, and then subtracts.
    hyphened = [one for one in sorted(functions) if not one.isidentifier() and re.match(rf"{re.escape(member)}\W", one)]
    if hyphened:
        return hyphened[:3]
    near = difflib.get_close_matches(member, functions, n=3, cutoff=_CUTOFF)
    clear = difflib.get_close_matches(member, functions, n=3, cutoff=_CLEARLY)
    return clear or near


def _make_member(
    namespace: str,
    member: str,
    parameters: list[str],
    fail: Callable[[str, str], Exception],
    loop: GuestLoop,
    ledger: CallLedger,
) -> Callable[..., PendingCall]:
    title = written(namespace, member)
    target = f"{encode(namespace, 'namespace')},{encode(member, 'member')}"

    async def carry(arguments: str, refusal: str | None, line: int) -> object:
        if refusal is None:
            ok, value = await loop.submit(target, arguments, f"{title}(...)", line)  # type: ignore[misc]
            if ok:
                return value
            refusal = str(value)
        failed = fail(refusal, member)
        remember_call(failed, MadeCall(namespace, title, arguments, line))
        raise failed

    def call(*args: object, **kwargs: object) -> PendingCall:
        arguments, refusal = "", None
        try:
            # Taken now: what the program changes later must not change the call.
            arguments = encode(_arguments(title, parameters, args, kwargs), "arguments")
        except LossyValueError as error:
            refusal = f"tool arguments must be lossless JSON: {error}"
        line = _program_line()
        return PendingCall(f"{title}(...)", line, carry(arguments, refusal, line), ledger)

    call.__name__ = call.__qualname__ = member
    call.__module__ = "__main__"
    return call


def _arguments(
    title: str, parameters: list[str], args: tuple[object, ...], kwargs: dict[str, object]
) -> Mapping[object, object]:
    if not args:
        return kwargs  # type: ignore[return-value]
    if len(args) == 1 and issubclass(type(args[0]), dict):
        if kwargs:
            raise TypeError(f"{title} takes one mapping or keyword arguments, not both")
        return args[0]  # type: ignore[return-value]
    if len(args) > len(parameters):
        known = ", ".join(parameters)
        if not parameters:
            given = _counted(len(args))
            raise TypeError(f"{title} takes 0 positional arguments but {given} given; write `await {title}()`")
        raise TypeError(
            f"{title} takes {len(parameters)} positional argument{'' if len(parameters) == 1 else 's'}"
            f" ({known}) but {_counted(len(args))} given; use keywords or one mapping"
        )
    named: dict[object, object] = dict(zip(parameters, args, strict=False))
    for key, value in kwargs.items():
        if key in named:
            raise TypeError(f"{title} got two values for argument {key!r}")
        named[key] = value
    return named


def _counted(given: int) -> str:
    return "1 was" if given == 1 else f"{given} were"


def _program_frame() -> types.FrameType | None:
    """Returns the innermost frame of the program's own that is running."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != FILENAME:
        frame = frame.f_back
    return frame


def _program_line() -> int:
    frame = _program_frame()
    return frame.f_lineno if frame is not None else 0
