"""Programmatic tool calling: a model's program calls your tools from inside a sandbox, every call guarded and on record."""

from __future__ import annotations
