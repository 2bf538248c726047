"""The entry of the component: it joins the guest to the interface that the host provides.

This file runs only inside the component, where `wit_world` is made from `world.wit`.
"""

from __future__ import annotations

import gc

import wit_world  # pyright: ignore[reportMissingImports] - made while the component is built
from ptc_guest import preload, run, warm, zones  # pyright: ignore[reportMissingImports] - the guest under its name in the component
from wit_world.imports import bridge  # pyright: ignore[reportMissingImports]

MISSING = preload.preload()
zones.keep_zones()


class Bridge:
    """The guest's channel over the interface of the host: calls go out with the wait for them, in one crossing."""

    def __init__(self) -> None:
        self._calls = ""

    def submit(self, calls: str) -> None:
        self.flush()
        self._calls = calls

    def wait(self, timeout_us: int) -> str:
        calls, self._calls = self._calls, ""
        return bridge.wait(calls, timeout_us)

    def flush(self) -> None:
        """Hands over the calls that no wait has followed."""
        calls, self._calls = self._calls, ""
        if calls:
            bridge.submit(calls)

    emit = staticmethod(bridge.emit)


class WitWorld(wit_world.WitWorld):
    """What the component exports."""

    def run(self, request: str) -> str:
        channel = Bridge()
        completion = run.run(channel, request)
        channel.flush()
        return completion

    def warm(self) -> None:
        warm.warm()


# The snapshot is taken now. Objects that are alive in it are garbage never: without this, the first collection in
# each run would walk them all, and copy their pages into that run's memory.
for _ in range(8):
    warm.warm()
gc.collect()
gc.freeze()
