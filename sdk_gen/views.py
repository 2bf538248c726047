"""What the templates print of one named type: a TypedDict with its fields, or an alias."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClassView", "FieldView"]


@dataclass(frozen=True, slots=True)
class FieldView:
    """One field of a class: the comment lines above it, its name, its type, and whether it must be there."""

    comments: tuple[str, ...]
    name: str
    type: str
    required: bool

    @property
    def annotation(self) -> str:
        """The type as a TypedDict declares it."""
        return self.type if self.required else f"NotRequired[{self.type}]"


@dataclass(frozen=True, slots=True)
class ClassView:
    """One named type of the block: a TypedDict, or an alias when `alias` is not empty.

    Attributes:
        name: the name.
        names: what it uses from `typing`.
        fields: the fields of the TypedDict.
        remark: the closing comment; empty when there is nothing to say.
        alias: the annotation that the name stands for.
        extra: the type of what undeclared keys hold, when the schema itself says that there may be some.
    """

    name: str
    names: frozenset[str]
    fields: tuple[FieldView, ...] = ()
    remark: str = ""
    alias: str = ""
    extra: str = ""
