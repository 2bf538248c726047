"""The instances of one sandbox: those that stand ready, those that have ended, and how a damaged cache is mended."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wasmtime import WasmtimeError

from ..seam import SandboxMisuseError, SandboxUnavailableError
from .artifacts import Progress, compiled_guest, discard_compiled
from .engine import GuestEngine
from .instance import GuestInstance, Run

if TYPE_CHECKING:
    from ..vehicle import Port

__all__ = ["Instances"]

_LOGGER = logging.getLogger("ptc.sandbox")
_QUIET_S: Final = 0.005
"""Instances are made ready and let go of when for this long no run has begun or ended: it takes ten milliseconds of a
core, which under load are better spent on the runs that are there."""
_MOST_SPENT: Final = 4
"""Instances of ended runs that may wait to be let go of; a run's own thread lets go of any further one."""
_IDLE_S: Final = 1.0
"""How long the thread that tends the instances stays when there is nothing to do."""


class Instances:
    """The instances of one sandbox, and the thread that tends them.

    That thread lets go of what ended runs leave behind, and has instances stand ready, so that no run waits for either.

    Args:
        directory: the cache in which the guest is kept.
        progress: told in one line what is done when it takes seconds.
        max_memory_bytes: the most linear memory of one instance.
        ready: how many stand ready.
    """

    def __init__(self, directory: Path, progress: Progress, max_memory_bytes: int, ready: int) -> None:
        self._directory = directory
        self._progress = progress
        self._max_memory = max_memory_bytes
        self._wanted = ready
        self._changed = threading.Condition()
        self._loading = threading.Lock()
        self._engine: GuestEngine | None = None
        self._ready: deque[GuestInstance] = deque()
        self._spent: deque[GuestInstance] = deque()
        self._tender: threading.Thread | None = None
        self._quiet_from = 0.0
        self._failed = False
        self._in_use = 0
        self._closed = False

    def prepare(self) -> None:
        """Has one more instance stand ready now.

        Raises:
            SandboxMisuseError: the instances have been let go of.
            SandboxUnavailableError: as `make`.
        """
        with self._kept_in_use():
            instance = GuestInstance(self._loaded(), self._max_memory)
            try:
                instance.warm()
            except BaseException:
                instance.close()
                raise
            self._put_ready(instance)

    def take(self) -> GuestInstance | None:
        """Returns an instance that stands ready; `None` when one has to be made."""
        with self._changed:
            self._not_quiet()
            return self._ready.popleft() if self._ready else None

    def make(self) -> GuestInstance:
        """Returns a new instance. It takes a millisecond, and seconds where the guest has to be built first.

        Raises:
            SandboxMisuseError: the instances have been let go of.
            SandboxUnavailableError: when that is not possible on this machine.
        """
        with self._kept_in_use():
            return GuestInstance(self._loaded(), self._max_memory)

    def carry(self, instance: GuestInstance, run: Run, port: Port) -> str | None:
        """Has an instance carry a run, in the calling thread, and lets go of it afterwards.

        Returns:
            what `GuestInstance.run` does.

        Raises:
            SandboxMisuseError: the instances have been let go of.
        """
        with self._kept_in_use():
            try:
                return instance.run(run, port)
            finally:
                self._let_go(instance)

    @contextmanager
    def _kept_in_use(self) -> Iterator[None]:
        """Has `close` wait for the calling thread.

        A thread may outlive whoever waited for it: asyncio cancels all tasks when it ends, shielded ones as well.
        """
        with self._changed:
            if self._closed:
                raise SandboxMisuseError("the sandbox has been disposed of")
            self._in_use += 1
        try:
            yield
        finally:
            with self._changed:
                self._in_use -= 1
                self._changed.notify_all()

    def _let_go(self, instance: GuestInstance) -> None:
        """Takes an instance whose run has ended, and has another made ready where one is wanted."""
        with self._changed:
            self._not_quiet()
            self._failed = False
            later = not self._closed and len(self._spent) < _MOST_SPENT
            if later:
                self._spent.append(instance)
            self._tend_soon()
        if not later:
            instance.close()

    def interrupt(self) -> None:
        """Has the instances ask whether their runs have been killed; from any thread."""
        with self._changed:  # it must not be let go of meanwhile
            if self._engine is not None:
                self._engine.interrupt()

    def _put_ready(self, instance: GuestInstance) -> None:
        with self._changed:
            if not self._closed:
                self._ready.append(instance)
                return
        instance.close()

    def _not_quiet(self) -> None:
        self._quiet_from = time.monotonic() + _QUIET_S

    # Tending

    def _tend_soon(self) -> None:
        # It is not alive in a process that has been forked while it was.
        if self._tender is not None and self._tender.is_alive():
            self._changed.notify_all()
        elif not self._closed and (self._spent or self._wants_ready()):
            self._tender = threading.Thread(target=self._tend, name="ptc-instances", daemon=True)
            self._tender.start()

    def _wants_ready(self) -> bool:
        return len(self._ready) < self._wanted and not self._failed

    def _tend(self) -> None:
        while True:
            with self._changed:
                if not self._wait_for_work():
                    self._tender = None
                    return
                spent = self._spent.popleft() if self._spent else None
            if spent is not None:
                spent.close()
            else:
                self._make_ready()

    def _wait_for_work(self) -> bool:
        """Waits until there is something to let go of or to make ready; returns whether there is."""
        idle_from = time.monotonic()
        while not self._closed:
            now = time.monotonic()
            if self._spent or self._wants_ready():
                if now >= self._quiet_from:
                    return True
                self._changed.wait(self._quiet_from - now)
                idle_from = time.monotonic()
            elif now - idle_from < _IDLE_S:
                self._changed.wait(idle_from + _IDLE_S - now)
            else:
                break
        return False

    def _make_ready(self) -> None:
        try:
            self.prepare()
        except SandboxMisuseError:
            pass  # closed just now
        except Exception as error:  # noqa: BLE001 - the next run makes its instance itself, and tells what is wrong
            _LOGGER.warning("no instance could be made ready: %s", error)
            self._failed = True

    # The native code

    def _loaded(self) -> GuestEngine:
        with self._loading:
            if self._engine is None:
                self._engine = self._load()
            return self._engine

    def _load(self) -> GuestEngine:
        compiled = compiled_guest(self._directory, self._progress)
        try:
            return GuestEngine(compiled)
        except WasmtimeError:
            self._progress("the compiled sandbox in the cache is damaged or made for another machine; making it anew")
            discard_compiled(compiled)
            try:
                return GuestEngine(compiled_guest(self._directory, self._progress))
            except WasmtimeError as error:
                raise SandboxUnavailableError(f"the compiled sandbox does not load: {error}") from None

    def close(self) -> None:
        """Lets go of everything; called when no run is left, and perhaps again."""
        with self._changed:
            self._closed = True
            tender = self._tender
            self._changed.notify_all()
        if tender is not None:
            tender.join()
        with self._changed:
            self._changed.wait_for(lambda: not self._in_use)
            instances = [*self._ready, *self._spent]
            self._ready.clear()
            self._spent.clear()
        for instance in instances:
            instance.close()
        with self._changed:
            engine, self._engine = self._engine, None
            if engine is not None:
                engine.close()
