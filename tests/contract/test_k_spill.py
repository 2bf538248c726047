"""Results that are too long for a model: what is bounded, byte by byte, and where the rest is (contract K6 to K13)."""

from __future__ import annotations

import logging
import re
import stat
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import ptc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptc.runtime.policies.preview import GAP, Ends, ends_of, shortened

pytestmark = pytest.mark.anyio

CAP = 1000
NOTICE = re.compile(
    r"\((\d+) bytes omitted; the whole text is kept under the locator (\S+?)(?:; ([^()]+(?:\(.*\))?))?\)"
)


class Shop:
    """A host with a log on disk, a store on disk, and an agent with the tool `say` that says what it is told to."""

    def __init__(self, host: ptc.Host, folder: Path) -> None:
        self.host = host
        self.folder = folder
        self.store = ptc.LocalSpillStore(folder / "spilled")
        self.agent = host.agent("buyer")
        self.add("say")

    def add(self, name: str, *, fails: bool = False, blocks: Any = None) -> None:
        async def execute(arguments: Any) -> str:
            if fails:
                raise ValueError(arguments["text"])
            return arguments["text"]

        def render(_arguments: Any, value: Any) -> Any:
            return [ptc.text_block(value)] if blocks is None else blocks(value)

        self.host.tools.register(
            ptc.define_tool(
                name=name,
                description="Say it.",
                parameters={"text": {"type": "string", "required": True}},
                output={"type": "string"},
                execute=execute,
                render=render,
            )
        )

    def install(self, **options: Any) -> ptc.Disposer:
        return ptc.SpillPolicy.install(
            options.pop("target", self.host), **{"max_inline_bytes": CAP, "store": self.store, **options}
        )

    async def call(self, name: str = "say", *, agent: ptc.Agent | None = None, **arguments: Any) -> Any:
        call = ptc.ToolCall(name=name, arguments=arguments)
        return (await (agent or self.agent).execute([call])).results[0].result

    def kept(self) -> list[str]:
        """Returns the texts on disk."""
        return [path.read_text(encoding="utf-8") for path in sorted((self.folder / "spilled").rglob("*.txt"))]

    async def events(self, type: str, agent: ptc.Agent | None = None) -> list[Any]:
        session = (agent or self.agent).session
        assert session is not None
        return [event.data for event in await session.events() if event.type == type]


@pytest.fixture
async def shop(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Shop]:
    async with ptc.Host(log=tmp_path / "shop.db") as host:
        yield Shop(host, tmp_path)


def read_notice(text: str) -> tuple[int, str, str | None]:
    """Returns the omitted bytes, the locator and the hint of the notice that a text ends with."""
    found = NOTICE.fullmatch(text.rsplit("\n\n", 1)[-1])
    assert found is not None, text[-300:]
    return int(found[1]), found[2], found[3]


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


# K6


@pytest.mark.contract("K6")
async def test_without_a_cap_nothing_is_installed(shop: Shop) -> None:
    with ptc.SpillPolicy.install(shop.host, store=shop.store):
        result = await shop.call(text="x" * 5000)
        assert result.text == "x" * 5000
        assert not (shop.folder / "spilled").exists()
        assert (await shop.call("read_spilled", locator="x")).error.info.code == "UNKNOWN_TOOL"


@pytest.mark.contract("K6")
@pytest.mark.parametrize("cap", [-1, 1.0, 1.5, "1000", True, float("inf")])
def test_a_cap_that_is_no_count_of_bytes_is_refused_at_once(rig: Any, cap: Any) -> None:
    with pytest.raises(ValueError, match="max_inline_bytes must be an integer of 0 or more"):
        ptc.SpillPolicy.install(rig.tools, max_inline_bytes=cap)


@pytest.mark.contract("K6")
async def test_the_cap_counts_bytes_and_not_characters(shop: Shop) -> None:
    shop.install()
    assert (await shop.call(text="é" * 500)).text == "é" * 500
    assert read_notice((await shop.call(text="é" * 501)).text)[0] > 0


