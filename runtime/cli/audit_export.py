"""`ptc audit export`: where its output goes. What it writes is told in `log/export.py` and `log/spans.py`."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from ..log.export import ExportError, export_log, rewind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import TextIO

    from ..log.otel import SpanExport

__all__ = ["export_events", "export_otel"]


def export_events(log: Path, session: str | None, output: str | None) -> None:
    """Writes a log as JSON Lines, to standard output when `output` is `None` or `-`.

    Raises:
        LogUnavailableError: the log is not there or cannot be read.
        ExportError: the output cannot be written, or is there already.
    """
    try:
        with _output(output) as stream:
            export_log(log, stream, session=session)
    except ExportError as error:
        if isinstance(error.__cause__, BrokenPipeError):
            raise error.__cause__ from None  # the reader has seen enough
        raise


def export_otel(
    log: Path,
    *,
    session: str | None,
    since_us: int | None,
    until_us: int | None,
    output: str | None,
    endpoint: str | None,
    content: bool,
) -> SpanExport:
    """Sends the spans of a log to a collector, or writes them as OTLP JSON.

    Raises:
        LogUnavailableError: the log is not there or cannot be read.
        ExportError: the extra is missing, the collector does not take the spans, or the output cannot be written.
    """
    from ..log.otel import export_spans, file_exporter, http_exporter

    def export(exporter: Any, restart: Callable[[], None] | None = None) -> SpanExport:
        wanted = {"session": session, "since_us": since_us, "until_us": until_us, "content": content}
        return export_spans(log, exporter, **wanted, restart=restart)

    if endpoint is not None:
        return export(http_exporter(endpoint))
    file_exporter(sys.stdout)  # says that the extra is missing before there is a file
    with _output(output) as stream:
        return export(file_exporter(cast("TextIO", _Printable(stream))), lambda: rewind(log, stream))


@contextmanager
def _output(name: str | None) -> Iterator[TextIO]:
    """Opens a new file that its owner alone can read, as the log itself is; or gives standard output."""
    if name in (None, "-"):
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise ExportError(f"there is a file {name} already; give the name of a new one") from None
    except OSError as error:
        raise ExportError(f"{name} cannot be written: {error.strerror}") from None
    with open(descriptor, "w", encoding="utf-8", newline="\n") as stream:
        yield stream
        try:
            stream.flush()
        except OSError as error:
            raise ExportError(f"{name} cannot be written: {error.strerror}") from error


class _Printable:
    """Writes JSON in printable ASCII: the one control character that is left as it is gets its escape."""

    closed = False

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text.replace("\x7f", "\\u007f"))

    def flush(self) -> None:
        self._stream.flush()
