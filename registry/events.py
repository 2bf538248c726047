"""Events: listeners by name and scope, waterfalls that end in a default, and plain notifications (contract C13).

A waterfall hands its listeners one inside the other, the first registered outermost. Each gets a `next` bound to its
own place, so a listener that calls it twice runs everything further in twice (ruling 23).
"""

from __future__ import annotations

import difflib
import inspect
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .errors import ToolRegistrationError
from .scopes import Disposer, ScopeKey, ScopeTree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = [
    "CHANGE",
    "EXECUTE",
    "POST_EXECUTE",
    "PRE_EXECUTE",
    "RESULT",
    "EventBus",
    "Listener",
    "callable_name",
    "close_stray",
    "run_waterfall",
]

T = TypeVar("T")

PRE_EXECUTE: Final = "tools/pre-execute"
EXECUTE: Final = "tools/execute"
POST_EXECUTE: Final = "tools/post-execute"
RESULT: Final = "tools/result"
CHANGE: Final = "tools/change"


def callable_name(function: object) -> str:
    """Returns the name by which a record or message can name a listener or guard."""
    name = getattr(function, "__qualname__", None)
    if not isinstance(name, str):
        name = type(function).__qualname__
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if isinstance(module, str) else name


def close_stray(answer: object) -> None:
    """Closes a coroutine that was returned where a plain value was due, so that it leaves no warning behind."""
    if inspect.iscoroutine(answer):
        answer.close()


class Listener:
    """One listener of one event.

    Attributes:
        function: what is called.
        scope: the scope it was registered from; `None` hears everything.
    """

    __slots__ = ("function", "scope")

    def __init__(self, function: Callable[..., Any], scope: ScopeKey | None) -> None:
        self.function = function
        self.scope = scope

    @property
    def name(self) -> str:
        """The listener's qualified name."""
        return callable_name(self.function)


class _Event:
    """The listeners of one event, and what can be said of them once for many dispatches."""

    __slots__ = ("emits", "listeners", "scoped", "unscoped")

    def __init__(self, *, emits: bool) -> None:
        self.emits = emits
        self.listeners: list[Listener] = []
        self.unscoped: tuple[Listener, ...] = ()
        self.scoped = False

    def changed(self) -> None:
        self.unscoped = tuple(listener for listener in self.listeners if listener.scope is None)
        self.scoped = len(self.unscoped) != len(self.listeners)