async def test_what_was_installed_is_taken_away_whole(shop: Shop) -> None:
    shop.install()()
    assert (await shop.call(text="x" * 5000)).text == "x" * 5000
    assert (await shop.call("read_spilled", locator="x")).error.info.code == "UNKNOWN_TOOL"


# K7


@pytest.mark.contract("K7")
@pytest.mark.parametrize("later", [True, False])
async def test_the_policy_bounds_what_other_listeners_have_made_of_a_result(shop: Shop, later: bool) -> None:
    async def longer(_call: Any, _result: Any, next: Any) -> Any:
        await next()
        return ptc.Accept(content=[ptc.text_block("y" * 3000)])

    if later:
        shop.install()
        shop.host.on("tools/post-execute", longer)
    else:
        shop.host.on("tools/post-execute", longer)
        shop.install()
    read_notice((await shop.call(text="short")).text)
    assert shop.kept() == ["y" * 3000]


@pytest.mark.contract("K7")
async def test_a_block_and_a_replaced_value_pass(shop: Shop) -> None:
    shop.install()
    answers = iter([ptc.Block([ptc.text_block("b" * 3000)]), ptc.Accept(value="v" * 3000)])

    @shop.host.on("tools/post-execute")
    async def decide(_call: Any, _result: Any, _next: Any) -> Any:
        return next(answers)

    assert (await shop.call(text="x")).text == "b" * 3000
    replaced = await shop.call(text="x" * 3000)
    assert (replaced.is_error, replaced.text) == (False, "v" * 3000)
    assert shop.kept() == []


@pytest.mark.contract("K7")
async def test_the_tool_read_passes_and_so_do_blocks_that_are_no_text(shop: Shop) -> None:
    shop.install()
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    shop.add("read")
    shop.add("draw", blocks=lambda value: [ptc.text_block(value), image])
    assert (await shop.call("read", text="x" * 3000)).text == "x" * 3000
    drawn = await shop.call("draw", text="x" * 3000)
    assert [block["type"] for block in drawn.content] == ["text", "image"]
    assert drawn.text == "x" * 3000
    assert shop.kept() == []


