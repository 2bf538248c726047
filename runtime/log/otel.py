"""Gives the spans of a log to OpenTelemetry's own exporters. Needs the extra `otel`."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO
from urllib.parse import urlsplit, urlunsplit

from ...registry.lossless import from_json_text
from .database import SEQ_BITS
from .errors import LogUnavailableError, UnknownEventError
from .export import ExportError
from .pairs import SEQ_MASK
from .snapshot import read_snapshot
from .spans import SpanRecord, session_spans
from .store import SessionInfo, StoredEvent

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Callable, Iterator

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

__all__ = ["SpanExport", "export_spans", "file_exporter", "http_exporter"]

_MOST_SPANS: Final = 256
_MOST_CHARS: Final = 2_000_000
"""How much text the spans of one request have, about, in characters."""

_MOST_WORDS: Final = 1_000
_NEEDS: Final = 'OpenTelemetry is not installed; add the extra: pip install "ptc-runtime[otel]"'

_SESSIONS: Final = (
    "SELECT key, id, agent, opened_us, labels, hash FROM sessions WHERE ?1 IS NULL OR id = ?1 ORDER BY key"
)
_EVENTS: Final = "SELECT id, type, time_us, mono_us, cites, hash, data FROM events WHERE id >= ? AND id < ? ORDER BY id"


class SpanExport:
    """What an export came to.

    Attributes:
        spans: how many spans were taken.
        unreadable: why a session could not be read to its end, by its id; the runs before were exported.
    """

    def __init__(self) -> None:
        self.spans = 0
        self.unreadable: dict[str, str] = {}


def http_exporter(endpoint: str) -> SpanExporter:
    """Returns an exporter to a collector, by OTLP over HTTP with protobuf.

    Headers, certificates and the like are taken from the environment, as OpenTelemetry's SDK names them, for example
    `OTEL_EXPORTER_OTLP_HEADERS`.

    Args:
        endpoint: the collector's URL; `/v1/traces` is added to one without a path.

    Raises:
        ExportError: the extra is not installed, or the URL is none.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise ExportError(_NEEDS) from None
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ExportError(f"{endpoint!r} is no URL of a collector; give one like http://localhost:4318")
    path = parts.path if parts.path not in ("", "/") else "/v1/traces"
    return OTLPSpanExporter(endpoint=urlunsplit(parts._replace(path=path)))


