"""Channels that put the question of an approval to a person."""

from __future__ import annotations

from .terminal import TerminalApprover

__all__ = ["TerminalApprover"]
