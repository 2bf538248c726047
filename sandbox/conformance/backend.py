"""What a test module says of the backend under test, and what a test says of itself."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import pytest

from ..seam import Sandbox

__all__ = ["Backend", "Capability", "SandboxFactory", "holds", "needs", "skip_what_the_backend_lacks"]

SandboxFactory = Callable[..., Sandbox]
"""Makes a sandbox; takes budgets as keywords, those of `ptc.sandbox.backend.ProgramSandbox`."""

_Test = TypeVar("_Test", bound=Callable[..., Any])
_NEEDED: Final = "ptc_needs"


class Capability(enum.StrEnum):
    """What a backend may lack and still conform. A test that needs one says so with `@needs(...)`.

    Attributes:
        INTERPRETER: programs have Python whole: `builtins`, `os`, `importlib`, all of `sys`, modules that can be
            written to, private attributes. A backend that narrows the language lacks it.
    """

    INTERPRETER = "interpreter"


class Backend:
    """A factory that says what its sandboxes lack.

    A class of sandboxes, or any function that makes one, is a factory already: of sandboxes that lack nothing.

    Args:
        factory: makes a sandbox; takes budgets as keywords.
        lacks: what its programs do not have; tests that need it are skipped, each with the reason.
    """

    def __init__(self, factory: SandboxFactory, *, lacks: Iterable[Capability] = ()) -> None:
        self._factory = factory
        self.lacks = frozenset(Capability(one) for one in lacks)

    def __call__(self, **budgets: Any) -> Sandbox:
        return self._factory(**budgets)


def holds(*items: str) -> Callable[[_Test], _Test]:
    """Names the items of the contract that a test holds.

    It is no mark of pytest: a suite that runs with `--strict-markers` would have to know it.
    """

    def note(test: _Test) -> _Test:
        test.contract_items = items  # type: ignore[attr-defined]
        return test

    return note


def needs(*capabilities: Capability) -> Callable[[_Test], _Test]:
    """Has a test skipped on backends that lack one of the capabilities."""

    def note(test: _Test) -> _Test:
        setattr(test, _NEEDED, frozenset(capabilities))
        return test

    return note


@pytest.fixture(autouse=True)
def skip_what_the_backend_lacks(request: pytest.FixtureRequest, make_sandbox: SandboxFactory) -> None:
    """Skips a test that needs what the backend lacks."""
    needed: frozenset[Capability] = getattr(getattr(request, "function", None), _NEEDED, frozenset())
    missing = needed & getattr(make_sandbox, "lacks", frozenset())
    if missing:
        pytest.skip(f"the backend lacks: {', '.join(sorted(missing))}")
