"""The typed SDK text that a model programs against, printed from one picture of the tools' schemas."""

from __future__ import annotations

from .build import build_document, build_maps
from .catalogue import Catalogue, DiscoveryCalls, FittedSdk, estimate_tokens
from .model import ToolArgsMap, ToolOutputMap
from .python import json_schema_to_py, render_python, render_python_maps
from .sdk_text import SdkText
from .stub import render_stub
from .typescript import json_schema_to_ts, render_typescript, render_typescript_maps

__all__ = [
    "Catalogue",
    "DiscoveryCalls",
    "FittedSdk",
    "SdkText",
    "ToolArgsMap",
    "ToolOutputMap",
    "build_document",
    "build_maps",
    "estimate_tokens",
    "json_schema_to_py",
    "json_schema_to_ts",
    "render_python",
    "render_python_maps",
    "render_stub",
    "render_typescript",
    "render_typescript_maps",
]
