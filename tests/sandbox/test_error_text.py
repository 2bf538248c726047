"""What a failed program is told is its own text, line by line, and never more of it than can be read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ptc.sandbox.restricted import RestrictedSandbox
from ptc.sandbox.seam import Sandbox, SandboxRequest
from ptc.sandbox.wasm import WasmSandbox

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[WasmSandbox, RestrictedSandbox], ids=["wasm", "restricted"])
def make(request: pytest.FixtureRequest) -> Callable[..., Sandbox]:
    return request.param


async def failure(make: Callable[..., Sandbox], program: str) -> str:
    async with make(compute_ms=20_000) as sandbox:
        result = await sandbox.run(SandboxRequest(program=program))
        assert result.error is not None
        assert result.error.kind == "exception"
        return result.error.message


@pytest.mark.contract("F15")
@pytest.mark.parametrize("odd", ["\x0c", "\u2028", "\x85", "\x1c"])
async def test_a_line_ends_where_the_compiler_ends_it(make: Callable[..., Sandbox], odd: str) -> None:
    """Ruling 38: with its own line numbers and source lines."""
    message = await failure(make, f"x = 'a{odd}b'\ny = 1\nraise ValueError(y)")
    assert '"<program>", line 3' in message
    assert "raise ValueError(y)" in message


@pytest.mark.contract("F15")
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(f"x = '{'L' * 200_000}' + 1", id="raised"),
        pytest.param(f"x = '{'L' * 200_000}' +", id="not a program"),
    ],
)
async def test_a_long_source_line_is_quoted_in_part(make: Callable[..., Sandbox], program: str) -> None:
    message = await failure(make, program)
    assert len(message) < 3_000
    assert "more characters]" in message


@pytest.mark.contract("F15")
async def test_a_source_that_is_nested_too_deep_says_so(make: Callable[..., Sandbox]) -> None:
    message = await failure(make, "(" * 200_000)
    assert "nested" in message
    assert "memory limit" not in message
    assert len(message) < 3_000


@pytest.mark.contract("F15")
async def test_a_long_message_of_the_program_s_own_is_told_whole(make: Callable[..., Sandbox]) -> None:
    message = await failure(make, f"padding = '{'L' * 1_000}'\nraise ValueError('m' * 5_000)")
    assert message.endswith("m" * 5_000)
