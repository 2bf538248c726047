"""Keeps secrets out of the record: what is in it instead says that something was there.

Everything that is recorded passes one place, the filters of its session, so nothing gets around the policy: neither a
model's own calls, nor a type of event that did not exist when this was written. What programs' calls gave is redacted
in `tools/ptc-dispatch-log` already, so that a spill policy saves no more of it than the record has (contract E44).

    content, meta, reasons, whatever else    `[redacted]`
    arguments, if a key is given             `[redacted hmac:3f9a…]`, equal for equal values
    anything where redaction failed          `[redaction failed]`, and never the original

Only the record is changed: models, programs, tools and other policies get everything as it is.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import anyio
import anyio.to_thread

from ...registry import Disposer
from ...registry.lossless import is_lossless, same_json
from ..dispatch import DISPATCH_LOG_EVENT
from ..host import Host
from ..log.filters import is_long
from ..run_code import RUN_CODE
from .redact_json import read_json, written
from .redact_rules import FieldRules, compiled_pattern
from .redact_values import Detector, Redactor
from .secret_shapes import COMMON_FIELDS, find_shapes

if TYPE_CHECKING:
    from ...registry import ContentBlock, JsonObject, JsonValue, Next
    from ..agent import Agent
    from ..dispatch import DispatchLogEntry

__all__ = ["FAILED", "REDACTED", "RedactionPolicy"]

REDACTED: Final = "[redacted]"
"""What stands in the place of a secret."""

FAILED: Final = "[redaction failed]"
"""What stands in the place of whatever could not be redacted."""

_LOGGER: Final = logging.getLogger("ptc.runtime")
_MIN_KEY_BYTES: Final = 16
_DIGEST_DIGITS: Final = 16
_DIGEST: Final = re.compile(rf"\[redacted hmac:[0-9a-f]{{{_DIGEST_DIGITS}}}\]")
_MAX_STARTED: Final = 10_000

_IDS: Final = frozenset({"callId", "id", "jobId", "parentCallId", "rootCallId", "subCallId"})
"""What records are paired by: it stays, as long as it is text."""

_LABELS: Final = frozenset({
    "approval", "by", "code", "kind", "mode", "name", "outcome", "policy", "preset", "role", "status", "toolName",
    "type",
})  # fmt: skip
"""What else a record is known by: it stays as long as it looks like a label. Everything else is content."""

_NUMBERS: Final = frozenset({
    "elapsedMs", "findings", "finishedAt", "line", "outputLimitBytes", "startedAt", "step", "turn",
})  # fmt: skip
"""Numbers of a record's own, which are no content."""

_LABEL: Final = re.compile(r"[\w.:/<>~-]{0,200}")

_ENVELOPES: Final = frozenset({"decision", "error", "message"})
"""Objects in a record that are built like a record."""


