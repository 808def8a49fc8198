"""What a task leaves in XCom of its job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagbridge import Job

#: The XCom that says which job a task has become: ``{"id", "native_id", "cluster", "state", "exit_code"}``.
JOB_KEY = "dagbridge_job"


def of(job: Job) -> dict[str, Any]:
    """The XCom ``dagbridge_job``; what is not known yet is None. Native ids stay text inside an object."""
    return {
        "id": job["id"],
        "native_id": job.get("nativeId") or None,
        "cluster": job.get("cluster") or None,
        "state": job["state"],
        "exit_code": job.get("exitCode"),
    }


def outputs(job: Job) -> Any:
    """The task's return value: the outputs, or the one that is called ``return_value``; None when there are none."""
    values = job.get("outputs") or {}
    return values.get("return_value", values or None)
