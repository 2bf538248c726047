"""Background jobs: work that outlives the call that starts it, and three tools to follow it (contract J1 to J20)."""

from __future__ import annotations

from .errors import JobAccessError, JobError, JobLimitError, UnknownJobError
from .following import JobKill, JobReading
from .function import JobContext, JobFunction
from .job import JobChange, JobHandle, JobOutcome, JobRun, JobSnapshot, JobStatus, RunningJob
from .service import Jobs

__all__ = [
    "JobAccessError",
    "JobChange",
    "JobContext",
    "JobError",
    "JobFunction",
    "JobHandle",
    "JobKill",
    "JobLimitError",
    "JobOutcome",
    "JobReading",
    "JobRun",
    "JobSnapshot",
    "JobStatus",
    "Jobs",
    "RunningJob",
    "UnknownJobError",
]
