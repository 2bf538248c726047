"""The stub module of a tool set: what a type checker reads of `tools` when it checks a program (contract G21).

The SDK text is for models: short, and with names in a comment that no method can have. The stub is for checkers: every
tool is callable in it in both forms, under every name, and every object is a TypedDict, whatever its keys are called.

Each tool is an attribute of `Tools` with a call protocol of its own, because a method called `list` would hide the type
`list` from all other methods of the class. What `tools["name"]` gives stands in a class apart for the same reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..registry.steps import Step
from .annotations import AnnotationWriter
from .build import TRANSPORT, build_maps
from .expressions import Annotation
from .model import AnyType, LiteralType, ObjectType, ReferenceType, TypeDocument, TypeExpression
from .names import ClassNames, camel, is_field_name, is_method_name, joined
from .notes import comment_lines
from .sdk_text import template
from .text import docstring_text, quoted, scalar_text
from .views import ClassView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.definition import ToolSchema
    from .model import JsonScalar, ToolArgsMap, ToolOutputMap
    from .views import FieldView

__all__ = ["StubModule", "render_stub", "stub_module"]

MAX_STUB_BRACKETS = 12
"""How deep brackets nest in one annotation; deeper is `Any`. Checkers follow types to a depth of about twenty."""

MAX_STUB_HEIGHT = 150
"""The tallest syntax tree of one annotation: a checker refuses to parse at about 250."""

MAX_INT = 2**63 - 1
"""Larger integers are no `Literal` for every checker."""

_NAME = re.compile(r"[^\W\d]\w*")
_TYPING = ("Any", "Literal", "NotRequired", "Protocol", "TypeAlias", "TypedDict", "overload")
_DECLARED = ("Mapping", "None", *_TYPING, "Exception", "ToolArgsMap", "ToolCallError", "ToolOutputMap", "Tools")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAPPING = Annotation("Mapping[str, Any]", frozenset({"Any", "Mapping"}), 1, 3)


@dataclass(frozen=True, slots=True)
class StubModule:
    """A stub, and what its class names stand for.

    Attributes:
        text: the module's source.
        objects: the object that each TypedDict is of, by the name of the class.
        protocols: the tool that each call protocol is of, by the name of the class.
    """

    text: str
    objects: dict[str, ObjectType]
    protocols: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Tool:
    """One tool as the template prints it; `calls` has the parameters of each form of a call."""

    key: str
    attribute: str
    description: str
    comments: tuple[str, ...]
    protocol: str
    args: str
    result: str
    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Field:
    comments: tuple[str, ...]
    name: str
    annotation: str


@dataclass(frozen=True, slots=True)
class _Class:
    """One named type as the template prints it: an alias, a class, or the call that makes one."""

    name: str
    alias: str
    is_statement: bool
    fields: tuple[_Field, ...]
    remark: str
    extra: str


def render_stub(tools: Sequence[ToolSchema], *, transport: str = TRANSPORT) -> str:
    """Writes the stub of a tool set: a module for type checkers, which can be imported as well.

    It declares `tools`, `ToolCallError`, the types of what each tool takes and gives, and these by tool name in the
    TypedDicts `ToolArgsMap` and `ToolOutputMap`. Undeclared keys are refused even where a schema takes them, so that a
    misspelt one is found: a TypedDict that allows them is beyond some checkers. The text is the same for the same
    tools in any order. Never raises. A tool without a name, or with a lone surrogate in it, is left out.

    Args:
        tools: the tools, in any order.
        transport: the tool that carries programs; it is left out.
    """
    return stub_module(*build_maps(tools, transport=transport)).text


def stub_module(args: ToolArgsMap, outputs: ToolOutputMap, *, extra_items: bool = False) -> StubModule:
    """Writes the stub from the maps that `build_maps` gives.

    Args:
        args: what each tool takes.
        outputs: what each tool gives.
        extra_items: whether objects whose schema speaks of undeclared keys allow them here as well, in the way of
            PEP 728, which not every checker knows.
    """
    names = ClassNames()
    for name in _DECLARED:
        names.allocate(name)
    views: list[ClassView] = []
    objects: dict[str, ObjectType] = {}
    tools: list[_Tool] = []
    used: set[str] = set()
    known = [name for name in args if _is_sayable(name)]
    for name in known:
        tool = args[name]
        base = camel(name)
        taking = _StubWriter(tool.document, joined(base, "Args"), names, _MAPPING)
        giving = _StubWriter(outputs[name].document, joined(base, "Output"), names)
        taken, args_views = taking.root()
        given, output_views = giving.root()
        if taken.text == "Any":
            taken = _MAPPING
        used |= taken.names | given.names
        views += [*args_views, *output_views]
        objects |= taking.objects | giving.objects
        made = _Tool(
            key=quoted(name),
            attribute=name if is_method_name(name) else "",
            description=docstring_text(tool.description),
            comments=(
                *comment_lines("", taken.notes, (), "args"),
                *comment_lines("", given.notes, (), "returns"),
            ),
            protocol=names.allocate(f"_{base}Call"),
            args=taken.text,
            result=given.text,
            calls=_calls(tool.document, taken, args_views, extra_items=extra_items),
        )
        tools.append(made)
    used.update({"Protocol", "TypedDict"}, *(view.names for view in views))
    used |= _used_by(views, tools)
    left_out = "TypedDict" if extra_items else ""
    text = template("stub.j2").render(
        imports=[name for name in _TYPING if (name in used or extra_items) and name != left_out],
        mapping="Mapping" in used or extra_items,
        extra_items=extra_items,
        classes=_classes(views, extra_items=extra_items),
        tools=tools,
    )
    return StubModule(text + "\n", objects, {tool.protocol: name for tool, name in zip(tools, known, strict=True)})


def _used_by(views: Sequence[ClassView], tools: Sequence[_Tool]) -> set[str]:
    """Returns what the module's own lines use, beside the types in them."""
    used = {"Literal"} if tools else set[str]()
    if any(view.alias for view in views):
        used.add("TypeAlias")
    if len(tools) > 1 or any(len(tool.calls) > 1 for tool in tools):
        used.add("overload")
    if any(call.endswith(": Any") for tool in tools for call in tool.calls):
        used.add("Any")
    return used


