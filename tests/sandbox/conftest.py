"""What the tests of the wasm backend itself share: the sandbox, and the tools that programs call."""

from __future__ import annotations

import pytest
from ptc.sandbox.conformance import Run, calls, run, sandbox
from ptc.sandbox.wasm import WasmSandbox

__all__ = ["Run", "calls", "run", "sandbox"]


@pytest.fixture(scope="module")
def make_sandbox() -> type[WasmSandbox]:
    return WasmSandbox
