"""The SDK text of a tool set in Python: what a model reads before it writes a program (contract G)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .annotations import annotate_plain, annotate_root
from .build import TRANSPORT, build_document, build_maps, is_remembered
from .names import ClassNames, camel, is_method_name, joined
from .notes import comment_lines
from .remembered import Remembered
from .sdk_text import SdkText, template
from .text import comment_text, docstring_text, quoted
from .views import ClassView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.definition import ToolSchema
    from .expressions import Annotation
    from .model import ToolArgsMap, ToolOutputMap, ToolType, TypeDocument

__all__ = [
    "PythonPart",
    "declarations",
    "json_schema_to_py",
    "python_block",
    "python_parts",
    "render_python",
    "render_python_maps",
]

_TYPING_NAMES = ("Any", "Literal", "NotRequired", "Protocol", "TypedDict")


@dataclass(frozen=True, slots=True)
class _Member:
    """One tool in the `Tools` protocol: a method, or a comment when its name cannot be one (contract G21)."""

    name: str
    is_method: bool
    args: str
    result: str
    comments: tuple[str, ...]
    description: str


@dataclass(frozen=True, slots=True)
class PythonPart:
    """What one tool adds to the block.

    Attributes:
        classes: its classes, nested before parent.
        member: its member of `Tools`.
        names: what both use from `typing`.
    """

    classes: tuple[ClassView, ...]
    member: _Member
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Written:
    """The text of one type when its names are not taken; it holds the document, so that its id stays its own."""

    document: TypeDocument
    names: ClassNames
    annotation: Annotation
    classes: list[ClassView]


_WRITTEN: Remembered[tuple[int, str], _Written] = Remembered()


def render_python(tools: Sequence[ToolSchema], *, transport: str = TRANSPORT) -> SdkText:
    """Writes the SDK text for the tools that a step admits; a pure function of their schemas (contract G1).

    Args:
        tools: the tools, in any order.
        transport: the tool that carries programs; it is told of in the instructions and left out of the block.
    """
    return render_python_maps(*build_maps(tools, transport=transport), transport=transport)


def render_python_maps(args: ToolArgsMap, outputs: ToolOutputMap, *, transport: str = TRANSPORT) -> SdkText:
    """Writes the SDK text from the maps that `build_maps` gives."""
    block = python_block(list(python_parts(args, outputs).values()))
    return SdkText(template("python_instructions.j2").render(transport=transport), block, "python")


def python_parts(args: ToolArgsMap, outputs: ToolOutputMap) -> dict[str, PythonPart]:
    """Returns what each tool adds to the block, by name and in the block's order.

    The names of classes are handed out over all of the tools (contract G19), so a part fits only with these others.
    """
    names = ClassNames()
    parts: dict[str, PythonPart] = {}
    for name, tool in args.items():
        base = camel(name)
        taken, args_classes = _annotated(tool.document, joined(base, "Args"), names)
        given, output_classes = _annotated(outputs[name].document, joined(base, "Output"), names)
        classes = (*args_classes, *output_classes)
        member = _member(tool, taken, given)
        used = taken.names | given.names if member.is_method else frozenset[str]()
        parts[name] = PythonPart(classes, member, used.union(*(view.names for view in classes)))
    return parts


def python_block(parts: Sequence[PythonPart]) -> str:
    """Returns the whole block: a module that declares these tools and nothing else (contract G23)."""
    used = frozenset({"Protocol"}).union(*(part.names for part in parts))
    return template("python.j2").render(imports=[name for name in _TYPING_NAMES if name in used], **_printable(parts))


def declarations(parts: Sequence[PythonPart]) -> str:
    """Returns what these tools add to the block, and nothing of what every block has around it."""
    return template("python_tools.j2").render(**_printable(parts)).strip("\n")


def _printable(parts: Sequence[PythonPart]) -> dict[str, object]:
    members = [part.member for part in parts]
    return {
        "classes": [view for part in parts for view in part.classes],
        "members": members,
        "any_method": any(member.is_method for member in members),
    }


def json_schema_to_py(schema: object) -> str:
    """Returns a schema's type as one annotation that needs no class (contract G24). Never raises."""
    return annotate_plain(build_document(schema)).text


def _annotated(document: TypeDocument, base: str, names: ClassNames) -> tuple[Annotation, list[ClassView]]:
    """`annotate_root`, from memory where the same type has been written under the same name."""
    key = (id(document), base)
    known = _WRITTEN.get(key)
    if known is None:
        alone = ClassNames()
        known = _Written(document, alone, *annotate_root(document, base, alone))
        if is_remembered(document):
            _WRITTEN.keep(key, known)
    if names.take_over(known.names):
        return known.annotation, known.classes
    return annotate_root(document, base, names)


def _member(tool: ToolType, taken: Annotation, given: Annotation) -> _Member:
    comments = (
        *comment_lines("", taken.notes, taken.keys, "args"),
        *comment_lines("", given.notes, given.keys, "returns"),
    )
    is_method = is_method_name(tool.name)
    text = docstring_text(tool.description) if is_method else comment_text(tool.description)
    name = tool.name if is_method else quoted(tool.name)
    return _Member(name, is_method, taken.text, given.text, comments, text)
