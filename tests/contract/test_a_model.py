"""Random histories of scopes, tools and restrictions against a model of what each scope sees (contract A18 to A35).

The model is written from the words of the contract. It is slow and has no state but two lists and the parents; the
registry must agree with it after every step, for every scope, by every way of asking.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from ptc.registry import (
    ActivationContext,
    Disposer,
    Pipeline,
    ResolvedToolSet,
    ScopeKey,
    ToolDefinition,
    ToolExecutionInput,
    ToolExecutionResult,
    ToolOutput,
    ToolRegistrationError,
    ToolRegistry,
    text_block,
)

Scope: TypeAlias = str | None
"""A scope by its name; `None` is the global one."""


# The model -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tool:
    """One registration. Two of the same definition are equal in everything but the number."""

    number: int
    scope: Scope
    name: str
    definition: str
    when: bool | None


@dataclass(frozen=True)
class Limit:
    """One restriction."""

    number: int
    scope: Scope
    allow: frozenset[str] | None
    deny: frozenset[str] | None

    def admits(self, name: str) -> bool:
        """With both lists a name must be in allow and not in deny (contract A34)."""
        if self.deny is not None and name in self.deny:
            return False
        return self.allow is None or name in self.allow


class Model:
    """What each scope sees, in the words of the contract."""

    def __init__(self) -> None:
        self.parents: dict[str, str] = {}
        self.tools: list[Tool] = []
        self.limits: list[Limit] = []

    def above(self, scope: str) -> list[str]:
        """The ancestors of a scope, the nearest first."""
        parent = self.parents.get(scope)
        return [] if parent is None else [parent, *self.above(parent)]

    def layer(self, scope: Scope) -> list[Tool]:
        """What one scope has registered itself, in the order that it did."""
        return [tool for tool in self.tools if tool.scope == scope]

    def overlaid(self, farther: list[Tool], nearer: list[Tool]) -> list[Tool]:
        """A nearer entry of the same name takes the earlier one's position; new names append (contract A18, A20)."""
        here = {tool.name: tool for tool in nearer}
        taken = [tool.name for tool in farther]
        return [here.get(tool.name, tool) for tool in farther] + [tool for tool in nearer if tool.name not in taken]

    def inherited(self, scope: Scope) -> list[Tool]:
        """Global entries, then the chain's layers farthest to nearest, without the scope's own (contract A18)."""
        if scope is None:
            return []
        surface = self.layer(None)
        for ancestor in reversed(self.above(scope)):
            surface = self.overlaid(surface, self.layer(ancestor))
        return surface

    def view(self, scope: Scope) -> list[Tool]:
        """What every layer of the chain admits (A19), and the scope's own, which nothing restricts (A20)."""
        chain = [] if scope is None else [scope, *self.above(scope)]
        limits = [limit for limit in self.limits if limit.scope in chain]
        visible = [tool for tool in self.inherited(scope) if all(limit.admits(tool.name) for limit in limits)]
        return self.overlaid(visible, self.layer(scope))

    def restrictable(self, scope: Scope) -> set[str]:
        """The inherited names, restricted or not (contract A22)."""
        return {tool.name for tool in self.inherited(scope)}

    def known(self, scope: Scope) -> set[str]:
        """The inherited and the own names, restricted or not (contract A22)."""
        return self.restrictable(scope) | {tool.name for tool in self.layer(scope)}

    def admitted(self, scope: Scope, agreed: list[Tool]) -> list[Tool]:
        """What a step that agreed to these tools may still use: the very registrations (contract A43, A44)."""
        return [tool for tool in self.view(scope) if tool in agreed]


# The registry under test ---------------------------------------------------------------------------------------------

CHAIN = ("top", "middle", "low")
SCOPES: tuple[Scope, ...] = (None, *CHAIN, "sibling", "stranger")
NAMES = ("a", "b", "c", "d")
EVERYWHERE = NAMES[:2]
"""Each history begins with these in the global scope, so that there is something to restrict."""
NOWHERE = "nowhere"

some_scope = st.sampled_from((*SCOPES, "middle", "low", "low"))  # where most comes together
an_agent = st.sampled_from([scope for scope in SCOPES if scope is not None])
a_name = st.sampled_from(NAMES)
some_names = st.none() | st.sets(st.sampled_from(EVERYWHERE)) | st.sets(a_name, max_size=3)


@dataclass(eq=False)
class Contribution:
    """A disposer, and what the model loses by it: a tool, a restriction, or the number of a guard."""

    undo: Disposer
    what: Tool | Limit | int


@dataclass(eq=False)
class Step:
    """A resolved tool set, and what the model says was agreed to."""

    scope: Scope
    tool_set: ResolvedToolSet
    agreed: list[Tool]


