"""The workers of one sandbox: those that stand ready, and the template process that forks them."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

import anyio

from ..forks import make_anew_when_forked
from ..seam import SandboxMisuseError, SandboxUnavailableError
from ..waits import SharedWork, result_of
from .process import Template
from .worker import Worker

__all__ = ["Worker", "Workers"]

_ATTEMPTS: Final = 2
_DYING_SECONDS: Final = 0.5
_LEAVING_SECONDS: Final = 2.0
_BUSY_SECONDS: Final = 0.002
_LOOK_SECONDS: Final = 0.5
"""How often a run that waits for a worker looks whether the template hangs."""


class Workers:
    """The template process of one sandbox and the workers that stand ready.

    A template that has been stopped, or that gives no sign of life for long, is replaced; it goes once the runs have
    ended that still have workers of it.

    Args:
        modules: what programs may import beside what every program may.
        memory_bytes: the address space of a worker beside its interpreter's.
        cpu_seconds: the processor time of a worker.
        ready: how many workers stand ready.
    """

    def __init__(self, modules: Sequence[str], memory_bytes: int, cpu_seconds: int, ready: int) -> None:
        self._told: dict[str, object] = {
            "modules": list(modules),
            "memory": memory_bytes,
            "cpu_seconds": cpu_seconds,
        }
        self._wanted = ready
        self._ready: deque[tuple[Template, Worker]] = deque()
        self._template: Template | None = None
        self._retired: list[Template] = []
        self._starting: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._begin()
        make_anew_when_forked(self)

    def _begin(self) -> None:
        """Makes what belongs to one process: the lock, and the thread that starts the template."""
        self._lock = threading.Lock()
        self._boot = SharedWork("ptc-template", self._start)

    def after_fork(self) -> None:
        """In a forked process: leaves the template and its workers to the process that started them."""
        self._begin()
        starting, self._starting = self._starting, None
        if starting is not None:
            starting.returncode = 0  # no child of this process, which must not wait for it
        template, self._template = self._template, None
        for one in (*self._retired, *([template] if template is not None else [])):
            one.leave_to_the_owner()
        self._retired.clear()
        while self._ready:
            self._ready.popleft()[1].close()

    async def prepare(self) -> None:
        """Starts the template, if there is none, and has workers made ready. When it is cancelled, that goes on.

        Raises:
            SandboxMisuseError: it has been closed.
            SandboxUnavailableError: it cannot be started on this machine.
        """
        await self._running()

    async def _running(self) -> Template:
        """Returns a template that is not known to hang."""
        if self._closed:
            raise SandboxMisuseError("prepare() after disposal")
        template = self._template
        if template is not None and template.doubted and template.hangs():
            self._replace(template)
            template = None
        return template if template is not None else await result_of(self._boot.begun())

    def _start(self) -> Template:
        with self._lock:
            if self._template is not None:
                return self._template
        try:
            template = Template.start(self._told, self._started)
        except SandboxUnavailableError:
            if self._closed:  # which has ended what was being started
                raise SandboxMisuseError("prepare() after disposal") from None
            raise
        finally:
            self._starting = None
        with self._lock:
            closed = self._closed
            if not closed:
                self._template = template
        if closed:
            template.end()
            raise SandboxMisuseError("prepare() after disposal")
        self.fill()
        return template

    def _started(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._starting = process
            if self._closed:
                process.kill()

    async def take(self) -> Worker:
        """Returns a worker that waits for its request; `fill` has another made ready.

        When it is cancelled, a worker that is still to come is killed as soon as it does.

        Raises:
            SandboxMisuseError: it has been closed.
            SandboxUnavailableError: none can be forked.
        """
        for _attempt in range(_ATTEMPTS):
            template = await self._running()
            worker = await self._taken(template)
            if worker is not None:
                return worker
            if template.hangs() or await self._dies(template):
                self._replace(template)
        raise SandboxUnavailableError("the restricted sandbox cannot fork a worker; is there memory and room for one?")

    async def _taken(self, template: Template) -> Worker | None:
        """Returns a worker of a template; `None` when that hangs, is dying, or cannot fork one."""
        worker: Worker | None = None
        arrived = False
        try:
            while True:
                template.awaited()
                with anyio.move_on_after(_LOOK_SECONDS):
                    if worker is None:
                        worker = self._ready_one(template) or await _forked(template)
                    arrived = worker is not None and await worker.arrived()
                    break
                if template.hangs():
                    break
        finally:
            if worker is not None and not arrived:
                worker.close()
        if not arrived:
            return None
        template.answered()
        return worker

    def _ready_one(self, template: Template) -> Worker | None:
        while self._ready:
            of, worker = self._ready.popleft()
            if of is template:
                return worker
            worker.close()
        return None

    async def _dies(self, template: Template) -> bool:
        """Tells whether a template has died; one that only could not fork keeps its workers."""
        until = time.monotonic() + _DYING_SECONDS
        while not template.ended():
            if time.monotonic() > until:
                return False
            await anyio.sleep(_BUSY_SECONDS)
        return True

    def _replace(self, template: Template) -> None:
        """Lets go of a template, so that another is started; it ends once no run has a worker of it."""
        with self._lock:
            if self._template is not template:
                return  # another run has seen it first
            self._template = None
            self._retired = [one for one in self._retired if not one.ended()]
            self._retired.append(template)
        while self._ready:
            self._ready.popleft()[1].close()
        template.retire()

    def fill(self) -> None:
        """Has workers made ready for the next runs, and does not wait for them."""
        template = self._template
        while template is not None and len(self._ready) < self._wanted:
            try:
                worker = template.fork()
            except OSError:
                return  # it has enough to do, or there are no descriptors; the next run tries again, and tells
            if worker is None:
                return
            with self._lock:
                wanted = self._template is template
                if wanted:
                    self._ready.append((template, worker))
            if not wanted:
                worker.close()
                return

    def close(self) -> None:
        """Ends the template and all its workers, and waits for them. Blocks; call it in a worker thread.

        It takes seconds at most: a template that hangs is killed, and its workers die with it.
        """
        with self._lock:
            self._closed = True
            starting = self._starting
            if starting is not None:
                starting.kill()
        self._boot.join()
        with self._lock:
            templates = list(self._retired)
            self._retired.clear()
            if self._template is not None:
                templates.append(self._template)
            self._template = None
        for template in templates:
            template.end()
        until = time.monotonic() + _LEAVING_SECONDS
        while self._ready:
            _template, worker = self._ready.popleft()
            worker.leave(max(0.0, until - time.monotonic()))


async def _forked(template: Template) -> Worker | None:
    while True:
        try:
            return template.fork()
        except BlockingIOError:
            await anyio.sleep(_BUSY_SECONDS)