class EventBus:
    """The listeners of one registry.

    Args:
        tree: tells which scopes hear of which (contract A5).
    """

    __slots__ = ("_events", "_tree")

    def __init__(self, tree: ScopeTree) -> None:
        self._tree = tree
        self._events: dict[str, _Event] = {}
        for name in (PRE_EXECUTE, EXECUTE, POST_EXECUTE):
            self.declare(name)
        for name in (RESULT, CHANGE):
            self.declare(name, emits=True)

    def declare(self, event: str, *, emits: bool = False) -> None:
        """Makes an event known; a second declaration changes nothing.

        Args:
            event: the event's name.
            emits: whether its listeners are synchronous and only told; otherwise it is a waterfall.
        """
        if event not in self._events:
            self._events[event] = _Event(emits=emits)

    def on(
        self, event: str, listener: Callable[..., Any], *, scope: ScopeKey | None = None, prepend: bool = False
    ) -> Disposer:
        """Installs a listener.

        Args:
            event: a declared event.
            listener: called with what the event carries; the last argument of a waterfall is `next`.
            scope: hears only what happens in this scope and below it; `None` hears everything.
            prepend: stands before the listeners that are there, instead of after them.

        Raises:
            ToolRegistrationError: there is no such event, or an asynchronous listener for a plain notification.
        """
        entry = self._known(event)
        if not callable(listener):
            raise ToolRegistrationError(f'the listener for "{event}" must be callable, not {type(listener).__name__}')
        if entry.emits and inspect.iscoroutinefunction(listener):
            raise ToolRegistrationError(
                f'listeners of "{event}" are only told and must not be async; {callable_name(listener)} is'
            )
        added = Listener(listener, scope)
        if prepend:
            entry.listeners.insert(0, added)
        else:
            entry.listeners.append(added)
        entry.changed()

        def remove() -> None:
            entry.listeners.remove(added)
            entry.changed()

        return Disposer(remove)

    def listeners(self, event: str, scope: ScopeKey | None) -> tuple[Listener, ...]:
        """Returns who hears of a dispatch in `scope`, in order: the list that a dispatch keeps to its end."""
        entry = self._events.get(event) or self._known(event)
        if scope is None or not entry.scoped:
            return entry.unscoped
        chain = self._tree.chain(scope)
        return tuple(
            listener
            for listener in entry.listeners
            if listener.scope is None or any(heard is listener.scope for heard in chain)
        )

    def emit(self, event: str, *args: object) -> None:
        """Tells every listener, of whatever scope; what one raises stops the rest and comes out (contract A14)."""
        for listener in tuple(self._known(event).listeners):
            close_stray(listener.function(*args))

    async def waterfall(
        self,
        event: str,
        scope: ScopeKey | None,
        args: Sequence[object],
        default: Callable[[], Awaitable[T]],
        *,
        expected: tuple[tuple[type, ...], str] | None = None,
    ) -> T:
        """Runs the listeners of an event one inside the other, around `default`.

        Args:
            event: a declared event.
            scope: where it happens.
            args: what each listener gets before its `next`.
            default: the innermost answer.
            expected: the types an answer may have, and their names for the message; anything goes when omitted.

        Raises:
            TypeError: a listener's answer is not of the expected types.
        """
        listeners = self.listeners(event, scope)
        if not listeners:
            return await default()
        answer, _author = await run_waterfall(event, listeners, args, default, expected)
        return answer

    def _known(self, event: str) -> _Event:
        entry = self._events.get(event)
        if entry is not None:
            return entry
        near = difflib.get_close_matches(event, self._events, n=3)
        way_out = (
            f"did you mean {' or '.join(repr(name) for name in near)}?"
            if near
            else "known events: " + ", ".join(sorted(self._events))
        )
        raise ToolRegistrationError(f'there is no event "{event}"; {way_out}')


async def run_waterfall(
    event: str,
    listeners: Sequence[Listener],
    args: Sequence[object],
    default: Callable[[], Awaitable[T]],
    expected: tuple[tuple[type, ...], str] | None,
) -> tuple[T, Listener | None]:
    """Runs captured listeners around `default`.

    Returns:
        the answer, and the listener that made it: the innermost that returned this very object, `None` when it is
        the default's.
    """
    end = len(listeners)
    last: list[Any] = [None, None]

    async def step(place: int) -> T:
        if place == end:
            answer, listener = await default(), None
        else:
            listener = listeners[place]
            waiting = listener.function(*args, lambda: step(place + 1))
            if type(waiting) is not CoroutineType and not inspect.isawaitable(waiting):
                raise TypeError(
                    f'the "{event}" listener {listener.name} must be an async function; it returned '
                    f"{describe_answer(waiting)} at once"
                )
            answer = await waiting
            if expected is not None and not isinstance(answer, expected[0]):
                close_stray(answer)
                raise TypeError(
                    f'the "{event}" listener {listener.name} must answer {expected[1]}, not {describe_answer(answer)}'
                )
        if answer is not last[0]:
            last[0], last[1] = answer, listener
        return answer

    answer = await step(0)
    return answer, last[1]


def describe_answer(answer: object) -> str:
    """Says in a few words what came where something else was due."""
    if answer is None:
        return "None (is a `return` missing?)"
    if inspect.iscoroutine(answer):
        return "a coroutine (is an `await` missing?)"
    if isinstance(answer, type):
        return f"the class {answer.__name__} (make an instance of it)"
    if isinstance(answer, bool | int | float | str):
        return f"{type(answer).__name__} {answer!r}"[:80]
    return type(answer).__name__
