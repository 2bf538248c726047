"""The restricted backend passes the conformance tests, those apart that need the interpreter whole."""

from __future__ import annotations

import pytest
from ptc.sandbox.conformance import *  # noqa: F403
from ptc.sandbox.conformance import Backend, Capability
from ptc.sandbox.restricted import RestrictedSandbox


@pytest.fixture(scope="module")
def make_sandbox() -> Backend:
    return Backend(RestrictedSandbox, lacks=[Capability.INTERPRETER])
