"""What a redaction keeps out of the record, that it never fails open, and what it leaves alone."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import ptc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptc.runtime.log.events import read_event
from ptc.runtime.log.filters import INLINE_CHARS
from ptc.runtime.log.reading import read_session
from ptc.runtime.policies.redact_rules import FieldRules
from ptc.runtime.policies.redact_values import Redactor
from ptc.runtime.policies.redaction import FAILED, REDACTED

pytestmark = pytest.mark.anyio

KEY = b"k" * 32
SECRET = "hunter2-and-more"
TOKEN = "ghp_" + "a1B2" * 9
DIGEST = re.compile(r"\[redacted hmac:[0-9a-f]{16}\]")


class Safe:
    """A host with a log on disk, an agent, and the tool `login`, whose result holds what it is given."""

    def __init__(self, host: ptc.Host, log: Path, executor: Any = None) -> None:
        self.host, self.log = host, log
        self.agent = host.agent("clerk", executor=executor)
        self.seen: list[Any] = []

        async def execute(arguments: Any) -> Any:
            self.seen.append(json.loads(json.dumps(arguments)))
            if "fail" in arguments:
                raise ValueError(arguments["fail"])
            return arguments

        host.tools.register(
            ptc.define_raw_tool(
                name="login",
                description="Log in.",
                parameters={"type": "object"},
                execute=execute,
                render=lambda _arguments, value: [ptc.text_block(json.dumps(value))],
                presentation_meta=lambda _arguments, value: value,
            )
        )

    async def call(self, arguments: Any, name: str = "login") -> Any:
        return (await self.agent.execute([ptc.ToolCall(name=name, arguments=arguments)])).results[0].result

    async def events(self, *types: str) -> list[Any]:
        assert self.agent.session is not None
        stored = await self.agent.session.events()
        return [json.loads(json.dumps(event.data)) for event in stored if not types or event.type in types]

    async def reading(self) -> Any:
        """Returns the session as an auditor reads it; fails when a record does not fit its type or its neighbours."""
        assert self.agent.session is not None
        store: Any = self.host._store
        (info,) = [info for info in await store.sessions() if info.id == self.agent.session.id]
        events = await self.agent.session.events()
        assert all(read_event(event) is not None for event in events)
        reading = read_session(info, events)
        assert reading.violations == []
        return reading

    def on_disk(self) -> bytes:
        """Returns whatever the log's files hold."""
        return b"".join(path.read_bytes() for path in self.log.parent.glob(f"{self.log.name}*"))


@pytest.fixture
async def safe(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Safe]:
    async with ptc.Host(log=tmp_path / "log.db") as host:
        yield Safe(host, tmp_path / "log.db")


@pytest.fixture
async def programs(anyio_backend: str, tmp_path: Path, make_sandbox: Any) -> AsyncIterator[Safe]:
    async with ptc.Host(log=tmp_path / "log.db") as host:
        sandbox = make_sandbox(compute_ms=20_000, max_wall_ms=60_000)
        yield Safe(host, tmp_path / "log.db", ptc.PtcExecutor(sandbox=sandbox))


def redactor(fields: Any = (), paths: Any = (), patterns: Any = (), *, shapes: bool = False) -> Redactor:
    return Redactor(FieldRules(fields, paths), shapes=shapes, patterns=[re.compile(p) for p in patterns], detectors=[])


def mark(value: Any) -> str:
    return f"<{value}>" if isinstance(value, str) else f"<{json.dumps(value)}>"


# Model's own calls


async def test_results_are_redacted_in_the_record_and_nowhere_else(safe: Safe) -> None:
    ptc.RedactionPolicy(["password"], ["user.ssn"]).install(safe.host)
    given = {"password": SECRET, "user": {"ssn": "123-45", "name": "Ann"}, "note": f"use {TOKEN}"}
    result = await safe.call(given)
    assert (result.value, json.loads(result.text), safe.seen) == (given, given, [given])
    (record,) = await safe.events("tool/result")
    expected = {"password": REDACTED, "user": {"ssn": REDACTED, "name": "Ann"}, "note": f"use {REDACTED}"}
    assert record["meta"] == expected
    assert json.loads(record["message"]["content"][0]["text"]) == expected
    (called,) = await safe.events("tool/call")
    assert json.loads(called["arguments"]) == given  # without a key they are what the audit is about
    await safe.reading()


