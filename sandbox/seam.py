"""The seam between a host and whatever runs programs: one request, one result, and nothing of either backend.

A sandbox knows programs and named async functions. It knows nothing of tools, agents or logs; the runtime hands in
the functions, and gets back what the program printed and returned, or why it failed.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import Literal, Protocol, Self, TypeAlias, runtime_checkable

from .loglines import LogLines

__all__ = [
    "AbortSignal",
    "BindingCall",
    "BindingError",
    "BindingFunction",
    "Deferred",
    "ErrorClass",
    "FailureKind",
    "Guarantees",
    "JsonText",
    "JsonValue",
    "Member",
    "Namespace",
    "RunFailure",
    "RunStatistics",
    "Sandbox",
    "SandboxError",
    "SandboxMisuseError",
    "SandboxRequest",
    "SandboxResult",
    "SandboxUnavailableError",
]

JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"


class SandboxError(Exception):
    """Base of what a sandbox raises to its host. What a program does wrong is never raised (contract F1)."""


class SandboxMisuseError(SandboxError):
    """`run` was called after disposal, or with bindings that are not valid (contract F2)."""


class SandboxUnavailableError(SandboxError):
    """The sandbox cannot be made to work on this machine; the message says what is missing and what to do."""


class BindingError(Exception):
    """Raised by a binding function to fail a call with exactly this message (contract F37)."""


class FailureKind(enum.StrEnum):
    """Why a program did not complete (contract F3, ruling 8)."""

    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    ABORT = "abort"
    WORKER_EXIT = "worker-exit"
    INVALID_OUTPUT = "invalid-output"
    OUTPUT_LIMIT = "output-limit"
    PROTOCOL = "protocol"
    SANDBOX_UNAVAILABLE = "sandbox-unavailable"


class AbortSignal(Protocol):
    """What a sandbox needs of a caller's cancellation signal."""

    @property
    def aborted(self) -> bool: ...

    @property
    def reason(self) -> object: ...

    def subscribe(self, observer: Callable[[object], None]) -> Callable[[], None]: ...


@dataclass(frozen=True, slots=True)
class BindingCall:
    """One call that a program makes.

    Attributes:
        namespace: the global that it was made on.
        member: the function's name.
        arguments: the arguments, as JSON that the sandbox has checked.
        line: the line of the program, as the program's side tells it; 0 when it does not know. It is a hint for
            people who read records, never a fact to decide on.
    """

    namespace: str
    member: str
    arguments: JsonValue
    line: int


@dataclass(frozen=True, slots=True)
class JsonText:
    """A value that is JSON text already, and known to be lossless: it crosses as it is."""

    text: str


@runtime_checkable
class Deferred(Protocol):
    """An answer that comes later without a task that waits for it.

    A binding function may return one in place of a coroutine, when its host settles calls by itself: a task for each
    call is then saved. `asyncio.Future` is one.
    """

    def add_done_callback(self, callback: Callable[[Self], object], /) -> object:
        """Has `callback(self)` called on the event loop once the answer is there."""
        ...

    def result(self) -> JsonValue | JsonText:
        """Returns the answer, or raises what failed the call."""
        ...


BindingFunction: TypeAlias = "Callable[[BindingCall], Awaitable[JsonValue | JsonText] | Deferred]"


@dataclass(frozen=True, slots=True)
class Member:
    """One function of a namespace.

    Attributes:
        function: `async (call) -> JSON`, as a value or as `JsonText`. Calls are made in the program's order; what they
            return is awaited side by side, or watched when it is a `Deferred`. What is awaited is cancelled when the
            run ends before it does; work that must be finished is its own to shield (contract F25). A `BindingError`
            fails the call with that message, any other exception with its own message.
        parameters: the names of its parameters in order, so that a program may pass them by position.
    """

    function: BindingFunction
    parameters: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """The exception class that a namespace's failed calls raise inside the program (contract F13).

    Attributes:
        name: the class's global name.
        member_property: the attribute that holds the member's name.
    """

    name: str
    member_property: str


