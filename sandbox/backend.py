"""What every backend does alike: budgets, places, one supervisor for each run, and an end that is waited for."""

from __future__ import annotations

import itertools
import json
import math
import secrets
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self

import anyio
from anyio.lowlevel import RunVar

from .bindings import check_bindings
from .forks import make_anew_when_forked
from .seam import FailureKind, Guarantees, RunFailure, SandboxMisuseError, SandboxRequest, SandboxResult
from .supervisor import Supervisor, abort_text, failed_before_start
from .turns import Turn
from .vehicle import RunLimits, Vehicle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .peer import Completion
    from .vehicle import Exit, Port

__all__ = ["ProgramSandbox", "check_integer"]

_MAX_WALL_MS: Final = 2_147_483_647
_MAX_SAFE_INTEGER: Final = 2**53 - 1
_LEAST_OUTPUT: Final = 4
_LEAST_MEMORY: Final = 32 << 20  # the interpreter in wasm alone has about 25 MiB
_SEED_BITS: Final = 128
_SANDBOXES = itertools.count()


class ProgramSandbox(ABC):
    """A sandbox without what carries its programs; backends derive from it.

    Args:
        compute_ms: milliseconds that a program may have control (contract F17).
        max_wall_ms: milliseconds from request to result (contract F18).
        max_memory_bytes: the most memory of a program, at least 32 MiB (contract F19).
        max_output_bytes: bytes of logs and result together (contract F20).
        max_concurrent_runs: programs that run at once; more wait.
        max_outstanding_calls: calls of one program that may be unanswered at once.
        max_queued_bytes: bytes of arguments of one program that may be unanswered at once.
        require: what the backend must enforce, by the names of `Guarantees`.

    Raises:
        ValueError: for a budget that is not one (contract F20).
        SandboxUnavailableError: what `require` names is not enforced on this machine.
    """

    language: Literal["python"] = "python"

    def __init__(
        self,
        *,
        compute_ms: float,
        max_wall_ms: float,
        max_memory_bytes: int,
        max_output_bytes: int,
        max_concurrent_runs: int,
        max_outstanding_calls: int,
        max_queued_bytes: int,
        require: Sequence[str],
    ) -> None:
        _check_positive("compute_ms", compute_ms)
        _check_positive("max_wall_ms", max_wall_ms)
        if max_wall_ms > _MAX_WALL_MS:
            raise ValueError(f"max_wall_ms must be at most {_MAX_WALL_MS}, not {max_wall_ms}")
        check_integer("max_memory_bytes", max_memory_bytes, _LEAST_MEMORY)
        check_integer("max_output_bytes", max_output_bytes, _LEAST_OUTPUT)
        check_integer("max_concurrent_runs", max_concurrent_runs, 1)
        check_integer("max_outstanding_calls", max_outstanding_calls, 1)
        check_integer("max_queued_bytes", max_queued_bytes, 1)
        self._limits = RunLimits(
            compute_ms=compute_ms,
            max_wall_ms=max_wall_ms,
            max_output_bytes=max_output_bytes,
            max_outstanding_calls=max_outstanding_calls,
            max_queued_bytes=max_queued_bytes,
        )
        self._max_memory = max_memory_bytes
        self._max_runs = max_concurrent_runs
        self._running: set[Supervisor] = set()
        # A limiter belongs to an event loop, and one sandbox may serve several one after another.
        self._places: RunVar[anyio.CapacityLimiter] = RunVar(f"ptc-sandbox-{next(_SANDBOXES)}")
        self._closed = False
        self.guarantees.require(require)
        make_anew_when_forked(self)

    def after_fork(self) -> None:
        """In a forked process: leaves the runs to the process that they are of, which disposal must not end."""
        self._running.clear()

    @property
    @abstractmethod
    def guarantees(self) -> Guarantees:
        """What is enforced on this machine, and by what means (ruling 41)."""

    @abstractmethod
    def _vehicle(self, request: str) -> Vehicle:
        """Returns what carries one program; `request` is the guest's request as JSON."""

    @abstractmethod
    async def _make_ready(self) -> None:
        """Makes ready what the first run needs."""

    @abstractmethod
    async def _let_go(self) -> None:
        """Ends what stands ready; called once all runs have ended, and perhaps again."""

    async def prepare(self) -> None:
        """Makes ready what the first run needs, so that it does not wait for it.

        Raises:
            SandboxUnavailableError: when that is not possible on this machine.
        """
        self._refuse_when_closed("prepare")
        await self._make_ready()

    async def run(self, request: SandboxRequest) -> SandboxResult:
        """Runs one program in a fresh interpreter, and returns when it has ended (contract F1, F23).

        Raises:
            SandboxMisuseError: after disposal, or for bindings that are not valid (contract F2).
            SandboxUnavailableError: when the sandbox cannot be made ready on this machine.
        """
        self._refuse_when_closed("run")
        check_bindings(request.namespaces)
        if request.signal is not None and request.signal.aborted:
            failure = RunFailure(FailureKind.ABORT, abort_text(request.signal.reason))
            return failed_before_start(failure, self._limits.max_output_bytes)
        try:
            places = self._places.get()
        except LookupError:
            places = anyio.CapacityLimiter(self._max_runs)
            self._places.set(places)
        supervisor = Supervisor(
            request, self._limits, _Queued(self._vehicle(_encode_request(request, self._limits)), places)
        )
        self._running.add(supervisor)
        try:
            return await supervisor.run()
        finally:
            self._running.discard(supervisor)

    async def aclose(self) -> None:
        """Ends all runs as `abort`, waits for them, and refuses later ones (contract F24)."""
        self._closed = True
        for supervisor in tuple(self._running):
            supervisor.end(FailureKind.ABORT, "runtime disposed")
        with anyio.CancelScope(shield=True):
            while self._running:
                await next(iter(self._running)).ended.wait()
            await self._let_go()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def _refuse_when_closed(self, what: str) -> None:
        if self._closed:
            raise SandboxMisuseError(f"{what}() after disposal")


