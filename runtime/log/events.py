"""The durable payloads as they are read back (contract I3 to I6, I15).

Writers append plain JSON objects; these models only read. Keys that this version does not know are passed over, so
that a newer version may add some. A type that it does not know is refused, since nobody can tell what is missed by
passing it over, unless the writer marked the event with `"ignorable": true`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from .errors import LogUnavailableError, UnknownEventError

if TYPE_CHECKING:
    from .store import StoredEvent

__all__ = [
    "EVENT_TYPES",
    "ApprovalAsked",
    "ApprovalDecided",
    "ApprovalPolicySet",
    "Decision",
    "DispatchSettled",
    "DispatchStarted",
    "ErrorIdentity",
    "Event",
    "JobSettled",
    "JobStarted",
    "PermissionPresetSet",
    "ProgramPreflighted",
    "SandboxModeSet",
    "ToolCalled",
    "ToolMessage",
    "ToolResulted",
    "read_event",
]


class _Payload(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="ignore",
        allow_inf_nan=False,
        alias_generator=to_camel,
        populate_by_name=True,
    )


class ErrorIdentity(_Payload):
    """Why a call failed: the identity of the error, and a reason that the model is not shown (contract C63)."""

    name: str
    code: str
    reason: str | None = None


class Decision(_Payload):
    """What policy said of a call.

    Attributes:
        outcome: the last word: `allow`, `deny`, `cancel`, `error` when a policy failed, or `block` when the result was
            withheld after the body ran.
        by: the listener, guard or approval that had it, for example `guard no_deletes`.
        approval: what the approval service answered, if it was asked.
    """

    outcome: str
    by: str | None = None
    approval: str | None = None


class ToolCalled(_Payload):
    """`tool/call`: a model's call starts (contract I3). `arguments` is the model's own text, whatever it is."""

    type: Literal["tool/call"] = "tool/call"
    turn: int
    step: int
    call_id: str
    name: str
    arguments: str


class ToolMessage(_Payload):
    """What the model was told of a call: content blocks, and whether it failed."""

    id: str | None = None
    call_id: str | None = None
    is_error: bool
    content: list[dict[str, Any]]


class ToolResulted(_Payload):
    """`tool/result`: a model's call has ended; the event cites the `tool/call` (contract I4).

    Attributes:
        repaired: the call's process had ended, and whoever took up the session has answered the call (contract I13).
    """

    type: Literal["tool/result"] = "tool/result"
    turn: int
    step: int
    message: ToolMessage
    error: ErrorIdentity | None = None
    meta: Any = None
    decision: Decision | None = None
    repaired: bool = False


class DispatchStarted(_Payload):
    """`tool/ptc-dispatch-start`: a call out of a program starts, before any policy saw it (contract I5).

    Attributes:
        line: the line of the program that made the call, as the program's side claims it; nothing vouches for it.
    """

    type: Literal["tool/ptc-dispatch-start"] = "tool/ptc-dispatch-start"
    root_call_id: str
    parent_call_id: str
    sub_call_id: str
    name: str
    arguments: Any
    line: int | None = None


class DispatchSettled(_Payload):
    """`tool/ptc-dispatch`: a call out of a program has ended (contract I6)."""

    type: Literal["tool/ptc-dispatch"] = "tool/ptc-dispatch"
    root_call_id: str
    parent_call_id: str
    sub_call_id: str
    name: str
    arguments: Any
    is_error: bool
    content: list[dict[str, Any]]
    error: ErrorIdentity | None = None
    meta: Any = None
    decision: Decision | None = None


class ApprovalAsked(_Payload):
    """`approval/asked`: a policy has put a question (contract I12).

    Attributes:
        id: what joins the question and its answer.
        tool_name: the tool that the question is about.
        call_id: the call, if it is about one.
        reason: the audited text, if the policy gave one.
    """

    type: Literal["approval/asked"] = "approval/asked"
    id: str
    tool_name: str
    call_id: str | None = None
    reason: str | None = None


class ApprovalDecided(_Payload):
    """`approval/decided`: what came of a question; the event cites the `approval/asked` (contract I12).

    Attributes:
        id: that of the question.
        outcome: the answer.
        detail: why, or by whom and how it was given, if the channel said so.
    """

    type: Literal["approval/decided"] = "approval/decided"
    id: str
    outcome: Literal["allowed-once", "rejected", "cancelled", "unavailable"]
    detail: str | None = None


class ApprovalPolicySet(_Payload):
    """`approval/policy`: whether questions are put to anybody from here on (contract K16)."""

    type: Literal["approval/policy"] = "approval/policy"
    policy: Literal["ask", "never"]
    source: str | None = None


class SandboxModeSet(_Payload):
    """`permission/sandbox`: how far the agent's tools may go from here on (contract K17)."""

    type: Literal["permission/sandbox"] = "permission/sandbox"
    mode: str
    source: str | None = None


