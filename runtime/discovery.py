"""The SDK text of a large tool set: what a token budget allows, and the two calls that lead to the rest.

The calls are tools of the executor's own, as `run_code` is: no registry has them, and only programs can make them.
Apart from that they are ordinary calls, which policies see and records have, under their own names.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from ..registry import (
    ToolAnnotations,
    ToolArgsError,
    ToolDefinition,
    ToolRegistry,
    ToolRunContext,
    ToolView,
    define_tool,
    positive_cap,
    text_block,
)
from ..registry.views import RUN_CODE, schema_of

if TYPE_CHECKING:
    from ..sdk_gen.catalogue import Catalogue, DiscoveryCalls, FittedSdk

__all__ = ["Discovery", "SdkBudget", "SdkPlan"]

MAX_RESULTS: Final = 50
"""How many tools a search may declare."""

_LESS_CLOSE: Final = 10
_MAX_UNKNOWN: Final = 5
_MAX_SHOWN_CHARS: Final = 80
_MAX_PLANS: Final = 16
_HARMLESS: Final = ToolAnnotations(read_only=True, open_world=False)

_LOGGER = logging.getLogger("ptc.runtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The two calls by which a program finds and reads the tools that the prompt has no room for.

    They are there when the tools in full are beyond the `sdk_budget` of a `PtcExecutor`. A name is taken when the agent
    has a tool of that name, visible or not: then the call has `_tools` behind its own, as `search_tools`.

    Args:
        search: the name of `await tools.search("what it should do")`, which gives the declarations of the tools that
            fit best.
        describe: the name of `await tools.describe("name")`, or of several names in a list, which gives theirs.
        results: how many tools a search declares when it does not ask for another number, from 1 to 50.

    Raises:
        ValueError: a name cannot be written as `tools.name`, is `run_code`, or is that of both; or `results` is out of
            range.
    """

    search: str = "search"
    describe: str = "describe"
    results: int = 5

    def __post_init__(self) -> None:
        from ..sdk_gen.names import is_method_name

        for field in fields(self)[:2]:
            name: object = getattr(self, field.name)
            if not isinstance(name, str) or not is_method_name(name) or name == RUN_CODE:
                raise ValueError(f"{field.name} must be a name that can be called as tools.name, not {name!r}")
        if self.search == self.describe:
            raise ValueError(f"search and describe must have two names, not {self.search!r} both")
        if positive_cap("results", self.results) > MAX_RESULTS:
            raise ValueError(f"results must be at most {MAX_RESULTS}, not {self.results}")

    def free_names(self, taken: Collection[str]) -> tuple[str, str]:
        """Returns the names that the two calls have beside tools of these names."""
        search = _free(self.search, {*taken, self.describe})
        return search, _free(self.describe, {*taken, search})


def _free(name: str, taken: Collection[str]) -> str:
    free, number = name, 1
    while free in taken:
        free = f"{name}_tools" if number == 1 else f"{name}_tools_{number}"
        number += 1
    return free


@dataclass(frozen=True, slots=True, eq=False)
class SdkPlan:
    """What is told of one visible tool set.

    Attributes:
        catalogue: the tools.
        fitted: the text.
        provided: the discovery calls that go with it; none when everything is told in full.
    """

    catalogue: Catalogue
    fitted: FittedSdk
    provided: tuple[ToolDefinition, ...]