async def test_arguments_leave_a_digest_that_tells_equal_values(safe: Safe) -> None:
    ptc.RedactionPolicy(["password"], argument_key=KEY).install(safe.host)
    for password in (SECRET, SECRET, "another"):
        await safe.call(json.dumps({"user": "ann", "password": password, "note": f"x {SECRET} {TOKEN}"}))
    first, second, third = [json.loads(event["arguments"]) for event in await safe.events("tool/call")]
    assert first == second
    assert DIGEST.fullmatch(first["password"])
    assert DIGEST.fullmatch(third["password"])
    assert first["password"] != third["password"]
    assert first["user"] == "ann"
    assert re.fullmatch(f"x {SECRET} {DIGEST.pattern}", first["note"])
    assert TOKEN.encode() not in safe.on_disk()
    assert safe.seen[0]["password"] == SECRET


async def test_another_key_gives_another_digest_and_a_program_the_same_as_a_call(safe: Safe) -> None:
    digests = set()
    for key in (KEY, b"l" * 32):
        with ptc.RedactionPolicy(["password"], argument_key=key).install(safe.host):
            await safe.call({"password": SECRET})
            digests.add(json.loads((await safe.events("tool/call"))[-1]["arguments"])["password"])
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ('{ "user": "ann",  "n": 1.50 }', True),
        ("", True),
        ('{"x": "' + SECRET + '", "x": 1}', False),  # the value has no secret, the text has
        ('{"password": "' + SECRET, False),
        ('{"password": ' + SECRET + "}", False),
        ("password=" + SECRET, False),
        ('["' + TOKEN + '"]', False),
        (f'"{TOKEN}"', False),
        (f"no JSON {TOKEN}", False),
        ('{"p\\u0061ssword": "' + SECRET + '"}', False),
        ('{"text": "\\ud800", "password": "' + SECRET + '"}', False),
        ('{"n": 1e999, "password": "' + SECRET + '"}', False),
        ('{"n": NaN, "password": "' + SECRET + '"}', False),
        ('{"inner": "{\\"password\\": \\"' + SECRET + '\\"}"}', False),
    ],
)
async def test_the_raw_text_of_arguments_is_kept_only_when_nothing_is_in_it(safe: Safe, raw: str, kept: bool) -> None:
    ptc.RedactionPolicy(["password"], argument_key=KEY).install(safe.host)
    await safe.call(raw)
    (called,) = await safe.events("tool/call")
    assert (called["arguments"] == raw) is kept
    for secret in (SECRET, TOKEN):
        assert secret not in called["arguments"]
    assert kept or raw.startswith('{"x"') or DIGEST.search(called["arguments"])


async def test_where_no_path_can_be_followed_the_whole_text_of_arguments_goes(safe: Safe) -> None:
    ptc.RedactionPolicy(paths=["user.ssn"], argument_key=KEY).install(safe.host)
    await safe.call('{"user": {"ssn": "123-45"')
    (called,) = await safe.events("tool/call")
    assert DIGEST.fullmatch(called["arguments"])


async def test_failures_and_reasons_are_redacted(safe: Safe) -> None:
    ptc.RedactionPolicy(["password"]).install(safe.host)

    @safe.host.on("tools/pre-execute")
    async def decide(call: Any, next: Any) -> Any:
        if "deny" in call.arguments:
            return ptc.Deny(f"not with {TOKEN}", ptc.ErrorInfo("PermissionError", "DENIED", f"password: {SECRET}"))
        return ptc.Ask(f"may it use {TOKEN}?") if "ask" in call.arguments else await next()

    safe.host.on("approval/request", _allow)
    await safe.call({"fail": f"cannot use {TOKEN}"})
    await safe.call({"deny": 1})
    await safe.call({"ask": 1})
    failed, denied, _asked = await safe.events("tool/result")
    assert failed["message"]["content"][0]["text"] == f"Error: cannot use {REDACTED}"
    assert denied["message"]["content"][0]["text"] == f"Error: not with {REDACTED}"
    assert denied["error"] == {"name": "PermissionError", "code": "DENIED", "reason": f"password: {REDACTED}"}
    assert denied["decision"]["by"].endswith("decide")
    (question,) = await safe.events("approval/asked")
    assert question["reason"] == f"may it use {REDACTED}?"
    await safe.reading()


async def _allow(_request: Any, _next: Any) -> Any:
    return "allowed-once"


async def test_whatever_type_an_event_has_nothing_of_it_is_forgotten(safe: Safe) -> None:
    ptc.RedactionPolicy(["password"], argument_key=KEY).install(safe.host)
    session = safe.agent.session
    assert session is not None
    data: Any = {
        "id": "x1",
        "name": "thing",
        "password": SECRET,
        "anything": [{"deep": [f"a {TOKEN}"]}, {"password": {"a": SECRET}}],
        "content": {"text": TOKEN},
        "code": f"login(password='{SECRET}')",
        "arguments": {"password": SECRET},
        "message": {"callId": "c", "whatever": TOKEN},
        "line": 3,
        TOKEN: 1,
        "ignorable": True,
    }
    observed: list[Any] = []
    session.observe(observed.append)
    await session.append("new/type", data)
    (record,) = await safe.events("new/type")
    assert SECRET not in json.dumps(record)
    assert TOKEN not in json.dumps(record)
    assert (record["id"], record["name"], record["line"], record["ignorable"]) == ("x1", "thing", 3, True)
    assert record["password"] == REDACTED
    assert record["message"]["callId"] == "c"
    assert DIGEST.fullmatch(record["arguments"]["password"])
    assert json.loads(json.dumps(observed[0].data)) == record