class RedactionPolicy:
    """Redacts what is recorded; `install` puts it in force.

        redaction = ptc.RedactionPolicy(
            fields=[*ptc.RedactionPolicy.COMMON_FIELDS, "ssn"],
            paths=["customer.card.number"],
            argument_key=os.environb[b"AUDIT_KEY"],
        )
        redaction.install(host)

    A field is found by its name in structured data, in JSON text, and in other text where it looks like one
    (`password: …`, `password=…`), a program's source included. A path is found in structured data and in JSON text,
    from the root of each value. Secrets of a well-known shape are found everywhere.

    Arguments are recorded as they are unless a key is given, because they are what an audit is about; then a secret
    in them leaves a digest, by which equal values can be found without being known. In the source of a program
    `programs="scan"` finds shapes, and literals that are assigned to the name of a field. A secret that a program
    puts together otherwise is not found there, though it is where it is passed to a tool; with `programs="digest"` no
    source is recorded at all.

    What a spill policy saves for the model is not the record, and is not redacted. Where it has cut through a text,
    the words at the cut are redacted whole. The names of agents and the labels of a session are recorded as they are.

    Args:
        fields: names of fields, wherever they are; `api_key`, `apiKey` and `API-KEY` are one name, and `*` stands for
            anything, so that `*password` is `DB_PASSWORD` too.
        paths: paths of fields: `customer.card.number`, `rows[*].ssn`, `*.token`.
        patterns: further shapes, as regular expressions; where one has a group `secret`, only that is taken out.
        known_secrets: whether the shapes of well-known tokens and keys are looked for.
        detectors: functions that return where in a text secrets are, as pairs of positions, for what a library finds.
            They may be called in any thread. One that raises has the text fail.
        argument_key: has secrets in arguments redacted too; the key of their digests, at least 16 bytes.
        programs: what is recorded of the source of a program, if there is a key.

    Raises:
        TypeError: an argument is not of its type.
        ValueError: a name, path or pattern is not well-formed, the key is too short, or there is no such option.
    """

    COMMON_FIELDS: ClassVar[tuple[str, ...]] = COMMON_FIELDS
    """Names of fields that mostly hold secrets."""

    def __init__(
        self,
        fields: Iterable[str] = (),
        paths: Iterable[str] = (),
        patterns: Iterable[str | re.Pattern[str]] = (),
        *,
        known_secrets: bool = True,
        detectors: Iterable[Detector] = (),
        argument_key: bytes | None = None,
        programs: Literal["scan", "digest"] = "scan",
    ) -> None:
        if argument_key is not None:
            if not isinstance(argument_key, bytes):
                raise TypeError(f"argument_key must be bytes, not {type(argument_key).__name__}")
            if len(argument_key) < _MIN_KEY_BYTES:
                raise ValueError(f"argument_key must have at least {_MIN_KEY_BYTES} bytes, not {len(argument_key)}")
        if programs not in ("scan", "digest"):
            raise ValueError(f'programs is "scan" or "digest", not {programs!r}')
        self._redactor = Redactor(
            FieldRules(fields, paths),
            shapes=known_secrets,
            patterns=[compiled_pattern(pattern) for pattern in patterns],
            detectors=_callables(detectors),
        )
        self._key = argument_key
        self._programs = programs
        self._lock = threading.Lock()
        self._started: dict[tuple[str, str], tuple[JsonValue, JsonValue]] = {}

    def install(self, target: Host | Agent) -> Disposer:
        """Redacts what is recorded from now on: of every agent for a host, else of one.

        Returns:
            what takes the policy away.
        """
        filters = target.record_filters if isinstance(target, Host) else target.session and target.session.filters
        with ExitStack() as undo:
            if filters is not None:
                undo.callback(filters.add(self.redact_record))
            undo.callback(target.on(DISPATCH_LOG_EVENT, self.redact_copy))
            return Disposer(undo.pop_all().close)
        raise AssertionError("an exit stack lets nothing pass")

    async def redact_copy(
        self, entry: DispatchLogEntry, next_: Next[Sequence[ContentBlock]], /
    ) -> Sequence[ContentBlock]:
        """Redacts the durable copy of a sub-call's content (contract E44)."""
        content: Any = await next_()
        if is_lossless(content) and is_long(content):
            # A limiter of its own, as for the session's filters.
            one = anyio.CapacityLimiter(1)
            redacted: Any = await anyio.to_thread.run_sync(self._member, "content", content, entry.name, limiter=one)
        else:
            redacted = self._member("content", content, entry.name)
        return redacted

    def redact_record(self, session_id: str, type_: str, data: JsonObject) -> JsonObject:
        """Redacts one event; what every event of a session passes. It never raises an `Exception`."""
        tool = data.get("name")
        redacted: JsonObject = {}
        for name, value in data.items():
            key = name if next(find_shapes(name), None) is None else f"{REDACTED} {len(redacted)}"
            if key == "arguments":
                redacted[key] = self._arguments(session_id, type_, data)
            elif key in _ENVELOPES and isinstance(value, dict):
                redacted[key] = {part: self._member(part, member, tool) for part, member in value.items()}
            else:
                redacted[key] = self._member(key, value, tool)
        return redacted

    def _member(self, key: str, value: JsonValue, tool: object) -> JsonValue:
        """Redacts one member of a record, or of an envelope in it."""
        if isinstance(value, bool) or (key in _IDS and isinstance(value, str)):
            return value
        if key in _NUMBERS and isinstance(value, int | float):
            return value
        if key in _LABELS and isinstance(value, str) and _LABEL.fullmatch(value):
            return value if next(find_shapes(value), None) is None else REDACTED
        try:
            if key == "content" and isinstance(value, list):
                return [self._block(block) for block in value]
            if value is not None and self._redactor.rules.has_name(key):
                return REDACTED
            return self._redactor.value(value, _redacted)
        except Exception as error:  # noqa: BLE001 - whatever it is, the original must not be recorded
            self._warn(key, tool, error)
            return [{"type": "text", "text": FAILED}] if key == "content" else FAILED

    def _block(self, block: JsonValue) -> JsonValue:
        """Redacts one content block; the data of an image is no text, and stays."""
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(block, dict) or kind not in ("text", "image"):
            return self._redactor.value(block, _redacted)
        kept: JsonObject = {key: block[key] for key in ("type", "data", "mimeType") if kind == "image" and key in block}
        if kind == "text" and isinstance(text := block.get("text"), str):
            kept = {"type": "text", "text": self._redactor.text(text, _redacted)}
        rest = self._redactor.value({key: part for key, part in block.items() if key not in kept}, _redacted)
        return {**kept, **rest} if isinstance(rest, dict) else kept

    # Arguments

    def _arguments(self, session_id: str, type_: str, data: JsonObject) -> JsonValue:
        """Redacts arguments, if there is a key.

        Those of a sub-call are recorded twice, and the reader holds the two together; so the second gets what the first
        has got, even if that was a failure.
        """
        arguments, tool, sub_call = data["arguments"], data.get("name"), data.get("subCallId")
        if self._key is None:
            return arguments
        place = (session_id, sub_call) if isinstance(sub_call, str) else None
        if place is not None and type_ == "tool/ptc-dispatch":
            with self._lock:
                known = self._started.pop(place, None)
            if known is not None and same_json(known[0], arguments):
                return known[1]
        try:
            redacted = self._redacted_arguments(arguments, tool)
        except Exception as error:  # noqa: BLE001 - as above
            self._warn("arguments", tool, error)
            redacted = FAILED
        if place is not None and type_ == "tool/ptc-dispatch-start":
            with self._lock:
                self._started[place] = arguments, redacted
                if len(self._started) > _MAX_STARTED:  # calls that were started and never settled
                    del self._started[next(iter(self._started))]
        return redacted

    def _redacted_arguments(self, arguments: JsonValue, tool: object) -> JsonValue:
        redactor, digest = self._redactor, self._digest
        if not isinstance(arguments, str):
            return redactor.value(arguments, digest)
        try:
            value, exact = read_json(arguments)
        except (ValueError, RecursionError):
            # Nobody can tell where in it a field begins and ends.
            return digest(arguments) if arguments and redactor.rules else redactor.plain(arguments, digest)
        redacted = self._redacted_program(value) if tool == RUN_CODE else redactor.value(value, digest)
        return arguments if exact and same_json(redacted, value) else written(redacted)

    def _redacted_program(self, value: JsonValue) -> JsonValue:
        """Redacts the arguments of `run_code`: the source is a program, and the rest as ever."""
        code = value.get("code") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(code, str):
            return self._redactor.value(value, self._digest)
        scan = self._programs == "scan"
        source = self._redactor.plain(code, self._digest, program=True) if scan else self._digest(code)
        rest = self._redactor.value({key: member for key, member in value.items() if key != "code"}, self._digest)
        assert isinstance(rest, dict)
        return {"code": source, **rest}

    def _digest(self, value: object) -> str:
        """Returns the mark of a value in arguments: the same for the same value, wherever it is."""
        assert self._key is not None
        text = value if isinstance(value, str) else _canonical(value)
        if text == FAILED or _DIGEST.fullmatch(text):
            return text  # another policy was here first
        found = hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        return f"[redacted hmac:{found[:_DIGEST_DIGITS]}]"

    def _warn(self, key: str, tool: object, error: Exception) -> None:
        # Not the error's text: it may quote what it failed at.
        _LOGGER.warning(
            'the "%s" in a record of %s could not be redacted (%s) and was left out',
            key, f'tool "{tool}"' if isinstance(tool, str) else "the session", type(error).__name__,
        )  # fmt: skip


def _redacted(_value: object) -> str:
    return REDACTED


def _canonical(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)


def _callables(detectors: Iterable[Detector]) -> list[Detector]:
    given = list(detectors)
    for detector in given:
        if not callable(detector):
            raise TypeError(f"a detector is a function of a text, not {detector!r}")
    return given
