"""What a call gives: to programs one value, to models content; and what an answer of no known shape becomes."""

from __future__ import annotations

from typing import Any

import ptc
import pytest

pytestmark = pytest.mark.anyio

IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


async def test_blocks_of_text_are_their_text(servers: Any) -> None:
    async with servers.connected(servers.plain("blocks")) as use:
        texts = await use.call("s_texts")
        assert (texts.value, texts.content) == ("one\ntwo", [text("one\ntwo")])
        assert (await use.call("s_none")).value == ""


async def test_other_blocks_are_kept_for_programs_and_rendered_for_models(servers: Any) -> None:
    async with servers.connected(servers.plain("blocks")) as use:
        image = await use.call("s_image")
        assert (image.value, image.content) == ([IMAGE], [IMAGE])
        mixed = await use.call("s_mixed")
        assert [block["type"] for block in mixed.value] == [
            "text", "image", "audio", "resource", "resource", "resource_link"
        ]  # fmt: skip
        assert mixed.value[2]["data"] == "aGVsbG8="
        assert mixed.value[3]["resource"] == {"uri": "demo://a", "text": "inside", "mimeType": "text/plain"}
        assert mixed.content == [
            text("look"),
            IMAGE,
            text("[audio, audio/wav, 6 bytes; a program gets the data]"),
            text("[resource demo://a]\ninside"),
            text("[resource demo://b, of no known type, 6 bytes; a program gets the data]"),
            text("[link to the resource demo://c: third, a link]"),
        ]
        bad = await use.call("s_bad-image")
        assert bad.content == [text("[an image that is not well-formed]")]


async def test_structured_content_is_the_value_and_blocks_are_what_models_see(servers: Any) -> None:
    async with servers.connected(servers.plain("blocks")) as use:
        both = await use.call("s_both")
        assert both.value == {"n": 1}
        assert both.content == [text("seen"), IMAGE]


async def test_blocks_are_not_shown_when_a_wrapper_has_replaced_the_value(servers: Any) -> None:
    async with servers.connected(servers.plain("blocks")) as use:

        @use.host.on("tools/execute")
        async def hide(_view: Any, next_: Any) -> Any:
            await next_()
            return ptc.ToolSuccess(value={"n": "hidden"}, content=[])

        both = await use.call("s_both")
        assert both.value == {"n": "hidden"}
        assert both.content == [text('{\n  "n": "hidden"\n}')]


async def test_the_declared_output_is_enforced(servers: Any) -> None:
    async with servers.connected(servers.plain("structured")) as use:
        assert (await use.call("s_good")).value == {"n": 7}
        assert (await use.call("s_free")).value == {"any": [1, None, "x"]}
        for name, words in (
            ("wrong", '"value.n" must be an integer'),
            ("missing", "the server declares an output schema, and gave no structured content"),
            ("nan", "value.n is nan, and JSON has only finite numbers"),
        ):
            failed = await use.call(f"s_{name}")
            assert failed.is_error
            assert words in failed.error.message, name
            assert failed.error.info.code == "INVALID_TOOL_OUTPUT"


async def test_a_revision_without_structured_content_has_no_output_schemas(servers: Any) -> None:
    async with servers.connected(servers.plain("old")) as use:
        assert use.servers["s"].version == "2024-11-05"
        assert (await use.call("s_echo", text="still")).value == "still"


async def test_an_error_of_a_tool_is_a_failure_with_the_servers_text(servers: Any) -> None:
    async with servers.connected(servers.plain("blocks")) as use:
        failed = await use.call("s_error")
        assert failed.error.message == "the disk\nis full"
        assert (failed.error.info.name, failed.error.info.code) == ("McpToolError", "MCP_TOOL_ERROR")
        assert (await use.call("s_bare-error")).error.message == "the server says that the call failed, and not why"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("no-content", "MCP_PROTOCOL", 'server "s" answered with something that is no result of a tool: '),
        ("odd-block", "MCP_PROTOCOL", 'server "s" answered with something that is no result of a tool: '),
        ("text-result", "MCP_PROTOCOL", 'server "s" answered with something that is no message'),
        ("deep", "MCP_PROTOCOL", 'server "s" answered with something that is no message'),
        ("protocol-error", "MCP_TOOL_ERROR", "the server is tired"),
    ],
)
async def test_an_answer_of_no_known_shape_fails_its_call_alone(servers: Any, name: str, code: str, words: str) -> None:
    async with servers.connected(servers.plain("shapes", timeout_ms=10_000)) as use:
        failed = await use.call(f"s_{name}")
        assert failed.error.message.startswith(words)
        assert failed.error.info.code == code
        assert use.servers["s"].state == "connected"
        assert (await use.call("s_protocol-error")).error.message == "the server is tired"
