"""The tool catalogues that tests and benchmarks share: real ones, as MCP servers list them, and a generated one.

`tests` is no package; what needs this module puts this folder on its path, or loads it by its file.
"""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptc.registry.definition import ToolSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FOLDER", "catalogue", "generated", "listed", "names", "native"]

FOLDER = Path(__file__).parent.parent / "corpus" / "catalogues"


@cache
def names() -> tuple[str, ...]:
    """The names of the real catalogues."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


@cache
def document(name: str) -> dict[str, Any]:
    """A catalogue's file: the tools as their server lists them, and where they are from."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def listed(name: str) -> list[dict[str, Any]]:
    """The entries of `tools/list`."""
    return document(name)["tools"]


@cache
def catalogue(name: str) -> tuple[ToolSchema, ...]:
    """A real catalogue as the registry gives it to the SDK; without an output schema, any JSON may come back."""
    return tuple(
        ToolSchema(
            name=tool["name"],
            description=tool.get("description", ""),
            parameters=tool["inputSchema"],
            output=tool.get("outputSchema", {}),
        )
        for tool in listed(name)
    )


def native(tools: Sequence[ToolSchema], *, output: bool = False) -> str:
    """The tools as a provider is sent them: compact JSON, one object for each; `output` adds the output schemas."""
    entries = []
    for tool in tools:
        entry: dict[str, Any] = {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}
        if output and tool.output != {}:
            entry["outputSchema"] = tool.output
        entries.append(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
    return "\n".join(entries)


AREAS = ("billing", "calendar", "catalog", "chat", "crm", "deploy", "drive", "mail", "orders", "search")
VERBS = ("archive", "count", "create", "delete", "export", "find", "get", "list", "move", "update")
THINGS = ("account", "address", "batch", "contact", "file", "invoice", "label", "message", "note", "order", "page",
          "payment", "person", "product", "project", "report", "room", "task", "team", "ticket")  # fmt: skip
FIELDS = ("amount", "assignee", "colour", "comment", "country", "created_at", "currency", "due", "filter", "id", "kind",
          "limit", "name", "notify", "owner", "parent", "priority", "query", "status", "tags", "title")  # fmt: skip


def _field(draw: random.Random, name: str, levels: int) -> dict[str, Any]:
    """One property's schema, of a kind that real catalogues have."""
    kinds: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": "string", "minLength": 1, "maxLength": draw.choice([64, 255])},
        {"type": "integer", "minimum": 0, "maximum": draw.choice([100, 1000]), "default": 10},
        {"type": "number"},
        {"type": "boolean", "default": False},
        {"type": "string", "enum": draw.sample(["open", "closed", "pending", "draft", "sent", "failed"], 3)},
        {"type": "array", "items": {"type": "string"}, "maxItems": 50},
        {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}], "default": None},
        {"type": "object", "additionalProperties": {"type": "string"}},
    ]
    if levels:
        kinds += [_object(draw, levels - 1), {"type": "array", "items": _object(draw, levels - 1)}]
    schema = draw.choice(kinds)
    if draw.random() < 0.7:
        schema = {**schema, "description": f"The {name.replace('_', ' ')} to use, as the service knows it."}
    return schema


def _object(draw: random.Random, levels: int) -> dict[str, Any]:
    fields = draw.sample(FIELDS, draw.randint(1, 5))
    return {
        "type": "object",
        "properties": {name: _field(draw, name, levels) for name in fields},
        "required": [name for name in fields if draw.random() < 0.5],
        "additionalProperties": draw.random() < 0.3,
    }


@cache
def generated(count: int = 2_000, seed: int = 0) -> tuple[ToolSchema, ...]:
    """A catalogue of `count` tools, the same in every process; a larger one of the same seed begins with it."""
    tools: list[ToolSchema] = []
    names = [f"{area}_{verb}_{thing}" for thing in THINGS for verb in VERBS for area in AREAS]
    for number in range(count):
        draw = random.Random(number + seed * 1_000_000)
        part, left = number // len(names), number % len(names)
        name = names[left] + (f"_v{part + 1}" if part else "")
        _area, verb, thing = names[left].split("_")
        tools.append(
            ToolSchema(
                name=name,
                description=f"{verb.capitalize()} one {thing} or several. Needs the right to do so.",
                parameters=_object(draw, 1),
                output=_object(draw, 1) if draw.random() < 0.5 else {},
            )
        )
    return tuple(tools)
