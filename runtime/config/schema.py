"""The JSON Schema of `ptc.toml`, for editors: names, types, ranges, defaults and what each key is for."""

from __future__ import annotations

from typing import Any, Final

from .settings import FileSettings

__all__ = ["SCHEMA_FILE", "config_schema"]

SCHEMA_FILE: Final = "ptc.schema.json"
"""The published copy, beside this module."""

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TABLES: Final = ("properties", "$defs")


def config_schema() -> dict[str, Any]:
    """Returns the schema; draft 2020-12."""
    schema = _plain(FileSettings.model_json_schema())
    del schema["description"]
    about = "MCP servers, tools, policies and limits for ptc."
    return {"$schema": _DIALECT, "title": "ptc.toml", "description": about, **schema}


def _plain(schema: Any) -> Any:
    """Returns a schema without what means nothing in TOML: nulls, and titles that only repeat the key."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _TABLES:
            plain[key] = {name: _plain(part) for name, part in value.items()}
        elif key == "anyOf":
            choices = [_plain(choice) for choice in value if choice != {"type": "null"}]
            plain |= choices[0] if len(choices) == 1 else {"anyOf": choices}
        elif key == "default":
            if value is not None and not isinstance(value, dict):
                plain[key] = value
        elif key != "title":
            plain[key] = _plain(value)
    return plain
