"""The entry of the component: it joins the guest to the interface that the host provides.

This file runs only inside the component, where `wit_world` is made from `world.wit`.
"""

from __future__ import annotations

import gc

import wit_world  # pyright: ignore[reportMissingImports] - made while the component is built
from ptc_guest import preload, run, warm  # pyright: ignore[reportMissingImports] - the guest under its name in the component
from wit_world.imports import bridge  # pyright: ignore[reportMissingImports]

MISSING = preload.preload()


class WitWorld(wit_world.WitWorld):
    """What the component exports."""

    def run(self, request: str) -> str:
        return run.run(bridge, request)

    def warm(self) -> None:
        warm.warm()


# The snapshot is taken now. Objects that are alive in it are garbage never: without this, the first collection in
# each run would walk them all, and copy their pages into that run's memory.
gc.collect()
gc.freeze()
