"""`ptc audit export`: JSON Lines from which the chain is computed anew, and spans that a collector takes."""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
import stat
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from ptc.runtime.log import LogUnavailableError, Session, SqliteEventStore, SqliteLogReader
from ptc.runtime.log.otel import export_spans, http_exporter

from .audit_logs import HOSTILE, SECRET, all_calls, assert_printable, real_log, run, write_random


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return real_log(tmp_path)


# JSON Lines --------------------------------------------------------------------------------------------------------


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def chains(lines: list[str]) -> dict[str, str]:
    """Computes each session's chain from an export alone, by its description, and returns the last hashes."""
    last: dict[str, bytes] = {}
    expected: dict[str, int] = {}
    for line in map(json.loads, lines):
        session = line["session"]
        if line["record"] == "session":
            labels = dict(sorted(line["labels"].items()))
            header = compact([session, line["agent"], line["openedUs"], labels])
            digest = hashlib.sha256(b"ptc-session 1\n" + header.encode()).digest()
            expected[session] = 0
        else:
            assert line["seq"] == expected[session]
            expected[session] += 1
            cites = "-" if line["cites"] is None else line["cites"]
            first = f"{line['seq']} {line['timeUs']} {line['monoUs']} {cites} {line['type']}\n"
            text = line["text"] if "text" in line else compact(line["data"])
            digest = hashlib.sha256(last[session] + (first + text).encode()).digest()
        assert digest.hex() == line["hash"], line
        last[session] = digest
    return {session: digest.hex() for session, digest in last.items()}


def test_the_chain_is_verified_from_the_export_alone(log: Path) -> None:
    done = run("export", "--log", str(log))
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert_printable(done.stdout)
    with SqliteLogReader(log) as reader:
        sessions = {one.id: reader.events(one.id) for one in reader.sessions()}
        infos = {one.id: one for one in reader.sessions()}
    assert chains(done.stdout.splitlines()) == {name: events[-1].hash.hex() for name, events in sessions.items()}
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in lines:
        if line["record"] == "session":
            assert list(line) == ["record", "format", "session", "agent", "opened", "openedUs", "labels", "hash"]
            assert (line["format"], line["agent"]) == ("ptc.audit.export/1", infos[line["session"]].agent)
        else:
            event = sessions[line["session"]][line["seq"]]
            assert list(line) == [
                "record", "session", "seq", "type", "time", "timeUs", "monoUs", "cites", "hash", "data"
            ]  # fmt: skip
            assert (line["type"], line["timeUs"], line["data"]) == (event.type, event.time_us, event.data)
    assert sum(line["record"] == "event" for line in lines) == sum(map(len, sessions.values()))


@pytest.mark.parametrize(
    ("old", "new"),
    [('"isError":true', '"isError":false'), ('"isError":true', '"isError": true'), ("nobody", "somebody")],
)
def test_a_changed_record_breaks_the_chain_of_the_export(log: Path, old: str, new: str) -> None:
    connection = sqlite3.connect(log)
    connection.execute("DROP TRIGGER events_no_update")
    (row,) = connection.execute("SELECT min(id) FROM events WHERE data LIKE '%nobody deletes%'").fetchone()
    assert connection.execute("SELECT instr(data, ?) FROM events WHERE id = ?", (old, row)).fetchone() > (0,)
    connection.execute("UPDATE events SET data = replace(data, ?, ?) WHERE id = ?", (old, new, row))
    connection.commit()
    connection.close()
    with pytest.raises(AssertionError):
        chains(run("export", "--log", str(log)).stdout.splitlines())


def test_a_text_that_is_no_canonical_json_is_given_as_it_is(log: Path) -> None:
    connection = sqlite3.connect(log)
    connection.execute("DROP TRIGGER events_no_update")
    rows = connection.execute("SELECT id, data FROM events ORDER BY id LIMIT 4").fetchall()
    forged = [rows[0][1] + '\n{"record": "forged"}', rows[1][1].replace(",", ", ", 1), "{", '{"a":NaN}']
    for (row, _text), text in zip(rows, forged, strict=True):
        connection.execute("UPDATE events SET data = ? WHERE id = ?", (text, row))
    connection.commit()
    connection.close()
    lines = [json.loads(line) for line in run("export", "--log", str(log)).stdout.splitlines()]
    assert "forged" not in {line["record"] for line in lines}
    assert [line.get("text") for line in lines[1:6]] == [*forged, None]
    assert [line["data"] is None for line in lines[1:5]] == [True, False, True, True]


