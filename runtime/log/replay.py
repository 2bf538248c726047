"""What a host needs to go on with a conversation: the model's calls and what the model was told of them (I4, I10).

Values are not recorded, so that what comes back is messages: names, arguments as the model wrote them, content.
Messages that tools had put to the conversation (contract I16) and the model's own words are the host's to keep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .events import ErrorIdentity, ToolCalled, ToolResulted, read_event

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .store import StoredEvent

__all__ = ["RecordedCall", "last_step", "replay_calls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One call of a model, and what the model was told of it.

    Attributes:
        turn: the turn that it belongs to.
        step: the step of that turn.
        call_id: its id, unique in the session.
        name: the tool's name.
        arguments: the arguments as the model wrote them.
        content: the content blocks of the result; `None` while there is no result.
        is_error: whether it failed; `None` while there is no result.
        error: the identity of the error, if it failed with one.
        repaired: whether the result was written by the repair of an interrupted session (contract I13).
        seq: the event that started it.
    """

    turn: int
    step: int
    call_id: str
    name: str
    arguments: str
    content: Sequence[Mapping[str, Any]] | None = None
    is_error: bool | None = None
    error: ErrorIdentity | None = None
    repaired: bool = False
    seq: int = -1


def replay_calls(events: Iterable[StoredEvent]) -> list[RecordedCall]:
    """Returns the model's calls out of a session's events, in the order in which the model made them.

    Args:
        events: the session's events, in order.

    Raises:
        UnknownEventError: an event has a type that this version does not know (contract I15).
        LogUnavailableError: an event is not what its type says.
    """
    calls: dict[int, RecordedCall] = {}
    by_id: dict[str, int] = {}
    for event in events:
        payload = read_event(event)
        if isinstance(payload, ToolCalled):
            by_id[payload.call_id] = event.seq
            calls[event.seq] = RecordedCall(
                turn=payload.turn,
                step=payload.step,
                call_id=payload.call_id,
                name=payload.name,
                arguments=payload.arguments,
                seq=event.seq,
            )
        elif isinstance(payload, ToolResulted):
            seq = by_id.get(payload.message.call_id or "", -1) if event.cites is None else event.cites
            call = calls.get(seq)
            if call is not None and call.content is None:
                calls[seq] = replace(
                    call,
                    content=payload.message.content,
                    is_error=payload.message.is_error,
                    error=payload.error,
                    repaired=payload.repaired,
                )
    return list(calls.values())


def last_step(calls: Sequence[RecordedCall]) -> list[RecordedCall]:
    """Returns the calls of the latest step of the latest turn."""
    latest = max(((call.turn, call.step) for call in calls), default=None)
    return [call for call in calls if (call.turn, call.step) == latest]
