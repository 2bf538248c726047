"""`@tool`: a tool from an `async def` function, its schemas from the annotations.

    @ptc.tool(concurrency_safe=True)
    async def get_customer(
        id: Annotated[int, pydantic.Field(description="The customer's number.")],
        run: ptc.ToolRunContext,
    ) -> Customer:
        \"\"\"Look up one customer.\"\"\"

Such a tool goes through the raw-schema door (ruling 39): its arguments and its value are enforced. The function itself
stays reachable as `get_customer.function`, which is what a unit test calls.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

from typing_extensions import Unpack

from .annotations import read_signature
from .build import ToolOptions, build_definition
from .definition import ToolDefinition, ToolRunContext
from .errors import ToolArgsError
from .function_arguments import FunctionArguments
from .typed_output import TypedOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

__all__ = ["FunctionTool", "tool"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionTool(ToolDefinition, Generic[P, R]):
    """A definition made by `@tool`.

    Attributes:
        function: the function as it was written. Calling it runs the body alone: no parsing of arguments, no checks.
    """

    function: Callable[P, Coroutine[Any, Any, R]]


@overload
def tool(function: Callable[P, Coroutine[Any, Any, R]], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Unpack[ToolOptions[dict[str, Any], Any]]
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions[Any, Any]],
) -> Any:
    """Makes a tool of an `async def` function, as `@tool` or `@tool(...)`.

    Parameters become properties of the arguments object, described by `Annotated[..., Field(description=...)]` of
    pydantic. One whose annotation is `ToolRunContext` receives the run and is not among them. Arguments reach the
    function as the annotated types: models, dataclasses, dates, decimals, enums. What it returns is turned into JSON by
    its return annotation; without one, it must return JSON.

    Args:
        function: the function, when used without parentheses.
        name: what models and programs call it; the function's name by default.
        description: what the model reads of it; the docstring by default.
        **options: see `ToolOptions`. `render` and the presenters see JSON, not the annotated types.

    Raises:
        TypeError: the function is not asynchronous, or an annotation is missing, unknown or without a JSON form; the
            message names the function and the parameter.
        ToolRegistrationError: a presenter is asynchronous, or no function (contract H5).
    """
    if function is not None:
        return _made(function, name, description, options, _callers_names())
    return lambda decorated: _made(decorated, name, description, options, _callers_names())


def _callers_names() -> Mapping[str, Any]:
    """What is defined where `@tool` stands: annotations that are text may name a class of the enclosing function."""
    frame = inspect.currentframe()
    decorator = None if frame is None else frame.f_back
    scope = None if decorator is None else decorator.f_back
    return {} if scope is None else dict(scope.f_locals)


def _made(
    function: Callable[..., Any],
    name: str | None,
    description: str | None,
    options: ToolOptions[Any, Any],
    local_names: Mapping[str, Any],
) -> FunctionTool[..., Any]:
    label = getattr(function, "__name__", None)
    if not inspect.isroutine(function) or label is None:
        raise TypeError("tool: decorate an `async def` function, or use define_tool")
    owner = f"tool({label})"
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"{owner}: the function yields values; a tool returns one, so collect them in a list")
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{owner}: the function must be asynchronous; write `async def {label}`")
    signature = read_signature(function, owner, local_names)
    arguments = FunctionArguments(signature, owner)
    tool_name = label if name is None else name
    output = TypedOutput(signature.returns, tool_name, owner=owner, what="the return annotation")

    async def execute(given: Any, run: ToolRunContext) -> Any:
        violations, positional, named = arguments.parse(given)
        if violations:
            raise ToolArgsError(violations)
        if signature.run is not None:
            named[signature.run] = run
        return output.to_json(await function(*positional, **named))

    def build(**members: Any) -> FunctionTool[..., Any]:
        return FunctionTool(**members, function=function)

    definition = build_definition(
        owner,
        name=tool_name,
        description=(inspect.getdoc(function) or "") if description is None else description,
        parameters=arguments.schema.schema,
        check=arguments.violations,
        output_schema=output.schema,
        output_check=output.check,
        execute=execute,
        options=options,
        build=build,
    )
    return cast("FunctionTool[..., Any]", definition)