@pytest.mark.contract("K7")
async def test_the_texts_of_all_blocks_count_together_and_the_cap_itself_is_not_over_it(shop: Shop) -> None:
    shop.install()
    shop.add(
        "halves",
        blocks=lambda value: [ptc.text_block(value[: len(value) // 2]), ptc.text_block(value[len(value) // 2 :])],
    )
    whole = await shop.call("halves", text="x" * CAP)
    assert len(whole.content) == 2
    bounded = await shop.call("halves", text="x" * (CAP + 1))
    assert len(bounded.content) == 1
    assert shop.kept() == ["x" * (CAP + 1)]


@pytest.mark.contract("K7")
async def test_content_that_is_none_is_refused_by_the_pipeline_and_not_by_the_policy(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.install()
    answers = iter([5, [5], ["text"], [{"type": "text"}], [{"type": "text", "text": "\ud800" * 2000}]])

    @shop.host.on("tools/post-execute")
    async def decide(_call: Any, _result: Any, _next: Any) -> Any:
        return ptc.Accept(content=next(answers))

    for _ in range(5):
        refused = await shop.call(text="x")
        assert refused.is_error
        assert "codec" not in refused.error.message
    assert not any("stays whole" in text for text in warnings_of(caplog))


# K8


@pytest.mark.contract("K8", "K13")
async def test_a_long_result_is_saved_and_both_ends_are_shown(shop: Shop) -> None:
    shop.install()
    text = "".join(f"line {number}\n" for number in range(1000))
    shown = (await shop.call(text=text)).text
    omitted, locator, hint = read_notice(shown)
    preview, notice = shown.rsplit("\n\n", 1)
    head, tail = preview.split(GAP)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) - len(tail) in (0, 1)
    assert omitted == len(text) - len(head) - len(tail)
    assert hint == f"read on with read_spilled, offset {len(head)}"
    assert Path(locator).read_text(encoding="utf-8") == text
    assert notice == NOTICE.fullmatch(notice)[0]


@pytest.mark.contract("K8")
async def test_the_store_is_told_whose_text_it_is(shop: Shop) -> None:
    saved: list[ptc.SpillText] = []

    class Store:
        async def save_text(self, text: ptc.SpillText) -> str:
            saved.append(text)
            return "spill://1"

        async def read_text(self, session_id: str, locator: str, *, offset: int, limit: int) -> ptc.SpilledPart:
            raise ptc.UnknownLocatorError

    shop.install(store=Store())
    call = ptc.ToolCall(name="say", arguments={"text": "x" * 3000}, call_id="call_7")
    shown = (await shop.agent.execute([call])).results[0].result.text
    assert read_notice(shown)[1] == "spill://1"
    assert saved == [
        ptc.SpillText(
            session_id=shop.agent.session.id,
            tool_name="say",
            call_id="call_7",
            label="result",
            suggested_name="say.txt",
            content="x" * 3000,
        )
    ]


@pytest.mark.contract("K8")
async def test_contexts_of_a_decision_stay_and_failures_are_bounded_too(shop: Shop) -> None:
    shop.install()
    shop.add("fail", fails=True)

    @shop.host.on("tools/post-execute")
    async def decide(_call: Any, _result: Any, next: Any) -> Any:
        await next()
        return ptc.Accept(additional_contexts=[ptc.ContextMessage([ptc.text_block("note")], {"kind": "test"})])

    batch = await shop.agent.execute([ptc.ToolCall(name="fail", arguments={"text": "x" * 3000})])
    result = batch.results[0].result
    assert result.is_error
    read_notice(result.text)
    assert shop.kept() == ["Error: " + "x" * 3000]
    assert result.error.message == "x" * 3000
    assert [message.content[0]["text"] for message in batch.additional_contexts] == ["note"]


@pytest.mark.contract("K8")
async def test_the_way_on_is_named_only_to_who_has_it(shop: Shop) -> None:
    shop.install()
    other = shop.host.agent("other")
    other.tools.restrict(deny=["read_spilled"])
    assert read_notice((await shop.call(text="x" * 3000, agent=other)).text)[2] is None
    assert read_notice((await shop.call(text="x" * 3000)).text)[2] is not None


# K9 and K12


def plain(omitted: int, offset: int) -> str:
    return f"({omitted} bytes omitted; go on at {offset})"


texts = st.text(alphabet=st.sampled_from("aé€😀\n "), min_size=1, max_size=12).map(lambda text: text * 30)


@pytest.mark.contract("K8", "K9", "K12")
@given(text=texts, share=st.floats(0, 1, exclude_max=True))
def test_what_is_shown_is_never_longer_than_the_cap_and_counts_exactly(text: str, share: float) -> None:
    data = text.encode()
    cap = int(len(data) * share)
    shown = shortened(data, cap, plain)
    if shown is None:
        assert cap < len(plain(len(data), len(data)))
        return
    assert len(shown.encode()) <= cap
    preview, _, notice = shown.rpartition("\n\n")
    found = re.fullmatch(r"\((\d+) bytes omitted; go on at (\d+)\)", notice)
    assert found is not None
    omitted, offset = int(found[1]), int(found[2])
    if not preview:
        assert (omitted, offset) == (len(data), 0)
        return
    head, tail = preview[: len(data[:offset].decode())], preview[len(data[:offset].decode()) + len(GAP) :]
    assert data == head.encode() + data[offset : offset + omitted] + tail.encode()


@pytest.mark.contract("K8", "K12")
@given(text=texts, room=st.integers(0, 1300))
def test_ends_are_cut_between_characters_and_the_head_has_the_odd_byte(text: str, room: int) -> None:
    data = text.encode()
    head, tail, omitted = ends_of(data, room)
    if len(data) <= room:
        assert (head, tail, omitted) == (text, "", 0)
        return
    assert text.startswith(head)
    assert text.endswith(tail)
    assert omitted == len(data) - len(head.encode()) - len(tail.encode())
    assert 0 <= (room + 1) // 2 - len(head.encode()) <= 3
    assert 0 <= room // 2 - len(tail.encode()) <= 3


@pytest.mark.contract("K12")
def test_where_nothing_is_left_out_no_character_is_cut() -> None:
    assert ends_of("a€b".encode(), 5) == Ends("a€b", "", 0)
    assert ends_of("a€b".encode(), 4) == Ends("a", "b", 3)
    assert ends_of(b"abcde", 3) == Ends("ab", "e", 2)


@pytest.mark.contract("K9")
def test_the_notice_is_reserved_in_full_and_stands_alone_where_there_is_no_room_for_more() -> None:
    data = b"x" * 5000
    alone = plain(5000, 0)
    reserved = len(plain(5000, 5000)) + len(GAP) + 2
    assert shortened(data, len(alone) - 1, plain) is None
    assert shortened(data, len(alone), plain) == alone
    assert shortened(data, reserved, plain) == alone
    assert shortened(data, reserved + 1, plain) == f"x{GAP}\n\n{plain(4999, 1)}"
    # The numbers that are told in the end may be shorter than what was reserved for them, and never longer.
    assert len(shortened(b"x" * 1000, 990, plain).encode()) < 990


@pytest.mark.contract("K9")
@pytest.mark.parametrize("cap", [0, 20, 60])
async def test_where_not_even_a_notice_fits_the_original_stays(
    shop: Shop, caplog: pytest.LogCaptureFixture, cap: int
) -> None:
    shop.install(max_inline_bytes=cap)
    for _ in range(2):
        result = await shop.call(text="x" * 3000)
        assert (result.is_error, result.text) == (False, "x" * 3000)
    assert shop.kept() == []
    assert [text for text in warnings_of(caplog) if "too little even for a notice" in text] == warnings_of(caplog)
    assert len(warnings_of(caplog)) == 1


@pytest.mark.contract("K9")
async def test_a_locator_that_leaves_no_room_leaves_the_original(shop: Shop) -> None:
    class Store:
        async def save_text(self, text: ptc.SpillText) -> str:
            return "l" * CAP

        async def read_text(self, session_id: str, locator: str, *, offset: int, limit: int) -> ptc.SpilledPart:
            raise ptc.UnknownLocatorError

    shop.install(store=Store())
    assert (await shop.call(text="x" * 3000)).text == "x" * 3000


# K10


class BrokenStore:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def save_text(self, text: ptc.SpillText) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def read_text(self, session_id: str, locator: str, *, offset: int, limit: int) -> ptc.SpilledPart:
        raise ptc.UnknownLocatorError


@pytest.mark.contract("K10")
@pytest.mark.parametrize(
    ("store", "why"),
    [
        (None, "has no store"),
        (BrokenStore(OSError(28, "No space left on device")), "No space left"),
        (BrokenStore(None), "must return a locator"),
        (BrokenStore(""), "must return a locator"),
        (BrokenStore("a\nb"), "must return a locator"),
        (BrokenStore("\ud800"), "must return a locator"),
    ],
)
async def test_what_cannot_be_saved_is_shown_whole_with_one_warning(
    shop: Shop, caplog: pytest.LogCaptureFixture, store: Any, why: str
) -> None:
    shop.install(store=store)
    shop.add("fail", fails=True)
    result = await shop.call(text="x" * 3000)
    assert (result.is_error, result.value, result.text) == (False, "x" * 3000, "x" * 3000)
    (warning,) = warnings_of(caplog)
    assert why in warning
    assert "3000 bytes" in warning
    assert (await shop.call("fail", text="x" * 3000)).text == "Error: " + "x" * 3000


@pytest.mark.contract("K10")
async def test_without_a_session_nothing_is_saved(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with ptc.Host() as host:
        shop = Shop(host, tmp_path)
        shop.install()
        assert (await shop.call(text="x" * 3000)).text == "x" * 3000
        (warning,) = warnings_of(caplog)
        assert "has no session" in warning
        assert not (tmp_path / "spilled").exists()


@pytest.mark.contract("K10")
async def test_a_directory_that_others_may_read_is_not_written_to(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    (shop.folder / "spilled").mkdir(mode=0o755)
    (shop.folder / "spilled").chmod(0o755)
    shop.install()
    assert (await shop.call(text="x" * 3000)).text == "x" * 3000
    (warning,) = warnings_of(caplog)
    assert "open to others" in warning
    assert shop.kept() == []


@pytest.mark.contract("K10")
async def test_a_cancellation_while_a_text_is_saved_is_not_swallowed(shop: Shop) -> None:
    began = anyio.Event()
    returned: list[Any] = []

    class Slow(BrokenStore):
        async def save_text(self, text: ptc.SpillText) -> Any:
            began.set()
            await anyio.sleep_forever()

    async def call() -> None:
        returned.append(await shop.call(text="x" * 3000))

    shop.install(store=Slow(None))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        with anyio.fail_after(10):
            await began.wait()
        tasks.cancel_scope.cancel()
    assert returned == []


# K13


@pytest.mark.contract("K13")
async def test_files_are_private_and_locators_absolute(shop: Shop) -> None:
    shop.install()
    shop.add("send-mail")
    names: list[str] = []
    for name in ("say", "send-mail", "say"):
        locator = Path(read_notice((await shop.call(name, text="x" * 3000)).text)[1])
        assert locator.is_absolute()
        assert locator.parent.parent == shop.folder / "spilled"
        assert stat.S_IMODE(locator.stat().st_mode) == 0o600
        assert stat.S_IMODE(locator.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(locator.parent.parent.stat().st_mode) == 0o700
        assert re.fullmatch(rf"[0-9a-f]{{16}}-{name}\.txt", locator.name)
        assert shop.agent.session.id not in str(locator)
        names.append(locator.name)
    assert len(set(names)) == 3
    other = shop.host.agent("other")
    elsewhere = Path(read_notice((await shop.call(text="x" * 3000, agent=other)).text)[1])
    assert elsewhere.parent != locator.parent


@pytest.mark.contract("K13", "K10")
async def test_a_file_that_is_there_is_never_written_over(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop.install()
    locator = Path(read_notice((await shop.call(text="x" * 3000)).text)[1])
    monkeypatch.setattr("ptc.runtime.spill_files.secrets.token_hex", lambda _count: locator.name[:16])
    assert (await shop.call(text="y" * 3000)).text == "y" * 3000
    assert shop.kept() == ["x" * 3000]
    (warning,) = warnings_of(caplog)
    assert "stays whole" in warning


# Programs


@pytest.fixture(
    params=[
        "wasm",
        pytest.param(
            "restricted",
            marks=pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the restricted backend needs Linux"),
        ),
    ]
)
async def programs(request: pytest.FixtureRequest, anyio_backend: str, tmp_path: Path) -> AsyncIterator[Shop]:
    make: Callable[..., ptc.Sandbox] = {"wasm": ptc.WasmSandbox, "restricted": ptc.RestrictedSandbox}[request.param]
    async with ptc.Host(log=tmp_path / "shop.db") as host:
        shop = Shop(host, tmp_path)
        shop.agent = host.agent(
            "programmer", executor=ptc.PtcExecutor(sandbox=make(compute_ms=20_000, max_wall_ms=60_000))
        )
        yield shop


@pytest.mark.contract("K7", "K11", "E43", "E44")
async def test_a_program_gets_the_whole_and_only_the_record_of_it_is_short(programs: Shop) -> None:
    programs.install()
    programs.add("read")
    result = await programs.agent.run_code(
        "a = await tools.say(text='x' * 3000)\nb = await tools.read(text='y' * 3000)\nreturn [len(a), len(b)]"
    )
    assert result.value["result"] == [3000, 3000]
    records = await programs.events("tool/ptc-dispatch")
    assert [record["name"] for record in records] == ["say", "read"]
    for record, letter in zip(records, "xy", strict=True):
        (block,) = record["content"]
        omitted, locator, hint = read_notice(block["text"])
        assert (hint, len(block["text"].encode()) <= CAP) == (None, True)
        assert omitted + block["text"].count(letter) >= 3000
        assert Path(locator).read_text(encoding="utf-8") == letter * 3000


@pytest.mark.contract("K11", "E44")
@pytest.mark.parametrize("later", [True, False])
async def test_the_copy_that_listeners_have_shaped_is_bounded(programs: Shop, later: bool) -> None:
    async def shape(_entry: Any, next: Any) -> Any:
        return [ptc.text_block("z" * 2000), *(await next())]

    if later:
        programs.install()
        programs.host.on("tools/ptc-dispatch-log", shape)
    else:
        programs.host.on("tools/ptc-dispatch-log", shape)
        programs.install()
    await programs.agent.run_code("said = await tools.say(text='x')")
    (record,) = await programs.events("tool/ptc-dispatch")
    read_notice(record["content"][0]["text"])
    assert programs.kept() == ["z" * 2000 + "x"]


@pytest.mark.contract("K10", "K11")
async def test_a_copy_that_cannot_be_saved_is_recorded_whole(programs: Shop, caplog: pytest.LogCaptureFixture) -> None:
    programs.install(store=BrokenStore(OSError("disk full")))
    await programs.agent.run_code("said = await tools.say(text='x' * 3000)")
    (record,) = await programs.events("tool/ptc-dispatch")
    assert record["content"] == [{"type": "text", "text": "x" * 3000}]
    (warning,) = warnings_of(caplog)
    assert "the recorded content of" in warning


@pytest.mark.contract("K8")
async def test_what_a_program_printed_is_read_on_by_the_next_program(programs: Shop) -> None:
    programs.install()
    first = await programs.agent.run_code("for i in range(1000):\n    print(f'line {i}')")
    _omitted, locator, hint = read_notice(first.text)
    assert hint.startswith("read on in a program: await tools.read_spilled(locator=..., offset=")
    program = f"""
text, offset = "", 0
while offset is not None:
    part = await tools.read_spilled(locator={locator!r}, offset=offset)
    text += part["text"]
    offset = part.get("next_offset")
assert part["left_bytes"] == 0 and part["total_bytes"] == len(text)
return text.splitlines()[700], len(text.splitlines())
"""
    second = await programs.agent.run_code(program)
    assert not second.is_error, second.error.message
    assert second.value["result"] == ["line 700", 1000]
    # Reading spills nothing again, neither in the record of a call nor in a result.
    assert len(programs.kept()) == 1
    assert all(
        len(record["content"][0]["text"].encode()) <= CAP for record in await programs.events("tool/ptc-dispatch")
    )


@pytest.mark.contract("K11", "E44")
async def test_what_a_program_reads_on_is_not_kept_again_where_a_smaller_cap_holds_for_the_record(
    programs: Shop,
) -> None:
    programs.install()
    first = await programs.agent.run_code("print('x' * 3000)")
    _omitted, locator, _hint = read_notice(first.text)
    programs.install(target=programs.agent, max_inline_bytes=500, read_tool=False)
    second = await programs.agent.run_code(f"part = await tools.read_spilled(locator={locator!r})")
    assert not second.is_error, second.error.message
    (record,) = await programs.events("tool/ptc-dispatch")
    assert len(record["content"][0]["text"].encode()) > 500
    assert len(programs.kept()) == 1
