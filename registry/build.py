"""What a tool declares beyond its schemas, and the definition that comes of it (contract B57 to B62)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypedDict, TypeVar, cast

from .body import ToolBody
from .definition import ToolDefinition, ToolOutput, ToolRunContext
from .errors import ToolArgsError
from .execution import ToolExecution, ToolExecutionResult
from .json_lines import to_indented_json
from .lossless import materialise
from .presenters import PresentedCall, PresentedResult, RecordedResult, check_presenter, for_valid_arguments
from .tool_annotations import ToolAnnotations
from .values import ContentBlock, JsonObject, JsonValue, text_block

__all__ = ["Check", "ToolOptions", "build_definition", "default_render", "enforce"]

ArgsT = TypeVar("ArgsT")
ValueT = TypeVar("ValueT")

Check: TypeAlias = Callable[[JsonValue], list[str]]
ContentHook: TypeAlias = Callable[[ToolExecution, ToolExecutionResult], Sequence[ContentBlock] | None]


class ToolOptions(TypedDict, Generic[ArgsT, ValueT], total=False):
    """What a tool may declare beyond its schemas; what is not given stays absent (contract B62).

    Attributes:
        render: `(arguments, value) -> content blocks` for the model; synchronous and pure. By default one text block:
            text as it is, anything else as indented JSON.
        presentation_meta: `(arguments, value) -> JSON` that is kept with the record for presenters.
        timeout_ms: the deadline of a call in milliseconds; positive and finite.
        concurrency_safe: `True` says that calls may always overlap; the short form of `is_concurrency_safe`.
        is_concurrency_safe: `(arguments) -> bool`, asked for valid arguments alone (contract B60).
        project_content: see `ToolDefinition`; sees arguments as they came (contract B61).
        finalize_content: see `ToolDefinition`; sees arguments as they came (contract B61).
        present_call: `(arguments) -> card | None`, the card of a pending call; a plain function, asked for valid
            arguments alone (contract B59).
        present_result: `(arguments, result) -> card | None`, the card of a completed call, from what the record has of
            the result; a plain function, asked for valid arguments alone (contract B59).
        annotations: what the tool says of its effects; see `ToolAnnotations`.
    """

    render: Callable[[ArgsT, ValueT], Sequence[ContentBlock]]
    presentation_meta: Callable[[ArgsT, ValueT], JsonValue]
    timeout_ms: float | None
    concurrency_safe: bool
    is_concurrency_safe: Callable[[ArgsT], bool]
    project_content: ContentHook
    finalize_content: ContentHook
    present_call: Callable[[ArgsT], PresentedCall]
    present_result: Callable[[ArgsT, RecordedResult], PresentedResult]
    annotations: ToolAnnotations | None


def default_render(_arguments: JsonValue, value: JsonValue) -> Sequence[ContentBlock]:
    """Renders a value as one text block: text as it is, anything else as indented JSON."""
    return [text_block(value if isinstance(value, str) else to_indented_json(value))]


def enforce(body: ToolBody, check: Check) -> ToolBody:
    """Returns a body that raises `ToolArgsError` in place of running on arguments that do not fit (contract B58)."""

    async def execute(arguments: Any, run: ToolRunContext) -> Any:
        violations = check(arguments)
        if violations:
            raise ToolArgsError(violations)
        return await body(arguments, run)

    return execute


def build_definition(
    owner: str,
    *,
    name: str,
    description: str,
    parameters: JsonObject | bool,
    check: Check,
    output_schema: JsonObject | bool,
    output_check: Check | None,
    execute: ToolBody,
    options: ToolOptions[Any, Any],
    build: Callable[..., ToolDefinition] = ToolDefinition,
) -> ToolDefinition:
    """Puts a definition together; what every factory shares.

    Args:
        owner: who is told when something is wrong, for example `define_tool(search)`.
        name: the tool's name.
        description: the tool's description.
        parameters: the compiled schema of the arguments.
        check: what is wrong with given arguments.
        output_schema: the compiled schema of the value.
        output_check: what checks a value of the raw-schema door; `None` for a schema of the subset.
        execute: the body, enforcing already.
        options: what the author declared beyond that.
        build: the class to make.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"{owner}: name must be text, and not empty")
    if not isinstance(description, str):
        raise TypeError(f"{owner}: description must be text")
    for what, schema in (("parameters", parameters), ("output", output_schema)):
        if not isinstance(schema, dict):
            raise TypeError(f"{owner}: {what} must be a schema object")
    return build(
        name=name,
        description=description,
        parameters=materialise(parameters),
        output=ToolOutput(
            schema=cast("Mapping[str, Any]", materialise(output_schema)),
            render=options.get("render", default_render),
            presentation_meta=options.get("presentation_meta"),
            raw=output_check is not None,
            check=output_check,
        ),
        execute=execute,
        timeout_ms=_timeout(options.get("timeout_ms"), owner),
        is_concurrency_safe=_classifier(options, check, owner),
        project_content=options.get("project_content"),
        finalize_content=options.get("finalize_content"),
        present_call=_presenter("present_call", options, check, owner),
        present_result=_presenter("present_result", options, check, owner),
        annotations=_annotations(options.get("annotations"), owner),
    )


def _annotations(annotations: object, owner: str) -> ToolAnnotations | None:
    if not isinstance(annotations, ToolAnnotations | None):
        raise TypeError(f"{owner}: annotations must be ToolAnnotations(...), not {type(annotations).__name__}")
    return annotations


def _timeout(timeout_ms: float | None, owner: str) -> float | None:
    if timeout_ms is None:
        return None
    if type(timeout_ms) not in (int, float) or not 0 < timeout_ms < math.inf:
        raise TypeError(f"{owner}: timeout_ms must be a positive finite number")
    return timeout_ms


def _classifier(options: ToolOptions[Any, Any], check: Check, owner: str) -> Callable[[JsonValue], bool] | None:
    """Says whether a call may overlap others; never for arguments that do not fit (contract B60)."""
    declared = options.get("is_concurrency_safe")
    always = options.get("concurrency_safe", False)
    if type(always) is not bool:
        raise TypeError(f"{owner}: concurrency_safe must be True or False; a function goes to is_concurrency_safe")
    if declared is None:
        return (lambda arguments: not check(arguments)) if always else None
    if "concurrency_safe" in options:
        raise TypeError(f"{owner}: give concurrency_safe or is_concurrency_safe, not both")
    return lambda arguments: False if check(arguments) else declared(arguments)


def _presenter(
    member: Literal["present_call", "present_result"], options: ToolOptions[Any, Any], check: Check, owner: str
) -> Callable[..., Any] | None:
    presenter = options.get(member)
    check_presenter(owner, member, presenter)
    return for_valid_arguments(presenter, check)
