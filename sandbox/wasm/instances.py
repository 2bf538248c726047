"""The instances of one sandbox: those that stand ready, those that have ended, and how a damaged cache is mended."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from wasmtime import WasmtimeError

from ..forks import make_anew_when_forked
from ..seam import SandboxMisuseError, SandboxUnavailableError
from ..waits import SharedWork, result_of
from .artifacts import Progress, compiled_guest, discard_compiled
from .engine import GuestEngine
from .instance import GuestInstance, Run
from .makers import Makers
from .threads import Threads

if TYPE_CHECKING:
    from ..vehicle import Port

__all__ = ["Instances"]

T = TypeVar("T")
_LOGGER = logging.getLogger("ptc.sandbox")
_QUIET_S: Final = 0.005
"""Instances are made ready and let go of when for this long no run has begun or ended: it takes ten milliseconds of a
core, which under load are better spent on the runs that are there."""
_MOST_SPENT: Final = 4
"""Instances of ended runs that may wait to be let go of; a run's own thread lets go of any further one."""
_MAKE_AT_ONCE: Final = 2
"""Instances that are made at the same time: many threads that make one would leave the event loop little of the
interpreter."""
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
        self._engine: GuestEngine | None = None
        self._ready: deque[GuestInstance] = deque()
        self._spent: deque[GuestInstance] = deque()
        self._quiet_from = 0.0
        self._failed = False
        self._closed = False
        self._begin()
        make_anew_when_forked(self)

    def _begin(self) -> None:
        """Makes what belongs to one process: locks, threads, and what its threads are about."""
        self._changed = threading.Condition()
        self._threads = Threads("ptc-run")
        self._loading = SharedWork("ptc-load", self._load_once)
        self._makers = Makers(self._threads, self._make, self.let_go, _MAKE_AT_ONCE)
        self._tending = False
        self._in_use = 0

    def after_fork(self) -> None:
        """Makes the copy in a forked process usable; the native code and what stands ready are its own copies."""
        self._begin()

    async def stand_ready(self) -> None:
        """Has one more instance stand ready. When it is cancelled, that goes on.

        Raises:
            SandboxMisuseError: the instances have been let go of.
            SandboxUnavailableError: when that is not possible on this machine.
        """
        await self._loaded()
        await result_of(self._threads.start(self._prepare))

    def _prepare(self) -> None:
        with self._kept_in_use():
            instance = self._make()
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

    async def made(self) -> GuestInstance:
        """Returns a new instance. It takes a millisecond, and seconds where the guest has to be built first.

        When it is cancelled, the building goes on for others, and an instance that comes later is let go of.

        Raises:
            SandboxMisuseError: the instances have been let go of.
            SandboxUnavailableError: when that is not possible on this machine.
        """
        await self._loaded()
        return await self._makers.made()

    def _make(self) -> GuestInstance:
        with self._kept_in_use():
            engine = self._engine
            if engine is None:
                raise RuntimeError("the guest has not been loaded")
            return GuestInstance(engine, self._max_memory)

    def start(self, work: Callable[[], T]) -> Future[T]:
        """Has work done in a thread of the sandbox's; see `Threads.start`."""
        return self._threads.start(work)

    def carry(self, instance: GuestInstance, run: Run, port: Port) -> str | None:
        """Has an instance carry a run, in the calling thread, and lets go of it afterwards.

        Returns:
            what `GuestInstance.run` does.

        Raises:
            SandboxMisuseError: the instances have been let go of.
        """
        try:
            with self._kept_in_use():
                return instance.run(run, port)
        finally:
            self.let_go(instance)

    @contextmanager
    def _kept_in_use(self) -> Iterator[None]:
        """Has `close` wait for the calling thread, which may outlive whoever waited for what it makes."""
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

    def let_go(self, instance: GuestInstance) -> None:
        """Takes an instance that no run needs any more, and has another made ready where one is wanted."""
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
        if self._tending:
            self._changed.notify_all()
        elif not self._closed and (self._spent or self._wants_ready()):
            # Not started here: that may take milliseconds, for which the lock would keep the event loop waiting.
            self._tending = True
            self._threads.start(self._tend).add_done_callback(self._tended)

    def _tended(self, tending: Future[None]) -> None:
        if tending.exception() is not None:  # there was no thread for it; the next run that ends tries again
            with self._changed:
                self._tending = False

    def _wants_ready(self) -> bool:
        return len(self._ready) < self._wanted and not self._failed

    def _tend(self) -> None:
        while True:
            with self._changed:
                if not self._wait_for_work():
                    self._tending = False
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
            self._prepare()
        except SandboxMisuseError:
            pass  # closed just now
        except Exception as error:  # noqa: BLE001 - the next run makes its instance itself, and tells what is wrong
            _LOGGER.warning("no instance could be made ready: %s", error)
            self._failed = True

    # The native code

    async def _loaded(self) -> None:
        """Waits until the native code has been loaded; when it is cancelled, that goes on for others."""
        if self._closed:
            raise SandboxMisuseError("the sandbox has been disposed of")
        if self._engine is None:
            await result_of(self._loading.begun())

    def _load_once(self) -> None:
        if self._engine is not None:
            return
        engine = self._load()
        with self._changed:
            if not self._closed:
                self._engine = engine
                return
        engine.close()
        raise SandboxMisuseError("the sandbox has been disposed of")

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
        """Lets go of everything; called when no run is left, and perhaps again. Blocks.

        A guest that is just being built it leaves to its thread: that fills the cache of all sandboxes, lets go of what
        it has loaded, and may take long.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._in_use)
        self._threads.join()
        with self._changed:
            instances = [*self._ready, *self._spent]
            self._ready.clear()
            self._spent.clear()
        for instance in instances:
            instance.close()
        with self._changed:
            engine, self._engine = self._engine, None
            if engine is not None:
                engine.close()
