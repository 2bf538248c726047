"""CPython on WebAssembly, under wasmtime."""

from __future__ import annotations

from .backend import WasmSandbox

__all__ = ["WasmSandbox"]