@dataclass(frozen=True, slots=True)
class Namespace:
    """One global object of a program (contract F12).

    Attributes:
        name: the global name.
        members: its functions, by any name.
        error_class: what failed calls raise; a plain `RuntimeError` when `None`.
    """

    name: str
    members: Mapping[str, Member]
    error_class: ErrorClass | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRequest:
    """What to run (contract F1).

    Attributes:
        program: Python source, the body of an async function (contract F5).
        namespaces: the globals that the program may call.
        signal: kills the run when it fires (contract F21).
    """

    program: str
    namespaces: Sequence[Namespace] = ()
    signal: AbortSignal | None = None


@dataclass(frozen=True, slots=True)
class RunFailure:
    """Why the program did not complete, in words for whoever wrote it."""

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatistics:
    """What a run took.

    Attributes:
        compute_ms: milliseconds in which the program had control.
        wall_ms: milliseconds from request to result.
        calls: how many calls it made.
    """

    compute_ms: float = 0.0
    wall_ms: float = 0.0
    calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    """What came of a run; a failed run has no value (contract F1, F5).

    Attributes:
        logs: what the program wrote, one entry for each line (ruling 36). It is a tuple; more than 100,000 lines are a
            `LogLines`, which compares with tuples and makes its lines as they are read.
        value_json: the JSON text of what it returned; `None` when it returned nothing.
        error: why it failed; `None` when it completed.
        statistics: what the run took.
    """

    logs: tuple[str, ...] | LogLines = ()
    value_json: str | None = None
    error: RunFailure | None = None
    statistics: RunStatistics = field(default_factory=RunStatistics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantees:
    """What a backend enforces, as data (ruling 41). Each text says by what means; empty means not enforced.

    Attributes:
        memory: a program has no more than so much.
        compute: a program has control no longer than so long, also in a loop that never waits.
        wall: a run takes no longer than so long.
        files: a program reaches no file of the host.
        network: a program reaches no network.
        environment: a program sees no environment, arguments and descriptors of the host.
        processes: a program starts no process and no thread, and signals none.
        syscalls: a program makes no system call but those that computing needs.
    """

    memory: str
    compute: str
    wall: str
    files: str
    network: str
    environment: str
    processes: str
    syscalls: str

    def require(self, names: Sequence[str]) -> None:
        """Checks that these are enforced.

        Args:
            names: fields of this class, for example `["memory", "network"]`.

        Raises:
            ValueError: there is no such guarantee.
            SandboxUnavailableError: some are not enforced; the message names them.
        """
        known = [one.name for one in fields(self)]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"there is no guarantee {unknown[0]!r}; there are: {', '.join(known)}")
        missing = [name for name in known if name in names and not getattr(self, name)]
        if missing:
            raise SandboxUnavailableError(
                f"this sandbox does not enforce {', '.join(missing)} on this machine; use a backend that does, or "
                "require less"
            )


@runtime_checkable
class Sandbox(Protocol):
    """Something that runs programs. Entered as an async context manager, it disposes itself on leaving."""

    @property
    def language(self) -> Literal["python"]:
        """The language of the programs."""
        ...

    @property
    def isolation(self) -> Literal["wasm", "process"]:
        """By what the program is contained."""
        ...

    @property
    def guarantees(self) -> Guarantees:
        """What is enforced, and how."""
        ...

    async def run(self, request: SandboxRequest) -> SandboxResult:
        """Runs one program in fresh state, and returns when all of it has ended (contract F23).

        Raises:
            SandboxMisuseError: after disposal, or for bindings that are not valid (contract F2).
            SandboxUnavailableError: when the backend cannot be made ready.
        """
        ...

    async def prepare(self) -> None:
        """Makes ready what the first run needs, so that it does not wait for it."""
        ...

    async def aclose(self) -> None:
        """Ends all runs as `abort`, waits for them, and refuses later ones; calling it again does nothing (F24)."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
