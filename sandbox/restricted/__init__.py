"""The restricted backend: guarded Python in a worker process that the kernel contains."""

from __future__ import annotations

from .backend import RestrictedSandbox

__all__ = ["RestrictedSandbox"]