class SdkBudget:
    """Tells of tool sets within a budget. What it finds out about a set is kept, because every step and program asks.

    Args:
        registry: where the calls look for what their agent sees.
        budget: the most tokens for the SDK text, the instructions included.
        count_tokens: counts the tokens of a text; `ptc.sdk_gen.estimate_tokens` when `None`.
        discovery: the names of the calls; the defaults when `None`.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        budget: int,
        count_tokens: Callable[[str], int] | None = None,
        discovery: Discovery | None = None,
    ) -> None:
        self._registry = registry
        self._budget = budget
        self._count_tokens = count_tokens
        self._discovery = Discovery() if discovery is None else discovery
        self._calls: dict[tuple[str, str], tuple[ToolDefinition, ToolDefinition]] = {}
        self._plans: OrderedDict[object, SdkPlan] = OrderedDict()

    def plan(self, view: ToolView) -> SdkPlan:
        """Returns what is told of the tools of a view.

        Raises:
            ToolRegistrationError: a tool's schemas are not lossless JSON (contract A12).
            TypeError: `count_tokens` did not return an integer.
            Exception: whatever `count_tokens` raised.
        """
        names = self._discovery.free_names(view.known_names | view.definitions.keys())
        # Definitions are borrowed and do not change (contract A13), so the same ones come to the same text.
        key = (names, tuple(view.definitions.values()))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._new_plan(view, names)
            while len(self._plans) > _MAX_PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(key)
        return plan

    def _new_plan(self, view: ToolView, names: tuple[str, str]) -> SdkPlan:
        # Here, because only a prompt needs the templates: `ptc run` starts without them.
        from ..sdk_gen.catalogue import Catalogue, estimate_tokens

        catalogue = Catalogue(view.schemas(with_output=True), transport=RUN_CODE)
        fitted = catalogue.fit(self._budget, self._count_tokens or estimate_tokens, self.calls(names))
        if fitted.tokens > self._budget:
            _LOGGER.warning(
                "the SDK text of %d tools takes %d tokens in its shortest form, which is beyond the budget of %d",
                len(catalogue), fitted.tokens, self._budget,
            )  # fmt: skip
        return SdkPlan(catalogue, fitted, () if fitted.form == "full" else self._made(names))

    def calls(self, names: tuple[str, str]) -> DiscoveryCalls:
        """Returns what a model is told of the two calls under these names, the search first."""
        from ..sdk_gen.catalogue import DiscoveryCalls

        return DiscoveryCalls(*(schema_of(call, with_output=True) for call in self._made(names)))

    def _made(self, names: tuple[str, str]) -> tuple[ToolDefinition, ToolDefinition]:
        calls = self._calls.get(names)
        if calls is None:
            calls = self._calls[names] = (self._search(names[0]), self._describe(names[1]))
        return calls

    def _seen(self, run: ToolRunContext) -> Catalogue:
        """Returns the tools that the calling agent sees in this step, as they are now (contract A46)."""
        return self.plan(self._registry.view(run.agent, run.exec.tool_set)).catalogue

    def _search(self, name: str) -> ToolDefinition:
        default = self._discovery.results

        async def execute(arguments: Any, run: ToolRunContext) -> str:
            return _found(self._seen(run), arguments["query"], arguments.get("limit", default))

        return define_tool(
            name=name,
            description="Finds tools, and returns the declarations of the best matches as text.",
            parameters={
                "query": {"type": "string", "required": True, "description": "What the tool should do, or its name"},
                "limit": {"type": "integer", "description": f"How many to declare, {default} when left out"},
            },
            output={"type": "string"},
            execute=execute,
            render=_render,
            is_concurrency_safe=_safe,
            annotations=_HARMLESS,
        )

    def _describe(self, name: str) -> ToolDefinition:
        async def execute(arguments: Any, run: ToolRunContext) -> str:
            asked = arguments["name"]
            return _declared(self._seen(run), [asked] if isinstance(asked, str) else asked)

        return define_tool(
            name=name,
            description="Returns the declarations of tools as text.",
            parameters={
                "name": {
                    "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                    "required": True,
                    "description": "The name of a tool, or a list of names",
                },
            },
            output={"type": "string"},
            execute=execute,
            render=_render,
            is_concurrency_safe=_safe,
            annotations=_HARMLESS,
        )


def _render(_arguments: Any, value: Any) -> Any:
    return [text_block(value)]


def _safe(_arguments: Any) -> bool:
    return True


def _found(catalogue: Catalogue, query: str, limit: int) -> str:
    if not 1 <= limit <= MAX_RESULTS:
        raise ToolArgsError([f'"limit" must be from 1 to {MAX_RESULTS}, not {limit}'])
    names = catalogue.search(query)
    if not names:
        said = [f"No tool has any word of {_shown(query)}; try others. There are:", *catalogue.groups()]
        return "\n".join(f"# {line}" for line in said)
    limit = int(limit)  # a whole float is an integer in JSON
    best, less = names[:limit], names[limit : limit + _LESS_CLOSE]
    parts = [f"# The best of {len(names)} matches, in order.\n\n\n" if less else "", catalogue.declared(best)]
    if less:
        parts += ["\n\n\n# Less close:", *(f"\n# {catalogue.line(name)}" for name in less)]
    return "".join(parts)


def _declared(catalogue: Catalogue, asked: list[str]) -> str:
    names = list(dict.fromkeys(asked))
    if not names:
        raise ToolArgsError(['"name" must name at least one tool'])
    unknown = [name for name in names if name not in catalogue]
    if not unknown:
        return catalogue.declared(names)
    said = [_unknown(catalogue, name) for name in unknown[:_MAX_UNKNOWN]]
    if len(unknown) > _MAX_UNKNOWN:
        said.append(f"and {len(unknown) - _MAX_UNKNOWN} more are unknown")
    raise ToolArgsError(said)


def _unknown(catalogue: Catalogue, name: str) -> str:
    near = catalogue.near(name)
    meant = f"; did you mean {' or '.join(map(_shown, near))}?" if near else ""
    return f"there is no tool {_shown(name)}{meant}"


def _shown(text: str) -> str:
    from ..sdk_gen.text import quoted

    return quoted(text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS]}...")
