"""How models and programs see a job: its public form, its line in a list, its status line (contract J16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:
    from .job import JobSnapshot, JobStatus

__all__ = ["PublicJob", "job_line", "one_line", "public_job", "status_line"]


class PublicJob(TypedDict):
    """A job as the job tools give it, without what concerns the host alone (contract J16)."""

    id: str
    kind: str
    label: str
    status: JobStatus
    detail: NotRequired[str]
    startedAt: int
    finishedAt: NotRequired[int]


def public_job(job: JobSnapshot) -> PublicJob:
    """Returns the public form of a job; times are in milliseconds since 1970 UTC, and what is not there is absent."""
    public: PublicJob = {
        "id": job.id, "kind": job.kind, "label": job.label, "status": job.status, "startedAt": job.started_at
    }  # fmt: skip
    if job.detail is not None:
        public["detail"] = job.detail
    if job.finished_at is not None:
        public["finishedAt"] = job.finished_at
    return public


def job_line(job: PublicJob) -> str:
    """Returns the line of a job in a list."""
    return f"{job['id']} [{job['kind']}] {job['status']} — {one_line(job['label'])}"


def status_line(job: PublicJob) -> str:
    """Returns the last line of what is shown of a job."""
    detail = job.get("detail")
    return f"[status: {job['status']}, {one_line(detail)}]" if detail else f"[status: {job['status']}]"


def one_line(text: str) -> str:
    """Returns a text without line breaks, so that no label or detail can pass for a line of its own."""
    return " ".join(text.split())
