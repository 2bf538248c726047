"""One background job: what its starter gives, what callers see, and what the service keeps (contract J1 to J9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast

import anyio
from typing_extensions import TypedDict

from ...registry.events import close_stray, describe_answer
from ...registry.pipeline.outcome import printable

if TYPE_CHECKING:
    from ...registry import ScopeKey
    from ..agent import Agent
    from .record import JobRecord

__all__ = [
    "EndStatus",
    "Job",
    "JobChange",
    "JobHandle",
    "JobOutcome",
    "JobRun",
    "JobSnapshot",
    "JobStatus",
    "RunningJob",
    "access_key",
    "as_outcome",
]

EndStatus: TypeAlias = Literal["completed", "killed", "failed"]
JobStatus: TypeAlias = Literal["running", "stopping", "completed", "killed", "failed"]
"""A job is running, then perhaps stopping, and then for good one of the other three (contract J1)."""

_ENDS: Final[dict[object, EndStatus]] = {"completed": "completed", "killed": "killed", "failed": "failed"}


class JobHandle(TypedDict):
    """What a tool returns that has started a job, so that programs need not parse prose (contract J15).

    Attributes:
        kind: tells it from other values that such a tool may return.
        jobId: what `job_output` and `job_kill` are given.
    """

    kind: Literal["background"]
    jobId: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """How a job ended (contract J6).

    Attributes:
        status: `completed`, `killed` or `failed`.
        detail: a few words for the status line, for example `exit code 2`.
        output: the whole output of a job that has no `read_output`; of another one it is passed over.
    """

    status: EndStatus
    detail: str | None = None
    output: str | None = None


class RunningJob(Protocol):
    """What `run` returns of work that it has begun (contract J4). It may have `read_output` too; see `JobRun`."""

    @property
    def done(self) -> Awaitable[JobOutcome | Mapping[str, Any]]: ...

    def cancel(self, reason: str | None, /) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobRun:
    """A ready `RunningJob`.

    Attributes:
        cancel: `(reason) -> None`, synchronous: asks the work to stop. It may be called more than once, also when
            the work has just ended; what it raises is told to whoever asked, and then nothing has changed.
        done: settles with a `JobOutcome`, or a mapping with the same keys, once nothing of the work runs any more.
            To raise is a breach: the job has then failed with that text, and a warning is logged (contract J6).
        read_output: `() -> str`, synchronous: what was written since the last time. A job that has none is one with
            final output, which its outcome brings (contract J9).
    """

    cancel: Callable[[str | None], object]
    done: Awaitable[JobOutcome | Mapping[str, Any]]
    read_output: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSnapshot:
    """A job as it was at one moment (contract J8).

    Attributes:
        id: `<kind>-<n>`.
        kind: what sort of work it is.
        label: what it is, for people and models.
        status: where it stands.
        detail: what its outcome said beside the status.
        started_at: when it started, in milliseconds since 1970 UTC.
        finished_at: when it ended, likewise; `None` while it is live.
        reported: whether its end has been told, so that no notice is needed.
        output_limit_bytes: how much of its output a model is shown at once, in UTF-8 bytes.
        owner_session: the id of its owner's session, if it has an owner that has one.
    """

    id: str
    kind: str
    label: str
    status: JobStatus
    detail: str | None
    started_at: int
    finished_at: int | None
    reported: bool
    output_limit_bytes: int | None
    owner_session: str | None

    @property
    def ended(self) -> bool:
        """Whether the status is a last one."""
        return self.status in _ENDS


@dataclass(frozen=True, slots=True)
class JobChange:
    """What has happened to a job, for observers (contract J12, J13).

    Attributes:
        what: what happened; after `removed` nobody can reach the job any more.
        job: the job after it.
    """

    what: Literal["started", "stopping", "settled", "removed"]
    job: JobSnapshot


class Job:
    """A job as the service keeps it. Only the service changes it.

    Attributes:
        access: who may reach it: everybody for `None`, else callers with the same `access_key` (contract J7).
        claimed: whether its outcome is decided; later ones do not count (contract J12).
        waiters: those who wait for its end.
        ended: is set when it has one.
        watching: the scope of the task that awaits `done`.
    """

    __slots__ = (
        "access", "claimed", "detail", "ended", "finished_at", "id", "kind", "label", "limit", "output", "owner",
        "record", "reported", "running", "started_at", "status", "waiters", "watching",
    )  # fmt: skip

    def __init__(
        self,
        id: str,  # noqa: A002 - the field's name
        kind: str,
        label: str,
        *,
        owner: Agent | None,
        limit: int | None,
        running: JobRun,
        record: JobRecord,
        started_at: int,
    ) -> None:
        self.id: Final = id
        self.kind: Final = kind
        self.label: Final = label
        self.owner: Final = owner
        self.access: Final = None if owner is None else access_key(owner)
        self.limit: Final = limit
        self.running: Final = running
        self.record: Final = record
        self.started_at: Final = started_at
        self.status: JobStatus = "running"
        self.detail: str | None = None
        self.output = ""
        self.finished_at: int | None = None
        self.reported = False
        self.claimed = False
        self.waiters: dict[object, anyio.Event] = {}
        self.ended = anyio.Event()
        self.watching = anyio.CancelScope(shield=True)

    @property
    def live(self) -> bool:
        return self.status not in _ENDS

    def may_be_reached_by(self, caller: ScopeKey | None) -> bool:
        """Tells whether a caller's session is that of the owner; a job without owner is everybody's (contract J7)."""
        if self.access is None:
            return True
        key = None if caller is None else access_key(caller)
        return key == self.access if isinstance(key, str) and isinstance(self.access, str) else key is self.access

    def cancel(self, reason: str | None) -> None:
        """Asks the work to stop.

        Raises:
            TypeError: `cancel` is asynchronous.
            Exception: whatever `cancel` raised.
        """
        answer = self.running.cancel(reason)
        if hasattr(answer, "__await__"):
            close_stray(answer)
            raise TypeError(f"cancel of job {self.id} must be a plain function; it returned {describe_answer(answer)}")

    def read(self) -> str:
        """Returns the output since the last time, or the final output (contract J9).

        Raises:
            TypeError: `read_output` did not return text.
            Exception: whatever it raised.
        """
        if self.running.read_output is None:
            return self.output
        text: object = self.running.read_output()
        if not isinstance(text, str):
            close_stray(text)
            raise TypeError(f"read_output of job {self.id} must return text, not {describe_answer(text)}")
        return printable(text)

    def snapshot(self) -> JobSnapshot:
        return JobSnapshot(
            id=self.id,
            kind=self.kind,
            label=self.label,
            status=self.status,
            detail=self.detail,
            started_at=self.started_at,
            finished_at=self.finished_at,
            reported=self.reported,
            output_limit_bytes=self.limit,
            owner_session=self.access if isinstance(self.access, str) else None,
        )


def access_key(scope: ScopeKey) -> object:
    """Returns what tells whose jobs a scope may reach: its session's id, or the scope when it has no session."""
    session_id = getattr(scope.session, "id", None)
    return session_id if isinstance(session_id, str) else scope


