"""The SDK text of a tool set in Python: what a model reads before it writes a program (contract G)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .annotations import Annotation, ClassView, annotate_plain, annotate_root
from .build import TRANSPORT, build_document, build_maps
from .names import ClassNames, camel, is_method_name, joined
from .notes import comment_lines
from .sdk_text import SdkText, template
from .text import comment_text, docstring_text, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.definition import ToolSchema
    from .model import ToolArgsMap, ToolOutputMap, ToolType

__all__ = ["json_schema_to_py", "render_python", "render_python_maps"]

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


def render_python(tools: Sequence[ToolSchema], *, transport: str = TRANSPORT) -> SdkText:
    """Writes the SDK text for the tools that a step admits; a pure function of their schemas (contract G1).

    Args:
        tools: the tools, in any order.
        transport: the tool that carries programs; it is told of in the instructions and left out of the block.
    """
    return render_python_maps(*build_maps(tools, transport=transport), transport=transport)


def render_python_maps(args: ToolArgsMap, outputs: ToolOutputMap, *, transport: str = TRANSPORT) -> SdkText:
    """Writes the SDK text from the maps that `build_maps` gives."""
    names = ClassNames()
    classes: list[ClassView] = []
    members: list[_Member] = []
    used = {"Protocol"}
    for name, tool in args.items():
        base = camel(name)
        taken, args_classes = annotate_root(tool.document, joined(base, "Args"), names)
        given, output_classes = annotate_root(outputs[name].document, joined(base, "Output"), names)
        classes += [*args_classes, *output_classes]
        member = _member(tool, taken, given)
        members.append(member)
        used |= taken.names | given.names if member.is_method else set()
    used.update(*(view.names for view in classes))
    block = template("python.j2").render(
        imports=[name for name in _TYPING_NAMES if name in used],
        classes=classes,
        members=members,
        any_method=any(member.is_method for member in members),
    )
    return SdkText(template("python_instructions.j2").render(transport=transport), block, "python")


def json_schema_to_py(schema: object) -> str:
    """Returns a schema's type as one annotation that needs no class (contract G24). Never raises."""
    return annotate_plain(build_document(schema)).text


def _member(tool: ToolType, taken: Annotation, given: Annotation) -> _Member:
    comments = (
        *comment_lines("", taken.notes, taken.keys, "args"),
        *comment_lines("", given.notes, given.keys, "returns"),
    )
    is_method = is_method_name(tool.name)
    text = docstring_text(tool.description) if is_method else comment_text(tool.description)
    name = tool.name if is_method else quoted(tool.name)
    return _Member(name, is_method, taken.text, given.text, comments, text)
