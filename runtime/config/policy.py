"""The rules of a configuration as a permission gate."""

from __future__ import annotations

from collections.abc import Sequence

from ...registry import RUN_CODE, Allow
from ..policies.gate import PermissionGate, PermissionRule

__all__ = ["make_gate"]


def make_gate(rules: Sequence[PermissionRule]) -> PermissionGate:
    """Returns the gate that goes by the rules of a configuration; of those that fit a call the first one counts.

    A pattern is about tools, so `*` does not deny the program that calls them: `run_code` itself fits only rules that
    name it in full. What a program does is decided call by call.

    Args:
        rules: the rules, in order.
    """
    of_programs = [rule for rule in rules if rule.tool == RUN_CODE]
    return PermissionGate([*of_programs, PermissionRule(RUN_CODE, Allow()), *rules])
