"""What is read of a RayJob: its state, and when it came to each stage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ..errors import shortened
from ..syntax import is_whole_number
from ..wire import Manifest
from .names import LINKS
from .redaction import redacted, secrets_of

_KUBERAY = "ray.io/kuberay-operator"
"""`spec.managedBy` of what KubeRay works on. Source: ray-operator/controllers/ray/utils/constant.go."""


@dataclass(frozen=True)
class JobView:
    """What the phases need of a RayJob; a time is None while it has not come."""

    namespace: str
    name: str
    uid: str
    version: int  # grows with each change of it; 0 where that is not known
    deployment: str  # status.jobDeploymentStatus
    job: str  # status.jobStatus
    retries: bool  # whether KubeRay starts it anew when the job fails
    reason: str
    message: str
    cluster: str  # status.rayClusterName
    dashboard: str  # status.dashboardURL
    job_id: str
    head_service: str  # the Service of the cluster's head
    link_values: Mapping[str, str]  # what links need to know of the task
    suspended: bool  # somebody wants it not to run now, as its queue
    going: bool  # somebody has deleted it
    elsewhere: bool  # its pods are not ours to see: MultiKueue's cluster, or one that a clusterSelector names
    outlives_head: bool  # the head's memory is kept outside, so a new head goes on with the job
    workers_ready: int  # as KubeRay counted them last
    workers_wanted: int  # 0 before it has made the cluster
    created: datetime | None  # the RayJob
    initialized: datetime | None  # status.startTime: KubeRay set to work on it, anew after a suspension or a retry
    provisioned: datetime | None  # when all pods of its cluster were ready for the first time
    started: datetime | None  # the Ray job
    ended: datetime | None  # the Ray job, or else the RayJob

    @property
    def is_unsubmitted(self) -> bool:
        """Whether its cluster is up, and Ray has not told of the job yet: it is being handed over, or can't be."""
        return self.deployment == "Running" and not self.job and self.started is None


def view_of(manifest: Manifest) -> JobView:
    """The view of a RayJob manifest."""
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
    info = status.get("rayJobInfo") or {}
    cluster = status.get("rayClusterStatus") or {}
    conditions = cluster.get("conditions") or []
    provisioned = [each for each in conditions if each["type"] == "RayClusterProvisioned" and each["status"] == "True"]
    return JobView(
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        version=_version_of(metadata.get("resourceVersion", "")),
        deployment=status.get("jobDeploymentStatus", ""),
        job=status.get("jobStatus", ""),
        retries=status.get("failed", 0) < (spec.get("backoffLimit") or 0),
        reason=status.get("reason", ""),
        message=_message(manifest, status),
        cluster=status.get("rayClusterName", ""),
        dashboard=status.get("dashboardURL", ""),
        job_id=status.get("jobId", ""),
        head_service=(cluster.get("head") or {}).get("serviceName", ""),
        link_values=_link_values((metadata.get("annotations") or {}).get(LINKS, "")),
        suspended=bool(spec.get("suspend")),
        going="deletionTimestamp" in metadata,
        elsewhere=spec.get("managedBy") not in (None, "", _KUBERAY) or bool(spec.get("clusterSelector")),
        outlives_head=bool((spec.get("rayClusterSpec") or {}).get("gcsFaultToleranceOptions")),
        workers_ready=cluster.get("readyWorkerReplicas") or 0,
        workers_wanted=cluster.get("desiredWorkerReplicas") or 0,
        created=read_time(metadata.get("creationTimestamp")),
        initialized=read_time(status.get("startTime")),
        provisioned=read_time(provisioned[0].get("lastTransitionTime")) if provisioned else None,
        started=read_time(info.get("startTime")),
        ended=read_time(info.get("endTime") or status.get("endTime")),
    )


def _version_of(text: str) -> int:
    return int(text) if is_whole_number(text) else 0


def read_time(text: str | None) -> datetime | None:
    """A time as Kubernetes writes it; None for none."""
    return parse_time(text) if text else None


def parse_time(text: str) -> datetime:
    """The time that Kubernetes writes so."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _link_values(annotation: str) -> Mapping[str, str]:
    """What the annotation of this package holds; {} for none, and for what somebody else made of it."""
    try:
        values = json.loads(annotation or "{}")
    except (ValueError, RecursionError):
        return {}
    return {key: value for key, value in values.items() if isinstance(value, str)} if isinstance(values, dict) else {}


def _message(manifest: Manifest, status: Manifest) -> str:
    """The message less its secrets, before a cut leaves half of one: of a failed job it ends with its log."""
    message = status.get("message", "")
    if status.get("jobStatus") == "FAILED" or status.get("reason"):
        message = redacted(message, secrets_of(manifest))
    return shortened(message)
