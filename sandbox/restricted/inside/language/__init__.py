"""The restricted language: what a program may be made of (`policy`), and what it can reach (everything else here).

A program is checked when it is compiled, construct by construct, and watched while it runs where the source alone
cannot tell. The rest is capability: programs are given nothing that leads to a module, a frame or the interpreter's
internals under a name that they may read.
"""

from __future__ import annotations

from .dialect import RestrictedDialect

__all__ = ["RestrictedDialect"]