async def test_numbers_of_a_record_stay_so_that_it_can_be_read(safe: Safe) -> None:
    ptc.RedactionPolicy(["turn", "content", "isError", "line"], patterns=[r"\d+"]).install(safe.host)
    safe.agent.turn = 20_000_000
    await safe.call({"n": 10**9})
    (run,) = (await safe.reading()).runs
    assert run.call.meta == {"n": REDACTED}
    assert [event["turn"] for event in await safe.events()] == [20_000_000] * 2


async def test_images_stay_and_texts_beside_them_do_not(safe: Safe) -> None:
    ptc.RedactionPolicy().install(safe.host)
    image = {"type": "image", "data": TOKEN, "mimeType": "image/png"}

    @safe.host.on("tools/post-execute")
    async def draw(_call: Any, _result: Any, _next: Any) -> Any:
        return ptc.Accept(content=[ptc.text_block(TOKEN), image])

    await safe.call({})
    (record,) = await safe.events("tool/result")
    assert record["message"]["content"] == [{"type": "text", "text": REDACTED}, image]
    assert safe.agent.session is not None
    odd: Any = [{**ptc.text_block("x"), "note": TOKEN}, {**image, "note": TOKEN}, {"type": "link", "to": TOKEN}, TOKEN]
    await safe.agent.session.append("new/type", {"content": odd})
    (record,) = await safe.events("new/type")
    assert record["content"] == [
        {**ptc.text_block("x"), "note": REDACTED},
        {**image, "note": REDACTED},
        {"type": "link", "to": REDACTED},
        REDACTED,
    ]


async def test_a_policy_of_one_agent_is_of_that_agent_alone_and_can_be_taken_away(safe: Safe) -> None:
    with ptc.RedactionPolicy().install(safe.agent):
        await safe.call({"a": TOKEN})
        other = safe.host.agent("other")
        await other.execute([ptc.ToolCall(name="login", arguments={"a": TOKEN})])
    await safe.call({"a": TOKEN})
    first, second = await safe.events("tool/result")
    assert first["meta"] == {"a": REDACTED}
    assert second["meta"] == {"a": TOKEN}
    assert other.session is not None
    assert (await other.session.events())[-1].data["meta"] == {"a": TOKEN}


async def test_without_a_log_there_is_nothing_to_redact(anyio_backend: str, tmp_path: Path) -> None:
    async with ptc.Host() as host:
        safe = Safe(host, tmp_path / "none")
        ptc.RedactionPolicy().install(host)
        ptc.RedactionPolicy().install(safe.agent)
        assert (await safe.call({"a": TOKEN})).value == {"a": TOKEN}


# Programs


async def test_start_and_settle_have_the_same_arguments_and_programs_get_the_values(programs: Safe) -> None:
    ptc.RedactionPolicy(["password"], argument_key=KEY).install(programs.host)
    code = (
        f'token = "{TOKEN}"\n'
        f"a = await tools.login(password='{SECRET}', token=token, n=2)\n"
        f"b = await tools.login({{'password': f'{SECRET}'}})\n"
        f"print('password:', a['password'])\n"
        f"return {{'password': a['password'], 'same': a['password'] == b['password']}}"
    )
    result = await programs.agent.run_code(code)
    assert not result.is_error, result.error.message
    assert result.value["result"] == {"password": SECRET, "same": True}
    reading = await programs.reading()
    (run,) = reading.runs
    assert [call.outcome for call in run.calls] == ["ok", "ok"]
    first, second = [call.arguments for call in run.calls]
    assert DIGEST.fullmatch(first["password"])
    assert DIGEST.fullmatch(first["token"])
    assert (first["n"], first["password"] == second["password"]) == (2, True)
    assert f"password='{first['password']}'" in run.program
    assert f'token = "{first["token"]}"' in run.program
    starts, settles = await programs.events("tool/ptc-dispatch-start"), await programs.events("tool/ptc-dispatch")
    assert [event["arguments"] for event in starts] == [event["arguments"] for event in settles]
    assert settles[0]["meta"]["password"] == REDACTED
    assert json.loads(settles[0]["content"][0]["text"])["token"] == REDACTED
    for secret in (SECRET, TOKEN):
        assert secret.encode() not in programs.on_disk()