class Histories(RuleBasedStateMachine):
    """Does the same to a registry and to the model."""

    contributions = Bundle("contributions")
    steps = Bundle("steps")

    def __init__(self) -> None:
        super().__init__()
        self.registry = ToolRegistry()
        self.pipeline = Pipeline(self.registry)
        self.model = Model()
        self.keys = {scope: None if scope is None else ScopeKey(scope) for scope in SCOPES}
        self.handles: dict[str, Any] = {}
        self.guards: dict[int, Scope] = {}
        self.live_steps: list[Step] = []
        self.definitions: dict[str, ToolDefinition] = {}
        self.count = 0
        self.stages: list[str] = []
        for event in ("tools/pre-execute", "tools/execute", "tools/post-execute"):
            self.registry.context().on(event, self.passing(event))
        self.registry.context().on("tools/result", lambda call, _result: self.stages.append(f"result {call.name}"))
        for child, parent in (("middle", "top"), ("low", "middle"), ("sibling", "top")):
            self.bind(child, parent)

    # What happens in a history

    @initialize(target=contributions)
    def begin(self) -> MultipleResults[Contribution | None]:
        return multiple(*(self.register(None, name, None, 1) for name in EVERYWHERE))

    def bind(self, child: str, parent: str) -> None:
        bound = child in self.model.parents
        if bound or child in (parent, *self.model.above(parent)):
            with pytest.raises(ToolRegistrationError, match="bound to a parent already" if bound else "cycle"):
                self.registry.bind(self.key(child), self.key(parent))
        else:
            self.handles[child] = self.registry.bind(self.key(child), self.key(parent))
            self.model.parents[child] = parent

    @rule(child=an_agent, parent=an_agent, again=st.booleans())
    def bind_or_rebind(self, child: str, parent: str, again: bool) -> None:
        if not again or child not in self.handles:
            self.bind(child, parent)
        elif child in (parent, *self.model.above(parent)):
            with pytest.raises(ToolRegistrationError, match="cycle"):
                self.handles[child].rebind(self.key(parent))
        else:
            self.handles[child].rebind(self.key(parent))
            self.model.parents[child] = parent

    @rule(
        target=contributions,
        scope=some_scope,
        name=a_name,
        when=st.sampled_from([None, None, True, False]),
        version=st.integers(1, 2),
    )
    def register(self, scope: Scope, name: str, when: bool | None, version: int) -> Contribution | None:
        self.count += 1
        tool = Tool(self.count, scope, name, f"{name} {version}", when)
        tools = self.registry.context(self.keys[scope])
        condition = None if when is None else (lambda _context: when)
        if any(other.name == name for other in self.model.layer(scope)):
            with pytest.raises(ToolRegistrationError, match=f'tool "{name}" is '):
                tools.register(self.definition(tool), when=condition)
            return None
        undo = tools.register(self.definition(tool), when=condition)
        self.model.tools.append(tool)
        return Contribution(undo, tool)

    @rule(target=contributions, scope=some_scope, allow=some_names, deny=some_names)
    def restrict(self, scope: Scope, allow: set[str] | None, deny: set[str] | None) -> Contribution | None:
        tools = self.registry.context(self.keys[scope])
        unknown = {*(allow or ()), *(deny or ())} - self.model.restrictable(scope)
        if scope is None or (allow is None and deny is None) or unknown:
            with pytest.raises(ToolRegistrationError):
                tools.restrict(allow=allow, deny=deny)
            return None
        self.count += 1
        undo = tools.restrict(allow=allow, deny=deny)
        limit = Limit(self.count, scope, *(None if names is None else frozenset(names) for names in (allow, deny)))
        self.model.limits.append(limit)
        return Contribution(undo, limit)

    @rule(target=contributions, scope=some_scope)
    def guard(self, scope: Scope) -> Contribution:
        self.count += 1
        self.guards[self.count] = scope
        return Contribution(self.registry.context(self.keys[scope]).guard(lambda _call: None), self.count)

    @rule(contribution=contributions)
    def dispose(self, contribution: Contribution | None) -> None:
        """Takes something back, or takes it back again, which does nothing (contract A8)."""
        if contribution is not None:
            contribution.undo()
            what = contribution.what
            self.model.tools = [tool for tool in self.model.tools if tool != what]
            self.model.limits = [limit for limit in self.model.limits if limit != what]
            if isinstance(what, int):
                self.guards.pop(what, None)

    @rule(target=steps, scope=some_scope)
    def resolve(self, scope: Scope) -> Step:
        agreed = [tool for tool in self.model.view(scope) if tool.when is not False]
        context = ActivationContext(agent=self.keys[scope])
        step = Step(scope, anyio.run(self.registry.resolve, context), agreed)
        self.live_steps.append(step)
        return step

    @rule(step=steps)
    def end_step(self, step: Step) -> None:
        step.tool_set.dispose()
        step.agreed = []

    @rule(scope=some_scope, name=a_name)
    def call(self, scope: Scope, name: str) -> None:
        unconditional = [tool for tool in self.model.view(scope) if tool.when is None]
        self.check_call(scope, name, unconditional, None)

    @rule(step=steps, name=a_name, own=st.booleans(), other=some_scope)
    def call_in_a_step(self, step: Step, name: str, own: bool, other: Scope) -> None:
        caller = step.scope if own else other
        admitted = self.model.admitted(caller, step.agreed) if caller == step.scope else []
        self.check_call(caller, name, admitted, step.tool_set)

    # What must be true after each step of it

    @invariant()
    def every_scope_sees_what_the_model_says(self) -> None:
        for scope, key in self.keys.items():
            seen = self.model.view(scope)
            tools = {tool.name: self.definition(tool) for tool in seen}
            assert self.registry.definitions(key) == list(tools.values())
            assert [schema.description for schema in self.registry.schemas(key)] == [tool.definition for tool in seen]
            assert self.registry.view(key).known_names == self.model.known(scope)
            executable = {tool.name: tools[tool.name] for tool in seen if tool.when is None}
            assert list(self.registry.view(key).definitions.items()) == list(executable.items())
            for name in NAMES:
                assert self.registry.get(name, key) is tools.get(name)
                assert self.registry.executable(name, key) is executable.get(name)

    @invariant()
    def restrictable_names_are_those_inherited(self) -> None:
        for scope, key in self.keys.items():
            if key is not None:
                inherited = ", ".join(sorted(self.model.restrictable(scope))) or r"\(none\)"
                with pytest.raises(
                    ToolRegistrationError, match=f'unknown tool "{NOWHERE}"; inherited tools: {inherited}$'
                ):
                    self.registry.context(key).restrict(deny=[NOWHERE])

    @invariant()
    def a_step_has_what_it_agreed_to_and_is_still_there(self) -> None:
        for step in self.live_steps:
            for scope, key in self.keys.items():
                tools = self.model.admitted(scope, step.agreed) if scope == step.scope else []
                admitted = {tool.name: self.definition(tool) for tool in tools}
                assert list(step.tool_set.view(key).items()) == list(admitted.items())
                assert self.registry.definitions(key, step.tool_set) == list(admitted.values())
                for name in NAMES:
                    assert self.registry.executable(name, key, step.tool_set) is admitted.get(name)
                    assert self.registry.get(name, key, step.tool_set) is admitted.get(name)

    @invariant()
    def a_layer_is_there_exactly_while_something_is_in_it(self) -> None:
        for scope, key in self.keys.items():
            held: Iterable[Scope] = (
                *(tool.scope for tool in self.model.tools),
                *(limit.scope for limit in self.model.limits),
                *self.guards.values(),
            )
            assert self.registry.has_layer(key) == (scope is None or scope in held)

    # How it is done

    def key(self, scope: str) -> ScopeKey:
        found = self.keys[scope]
        assert found is not None
        return found

    def passing(self, event: str) -> Any:
        async def listen(call: Any, *rest: Any) -> Any:
            self.stages.append(f"{event} {call.name}")
            return await rest[-1]()

        return listen

    def definition(self, tool: Tool) -> ToolDefinition:
        """Returns the one definition object of that text; registering it again is another registration (A44)."""
        if tool.definition not in self.definitions:

            async def body(_arguments: Any, _run: Any) -> str:
                self.stages.append(f"body {tool.name}")
                return tool.definition

            self.definitions[tool.definition] = ToolDefinition(
                name=tool.name,
                description=tool.definition,
                parameters={"type": "object"},
                output=ToolOutput(schema={"type": "string"}, render=lambda _arguments, value: [text_block(str(value))]),
                execute=body,
            )
        return self.definitions[tool.definition]

    def check_call(self, scope: Scope, name: str, callable_tools: list[Tool], tool_set: ResolvedToolSet | None) -> None:
        """A visible tool runs; a hidden one fails exactly as one that does not exist (contract A37)."""
        result, stages = self.execute(scope, name, tool_set)
        for tool in callable_tools:
            if tool.name == name:
                assert not result.is_error
                assert result.value == tool.definition
                assert f"body {name}" in stages
                return
        unknown, unknown_stages = self.execute(scope, NOWHERE, tool_set)
        assert result.is_error
        assert result.error.info.code == "UNKNOWN_TOOL"
        assert stages == [stage.replace(NOWHERE, name) for stage in unknown_stages]
        assert repr(result).replace(f'"{name}"', "") == repr(unknown).replace(f'"{NOWHERE}"', "")

    def execute(
        self, scope: Scope, name: str, tool_set: ResolvedToolSet | None
    ) -> tuple[ToolExecutionResult, list[str]]:
        self.stages.clear()
        call = ToolExecutionInput(call_id="c", name=name, arguments={}, agent=self.keys[scope], tool_set=tool_set)
        return anyio.run(self.pipeline.execute, call), list(self.stages)


@pytest.mark.contract("A1", "A3", "A4", "A8", "A18", "A19", "A20", "A21", "A22", "A24", "A25", "A26", "A34", "A35")
@pytest.mark.contract("A36", "A37", "A43", "A44", "A45", "A47")
def test_every_history_leads_to_what_the_contract_says() -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=150, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