def test_only_one_session_and_into_a_new_file_of_ones_own(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    done = run("export", "--log", str(log), "--session", "2030", "--output", str(output))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    lines = output.read_text().splitlines()
    assert list(chains(lines)) == ["20300101T000000-hostile"]
    assert len(lines) == 5
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    again = run("export", "--log", str(log), "--output", str(output))
    assert (again.exit_code, output.read_text().splitlines()) == (1, lines)
    assert again.stderr == f"ptc: there is a file {output} already; give the name of a new one\n"
    nowhere = run("export", "--log", str(log), "--output", str(tmp_path / "no" / "file"))
    assert nowhere.exit_code == 1
    assert "cannot be written: No such file or directory" in nowhere.stderr


def test_a_full_disk_is_told_as_that(log: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no device that is always full")

    class Full:
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

    from ptc.runtime.log.export import ExportError, export_log

    with pytest.raises(ExportError, match="the export cannot be written: No space left on device"):
        export_log(log, Full())  # type: ignore[arg-type]


def test_an_export_beside_a_writer_is_of_one_instant(tmp_path: Path) -> None:
    log = tmp_path / "ptc.db"

    async def main() -> None:
        async with SqliteEventStore(log) as store:
            session = Session(store, agent="a", id="s1")
            for n in range(300):
                await session.append("x/y", {"ignorable": True, "n": n})
            read = await anyio.to_thread.run_sync(run, "export", "--log", str(log))
            assert len(chains(read.stdout.splitlines())) == 1
            assert len(read.stdout.splitlines()) == 301

    anyio.run(main)


@pytest.mark.parametrize("seed", range(3))
def test_logs_of_any_shape_are_exported_whole(tmp_path: Path, seed: int) -> None:
    log = tmp_path / "ptc.db"
    anyio.run(write_random, log, seed)
    assert len(chains(run("export", "--log", str(log)).stdout.splitlines())) == 3


# Spans -------------------------------------------------------------------------------------------------------------


class Collector:
    """A collector on loopback: takes OTLP over HTTP, and keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, bytes]] = []
        self.status = 200
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.requests.append((self.path, self.headers["Content-Type"], body))
                self.send_response(collector.status)
                self.end_headers()

            def log_message(self, *_arguments: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()

    def spans(self) -> list[Span]:
        found: list[Span] = []
        for _path, _type, body in self.requests:
            message = ExportTraceServiceRequest.FromString(body)
            for of_resource in message.resource_spans:
                for of_scope in of_resource.scope_spans:
                    assert of_scope.scope.name == "ptc.runtime"
                    found += of_scope.spans
        return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def sent(log: Path, collector: Collector, *options: str) -> list[Span]:
    collector.requests.clear()
    done = run("export", "--log", str(log), "--format", "otel", "--endpoint", collector.url, *options)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == f"ptc: {len(collector.spans()):,} spans exported\n"
    return collector.spans()


def test_spans_follow_the_conventions(log: Path, collector: Collector) -> None:
    spans = sent(log, collector)
    assert {(path, kind) for path, kind, _body in collector.requests} == {("/v1/traces", "application/x-protobuf")}
    calls = {(one["session"].id, one["call"].call_id): one for one in all_calls(log)}
    tools = [span for span in spans if attributes(span)["gen_ai.operation.name"] == "execute_tool"]
    agents = [span for span in spans if attributes(span)["gen_ai.operation.name"] == "invoke_agent"]
    assert len(spans) == len(tools) + len(agents)
    assert len(tools) == len(calls)
    by_id = {(span.trace_id, span.span_id): span for span in spans}
    assert len(by_id) == len(spans)
    for span in tools:
        told = attributes(span)
        one = calls[told["gen_ai.conversation.id"], told["gen_ai.tool.call.id"]]
        call, session = one["call"], one["session"]
        assert span.name == f"execute_tool {call.name}"
        assert span.kind == Span.SpanKind.SPAN_KIND_INTERNAL
        assert (told["gen_ai.tool.name"], told["gen_ai.tool.type"]) == (call.name, "function")
        assert (told["gen_ai.agent.name"], told["ptc.run"]) == (session.agent, one["run"])
        assert (told["ptc.outcome"], told["ptc.seq"]) == (call.outcome, call.seq)
        assert told.get("ptc.line") == call.line
        assert span.start_time_unix_nano == call.started_us * 1000
        if call.duration_ms is not None:
            assert span.end_time_unix_nano - span.start_time_unix_nano == round(call.duration_ms * 1000) * 1000
        assert span.end_time_unix_nano >= span.start_time_unix_nano
        errored = call.outcome in ("failed", "denied", "cancelled")
        assert (span.status.code == Status.STATUS_CODE_ERROR) == errored
        assert ("error.type" in told) == errored
        if call.decision is not None:
            assert told["ptc.decision.by"] == call.decision.by
        parent = by_id[span.trace_id, span.parent_span_id]
        if call.parent_call_id is None:
            assert parent.name == f"invoke_agent {session.agent}"
            assert parent.start_time_unix_nano <= span.start_time_unix_nano
            assert parent.end_time_unix_nano >= span.end_time_unix_nano
        else:
            assert attributes(parent)["gen_ai.tool.call.id"] == call.parent_call_id
    for span in agents:
        assert span.parent_span_id == b""
        assert "gen_ai.tool.name" not in attributes(span)
    native = [span for span in agents if span.name.startswith("invoke_agent billing")]
    assert sorted(attributes(span)["ptc.turn"] for span in native) == [1, 2]  # one trace for each turn
    kinds = {attributes(span)["gen_ai.tool.name"]: attributes(span).get("error.type") for span in tools}
    assert (kinds["delete_order"], kinds["launch"], kinds["echo"]) == ("denied", None, None)
    (refused,) = (span for span in tools if attributes(span).get("error.type") == "APPROVAL_REJECTED")
    assert [event.name for event in refused.events] == ["ptc.approval.asked", "ptc.approval.decided"]
    assert "paying_is_closed" in refused.status.message


def test_exporting_twice_gives_the_same_spans(log: Path, collector: Collector) -> None:
    once = [span.SerializeToString(deterministic=True) for span in sent(log, collector)]
    twice = [span.SerializeToString(deterministic=True) for span in sent(log, collector)]
    assert once == twice


def test_content_leaves_only_when_it_is_asked_for(log: Path, collector: Collector) -> None:
    sent(log, collector)
    private = b"".join(body for _path, _type, body in collector.requests)
    for word in (SECRET, "such order", "refunds cost money", "Weekly refunds", "asyncio.gather"):
        assert word.encode() not in private, word
    spans = sent(log, collector, "--content")
    (span,) = (span for span in spans if SECRET in attributes(span).get("gen_ai.tool.call.result", ""))
    assert json.loads(attributes(span)["gen_ai.tool.call.arguments"]) == {"text": SECRET}
    assert json.loads(attributes(span)["gen_ai.tool.call.result"]) == [{"type": "text", "text": SECRET}]
    (failed,) = (span for span in spans if attributes(span)["gen_ai.operation.name"] == "execute_tool"
                 and attributes(span)["gen_ai.tool.name"] == "fail")  # fmt: skip
    assert "no such order" in attributes(failed)["gen_ai.tool.call.result"]
    asked = [event for span in spans for event in span.events if event.name == "ptc.approval.asked"]
    assert {one.attributes[0].value.string_value for one in asked} == {"refunds cost money"}


def test_only_some_runs(log: Path, collector: Collector) -> None:
    names = {span.name for span in sent(log, collector, "--session", "2030")}
    assert names == {f"invoke_agent {HOSTILE}", f"execute_tool {HOSTILE}"}
    assert sent(log, collector, "--until", "2020-01-01") == []
    assert len(sent(log, collector, "--since", "2020-01-01")) > 10


def test_a_file_of_otlp_json_has_the_same_spans(log: Path, tmp_path: Path, collector: Collector) -> None:
    output = tmp_path / "spans.json"
    done = run("export", "--log", str(log), "--format", "otel", "--output", str(output))
    assert done.exit_code == 0, done.stderr
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    text = output.read_text()
    assert text.isascii()
    assert_printable(text)
    spans = [
        span
        for line in text.splitlines()
        for of_resource in json.loads(line)["resourceSpans"]
        for of_scope in of_resource["scopeSpans"]
        for span in of_scope["spans"]
    ]
    as_sent = sent(log, collector)
    assert [(span["traceId"], span["spanId"], span["name"]) for span in spans] == [
        (span.trace_id.hex(), span.span_id.hex(), span.name) for span in as_sent
    ]
    piped = run("export", "--log", str(log), "--format", "otel", "-o", "-")
    assert piped.stdout == text


@pytest.mark.parametrize("seed", range(3))
def test_logs_of_any_shape_give_a_span_for_each_call(tmp_path: Path, collector: Collector, seed: int) -> None:
    log = tmp_path / "ptc.db"
    anyio.run(write_random, log, seed)
    tools = [span for span in sent(log, collector) if "gen_ai.tool.name" in attributes(span)]
    told = sorted(
        (attributes(span)["ptc.run"], attributes(span)["ptc.seq"], attributes(span)["ptc.outcome"]) for span in tools
    )
    assert told == sorted((one["run"], one["call"].seq, one["call"].outcome) for one in all_calls(log))


def test_a_large_log_goes_in_batches(tmp_path: Path, collector: Collector) -> None:
    log = tmp_path / "ptc.db"

    async def write() -> None:
        async with SqliteEventStore(log) as store:
            session = Session(store, agent="a", id="s1")
            for n in range(700):
                call = {"turn": n, "step": 1, "callId": f"c{n}", "name": "echo", "arguments": "x" * 9_000}
                seq = await session.append("tool/call", call)
                message = {"callId": f"c{n}", "isError": False, "content": []}
                await session.append("tool/result", {"turn": n, "step": 1, "message": message}, cites=seq)

    anyio.run(write)
    assert len(sent(log, collector)) == 1_400
    assert len(collector.requests) == 6
    assert len(sent(log, collector, "--content")) == 1_400
    assert max(len(body) for _path, _type, body in collector.requests) < 3_000_000


def test_a_collector_that_refuses_is_one_clear_error(log: Path, collector: Collector) -> None:
    collector.status = 401
    done = run("export", "--log", str(log), "--format", "otel", "--endpoint", f"{collector.url}/otlp/v1/traces")
    assert done.exit_code == 1
    assert collector.requests[0][0] == "/otlp/v1/traces"
    assert "spans were not taken, none were exported: " in done.stderr
    assert "401" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_session_of_a_newer_version_does_not_hide_the_others(log: Path, collector: Collector) -> None:
    async def write() -> None:
        async with SqliteEventStore(log) as store:
            await Session(store, agent="a", id="later").append("tool/later", {})

    anyio.run(write)
    done = run("export", "--log", str(log), "--format", "otel", "--endpoint", collector.url)
    assert done.exit_code == 1
    assert "session later cannot be read to its end: " in done.stderr
    assert len(collector.spans()) > 10


def test_without_the_extra_it_is_named(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name == "opentelemetry" or name.startswith("opentelemetry."):
            monkeypatch.setitem(sys.modules, name, None)
    for options in (("--endpoint", "http://127.0.0.1:1"), ("--output", str(tmp_path / "out.json"))):
        done = run("export", "--log", str(log), "--format", "otel", *options)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == 'ptc: OpenTelemetry is not installed; add the extra: pip install "ptc-runtime[otel]"\n'
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--format", "xml"), "it takes jsonl or otel"),
        (("--format", "otel"), "give the one or the other"),
        (("--format", "otel", "--output", "x", "--endpoint", "http://x"), "give the one or the other"),
        (("--content",), "it is for --format otel"),
        (("--since", "2h"), "it is for --format otel"),
        (("--endpoint", "http://x"), "it is for --format otel"),
        (("--session", "nobody"), "has no session 'nobody'"),
    ],
)
def test_wrong_usage_ends_with_2(log: Path, options: tuple[str, ...], says: str) -> None:
    done = run("export", "--log", str(log), *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in " ".join(done.stderr.split())


def test_what_is_no_url_and_no_log(log: Path, tmp_path: Path, collector: Collector) -> None:
    done = run("export", "--log", str(log), "--format", "otel", "--endpoint", "collector:4318")
    assert (done.exit_code, done.stderr.count("is no URL of a collector")) == (1, 1)
    with pytest.raises(LogUnavailableError):
        export_spans(tmp_path / "none.db", http_exporter(collector.url))