async def test_the_source_of_a_program_can_be_left_out_whole(programs: Safe) -> None:
    ptc.RedactionPolicy(["password"], argument_key=KEY, programs="digest").install(programs.host)
    await programs.agent.run_code(f"p = '{SECRET}'\nx = await tools.login(password=p)", description="Log in")
    (called,) = await programs.events("tool/call")
    arguments = json.loads(called["arguments"])
    assert DIGEST.fullmatch(arguments["code"])
    assert arguments["description"] == "Log in"
    assert SECRET.encode() not in programs.on_disk()
    await programs.reading()


async def test_the_copy_is_redacted_before_it_is_spilled_and_the_cut_keeps_no_half_secret(
    programs: Safe, tmp_path: Path
) -> None:
    ptc.RedactionPolicy(["password"]).install(programs.host)
    store = ptc.LocalSpillStore(tmp_path / "spilled")
    ptc.SpillPolicy.install(programs.host, max_inline_bytes=600, store=store)
    text = f"{TOKEN} " * 100
    result = await programs.agent.run_code(
        f"x = await tools.login(text={text!r}, password={SECRET!r})\nprint({text!r})"
    )
    (settled,) = await programs.events("tool/ptc-dispatch")
    assert "omitted" in settled["content"][0]["text"]
    kept = {path.name[17:]: path.read_text(encoding="utf-8") for path in store.root.rglob("*.txt")}
    assert set(kept) == {"login.txt", "run_code.txt"}
    assert "ghp_" not in kept["login.txt"]
    assert SECRET not in kept["login.txt"]
    assert TOKEN in kept["run_code.txt"]  # that one is for the model
    assert "ghp_" in result.text
    (record,) = await programs.events("tool/result")
    shown = record["message"]["content"][0]["text"]
    assert "a1B2" not in shown
    assert "omitted; the whole text is kept under the locator" in shown


async def test_two_policies_leave_what_the_first_one_left(programs: Safe) -> None:
    for target, key in ((programs.host, KEY), (programs.agent, b"l" * 32)):
        ptc.RedactionPolicy(["password"], argument_key=key).install(target)
    one = ptc.RedactionPolicy(["password"], argument_key=b"l" * 32)
    await programs.agent.run_code(f"x = await tools.login(password='{SECRET}')")
    (run,) = (await programs.reading()).runs
    assert run.calls[0].arguments == {"password": one._digest(SECRET)}
    assert one._digest(SECRET) in run.program


# Failing closed


def broken(_text: str) -> Any:
    raise RuntimeError(f"what is {_text}?")


async def test_a_redaction_that_fails_leaves_nothing_of_the_original_and_the_call_goes_on(
    programs: Safe, caplog: pytest.LogCaptureFixture
) -> None:
    ptc.RedactionPolicy(detectors=[broken], argument_key=KEY).install(programs.host)
    result = await programs.agent.run_code(f"x = await tools.login(a='{SECRET}')\nprint(x['a'])\nreturn 1")
    assert result.value == {"logs": [SECRET], "result": 1}
    (run,) = (await programs.reading()).runs
    assert (run.call.arguments, run.call.outcome) == (FAILED, "ok")
    assert run.call.content == [{"type": "text", "text": FAILED}]
    (sub,) = run.calls
    assert (sub.name, sub.arguments, sub.meta, sub.outcome) == ("login", FAILED, FAILED, "ok")
    assert sub.content == [{"type": "text", "text": FAILED}]
    assert SECRET.encode() not in programs.on_disk()
    assert "could not be redacted (RuntimeError)" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("answer", [[(0, 10**9)], [(-1, 2)], [(3, 1)], [5], 5, [("a", "b")]])
async def test_a_detector_that_answers_nonsense_has_failed(safe: Safe, answer: Any) -> None:
    ptc.RedactionPolicy(detectors=[lambda _text: answer]).install(safe.host)
    result = await safe.call({"a": SECRET})
    assert not result.is_error
    (record,) = await safe.events("tool/result")
    assert (record["meta"], record["message"]["content"][0]["text"]) == (FAILED, FAILED)


async def test_start_and_settle_are_alike_though_only_one_of_them_failed(programs: Safe) -> None:
    failing = [True]

    def sometimes(text: str) -> Any:
        if failing[0]:
            raise RuntimeError
        return []

    ptc.RedactionPolicy(detectors=[sometimes], argument_key=KEY).install(programs.host)

    @programs.host.on("tools/pre-execute")
    async def recover(call: Any, next: Any) -> Any:
        if call.name == "login":
            failing[0] = not failing[0]
        return await next()

    await programs.agent.run_code(f"x = await tools.login(a='{SECRET}')\ny = await tools.login(a='{SECRET}')")
    (run,) = (await programs.reading()).runs
    assert [call.arguments for call in run.calls] == [FAILED, {"a": SECRET}]


