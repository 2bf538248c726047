"""What the jobs service raises to whoever starts a job, or asks for one.

    HarnessError
    └── JobError             JOB_REFUSED          a job that may not start; the code says why
        ├── JobLimitError    JOB_LIMIT            too many jobs of this owner are live already
        ├── UnknownJobError  UNKNOWN_JOB          there is no job of that id, or it has been dropped
        └── JobAccessError   JOB_OTHER_SESSION    the job is another session's

Messages reach models: they name ids, kinds and labels, and nothing of the host.
"""

from __future__ import annotations

from typing import ClassVar

from ...registry.errors import HarnessError

__all__ = ["JobAccessError", "JobError", "JobLimitError", "UnknownJobError"]


class JobError(HarnessError):
    """A job may not start: nobody controls it, its owner has gone, or the service is closed (contract J2)."""

    default_code: ClassVar[str] = "JOB_REFUSED"


class JobLimitError(JobError):
    """The owner has as many live jobs as it may have (contract J3)."""

    default_code: ClassVar[str] = "JOB_LIMIT"


class UnknownJobError(JobError):
    """There is no job of that id (contract J7)."""

    default_code: ClassVar[str] = "UNKNOWN_JOB"


class JobAccessError(JobError):
    """The job belongs to another session (contract J7)."""

    default_code: ClassVar[str] = "JOB_OTHER_SESSION"
