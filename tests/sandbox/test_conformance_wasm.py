"""The wasm backend passes the conformance tests, all of them."""

from __future__ import annotations

import pytest
from ptc.sandbox.conformance import *  # noqa: F403
from ptc.sandbox.wasm import WasmSandbox


@pytest.fixture(scope="module")
def make_sandbox() -> type[WasmSandbox]:
    return WasmSandbox