class PermissionPresetSet(_Payload):
    """`permission/preset`: a preset was chosen; the knobs that it changed follow (contract I12, K17)."""

    type: Literal["permission/preset"] = "permission/preset"
    preset: str


class ProgramPreflighted(_Payload):
    """`tool/ptc-preflight`: a program was checked against its tools before it ran, or could not be.

    Attributes:
        call_id: the call of `run_code`.
        outcome: `passed`; `refused`, and then nothing of the program ran; or `unchecked`, and then it ran all the same.
        reason: why it is unchecked.
        findings: how many mistakes there are.
        elapsed_ms: how long that took.
    """

    type: Literal["tool/ptc-preflight"] = "tool/ptc-preflight"
    call_id: str
    outcome: Literal["passed", "refused", "unchecked"]
    reason: str | None = None
    findings: int = 0
    elapsed_ms: int = 0


class JobStarted(_Payload):
    """`job/started`: background work is about to start, which goes on after the call that starts it.

    Attributes:
        job_id: the job's id, `<kind>-<n>`. Each process counts anew, so what belongs together is told by what the
            `job/settled` cites.
        kind: what sort of work it is.
        label: what it is.
        call_id: the call that starts it, if that is known.
        root_call_id: the model's call that this one comes from, likewise.
        output_limit_bytes: how much of its output a model is shown at once.
    """

    type: Literal["job/started"] = "job/started"
    job_id: str
    kind: str
    label: str
    call_id: str | None = None
    root_call_id: str | None = None
    output_limit_bytes: int | None = None


class JobSettled(_Payload):
    """`job/settled`: background work has ended, or could not be started; the event cites the `job/started`."""

    type: Literal["job/settled"] = "job/settled"
    job_id: str
    status: Literal["completed", "killed", "failed"]
    detail: str | None = None


Event: TypeAlias = (
    ToolCalled
    | ToolResulted
    | DispatchStarted
    | DispatchSettled
    | ApprovalAsked
    | ApprovalDecided
    | ApprovalPolicySet
    | SandboxModeSet
    | PermissionPresetSet
    | ProgramPreflighted
    | JobStarted
    | JobSettled
)

_MODELS: Final[dict[str, type[Event]]] = {
    "tool/call": ToolCalled,
    "tool/result": ToolResulted,
    "tool/ptc-dispatch-start": DispatchStarted,
    "tool/ptc-dispatch": DispatchSettled,
    "approval/asked": ApprovalAsked,
    "approval/decided": ApprovalDecided,
    "approval/policy": ApprovalPolicySet,
    "permission/sandbox": SandboxModeSet,
    "permission/preset": PermissionPresetSet,
    "tool/ptc-preflight": ProgramPreflighted,
    "job/started": JobStarted,
    "job/settled": JobSettled,
    # What these two were called before programs were the only dispatchers; read, never written (contract I15).
    "tool/code-dispatch-start": DispatchStarted,
    "tool/code-dispatch": DispatchSettled,
}


EVENT_TYPES: Final = tuple(_MODELS)
"""The types of events that this version knows."""


def read_event(event: StoredEvent) -> Event | None:
    """Returns the payload of a stored event, or `None` when it may be passed over.

    Raises:
        UnknownEventError: this version does not know the event's type, and it is not marked ignorable (contract I15).
        LogUnavailableError: the payload is not what the type says.
    """
    model = _MODELS.get(event.type)
    if model is None:
        if event.data.get("ignorable") is True:
            return None
        raise UnknownEventError(
            f"event {event.seq} of session {event.session} has the type {event.type!r}, which this version of ptc does "
            "not know; a newer version wrote it, so use that one for this log (a host marks events of its own with "
            '"ignorable": true)'
        )
    try:
        return model.model_validate({key: value for key, value in event.data.items() if key != "type"})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'data'}: {problem['msg']}" for problem in error.errors()
        )
        raise LogUnavailableError(
            f"event {event.seq} of session {event.session} is no {event.type} ({problems}); "
            "the writer is at fault, or the file was changed",
            reason="damaged",
        ) from error