async def test_errors_have_their_identity_though_their_reason_failed(safe: Safe) -> None:
    ptc.RedactionPolicy(detectors=[broken]).install(safe.host)

    @safe.host.on("tools/pre-execute")
    async def deny(_call: Any, _next: Any) -> Any:
        return ptc.Deny("no", ptc.ErrorInfo("PermissionError", "DENIED", SECRET))

    await safe.call({})
    (record,) = await safe.events("tool/result")
    assert record["error"] == {"name": "PermissionError", "code": "DENIED", "reason": FAILED}
    assert (await safe.reading()).runs[0].outcome == "denied"


# The filters of a session


async def test_a_filter_that_raises_records_nothing(safe: Safe) -> None:
    session = safe.agent.session
    assert session is not None

    def refuse(_session: str, _type: str, _data: Any) -> Any:
        raise LookupError("no filter today")

    stop = session.filters.add(refuse)
    with pytest.raises(LookupError, match="no filter today"):
        await session.append("a/b", {"x": 1})
    stop()
    session.filters.add(lambda _session, _type, _data: ["no object"])  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="must be a JSON object"):
        await session.append("a/b", {"x": 1})
    assert await session.events() == []


async def test_filters_of_the_agent_come_before_those_of_the_host(safe: Safe) -> None:
    session = safe.agent.session
    assert session is not None
    safe.host.record_filters.add(lambda _session, _type, data: {"x": f"{data['x']}-host"})
    session.filters.add(lambda _session, _type, data: {"x": f"{data['x']}-agent"})
    await session.append("a/b", {"x": "x"})
    assert await safe.events() == [{"x": "x-agent-host"}]


async def test_a_long_record_is_filtered_in_a_thread_and_later_ones_keep_their_place(safe: Safe) -> None:
    session = safe.agent.session
    assert session is not None
    going_on = anyio.Event()

    def slow(_session: str, _type: str, data: Any) -> Any:
        if len(data["x"]) > 1:
            assert anyio.from_thread.run(wait) is None  # which takes both the thread and the loop
        return {"x": data["x"][0]}

    async def wait() -> None:
        with anyio.fail_after(10):
            await going_on.wait()

    session.filters.add(slow)
    async with anyio.create_task_group() as tasks:
        for text in ("a" * INLINE_CHARS * 2, "b", "c" * INLINE_CHARS * 2, "d"):
            tasks.start_soon(session.append, "a/b", {"x": text})
            await anyio.wait_all_tasks_blocked()
        assert await session.events() == []
        going_on.set()
    assert [event.data["x"] for event in await session.events()] == ["a", "b", "c", "d"]


async def test_a_cancelled_append_of_a_long_record_is_finished(safe: Safe) -> None:
    session = safe.agent.session
    assert session is not None
    session.filters.add(lambda _session, _type, data: {"x": data["x"][:1]})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.append, "a/b", {"x": "a" * INLINE_CHARS * 2})
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert [event.data["x"] for event in await session.events()] in (["a"], [])
    await session.append("a/b", {"x": "b"})
    assert [event.data["x"] for event in await session.events()][-1] == "b"


# Values and text


@pytest.mark.parametrize(
    ("path", "redacted"),
    [
        ("a", {"a": "<1>", "b": {"a": 1, "c": [{"d": 2}, {"d": 3}]}, "x.y": 4}),
        ("b.a", {"a": 1, "b": {"a": "<1>", "c": [{"d": 2}, {"d": 3}]}, "x.y": 4}),
        ("$.b.c[1].d", {"a": 1, "b": {"a": 1, "c": [{"d": 2}, {"d": "<3>"}]}, "x.y": 4}),
        ("b.c[*].d", {"a": 1, "b": {"a": 1, "c": [{"d": "<2>"}, {"d": "<3>"}]}, "x.y": 4}),
        ("*.a", {"a": 1, "b": {"a": "<1>", "c": [{"d": 2}, {"d": 3}]}, "x.y": 4}),
        ("b.c[0]", {"a": 1, "b": {"a": 1, "c": ['<{"d": 2}>', {"d": 3}]}, "x.y": 4}),
        ('["x.y"]', {"a": 1, "b": {"a": 1, "c": [{"d": 2}, {"d": 3}]}, "x.y": "<4>"}),
        ("b.c.d", {"a": 1, "b": {"a": 1, "c": [{"d": 2}, {"d": 3}]}, "x.y": 4}),
    ],
)
def test_paths_begin_at_the_root(path: str, redacted: Any) -> None:
    value: Any = {"a": 1, "b": {"a": 1, "c": [{"d": 2}, {"d": 3}]}, "x.y": 4}
    found = redactor(paths=[path])
    assert found.value(value, mark) == redacted
    assert json.loads(found.text(json.dumps(value), mark)) == redacted
    text = f"printed [first]\n{json.dumps(value, indent=2)}\nand more"
    before, document, after = found.text(text, mark).partition(json.dumps(redacted, indent=2))
    assert (before, bool(document), after) == ("printed [first]\n", True, "\nand more")


