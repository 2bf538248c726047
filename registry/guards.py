"""Guards: hard limits that may only refuse, asked after every other policy has said yes (contract A48 to A51)."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Protocol, TypeAlias

from .decisions import ErrorInfo, ToolGuardDenial
from .errors import ToolRegistrationError
from .events import callable_name, close_stray, describe_answer
from .scopes import Disposer

if TYPE_CHECKING:
    from .execution import ToolExecution

__all__ = ["GuardTable", "NamedDenial", "ToolGuard"]

NamedDenial: TypeAlias = tuple[ToolGuardDenial, str]


class ToolGuard(Protocol):
    """A hard limit: answers at once with `None`, or with why the call is refused (contract A51)."""

    def __call__(self, exec: ToolExecution, /) -> str | ToolGuardDenial | None: ...  # noqa: A002 - the contract's name


class _Entry:
    """One registration of a guard; the same function twice makes two of them."""

    __slots__ = ("alive", "guard")

    def __init__(self, guard: ToolGuard) -> None:
        self.guard = guard
        self.alive = True


class GuardTable:
    """The guards of one layer, in insertion order.

    A check walks the list by index, so a guard that is added during the check is asked in that same check. When the
    table drains it starts a new list: a check that is under way ends with the old one (contract A50).
    """

    __slots__ = ("_alive", "_entries", "_walks")

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._alive = 0
        self._walks = 0

    def __len__(self) -> int:
        return self._alive

    def add(self, guard: ToolGuard) -> Disposer:
        """Adds a guard, and returns what removes this one entry.

        Raises:
            ToolRegistrationError: the guard is not callable, or is async.
        """
        if not callable(guard):
            raise ToolRegistrationError(f"a guard must be callable, not {type(guard).__name__}")
        if inspect.iscoroutinefunction(guard):
            raise ToolRegistrationError(
                f'a guard must answer at once; {callable_name(guard)} is async (use "tools/pre-execute" to wait)'
            )
        entry = _Entry(guard)
        self._entries.append(entry)
        self._alive += 1
        return Disposer(lambda: self._remove(entry))

    def first_denial(self, exec: ToolExecution) -> NamedDenial | None:  # noqa: A002 - the field's name of a call
        """Asks the guards in order, and returns the first refusal with the name of the guard that made it.

        Raises:
            TypeError: a guard answered something else than `None`, a string or a `ToolGuardDenial`.
            Exception: whatever a guard raised.
        """
        entries = self._entries
        self._walks += 1
        try:
            place = 0
            while place < len(entries):
                entry = entries[place]
                place += 1
                if entry.alive:
                    denial = _normalised(entry.guard, entry.guard(exec))
                    if denial is not None:
                        return denial, callable_name(entry.guard)
        finally:
            self._walks -= 1
        return None

    def _remove(self, entry: _Entry) -> None:
        entry.alive = False
        self._alive -= 1
        if self._alive == 0:
            self._entries = []
        elif self._walks == 0:
            self._entries = [kept for kept in self._entries if kept.alive]


def _normalised(guard: ToolGuard, answer: object) -> ToolGuardDenial | None:
    """Returns the refusal that an answer means: a bare string refuses without an identity (ruling 10)."""
    if answer is None:
        return None
    if isinstance(answer, str):
        return ToolGuardDenial(str(answer))
    if isinstance(answer, ToolGuardDenial):
        _check_parts(guard, answer)
        return answer
    close_stray(answer)
    raise TypeError(
        f"the guard {callable_name(guard)} must answer None, a reason or a ToolGuardDenial, "
        f"not {describe_answer(answer)}"
    )


def _check_parts(guard: ToolGuard, denial: ToolGuardDenial) -> None:
    reason: object = denial.reason
    info: object = denial.info
    problem = None
    if not isinstance(reason, str):
        problem = f"ToolGuardDenial.reason must be a string, not {describe_answer(reason)}"
    elif not isinstance(info, ErrorInfo | None):
        problem = f"ToolGuardDenial.info must be an ErrorInfo, not {describe_answer(info)}"
    if problem is not None:
        raise TypeError(f"the guard {callable_name(guard)} gave a bad answer: {problem}")
