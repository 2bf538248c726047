"""What the tests of adapters share: the examples, and a host with tools of each kind."""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import anyio
import ptc
import pytest
from ptc.runtime.providers import HostedExecutor

from ..rigs import Witness, plain_tools, recorded

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "providers"
PLAIN = ("anthropic_messages", "openai_responses_items", "openai_chat_messages", "gemini_contents")
HOSTED = ("anthropic_hosted", "openai_hosted")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of the examples as it is imported beside its neighbours, and forgets it afterwards."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    names = {path.stem for path in EXAMPLES.glob("*.py")}

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def description() -> ptc.AgentDescription:
    """What a model is told: one text and one tool."""
    parameters: Any = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    schema = ptc.ToolSchema(name="run_code", description="Runs a program.", parameters=parameters)
    return ptc.AgentDescription("The tools are these.", [schema])


def success(*content: Any, value: Any = None, call_id: str = "c1") -> ptc.ToolCallOutcome:
    return ptc.ToolCallOutcome(call_id, ptc.ToolSuccess(value=value, content=list(content)))


def failure(*content: Any, call_id: str = "c1") -> ptc.ToolCallOutcome:
    return ptc.ToolCallOutcome(call_id, ptc.ToolFailure(error=_ERROR, content=list(content)))


def batch(*outcomes: ptc.ToolCallOutcome, contexts: Any = ()) -> ptc.ToolBatchResult:
    return ptc.ToolBatchResult(results=outcomes, additional_contexts=contexts)


def image(kind: str = "image/png", data: str = "AAAA") -> ptc.ImageContent:
    return {"type": "image", "data": data, "mimeType": kind}


_ERROR: Any = SimpleNamespace(message="broken", info=None)


class Rig(Witness):
    """A host under test, an agent whose programs run elsewhere, and what its tools did."""

    def __init__(self, host: ptc.Host, executor: HostedExecutor, agent: ptc.Agent) -> None:
        super().__init__()
        self.host = host
        self.executor = executor
        self.agent = agent

    async def events(self, *types: str) -> list[tuple[str, dict[str, Any]]]:
        return await recorded(self.host, self.agent, *types)


def define_tools(rig: Rig) -> list[ptc.ToolDefinition]:
    @ptc.tool
    async def write(name: str) -> str:
        """Change something; nothing else may run meanwhile."""
        rig.bodies.append(f"begin {name}")
        await anyio.sleep(0.01)
        rig.bodies.append(f"end {name}")
        return f"wrote {name}"

    plain = plain_tools(rig)
    return [plain["double"], plain["stuck"], write, plain["fail"], plain["picture"]]


@pytest.fixture
async def rig(anyio_backend: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with ptc.Host(log=tmp_path / "ptc.db") as host:
        executor = HostedExecutor()
        made = Rig(host, executor, host.agent("tester", executor=executor))
        for definition in define_tools(made):
            host.tools.register(definition)
        yield made