@pytest.mark.parametrize("line", ["[INFO] started", "[3 of 5] done", '["a", b', '{"a": 1, b}', "[1, 2"])
def test_a_document_is_found_behind_thousands_of_lines_that_only_look_like_one(line: str) -> None:
    text = f"{line}\n" * 20_000
    found = redactor(paths=["a.b"]).text(text + '{"a": {"b": "hunter2"}}', mark)
    assert found == text + '{"a":{"b":"<hunter2>"}}'


@pytest.mark.parametrize("path", ["", "$", ".", ".a", "a..b", "a.", "a[", "a[x]", "a b", "a[]", "..a", "a[1]b"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is no path"):
        ptc.RedactionPolicy(paths=[path])


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("password: hunter2 and more\nnext", "password: <hunter2 and more>\nnext"),
        ("PASSWORD=hunter2 next", "PASSWORD=<hunter2> next"),
        ("https://x/?password=hunter2&n=1", "https://x/?password=<hunter2>&n=1"),
        ("{'password': 'hunter2', 'n': 1}", "{'password': '<hunter2>', 'n': 1}"),
        ('seen {"password":"hun\\"ter2","n":1} there', 'seen {"password":"<hun"ter2>","n":1} there'),
        ('seen {"password":{"a":[1]},"n":1} there', 'seen {"password":<{"a": [1]}>,"n":1} there'),
        ("seen {'password': ('a', \"b)\"), 'n': 1} there", "seen {'password': <('a', \"b)\")>, 'n': 1} there"),
        ('seen {"password": ["a", there', 'seen {"password": <["a", there>'),
        ('seen {"password": "hunter2', 'seen {"password": "<hunter2>'),
        ('seen {\\"password\\": \\"hunter2\\"} there', 'seen {\\"password\\": \\"<hunter2>\\"} there'),
        ("password: 4711, n: 1", "password: <4711>, n: 1"),
        ("password: null\npassword: None", "password: null\npassword: None"),
        ("os.environ['PASSWORD'] = 'hunter2'", "os.environ['PASSWORD'] = '<hunter2>'"),
        ("b'x\\npassword=hunter2 y'", "b'x\\npassword=<hunter2> y'"),
        ("C:\\temp password=hunter2", "C:\\temp password=<hunter2>"),
        ("\x1b[31mpassword: hunter2", "\x1b[31mpassword: <hunter2>"),
        ("npassword=hunter2", "npassword=hunter2"),
        ("\x1b[31m" + "x" * 200 + "password: hunter2", "\x1b[31m" + "x" * 200 + "password: hunter2"),
        ("api-key: a\nAPI_KEY: b\napiKey=c\nmy_api_key_2=d", "api-key: <a>\nAPI_KEY: <b>\napiKey=<c>\nmy_api_key_2=d"),
        ("the password is long; passwords: two", "the password is long; passwords: two"),
        ("Geheimzahl größe: 1, größe=2", "Geheimzahl größe: <1>, größe=<2>"),
    ],
)
def test_fields_are_found_in_text_that_is_no_document(text: str, redacted: str) -> None:
    assert redactor(["password", "api_key", "Größe"]).text(text, mark) == redacted


def test_the_quote_of_an_escaped_name_is_no_escape_of_the_name() -> None:
    found = redactor(["password", "shoe size"])
    assert found.text("say \\'npassword\\': 'hunter2'", mark) == "say \\'npassword\\': 'hunter2'"
    assert found.text("say \\'shoe size\\': '44'", mark) == "say \\'shoe size\\': '<44>'"


