"""What is the wasm backend's own: how its instances end, and how they are stopped in between."""

from __future__ import annotations

import pytest
from ptc.sandbox.conformance import Stop
from ptc.sandbox.seam import SandboxRequest
from ptc.sandbox.wasm import WasmSandbox

from .conftest import Run

pytestmark = pytest.mark.anyio


@pytest.mark.contract("F19")
@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import os\nprint('before')\nos._exit(3)", "ended its interpreter"),
        ("print('before')\nx = []\nfor _ in range(100_000):\n    x = [x]\nrepr(x)", "native stack exhausted"),
        ("import socket\nprint('before')\nsocket.create_connection(('127.0.0.1', 1))", "wasi:sockets"),
    ],
)
async def test_the_death_of_an_instance_says_what_it_died_of(run: Run, program: str, told: str) -> None:
    result = await run(program)
    assert result.error is not None
    assert result.error.kind == "worker-exit"
    assert told in result.error.message
    assert result.logs == ("before",)
    assert (await run("return 1")).value_json == "1"


@pytest.mark.contract("F16", "F42")
async def test_a_class_that_calls_itself_a_dict_is_none(run: Run) -> None:
    result = await run("class Lie:\n    __class__ = dict\nreturn [Lie()]")
    assert result.error is not None
    assert result.error.kind == "invalid-output"
    assert "[0] is of type Lie" in result.error.message


async def test_a_kill_between_taking_an_instance_and_starting_is_seen() -> None:
    async with WasmSandbox() as sandbox:
        await sandbox.prepare()
        instances = sandbox._instances
        stop, take = Stop(), instances.take

        def take_and_press() -> object:
            instance = take()
            stop.press("stop")
            return instance

        instances.take = take_and_press  # type: ignore[method-assign]
        request = SandboxRequest(program="print('before')\nwhile True:\n    pass", signal=stop)
        result = await sandbox.run(request)
        assert result.error is not None
        assert result.error.kind == "abort"
        assert result.logs == ()


@pytest.mark.contract("F20")
def test_a_number_of_instances_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="ready"):
        WasmSandbox(ready=-1)
