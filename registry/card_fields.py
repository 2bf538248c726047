"""What cards are made of: the base of every shape, and the kinds of fields (contract H4).

A shape is a frozen pydantic model. It is as strict inside as the wire is: no coercion, no unknown field, no NaN, and no
text that UTF-8 cannot carry. Its constructor takes lists and keeps tuples, so that nothing of a card can change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from .lossless import materialise, thaw
from .pipeline.outcome import freeze_blocks
from .values import MISSING, ContentBlock, JsonValue, Missing

__all__ = ["Content", "Count", "Json", "LineNumber", "Name", "Several", "Shape", "Text"]

T = TypeVar("T")


def _as_tuple(items: object) -> object:
    return tuple(items) if isinstance(items, Sequence) and not isinstance(items, str | bytes) else items


def _as_json(value: object) -> JsonValue | Missing:
    return MISSING if value is MISSING else materialise(value)


def _as_blocks(content: object) -> Sequence[ContentBlock] | None:
    try:
        return None if content is None else freeze_blocks(content)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _as_utf8(text: str) -> str:
    materialise(text)
    return text


def _several(annotation: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    (item,) = get_args(annotation)
    return core_schema.no_info_before_validator_function(_as_tuple, handler(tuple[item, ...]))


def _by(check: Callable[[object], object], shown: CoreSchema) -> GetPydanticSchema:
    """Has a field checked by a function of our own.

    Pydantic would copy what is frozen, leave the rest unfrozen, and stop at half the nesting that JSON may have here.
    """
    schema = core_schema.no_info_plain_validator_function(check, json_schema_input_schema=shown)
    return GetPydanticSchema(lambda _type, _handler: schema)


Several: TypeAlias = Annotated[Sequence[T], GetPydanticSchema(_several)]
"""A list or tuple, kept as a tuple."""

Json: TypeAlias = Annotated[JsonValue | Missing, _by(_as_json, core_schema.any_schema())]
Content: TypeAlias = Annotated[
    Sequence[ContentBlock] | None, _by(_as_blocks, core_schema.list_schema(core_schema.dict_schema()))
]
Text: TypeAlias = Annotated[str, AfterValidator(_as_utf8)]
Name: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_as_utf8)]
LineNumber: TypeAlias = Annotated[int, Field(ge=1)]
Count: TypeAlias = Annotated[int, Field(ge=0)]


class Shape(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=to_camel,
        populate_by_name=True,
        revalidate_instances="always",  # a subclass may say more than the wire knows
        defer_build=True,  # most programs never show a card
    )

    @model_serializer
    def to_wire(self) -> dict[str, Any]:
        """Returns it as JSON in the wire's spelling: camelCase, and no key for what is absent."""
        return {
            info.alias or name: _on_wire(value)
            for name, info in type(self).model_fields.items()
            if not _is_absent(value := getattr(self, name), info.default)
        }


def _is_absent(value: object, default: object) -> bool:
    return value is MISSING or (value is None and default is None)


def _on_wire(value: Any) -> Any:
    if isinstance(value, Shape):
        return value.to_wire()
    if isinstance(value, tuple):
        return [_on_wire(item) for item in value]
    return thaw(value)
