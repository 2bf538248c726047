"""`define_tool` and `define_raw_tool`: definitions whose arguments and output are enforced (contract B57 to B62)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast, overload

import pydantic
from typing_extensions import Unpack

from .body import ToolBody, adapt_body
from .build import Check, ToolOptions, build_definition, enforce
from .definition import ToolDefinition, ToolRunContext
from .errors import ToolArgsError
from .schema import RawSchema, compile_parameters, compile_value, validate_json_schema_value
from .typed_arguments import TypedArguments, class_arguments
from .typed_dicts import rebuild_typed_dicts
from .typed_output import TypedOutput
from .typed_schema import is_type
from .values import MISSING, JsonObject, JsonValue, Missing

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["define_raw_tool", "define_tool"]

ArgsT = TypeVar("ArgsT")
ObjectT = TypeVar("ObjectT", bound="Mapping[str, object] | pydantic.BaseModel | DataclassInstance")
ValueT = TypeVar("ValueT")

Body: TypeAlias = Callable[[ArgsT, ToolRunContext], Awaitable[ValueT]] | Callable[[ArgsT], Awaitable[ValueT]]


@overload
def define_tool(
    *,
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    output: Mapping[str, Any],
    execute: Body[ArgsT, ValueT],
    **options: Unpack[ToolOptions[ArgsT, ValueT]],
) -> ToolDefinition: ...


@overload
def define_tool(
    *,
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    output: type[ValueT],
    execute: Body[ArgsT, ValueT],
    **options: Unpack[ToolOptions[ArgsT, Any]],
) -> ToolDefinition: ...


@overload
def define_tool(
    *,
    name: str,
    description: str,
    parameters: type[ObjectT],
    output: type[ValueT] | Mapping[str, Any],
    execute: Body[ObjectT, ValueT],
    **options: Unpack[ToolOptions[dict[str, Any], Any]],
) -> ToolDefinition: ...


@overload
def define_tool(
    *,
    name: str,
    description: str,
    parameters: type[ObjectT],
    output: type[ValueT],
    **options: Unpack[ToolOptions[dict[str, Any], Any]],
) -> Callable[[Body[ObjectT, ValueT]], ToolDefinition]: ...


def define_tool(
    *,
    name: str,
    description: str,
    parameters: Any,
    output: Any,
    execute: Body[Any, Any] | Missing = MISSING,
    **options: Unpack[ToolOptions[Any, Any]],
) -> Any:
    """Defines a tool whose schemas are compiled here, once (contract B57).

    `parameters` and `output` are each written in the author DSL, or are a class. A class goes through pydantic and the
    raw-schema door, as the annotations of `@tool` do, and keeps its own rules, for example of members that it does not
    have. The body then gets an instance of it, and may return one.

    Args:
        name: what models and programs call it.
        description: what the model reads of it.
        parameters: a map of parameter names to DSL nodes, `required: True` on those that must be given; or a
            `TypedDict`, a pydantic model or a dataclass.
        output: the DSL node of the value; or its class.
        execute: the body, `async (arguments, run) -> value` or `async (arguments) -> value`. It sees valid arguments
            only: others raise `ToolArgsError` in its place (contract B58). Those of a class are new at each call; those
            of the DSL are frozen JSON, and typed when the body annotates them as a `TypedDict`. When both schemas are
            classes and it is omitted, `define_tool` is a decorator of the body; type checkers then also see a value
            that is not of the output's class.
        **options: see `ToolOptions`. Where a class stands, they see the JSON of it.

    Returns:
        the definition, or the decorator that makes it.

    Raises:
        JsonSchemaError: a schema of the DSL is not well-formed (contract B50).
        TypeError: `execute` is not asynchronous, an option is out of range, or a class has no JSON form.
        ToolRegistrationError: a presenter is asynchronous, or no function (contract H5).
    """
    owner = f"define_tool({name})"
    accepted = _accepted(parameters, owner)
    returned = _returned(output, name, owner)

    def define(body: Body[Any, Any]) -> ToolDefinition:
        return build_definition(
            owner,
            name=name,
            description=description,
            parameters=accepted.schema,
            check=accepted.check,
            output_schema=returned.schema,
            output_check=returned.check,
            execute=accepted.around(returned.around(adapt_body(body, owner))),
            options=options,
        )

    return define if execute is MISSING else define(execute)


def define_raw_tool(
    *,
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    output: Mapping[str, Any] | None = None,
    execute: Body[ArgsT, ValueT],
    assert_formats: bool = True,
    **options: Unpack[ToolOptions[ArgsT, ValueT]],
) -> ToolDefinition:
    """Defines a tool that brings full JSON Schema 2020-12: the raw-schema door (ruling 39).

    Args:
        name: what models and programs call it.
        description: what the model reads of it.
        parameters: the JSON Schema of the arguments object.
        output: the JSON Schema of the value; `None` when it is unknown, so that any JSON will do.
        execute: the body, as for `define_tool`.
        assert_formats: whether `format` is enforced where it is a standard one; when not, it is a mere annotation.
        **options: see `ToolOptions`.

    Raises:
        JsonSchemaError: a schema is not valid, or refers to another document.
        TypeError: `execute` is not asynchronous, or an option is out of range.
        ToolRegistrationError: a presenter is asynchronous, or no function (contract H5).
    """
    owner = f"define_raw_tool({name})"
    accepts = RawSchema(parameters, assert_formats=assert_formats, root="parameters")
    returns = None if output is None else RawSchema(output, assert_formats=assert_formats, root="output")

    def check(arguments: JsonValue) -> list[str]:
        return accepts(arguments, "")

    return build_definition(
        owner,
        name=name,
        description=description,
        parameters=accepts.schema,
        check=check,
        output_schema={} if returns is None else returns.schema,
        output_check=returns,
        execute=enforce(adapt_body(execute, owner), check),
        options=cast("ToolOptions[Any, Any]", options),
    )


class _Accepted(NamedTuple):
    """What a tool takes: the schema, what is wrong with given arguments, and the body that sees only valid ones."""

    schema: JsonObject | bool
    check: Check
    around: Callable[[ToolBody], ToolBody]


class _Returned(NamedTuple):
    """What a tool gives: the schema, what checks a value instead of it, and the body that gives JSON."""

    schema: JsonObject | bool
    check: Check | None
    around: Callable[[ToolBody], ToolBody]


def _accepted(parameters: Any, owner: str) -> _Accepted:
    if is_type(parameters):
        typed = class_arguments(parameters, owner)
        return _Accepted(typed.schema.schema, typed.violations, lambda body: _parsing(body, typed))
    schema = compile_parameters(parameters)

    def check(arguments: JsonValue) -> list[str]:
        return validate_json_schema_value(schema, arguments, "")

    return _Accepted(schema, check, lambda body: enforce(body, check))


def _returned(output: Any, name: str, owner: str) -> _Returned:
    if is_type(output):
        typed = TypedOutput(rebuild_typed_dicts(output, {}), name, owner=owner, what="output")
        return _Returned(typed.schema, typed.check, lambda body: _writing(body, typed))
    return _Returned(compile_value(output), None, lambda body: body)


def _parsing(body: ToolBody, typed: TypedArguments) -> ToolBody:
    """Returns a body that gives `body` its arguments as their type, or raises `ToolArgsError` (contract B58)."""

    async def execute(arguments: Any, run: ToolRunContext) -> Any:
        violations, parsed = typed.parse(arguments)
        if violations:
            raise ToolArgsError(violations)
        return await body(parsed, run)

    return execute


def _writing(body: ToolBody, typed: TypedOutput) -> ToolBody:
    """Returns a body that gives what `body` returns as JSON."""

    async def execute(arguments: Any, run: ToolRunContext) -> Any:
        return typed.to_json(await body(arguments, run))

    return execute
