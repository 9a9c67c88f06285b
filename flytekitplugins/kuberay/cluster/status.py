"""What is read of a RayJob: its state, and when it came to each stage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..wire import Manifest

_LONGEST = 2000
_HEAD = 400


@dataclass(frozen=True)
class JobView:
    """What the phases need of a RayJob; a time is None while it has not come."""

    uid: str
    deployment: str  # status.jobDeploymentStatus
    job: str  # status.jobStatus
    retries: bool  # whether KubeRay starts it anew when the job fails
    reason: str
    message: str
    cluster: str  # status.rayClusterName
    dashboard: str  # status.dashboardURL
    job_id: str
    created: datetime | None  # the RayJob
    cluster_created: datetime | None  # its RayCluster, a new one after a suspension
    provisioned: datetime | None  # when all pods of that were ready for the first time
    started: datetime | None  # the Ray job
    ended: datetime | None  # the Ray job


def view_of(manifest: Manifest) -> JobView:
    """The view of a RayJob manifest."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    info = status.get("rayJobInfo") or {}
    conditions = (status.get("rayClusterStatus") or {}).get("conditions") or []
    changes = [moment for each in conditions if (moment := read_time(each.get("lastTransitionTime")))]
    provisioned = [each for each in conditions if each["type"] == "RayClusterProvisioned" and each["status"] == "True"]
    return JobView(
        uid=metadata.get("uid", ""),
        deployment=status.get("jobDeploymentStatus", ""),
        job=status.get("jobStatus", ""),
        retries=status.get("failed", 0) < (manifest.get("spec") or {}).get("backoffLimit", 0),
        reason=status.get("reason", ""),
        message=shortened(status.get("message", "")),
        cluster=status.get("rayClusterName", ""),
        dashboard=status.get("dashboardURL", ""),
        job_id=status.get("jobId", ""),
        created=read_time(metadata.get("creationTimestamp")),
        cluster_created=min(changes, default=None),
        provisioned=read_time(provisioned[0].get("lastTransitionTime")) if provisioned else None,
        started=read_time(info.get("startTime")),
        ended=read_time(info.get("endTime")),
    )


def read_time(text: str | None) -> datetime | None:
    """A time as Kubernetes writes it; None for none."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def shortened(text: str, longest: int = _LONGEST) -> str:
    """The text, its middle cut out where it is long: the first words say what it is, the last lines what happened."""
    if len(text) <= longest:
        return text
    mark = f"\n[of {len(text)} characters, some are left out here]\n"
    return f"{text[:_HEAD]}{mark}{text[_HEAD + len(mark) - longest :]}"
