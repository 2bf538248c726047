"""What every test shares: each async test runs on asyncio and on trio, and names the contract items that it holds."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import pytest


def _plugin(name: str) -> ModuleType:
    """Loads a module that stands beside this file; `tests` is no package, and nothing in it is on the import path."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    # To be registered now is in time for the plugin's own options.
    pluginmanager.register(_plugin("contract_report"))
    pluginmanager.register(_plugin("reference_servers"))
    pluginmanager.register(_plugin("typescript_compiler"))
    # The width of whoever runs the tests, which pytest-xdist gives to its workers, is not what they expect.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    # Tests start hundreds of Python processes; where no compiled code is kept, each would compile the package anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    # What a test has logged may hold lone surrogates, and reports cross between processes as UTF-8.
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop that an async test runs on."""
    return request.param