class _StubWriter(AnnotationWriter):
    """Writes types for checkers: only what is a legal type, and every object with keys as a class."""

    max_brackets = MAX_STUB_BRACKETS
    max_height = MAX_STUB_HEIGHT
    remembers = False

    def __init__(self, document: TypeDocument, base: str, names: ClassNames, mapping: Annotation | None = None) -> None:
        super().__init__(document, base, names)
        if mapping is not None:  # a tool takes any mapping, the TypedDict that another one gave too
            self.mapping = mapping
        self.objects: dict[str, ObjectType] = {}
        self._named_literals: dict[str, Annotation] = {}

    def is_field(self, name: str) -> bool:
        """Whether a TypedDict can have this key, in one of its forms."""
        return _is_sayable(name)

    def object(self, type_: ObjectType, hint: str | None, depth: int) -> Step[Annotation]:
        """Writes an object, and notes its class."""
        written: Annotation = yield from super().object(type_, hint, depth)
        if written.text.isidentifier() and written.text not in _DECLARED:
            self.objects[written.text] = type_
        return written

    def literal(self, type_: LiteralType) -> Annotation:
        """Writes the values that can be a `Literal`, and the type of the others (a float never can)."""
        words: dict[str, None] = {}
        others: dict[str, None] = {}
        for value in type_.values:
            other = _beyond_literal(value)
            if other:
                others[other] = None
            else:
                words[scalar_text(value)] = None
        parts = (*([f"Literal[{', '.join(words)}]"] if words else []), *others)
        names = frozenset({"Literal"}) if words else frozenset[str]()
        branches = parts if len(parts) > 1 else ()
        written = Annotation(" | ".join(parts), names, 1, 2 + len(others), branches=branches)
        return self._named_literal(written) if self._definitions and not _is_quotable(written.text) else written

    def _named_literal(self, written: Annotation) -> Annotation:
        """Gives a name to values that no quotes can hold: beside a class of a later line they would stand in some."""
        known = self._named_literals.get(written.text)
        if known is None:
            name = self._names.allocate(joined(self._prefix, "Value"))
            self.classes.append(ClassView(name, written.names, alias=written.text))
            known = self._named_literals[written.text] = Annotation(name)
        return known


