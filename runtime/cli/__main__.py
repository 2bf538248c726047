"""`python -m ptc.runtime.cli` is the same as `ptc`."""

from __future__ import annotations

from . import main

main()
