"""The typed SDK text that a model programs against, printed from one picture of the tools' schemas."""

from __future__ import annotations

from .build import build_document, build_maps
from .model import ToolArgsMap, ToolOutputMap
from .python import json_schema_to_py, render_python, render_python_maps
from .sdk_text import SdkText

__all__ = [
    "SdkText",
    "ToolArgsMap",
    "ToolOutputMap",
    "build_document",
    "build_maps",
    "json_schema_to_py",
    "render_python",
    "render_python_maps",
]
