"""Recursion on an explicit stack."""

from __future__ import annotations

import pytest
from ptc.registry.steps import descend


def test_results_come_back_from_any_depth():
    def count(levels):
        below = (yield count(levels - 1)) if levels else 0
        return below + 1

    assert descend(count(100_000)) == 100_001


def test_what_a_step_raises_ends_the_run():
    def fail(levels):
        if not levels:
            raise LookupError("at the bottom")
        return (yield fail(levels - 1))

    with pytest.raises(LookupError, match="at the bottom"):
        descend(fail(5_000))