def checked_run(running: object) -> JobRun:
    """Returns what `run` returned, if it is a job; its members are read once.

    Raises:
        TypeError: it is not; what can be cancelled of it has been.
    """
    cancel, done = getattr(running, "cancel", None), getattr(running, "done", None)
    read_output = getattr(running, "read_output", None)
    problem = None
    if hasattr(running, "__await__"):  # a task has `cancel` and `done` too, and they are something else
        problem = f"run() must be a plain function, but it returned {describe_answer(running)}"
        close_stray(running)
    elif not callable(cancel) or not hasattr(done, "__await__"):
        problem = f"run() must return a JobRun, with cancel and an awaitable done, not {describe_answer(running)}"
    elif read_output is not None and not callable(read_output):
        problem = f"read_output must be a function, not {describe_answer(read_output)}"
    if problem is None:
        return JobRun(cancel=cast("Any", cancel), done=cast("Any", done), read_output=cast("Any", read_output))
    close_stray(done)
    if callable(cancel):
        close_stray(cancel() if hasattr(running, "__await__") else cancel("it is no job"))
    raise TypeError(problem)


def as_outcome(given: object) -> JobOutcome:
    """Returns the outcome that `done` has settled with.

    Raises:
        TypeError: it is none.
    """
    if isinstance(given, JobOutcome):
        status, detail, output = given.status, given.detail, given.output
    elif isinstance(given, Mapping):
        members = cast("Mapping[str, object]", given)
        status, detail, output = members.get("status"), members.get("detail"), members.get("output")
    else:
        raise TypeError(f"done must settle with a JobOutcome, not {describe_answer(given)}")
    end = _ENDS.get(status) if isinstance(status, str) else None
    if end is None:
        raise TypeError(f"the status of an outcome is completed, killed or failed, not {describe_answer(status)}")
    return JobOutcome(status=end, detail=_text("detail", detail), output=_text("output", output))


def _text(member: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else printable(value)
    raise TypeError(f"the {member} of an outcome is text, not {describe_answer(value)}")