@pytest.mark.parametrize(
    ("source", "redacted"),
    [
        ("login(password='hunter2', n=1)", "login(password='<hunter2>', n=1)"),
        ("login(password=p, n='x')", "login(password=p, n='x')"),
        ("password: str = 'hunter2'", "password: str = '<hunter2>'"),
        ("password: str | None = rb'hunter2'", "password: str | None = rb'<hunter2>'"),
        ("password = f'''hunter\n{n}''' ; n = 'x'", "password = f'''<hunter\n{n}>''' ; n = 'x'"),
        ("password = 'hun' 'ter2' + \"x\"; n = 'x'", "password = '<hun>' '<ter2>' + \"<x>\"; n = 'x'"),
        ("if password == 'hunter2': n = 'x'", "if password == '<hunter2>': n = 'x'"),
        ("d = {'password': 'hunter2', 'n': 1}", "d = {'password': '<hunter2>', 'n': 1}"),
        ("d['password'] = 4711", "d['password'] = <4711>"),
        ("def f(password):\n    n = 'x'", "def f(password):\n    n = 'x'"),
        ("password = get('x')", "password = get('x')"),
        ("password = ['a', 'b]']; n = 1", "password = <['a', 'b]']>; n = 1"),
    ],
)
def test_literals_of_fields_are_found_in_a_program(source: str, redacted: str) -> None:
    assert redactor(["password"]).plain(source, mark, program=True) == redacted


@pytest.mark.parametrize(
    ("field", "taken"),
    [
        ("password", {"Pass_Word"}),
        ("*password", {"Pass_Word", "dbPassword", "DB_PASSWORD"}),
        ("pass*", {"Pass_Word", "password_2", "passage"}),
        ("*pass*2", {"password_2"}),
    ],
)
def test_a_star_in_a_name_stands_for_anything(field: str, taken: set[str]) -> None:
    names = ["Pass_Word", "dbPassword", "DB_PASSWORD", "password_2", "passage", "other"]
    clean: Any = redactor([field]).value(dict.fromkeys(names, "x"), mark)
    assert {name for name in names if clean[name] != "x"} == taken
    text = redactor([field]).text("\n".join(f"{name}: xyz" for name in names), mark)
    assert {line.split(":")[0] for line in text.splitlines() if "<xyz>" in line} == taken


def test_names_with_spaces_and_keys_that_are_secrets() -> None:
    assert (
        redactor(["credit card"]).text('seen {"Credit Card": "1"} there', mark) == 'seen {"Credit Card": "<1>"} there'
    )
    assert redactor(patterns=["sec.et"]).value({"secret": 1, "secXet": 2, "a": "secret"}, mark) == {
        "<secret>": 1,
        "<secXet>": 2,
        "a": "<secret>",
    }
    assert redactor(patterns=["sec.et"]).value({"secret": 1, "secXet": 2}, lambda _value: "x") == {"x": 1, "x (2)": 2}


def test_numbers_match_patterns_and_groups_name_the_secret() -> None:
    cards = redactor(patterns=[r"\b4\d{15}\b", r"pin (?P<secret>\d+)"])
    value = {"card": 4111111111111111, "n": 4, "text": "pin 1234 or 4111111111111111", "f": 1.5}
    assert cards.value(value, mark) == {
        "card": "<4111111111111111>",
        "n": 4,
        "text": "pin <1234> or <4111111111111111>",
        "f": 1.5,
    }


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        TOKEN,
        "github_pat_11ABCDEFG0" + "a" * 60,
        "glpat-" + "a" * 20,
        "xoxb-123456789012-abcdefghij",
        "sk-proj-" + "aB1_" * 10,
        "sk-ant-api03-" + "aB1-" * 10,
        "AIza" + "Sy1_" * 8 + "abc",
        "sk_live_" + "a1" * 12,
        "npm_" + "a" * 36,
        "hf_" + "a" * 34,
        "SG." + "a" * 22 + "." + "b" * 43,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nMIIE and no end",
        "12345678:AA" + "h" * 33,
    ],
)
def test_tokens_of_a_known_shape_are_found_wherever_they_are(secret: str) -> None:
    found = redactor(shapes=True)
    assert found.text(f"it is {secret}", mark) == f"it is <{secret}>"
    assert found.text(json.dumps({"a": [secret]}), mark) == '{"a":[' + json.dumps(f"<{secret}>") + "]}"
    assert found.text(json.dumps({"a": json.dumps({"b": secret})}), lambda _value: "x") == json.dumps(
        {"a": '{"b":"x"}'}, separators=(",", ":")
    )


@pytest.mark.parametrize("before", ["", "token=", "-", "\\n"])
def test_a_web_token_may_have_certificates_in_its_head(before: str) -> None:
    size = 6_000 if before in ("", "token=") else 3_000
    secret = f"eyJ{'x5c' * (size // 3)}.eyJ{'b' * 20}.{'c' * 40}"
    assert redactor(shapes=True).text(f"{before}{secret} is it", mark) == f"{before}<{secret}> is it"