class _Queued:
    """A vehicle that waits for its place first. That can be given up at any time; the vehicle is killed and awaited."""

    def __init__(self, vehicle: Vehicle, places: anyio.CapacityLimiter) -> None:
        self._vehicle = vehicle
        self._turn = Turn(places)
        self.reply = vehicle.reply

    @property
    def backlog(self) -> int:
        return self._vehicle.backlog

    async def drive(self, port: Port) -> Completion | Exit | None:
        if not await self._turn.come():
            return None
        try:
            return await self._vehicle.drive(port)
        finally:
            self._turn.release()

    def kill(self) -> None:
        self._vehicle.kill()
        self._turn.give_up()


def _encode_request(request: SandboxRequest, limits: RunLimits) -> str:
    namespaces = [
        {
            "global": one.name,
            "members": {name: list(member.parameters) for name, member in one.members.items()},
            "errorClass": None
            if one.error_class is None
            else {"name": one.error_class.name, "property": one.error_class.member_property},
        }
        for one in request.namespaces
    ]
    told = {
        "program": request.program,
        "seed": secrets.randbits(_SEED_BITS),
        "limits": {"queuedBytes": limits.max_queued_bytes, "outputBytes": limits.max_output_bytes},
        "namespaces": namespaces,
    }
    return json.dumps(told)


def _check_positive(name: str, value: float) -> None:
    if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} must be a finite number greater than 0, not {value!r}")


def check_integer(name: str, value: int, least: int) -> None:
    """Checks an integer of the configuration.

    Raises:
        ValueError: it is no integer, or out of range.
    """
    if type(value) is not int or not least <= value <= _MAX_SAFE_INTEGER:
        raise ValueError(f"{name} must be an integer from {least} to {_MAX_SAFE_INTEGER}, not {value!r}")
