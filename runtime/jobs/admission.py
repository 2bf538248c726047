"""Which jobs may start: what is checked before anything of a job runs, in the order of contract J2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...registry import Disposer, ScopeKey, ToolRegistry
from ...registry.pipeline.outcome import printable
from ..agent import Agent
from .audience import add_entry
from .errors import JobError, JobLimitError
from .numbers import checked_count

if TYPE_CHECKING:
    from .table import JobTable

__all__ = ["Admission"]

_MAX_SAFE: Final = 2**53 - 1


class Admission:
    """Admits jobs.

    Args:
        registry: the one whose agents may own jobs.
        table: the jobs that there are.
        max_jobs: how many live jobs one owner may have (contract J3).
    """

    def __init__(self, registry: ToolRegistry, table: JobTable, max_jobs: int) -> None:
        self._registry = registry
        self._table = table
        self._max_jobs = checked_count("max_jobs", max_jobs)
        self._controllers: dict[object, ScopeKey | None] = {}

    def add_controller(self, scope: ScopeKey | None) -> Disposer:
        """Adds a controller; see `Jobs.add_controller`."""
        return add_entry(self._controllers, scope)

    def preflight(self, kind: str, label: str, owner: ScopeKey | None, limit: int | None) -> Agent | None:
        """Checks a job that is to start, and returns its owner.

        Raises:
            JobError: no controller serves the owner, it is no open agent of this host, or the service is not open.
            JobLimitError: the owner has its limit of live jobs.
            ValueError: kind or label is empty, the kind cannot be printed, or the limit is no positive safe integer.
            TypeError: kind or label is no text.
        """
        self._check_controlled(owner)
        for field, text in (("kind", kind), ("label", label)):
            if not isinstance(text, str):
                raise TypeError(f"the {field} of a job must be text, not {type(text).__name__}")
            if not text.strip():
                raise ValueError(f"the {field} of a job must not be empty")
        if not kind.isprintable():
            raise ValueError(
                f"the kind of a job must be printable, because ids are made of it, not {printable(kind)!r}"
            )
        if limit is not None and checked_count("output_limit_bytes", limit) > _MAX_SAFE:
            raise ValueError(f"output_limit_bytes must be at most {_MAX_SAFE}")
        agent = self._agent(owner)
        self.check_open(agent)
        self._check_room(agent)
        return agent

    def check_open(self, agent: Agent | None) -> None:
        """Checks that the service and the owner are open, so that they will end the job.

        Raises:
            JobError: one of them is closed.
        """
        if not self._table.open:
            raise JobError("no background job can be started: the jobs service is not open")
        if agent is not None and agent.closed:
            raise JobError(f"agent {agent.name!r} is closed and can own no more jobs")

    def _check_controlled(self, owner: ScopeKey | None) -> None:
        chain = self._registry.tree.chain(owner if isinstance(owner, ScopeKey) else None)
        for served in self._controllers.values():
            if served is None or any(served is scope for scope in chain):
                return
        raise JobError(
            f"nobody could follow or stop a job {'without an owner' if owner is None else 'of this owner'}: the job "
            "tools are not installed there (Jobs.install)"
        )

    def _agent(self, owner: ScopeKey | None) -> Agent | None:
        if owner is None or (isinstance(owner, Agent) and owner.tools.registry is self._registry):
            return owner
        raise JobError("the owner of a job must be an agent of the same host, which ends its jobs when it closes")

    def _check_room(self, agent: Agent | None) -> None:
        live = sum(job.live for job in self._table.of(agent))
        if live >= self._max_jobs:
            raise JobLimitError(
                f"{live} background jobs {'without an owner' if agent is None else 'of this agent'} are live, which is "
                "the limit: kill one with job_kill, or wait for one to end with job_output, and then try again"
            )
