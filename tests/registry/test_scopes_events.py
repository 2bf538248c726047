"""The registration API of events: names, decorators, declared events, generic waterfalls."""

from __future__ import annotations

import pytest
from ptc.registry import Disposer, ScopeKey, ToolRegistrationError, ToolRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
def registry():
    return ToolRegistry()


async def passes(_call, next_):
    return await next_()


def test_an_unknown_event_is_refused_with_near_matches(registry):
    with pytest.raises(ToolRegistrationError, match=r"no event \"tools/pre-exec\"; did you mean 'tools/pre-execute'"):
        registry.context().on("tools/pre-exec", passes)
    with pytest.raises(ToolRegistrationError, match="known events: tools/change, tools/execute"):
        registry.context().on("zzz", passes)


@pytest.mark.contract("A8")
def test_on_returns_a_disposer_and_as_a_decorator_the_function(registry):
    tools = registry.context()

    @tools.on("tools/pre-execute", prepend=True)
    async def decorated(_call, next_):
        return await next_()

    assert decorated.__name__ == "decorated"
    undo = tools.on("tools/pre-execute", passes)
    assert isinstance(undo, Disposer)
    listening = registry.events.listeners
    assert [listener.function for listener in listening("tools/pre-execute", None)] == [decorated, passes]
    undo()
    undo()
    assert [listener.function for listener in listening("tools/pre-execute", None)] == [decorated]
    tools.close()
    assert listening("tools/pre-execute", None) == ()


def test_what_cannot_be_called_is_no_listener(registry):
    with pytest.raises(ToolRegistrationError, match="must be callable"):
        registry.context().on("tools/pre-execute", "text")


@pytest.mark.contract("C13", "A5", "A6")
async def test_a_declared_event_is_a_waterfall_with_a_default(registry):
    events = registry.events
    with pytest.raises(ToolRegistrationError):
        registry.context().on("tools/ptc-dispatch-log", passes)
    events.declare("tools/ptc-dispatch-log")
    events.declare("tools/ptc-dispatch-log")
    agent = ScopeKey("agent")

    async def default():
        return "default"

    async def scoped(entry, next_):
        return [entry, await next_()]

    async def ask(scope):
        return await events.waterfall("tools/ptc-dispatch-log", scope, ("entry",), default)

    assert await ask(agent) == "default"
    registry.context(agent).on("tools/ptc-dispatch-log", scoped)
    assert await ask(agent) == ["entry", "default"]
    assert await ask(None) == "default"


async def test_a_waterfall_may_say_what_it_expects(registry):
    registry.events.declare("approval/request")

    async def default():
        return "unavailable"

    async def nonsense(_request, _next):
        return 5

    registry.context().on("approval/request", nonsense)
    with pytest.raises(TypeError, match=r'"approval/request" listener .*nonsense must answer text, not int 5'):
        await registry.events.waterfall("approval/request", None, ("q",), default, expected=((str,), "text"))


async def test_a_listener_that_is_not_async_is_told_so(registry):
    registry.events.declare("approval/request")

    async def default():
        return None

    registry.context().on("approval/request", lambda _request, _next: "text")
    with pytest.raises(TypeError, match="must be an async function; it returned str 'text' at once"):
        await registry.events.waterfall("approval/request", None, ("q",), default)