def file_exporter(stream: TextIO) -> SpanExporter:
    """Returns an exporter that writes OTLP JSON: one line for each batch, as collectors read it from files.

    Raises:
        ExportError: the extra is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
    except ImportError:
        raise ExportError(_NEEDS) from None
    return FileSpanExporter(stream=stream)


def export_spans(
    log: str | os.PathLike[str],
    exporter: SpanExporter,
    *,
    session: str | None = None,
    since_us: int | None = None,
    until_us: int | None = None,
    content: bool = False,
    restart: Callable[[], None] | None = None,
) -> SpanExport:
    """Exports the calls of a log as spans; `spans.py` says which. Blocks, and shuts the exporter down at the end.

    Exporting twice does no harm to a collector that keeps spans by their ids: they are the same.

    Args:
        log: the path of the log.
        exporter: takes the spans, a few hundred at a time.
        session: the id of the only session; all when omitted.
        since_us: leaves out runs that started before this time, in microseconds since 1970 UTC.
        until_us: leaves out runs that started at this time or later.
        content: adds arguments, results and reasons.
        restart: called when a process began to write the log meanwhile, so that all spans come once more.

    Raises:
        LogUnavailableError: the log is not there or cannot be read.
        ExportError: the exporter has not taken a batch; what it said of it is in the message.
    """
    path = Path(log).absolute()
    begun = False

    def read(connection: sqlite3.Connection) -> SpanExport:
        nonlocal begun
        if begun and restart is not None:
            restart()
        begun = True
        done = SpanExport()
        batches = _Batches(exporter, done)
        for key, name, agent, opened_us, labels, digest in connection.execute(_SESSIONS, (session,)):
            info = SessionInfo(name, agent, opened_us, _labels(labels), 0, opened_us, digest)
            rows = connection.execute(_EVENTS, (key << SEQ_BITS, (key + 1) << SEQ_BITS))
            events = _events(path, name, rows)
            try:
                for span in session_spans(info, events, since_us=since_us, until_us=until_us, content=content):
                    batches.add(span)
            except (UnknownEventError, LogUnavailableError) as error:
                done.unreadable[name] = error.message
        batches.flush()
        return done

    try:
        return read_snapshot(path, read)
    finally:
        exporter.shutdown()


def _labels(text: str) -> dict[str, str]:
    try:
        value = from_json_text(text)
    except ValueError:
        return {}
    return {key: str(one) for key, one in value.items()} if isinstance(value, dict) else {}


def _events(path: Path, session: str, rows: sqlite3.Cursor) -> Iterator[StoredEvent]:
    for row, kind, time_us, mono_us, cites, digest, text in rows:
        try:
            data = from_json_text(text)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise LogUnavailableError(
                f"event {row & SEQ_MASK} of session {session} in the log {path} is not the JSON that was written; "
                "see `ptc audit verify`",
                reason="damaged",
            )
        yield StoredEvent(session, row & SEQ_MASK, kind, time_us, mono_us, data, cites, digest)


class _Batches:
    """Hands spans on in batches that a collector takes."""

    def __init__(self, exporter: SpanExporter, done: SpanExport) -> None:
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._exporter = exporter
        self._done = done
        self._spans: list[ReadableSpan] = []
        self._chars = 0
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have the last word. Nothing else is added, such as an id of
        # this process, which is not where the calls were made.
        self._resource = Resource({"service.name": "ptc"}).merge(OTELResourceDetector().detect())
        self._scope = InstrumentationScope("ptc.runtime", _version())

    def add(self, span: SpanRecord) -> None:
        size = sum(len(value) for value in span.attributes.values() if isinstance(value, str))
        if self._spans and (len(self._spans) >= _MOST_SPANS or self._chars + size > _MOST_CHARS):
            self.flush()
        self._spans.append(self._readable(span))
        self._chars += size

    def flush(self) -> None:
        if not self._spans:
            return
        from opentelemetry.sdk.trace.export import SpanExportResult

        with _what_is_logged() as said:
            taken = self._exporter.export(self._spans) is SpanExportResult.SUCCESS
        if not taken:
            why = "; ".join(dict.fromkeys(said))[:_MOST_WORDS] if said else "the exporter does not say why"
            done = f"{self._done.spans:,} spans were exported before" if self._done.spans else "none were exported"
            raise ExportError(f"{len(self._spans):,} spans were not taken, {done}: {why}")
        self._done.spans += len(self._spans)
        self._spans.clear()
        self._chars = 0

    def _readable(self, span: SpanRecord) -> ReadableSpan:
        from opentelemetry.sdk.trace import Event, ReadableSpan
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(span_id: int) -> SpanContext:
            return SpanContext(span.trace_id, span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        return ReadableSpan(
            name=span.name,
            context=context(span.span_id),
            parent=None if span.parent_id is None else context(span.parent_id),
            resource=self._resource,
            attributes=dict(span.attributes),
            events=[Event(one.name, dict(one.attributes), one.time_ns) for one in span.events],
            kind=SpanKind.INTERNAL,
            instrumentation_scope=self._scope,
            status=Status(StatusCode.ERROR, span.why) if span.failed else Status(StatusCode.UNSET),
            start_time=span.start_ns,
            end_time=span.end_ns,
        )


@contextmanager
def _what_is_logged() -> Iterator[list[str]]:
    """Gathers what OpenTelemetry logs inside the block, and keeps it off standard error."""
    said: list[str] = []

    class Gather(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger = logging.getLogger("opentelemetry")
    handler, propagate = Gather(logging.WARNING), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def _version() -> str:
    try:
        return version("ptc-runtime")
    except PackageNotFoundError:
        return "0"
