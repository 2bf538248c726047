"""The tests that every backend must pass, for whoever writes one.

They are imported into a test module that makes the sandbox under test:

    import pytest
    from ptc.sandbox.conformance import *

    @pytest.fixture(scope="module")
    def make_sandbox():
        return Backend(MySandbox, lacks=[Capability.INTERPRETER])

`make_sandbox` gives a factory that takes budgets as keywords: a class is one, and `Backend` says in addition what its
programs do not have. Tests that need that are skipped, each with the reason (`pytest -rs`). Async tests run on each
event loop that the fixture `anyio_backend` names: both, unless the suite says otherwise. One sandbox runs most of
them, one after another, so that what breaks it is seen in the next test.
"""

from __future__ import annotations

import importlib
import sys

_EXTRA = 'install the extra: pip install "ptc-runtime[conformance]"'

try:
    import pytest
except ImportError:
    raise ImportError(f"the conformance tests need pytest, which is not installed; {_EXTRA}") from None

if "anyio.pytest_plugin" not in sys.modules:
    raise ImportError(
        "the conformance tests run inside pytest, with the plugin that comes with anyio; start them with `pytest`, "
        "without `-p no:anyio`, and where plugins are not loaded by themselves add `-p anyio`. Where one is missing, "
        f"{_EXTRA}"
    )

_MODULES = ("budget_tests", "call_tests", "diagnostic_tests", "ordinary_tests", "program_tests")

# Before they are imported, so that an assertion that fails shows its values.
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in (*_MODULES, "fixtures")))

from .backend import (  # noqa: E402 - only now
    Backend,
    Capability,
    SandboxFactory,
    holds,
    needs,
    skip_what_the_backend_lacks,
)
from .fixtures import Calls, Run, Stop, calls, run, sandbox  # noqa: E402 - only now

_TESTS = {
    name: test
    for module in _MODULES
    for name, test in vars(importlib.import_module(f".{module}", __name__)).items()
    if name.startswith("test_")
}
globals().update(_TESTS)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll] - the tests are where they are defined
    "Backend",
    "Calls",
    "Capability",
    "Run",
    "SandboxFactory",
    "Stop",
    "calls",
    "holds",
    "needs",
    "run",
    "sandbox",
    "skip_what_the_backend_lacks",
    *_TESTS,
]
