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

import pydantic
from typing_extensions import Unpack

from .annotations import read_signature
from .define import ToolOptions, build_definition
from .definition import ToolDefinition, ToolRunContext
from .errors import ToolArgsError, ToolOutputError
from .function_arguments import SCHEMA_ERRORS, FunctionArguments, typed_schema, why

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from .schema import RawSchema

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
    *, name: str | None = None, description: str | None = None, **options: Unpack[ToolOptions[Any, Any]]
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
    output, returned = _output(signature.returns, owner, tool_name)

    async def execute(given: Any, run: ToolRunContext) -> Any:
        violations, positional, named = arguments.parse(given)
        if violations:
            raise ToolArgsError(violations)
        if signature.run is not None:
            named[signature.run] = run
        return returned(await function(*positional, **named))

    def build(**members: Any) -> FunctionTool[..., Any]:
        return FunctionTool(**members, function=function)

    definition = build_definition(
        owner,
        name=tool_name,
        description=(inspect.getdoc(function) or "") if description is None else description,
        parameters=arguments.schema.schema,
        check=arguments.violations,
        output_schema={} if output is None else output.schema,
        output_check=output,
        execute=execute,
        options=options,
        build=build,
    )
    return cast("FunctionTool[..., Any]", definition)


def _output(returns: Any, owner: str, name: str) -> tuple[RawSchema | None, Callable[[Any], Any]]:
    """The schema of what is returned, and how it is turned into JSON; without an annotation, any JSON as it is."""
    if returns is inspect.Signature.empty or returns is Any:
        return None, lambda value: value
    try:
        adapter = pydantic.TypeAdapter[Any](returns)
        schema = typed_schema(adapter, "serialization", "output")
    except SCHEMA_ERRORS as error:
        raise TypeError(f"{owner}: no schema can be made of the return annotation: {why(error)}") from error

    def returned(value: Any) -> Any:
        try:
            return adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
        except ValueError as error:  # pydantic's own refusals, and its limit of nesting
            raise ToolOutputError(name, [f'"value" cannot be turned into JSON: {why(error)}']) from error

    return schema, returned
