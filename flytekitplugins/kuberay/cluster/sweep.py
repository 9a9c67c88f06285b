"""Which RayJobs nobody needs any more: pure, from the RayJob, its execution and the clock to a reason.

A FlyteWorkflow is the object by which propeller runs an execution: same namespace, and the execution's name.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum

from ..wire import Manifest
from .diagnosis import format_duration
from .names import EXECUTION_LABEL, annotation_of
from .phase import needs_results
from .status import JobView

_ENDED_PHASES = frozenset({3, 5, 6})
"""Success, failed, aborted. Source: flytepropeller v1alpha1/iface.go WorkflowPhase, workflow_status.go IsTerminated."""


class Owner(Enum):
    """What is known of a RayJob's execution."""

    LIVE = "live"
    ENDED = "ended"
    GONE = "gone"
    UNKNOWN = "unknown"


_ORPHANED = {Owner.GONE: "its execution is gone", Owner.ENDED: "its execution has ended"}


def execution_of(job: Manifest) -> str:
    """The name of the execution that a RayJob manifest belongs to; "" where propeller did not say so.

    Propeller's label alone is not enough, for a task's own labels win over it: ours has to say the same.
    """
    label: str = (job["metadata"].get("labels") or {}).get(EXECUTION_LABEL, "")
    return label if label == annotation_of(job, "execution").rpartition("/")[2] else ""


def owner_of(workflow: Manifest | None) -> Owner:
    """What a FlyteWorkflow manifest says of its execution; None is one that is not there."""
    if workflow is None:
        return Owner.GONE
    return Owner.ENDED if (workflow.get("status") or {}).get("phase") in _ENDED_PHASES else Owner.LIVE


def sweepable(job: JobView, owner: Owner, *, older_than: timedelta | None, now: datetime) -> str:
    """Why a RayJob is to go, in words; "" where it stays.

    Args:
        job: The RayJob.
        owner: What is known of its execution; while that lives, its RayJobs stay.
        older_than: For how long one that has ended is kept; None for as long as its execution is known.
        now: The time, aware of its zone.
    """
    if owner is Owner.LIVE or job.going:
        return ""
    if not needs_results(job):
        return _ORPHANED.get(owner, "")
    if older_than is None:
        return _ORPHANED[owner] if owner is Owner.GONE else ""
    ended = job.ended or job.created  # one that KubeRay refuses has ended at once, without a time
    if ended is None or now - ended <= older_than:
        return ""
    return f"it ended {format_duration(now - ended)} ago"