def _beyond_literal(value: JsonScalar) -> str:
    """Returns the type of a value that is no `Literal` to every checker; empty for all others."""
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "" if _SURROGATE.search(value) is None else "str"
    return "int" if isinstance(value, int) and abs(value) > MAX_INT else ""


def _is_sayable(name: str) -> bool:
    return name != "" and _SURROGATE.search(name) is None


def _calls(
    document: TypeDocument, taken: Annotation, views: Sequence[ClassView], *, extra_items: bool
) -> tuple[str, ...]:
    """Returns the parameters of each form of a call: one mapping, or keywords (ruling 35)."""
    view = next((view for view in views if view.name == taken.text and not view.alias), None)
    if view is None:
        root = _resolved(document)
        only_values = isinstance(root, ObjectType) and taken.text.startswith("Mapping[str, ")
        value = taken.text.removeprefix("Mapping[str, ")[:-1] if only_values else "Any"
        return (f"self, args: {taken.text}, /", f"self, **more: {value}")
    if not view.fields:
        return (f"self, args: {taken.text} = ..., /",)
    spelt = [field for field in view.fields if is_field_name(field.name) and not field.name.startswith("__")]
    keywords = [f"{field.name}: {field.type}{'' if field.required else ' = ...'}" for field in spelt]
    keywords[:0] = ["*"] if keywords else []
    if len(spelt) < len(view.fields):
        keywords.append(f"**{_free('more', spelt)}: Any")
    elif extra_items and view.extra:
        keywords.append(f"**{_free('more', spelt)}: {view.extra}")
    return (f"self, args: {taken.text}, /", ", ".join((_free("self", spelt), *keywords)))


def _resolved(document: TypeDocument) -> TypeExpression:
    """Returns the root itself, where it is a reference."""
    type_: TypeExpression = document.root
    seen: set[str] = set()
    while isinstance(type_, ReferenceType) and type_.target not in seen:
        seen.add(type_.target)
        type_ = document.definitions.get(type_.target, AnyType())
    return type_


def _free(name: str, fields: Sequence[FieldView]) -> str:
    """Returns a name for a parameter that no argument has."""
    taken = {field.name for field in fields}
    while name in taken:
        name = f"_{name}"
    return name


def _classes(views: Sequence[ClassView], *, extra_items: bool) -> list[_Class]:
    """Prepares named types: each in the class form if that can say it, and with names of later classes in quotes."""
    later = {view.name for view in views}
    made: list[_Class] = []
    for view in views:
        is_statement = all(is_field_name(field.name) and not field.name.startswith("__") for field in view.fields)
        fields: list[_Field] = []
        for field in view.fields:
            type_ = _quoted_type(field.type, later)
            annotation = type_ if field.required else f"NotRequired[{type_}]"
            fields.append(_Field(field.comments, field.name if is_statement else quoted(field.name), annotation))
        alias = _quoted_type(view.alias, later) if view.alias else ""
        extra = _quoted_type(view.extra, later) if extra_items and view.extra else ""
        made.append(_Class(view.name, alias, is_statement, tuple(fields), view.remark, extra))
        later.discard(view.name)
    return made


def _quoted_type(text: str, later: set[str]) -> str:
    """Returns a type in quotes when it names a class that is declared later, and when quotes can hold it."""
    if later.isdisjoint(_NAME.findall(text)) or not _is_quotable(text):
        return text
    return f"'{text}'"


def _is_quotable(text: str) -> bool:
    """Whether a type can stand in quotes: no checker reads escapes there."""
    return "'" not in text and "\\" not in text