@pytest.mark.parametrize("secret", [TOKEN, "AKIAIOSFODNN7EXAMPLE", "12345678:AA" + "h" * 33, "sk_live_" + "a1" * 12])
@pytest.mark.parametrize("before", ["\\n", "\\x0a", "\\u000a", "%2F", "\x1b[32m", "\\x1b[1;31m", "\x1b[m"])
def test_a_token_is_found_right_behind_an_escape(secret: str, before: str) -> None:
    found = redactor(shapes=True)
    assert found.text(f"b'it is{before}{secret}'", mark) == f"b'it is{before}<{secret}>'"
    assert found.text(f"it is x{secret}", mark) == f"it is x{secret}"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic <dXNlcjpwYXNz>"),
        ("'authorization': 'Bearer abcdefghijklmnop'", "'authorization': 'Bearer <abcdefghijklmnop>'"),
        ("postgres://me:hunter2@db:5432/x", "postgres://me:<hunter2>@db:5432/x"),
        ("see https://example.com:8080/a@b and a@b.c", "see https://example.com:8080/a@b and a@b.c"),
        ("a basic understanding of the bearer of this", "a basic understanding of the bearer of this"),
        ("SK and task-force and 20261130T101530-4f2a9c01d7", "SK and task-force and 20261130T101530-4f2a9c01d7"),
    ],
)
def test_only_what_is_secret_is_taken(text: str, redacted: str) -> None:
    assert redactor(shapes=True).text(text, mark) == redacted


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(value=json_values)
def test_a_value_without_secrets_is_not_touched(value: Any) -> None:
    found = redactor(["nosuchfield"], ["no.such.path"], shapes=True)
    assert found.value(value, mark) is value
    for text in (json.dumps(value), json.dumps(value, indent=2), f"x\n{json.dumps(value)}\ny"):
        assert found.text(text, mark) == text


@given(value=json_values, name=st.sampled_from(["pass_word", "PassWord", "pass-word"]), where=st.integers(0, 3))
def test_a_field_is_found_wherever_it_is(value: Any, name: str, where: int) -> None:
    secret = {name: "XSECRETX"}
    hidden: Any = [{"a": [secret, value]}, [value, {"b": secret}], json.dumps([secret, value]), {"v": value, **secret}][
        where
    ]
    found = redactor(["password"])
    clean = found.value(hidden, lambda _value: REDACTED)
    assert "XSECRETX" not in json.dumps(clean)
    assert "XSECRETX" not in found.text(json.dumps(hidden), lambda _value: REDACTED)
    assert "XSECRETX" not in found.text(f"it printed {hidden!r}", lambda _value: REDACTED)
    assert found.value(clean, lambda _value: REDACTED) == clean  # once more changes nothing


def test_deep_values_are_walked_and_deep_documents_read_as_text() -> None:
    deep: Any = {"password": SECRET}
    for _ in range(500):
        deep = [deep]
    clean = redactor(["password"]).value(deep, mark)
    for _ in range(500):
        (clean,) = clean
    assert clean == {"password": f"<{SECRET}>"}
    text = "[" * 20_000 + f'{{"password": "{SECRET}"}}' + "]" * 20_000
    assert SECRET not in redactor(["password"]).text(text, lambda _value: REDACTED)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 200_000,
        "[\n" * 100_000,
        "[{1,\n" * 40_000,
        '{"a":' * 50_000,
        '[{"a": [1,2\n' * 20_000,
        "a:" * 100_000,
        "password=" * 30_000,
        "password: '''" * 20_000,
        "://:" * 60_000,
        "-----BEGIN " * 20_000,
        "-----BEGIN PRIVATE KEY-----" * 9_000,
        "\\" * 200_000,
        "-eyJaaaaaaaa" * 80_000,
        "1ma" * 200_000,
        "keypass" * 60_000 + ": x",
    ],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    redactor(["*key*pass*word"]).text(text, mark)
    redactor(["password"], ["a.b"], shapes=True).text(text, mark)
    redactor(["password"], shapes=True).plain(text, mark, program=True)
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"fields": "password"}, TypeError, "a list of texts"),
        ({"fields": [5]}, TypeError, "a list of texts"),
        ({"fields": ["--"]}, ValueError, "letters or digits"),
        ({"fields": ["*"]}, ValueError, "letters or digits"),
        ({"patterns": ["("]}, ValueError, "no regular expression"),
        ({"patterns": [5]}, TypeError, "a regular expression for text"),
        ({"patterns": [re.compile(b"x")]}, TypeError, "a regular expression for text"),
        ({"detectors": ["x"]}, TypeError, "a function of a text"),
        ({"argument_key": "k" * 32}, TypeError, "must be bytes"),
        ({"argument_key": b"short"}, ValueError, "at least 16 bytes"),
        ({"programs": "drop"}, ValueError, '"scan" or "digest"'),
    ],
)
def test_a_rule_that_is_none_is_refused_at_once(options: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        ptc.RedactionPolicy(**options)
