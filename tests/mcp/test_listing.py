"""What a server lists, and what of it is left out: duplicates, schemas that cannot be used, pages, changes, floods."""

from __future__ import annotations

from typing import Any

import pytest
from ptc.runtime import mcp
from ptc.runtime.mcp import limits

pytestmark = pytest.mark.anyio


async def test_a_tool_that_is_listed_twice(servers: Any) -> None:
    async with servers.connected(servers.plain("duplicates")) as use:
        state = use.servers["s"]
        assert state.tools == ("s_twice", "s_echo")
        assert state.problems == {
            "twice": "it is listed more than once, always the same; it counts once",
            "differs": "it is listed more than once, each time different; it was left out",
        }
        assert (await use.call("s_echo", text="works")).value == "works"


async def test_what_cannot_be_used_is_left_out_and_named(servers: Any) -> None:
    async with servers.connected(servers.plain("bad-schemas", prefix="")) as use:
        state = use.servers["s"]
        assert state.state == "connected"
        assert state.tools == ("echo",)
        problems = dict(state.problems)
        assert "https://schemas.invalid/a.json, and none is ever fetched" in problems.pop("remote")
        assert "parameters.properties.a.type must match" in problems.pop("nonsense")
        assert problems.pop("no-schema").startswith("inputSchema: Input should be a valid dictionary")
        assert problems.pop("number 4 of a page") == "name: Field required"
        assert "valid dictionary" in problems.pop("number 5 of a page")
        assert "leads nowhere" in problems.pop("bad-output")
        assert "reserved" in problems.pop("run_code")
        assert "empty" in problems.pop("")
        assert "characters that do not show" in problems.pop("a\u202eb")
        assert "has more than 128 characters" in problems.pop("x" * 200)
        assert "as a task" in problems.pop("task")
        assert problems == {}
        assert (await use.call("echo", text="works")).value == "works"


async def test_an_older_draft_is_enforced_as_it_means(servers: Any) -> None:
    async with servers.connected(servers.plain("draft-07")) as use:
        assert use.servers["s"].problems == {}
        long = await use.call("s_pair", at=[1, "a", True])
        assert '"at[2]" is not allowed here' in long.error.message
        wrong = await use.call("s_pair", at=["a"])
        assert '"at[0]" must be a number' in wrong.error.message
        lacks = await use.call("s_pair", a=1)
        assert "b" in lacks.error.message
        assert lacks.error.info.code == "INVALID_ARGS"


async def test_pages_are_put_together(servers: Any) -> None:
    async with servers.connected(servers.plain("pages")) as use:
        assert use.servers["s"].tools == ("s_page0", "s_page1", "s_page2")


async def test_a_list_that_leads_back_to_itself_ends(servers: Any) -> None:
    async with servers.connected(servers.plain("same-page")) as use:
        state = use.servers["s"]
        assert state.problem == "its list of tools leads back to the same page; the list may not be whole"
        assert state.tools == ("s_echo",)


async def test_pages_without_end_end(servers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptc.runtime.mcp import connection

    monkeypatch.setattr(connection, "MAX_PAGES", 20)
    async with servers.connected(servers.plain("endless-pages")) as use:
        assert use.servers["s"].problem == "its list of tools has more than 20 pages; the others were left out"


async def test_more_tools_than_may_be(servers: Any) -> None:
    async with servers.connected(servers.plain("many")) as use:
        state = use.servers["s"]
        assert len(state.tools) == limits.MAX_TOOLS
        assert state.problem == "it lists more than 5,000 tools; the others were left out"


async def test_definitions_that_are_too_long_together(servers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptc.runtime.mcp import shelf

    monkeypatch.setattr(shelf, "MAX_LIST_BYTES", 1_000)
    async with servers.connected(servers.plain("many")) as use:
        state = use.servers["s"]
        assert 0 < len(state.tools) < 10
        assert state.problem == "its tools take more than 1,000 bytes; the others were left out"


async def test_a_list_of_no_known_shape_is_a_server_that_does_not_work(servers: Any) -> None:
    async with servers.connected({"bad": servers.plain("bad-list"), "good": servers.plain()}) as use:
        assert use.servers["bad"].state == "reconnecting"
        assert use.servers["bad"].problem.startswith("it answered with something of no known shape: tools: ")
        assert (await use.call("good_echo", text="works")).value == "works"


async def test_a_change_touches_only_what_has_changed(servers: Any) -> None:
    async with servers.connected(servers.plain("kept")) as use:
        before = {each.name: each for each in use.host.tools.definitions()}
        changes: list[None] = []
        use.host.tools.on("tools/change", lambda: changes.append(None))
        assert (await use.call("s_grow")).value == "grown"
        await servers.until(
            lambda: use.host.tools.get("s_grown") is not None and use.servers["s"].tools[-1] == "s_grow"
        )
        after = {each.name: each for each in use.host.tools.definitions()}
        assert after["s_echo"] is before["s_echo"]
        assert after["s_same"] is before["s_same"]
        assert after["s_grow"] is not before["s_grow"]
        assert after["s_grow"].description == "changed"
        assert use.servers["s"].tools == ("s_echo", "s_grown", "s_same", "s_grow")
        assert len(changes) == 3  # one tool more, and one taken back and registered again


async def test_changes_without_end_keep_nobody_from_working(servers: Any) -> None:
    async with servers.connected({"flood": servers.plain("list-flood"), "good": servers.plain()}) as use:
        for number in range(50):
            assert (await use.call("good_echo", text=str(number))).value == str(number)
        assert (await use.call("flood_echo", text="still")).value == "still"


async def test_a_listener_that_refuses_a_tool_keeps_it_out(servers: Any) -> None:
    async with servers.connected(servers.plain("kept")) as use:

        def refuse() -> None:
            if use.host.tools.get("s_grown") is not None:
                raise ValueError("not that one")

        use.host.tools.on("tools/change", refuse)
        await use.call("s_grow")
        await servers.until(lambda: "grown" in use.servers["s"].problems)
        assert use.servers["s"].problems["grown"] == "a listener of tools/change refused it: ValueError"
        assert use.host.tools.get("s_grown") is None
        assert use.servers["s"].state == "connected"


def test_a_state_is_plain_data() -> None:
    state = mcp.ServerState(name="s", state="failed", problem="gone")
    assert (state.tools, state.problems, state.instructions) == ((), {}, None)
