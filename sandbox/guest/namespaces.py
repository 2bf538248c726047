"""What a program calls: one object for each namespace, its members, and calls that are still to be awaited.

`await tools.search(query="x")`, `await tools.search({"query": "x"})` and `await tools["search"](query="x")` are the
same call (ruling 35). A call that is never awaited does not run, and the program is told so (ruling 37).
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import Any

from .jsontext import LossyValueError, encode
from .loop import GuestLoop
from .program import FILENAME

__all__ = ["CallLedger", "PendingCall", "make_error_class", "make_namespace"]


class CallLedger:
    """The calls of one run that were made but not started yet."""

    def __init__(self) -> None:
        self.waiting: dict[int, PendingCall] = {}

    def never_awaited(self) -> list[str]:
        """Returns one phrase for each call that the program made and never awaited, in order."""
        return [f"{call.title} on line {call.line}" for call in self.waiting.values()]


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

    def _misused(self, *_args: object) -> Any:
        raise TypeError(f"{self.title} on line {self.line} was not awaited; write `await {self.title}`")

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "cr_", "gi_", "_asyncio")):
            raise AttributeError(name)
        return self._misused()

    __getitem__ = __iter__ = __len__ = __bool__ = __contains__ = __str__ = __format__ = _misused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __mod__ = _misused
    __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __index__ = __call__ = _misused


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
        near = difflib.get_close_matches(str(member), functions, n=3, cutoff=0.6)
        if near:
            return f"{name} has no member {member!r}; did you mean {' or '.join(repr(other) for other in near)}?"
        listed = ", ".join(sorted(functions)[:20]) or "none"
        return f"{name} has no member {member!r}; there are: {listed}" + (", ..." if len(functions) > 20 else "")

    class UnknownMemberError(KeyError):
        def __str__(self) -> str:
            return str(self.args[0])

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
        except KeyError:
            raise UnknownMemberError(unknown(member)) from None

    def refuse(_self: object, *_args: object) -> None:
        raise AttributeError(f"{name} cannot be changed")

    kind = type(
        name,
        (),
        {
            "__slots__": (),
            "__module__": "__main__",
            "__doc__": "The tools that this program may call.",
            "__getattribute__": getattribute,
            "__getitem__": getitem,
            "__setattr__": refuse,
            "__delattr__": refuse,
            "__dir__": lambda _self: sorted(functions),
            "__contains__": lambda _self, member: member in functions,
            "__repr__": lambda _self: f"<{name}: {len(functions)} members>",
        },
    )
    return kind()


def _make_member(
    namespace: str,
    member: str,
    parameters: list[str],
    fail: Callable[[str, str], Exception],
    loop: GuestLoop,
    ledger: CallLedger,
) -> Callable[..., PendingCall]:
    title = f"{namespace}.{member}" if member.isidentifier() else f"{namespace}[{member!r}]"

    target = f"{encode(namespace, 'namespace')},{encode(member, 'member')}"

    async def carry(arguments: str, refusal: str | None, line: int) -> object:
        if refusal is not None:
            raise fail(refusal, member)
        ok, value = await loop.submit(target, arguments, f"{title}(...)", line)  # type: ignore[misc]
        if not ok:
            raise fail(str(value), member)
        return value

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
    if len(args) == 1 and isinstance(args[0], dict):
        if kwargs:
            raise TypeError(f"{title} takes one mapping or keyword arguments, not both")
        return args[0]
    if len(args) > len(parameters):
        known = ", ".join(parameters)
        raise TypeError(
            f"{title} takes {len(parameters)} positional argument{'' if len(parameters) == 1 else 's'}"
            f"{f' ({known})' if known else ''} but {len(args)} were given; use keywords or one mapping"
        )
    named: dict[object, object] = dict(zip(parameters, args, strict=False))
    for key, value in kwargs.items():
        if key in named:
            raise TypeError(f"{title} got two values for argument {key!r}")
        named[key] = value
    return named


def _program_line() -> int:
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != FILENAME:
        frame = frame.f_back  # type: ignore[assignment]
    return frame.f_lineno if frame is not None else 0
