"""The SDK text of a tool set in TypeScript (contract G).

The backends of this package run Python alone, so this text is for hosts with a TypeScript backend of their own. What it
says of calls, results and failures is what the tool pipeline does for any program; to run the program, to carry its
calls and to collect what it prints is up to that backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .build import TRANSPORT, build_document, build_maps
from .names import ClassNames
from .notes import notes_under
from .sdk_text import SdkText, template
from .ts_text import ts_comment, ts_key, ts_type_name
from .ts_types import Declaration, declare_type, plain_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry.definition import ToolSchema
    from .model import ToolArgsMap, ToolOutputMap

__all__ = ["json_schema_to_ts", "render_typescript", "render_typescript_maps"]

_DECLARED = ("JsonValue", "ToolArgsMap", "ToolOutputMap", "ToolName", "ToolCallError")
"""The types that every block declares."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One tool in the two interfaces."""

    comment: str
    key: str
    args: str
    result: str


def render_typescript(tools: Sequence[ToolSchema], *, transport: str = TRANSPORT) -> SdkText:
    """Writes the SDK text for the tools that a step admits; a pure function of their schemas (contract G1).

    For hosts with a TypeScript backend of their own: the backends of this package run Python alone.

    Args:
        tools: the tools, in any order.
        transport: the tool that carries programs; it is told of in the instructions and left out of the block.
    """
    return render_typescript_maps(*build_maps(tools, transport=transport), transport=transport)


def render_typescript_maps(args: ToolArgsMap, outputs: ToolOutputMap, *, transport: str = TRANSPORT) -> SdkText:
    """Writes the SDK text from the maps that `build_maps` gives; see `render_typescript`."""
    names = ClassNames()
    for name in _DECLARED:
        names.allocate(name)
    declarations: list[Declaration] = []
    entries: list[_Entry] = []
    for name, tool in args.items():
        base = ts_type_name(name)
        taken, args_types = declare_type(tool.document, f"{base}Args", names)
        given, output_types = declare_type(outputs[name].document, f"{base}Output", names)
        declarations += [*args_types, *output_types]
        notes = notes_under("args", taken.notes) + notes_under("returns", given.notes)
        entries.append(_Entry(ts_comment(tool.description, notes), ts_key(name), taken.text, given.text))
    block = template("typescript.j2").render(declarations=declarations, entries=entries)
    return SdkText(template("typescript_instructions.j2").render(transport=transport), block, "ts")


def json_schema_to_ts(schema: object) -> str:
    """Returns a schema's type as one expression that needs no type but `JsonValue`. Never raises."""
    return plain_type(build_document(schema))
