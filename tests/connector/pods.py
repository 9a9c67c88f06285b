"""Plays KubeRay, the scheduler and the kubelet on an API server that has none of them: pods, their states, events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from flytekitplugins.kuberay.cluster.names import ATTEMPT_KEY, MANAGED_BY, MANAGER, attempt_key
from flytekitplugins.kuberay.kube import EVENTS, PODS, ApiKubeClient
from tests.kube.admin import merge_patch

CLUSTER = "train-c1"
UP = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayClusterName": CLUSTER}
COMING = {"jobDeploymentStatus": "Initializing", "rayClusterName": CLUSTER}


def moment(**parts: float) -> str:
    """A time as Kubernetes writes it, so long from now; `parts` are timedelta's."""
    return (datetime.now(timezone.utc) + timedelta(**parts)).strftime("%Y-%m-%dT%H:%M:%SZ")


def provisioned(**parts: float) -> dict[str, Any]:
    """What a RayJob's status says of a cluster whose pods were all ready then."""
    condition = {"type": "RayClusterProvisioned", "status": "True", "reason": "AllPodRunningAndReadyFirstTime"}
    return {"rayClusterStatus": {"conditions": [{**condition, "lastTransitionTime": moment(**parts), "message": ""}]}}


async def put_pod(
    client: ApiKubeClient, metadata: bytes, group: str = "head", *, beside: Sequence[str] = (), **status: Any
) -> str:
    """The name of a new pod of a task, in this state; `status` is of its `.status`, `beside` names more containers."""
    task = json.loads(metadata)
    name = f"{task['name'][:30]}-{group}-{datetime.now(timezone.utc).strftime('%H%M%S%f')}"
    labels = {MANAGED_BY: MANAGER, ATTEMPT_KEY: attempt_key(task["output_prefix"])}
    if group != "submitter":
        kind = "head" if group == "head" else "worker"
        labels |= {"ray.io/cluster": CLUSTER, "ray.io/node-type": kind, "ray.io/group": group}
    containers = [{"name": name, "image": "example/image:1"} for name in ("ray", *beside)]
    spec = {"containers": containers, "automountServiceAccountToken": False, "restartPolicy": "Never"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
    await client.create(PODS, task["namespace"], pod)
    await write_pod(client, metadata, name, **status)
    return name


async def write_pod(client: ApiKubeClient, metadata: bytes, name: str, **status: Any) -> None:
    """Writes these fields of a pod's status."""
    namespace = json.loads(metadata)["namespace"]
    await merge_patch(client, PODS, namespace, name, {"status": status}, status=True)


def ready() -> dict[str, Any]:
    """The state of a pod that is up."""
    running = {"name": "ray", "ready": True, "restartCount": 0, "image": "", "imageID": ""}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": moment()}]
    state = {"running": {"startedAt": moment()}}
    return {"phase": "Running", "conditions": conditions, "containerStatuses": [{**running, "state": state}]}


def waits(reason: str, message: str = "") -> dict[str, Any]:
    """The state of a pod whose container waits for this."""
    waiting = {"name": "ray", "ready": False, "restartCount": 0, "image": "", "imageID": ""}
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "conditions": [], "containerStatuses": [{**waiting, "state": state}]}


def unscheduled(message: str) -> dict[str, Any]:
    """The state of a pod that no node takes."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [{**condition, "lastTransitionTime": moment()}]}


async def put_event(
    client: ApiKubeClient, metadata: bytes, kind: str, name: str, reason: str, message: str, *, warns: bool = True
) -> None:
    """Makes an event about this object."""
    namespace = json.loads(metadata)["namespace"]
    stamp = datetime.now(timezone.utc).strftime("%H%M%S%f")
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name[:40]}.{stamp}", "namespace": namespace},
        "involvedObject": {"kind": kind, "name": name, "namespace": namespace},
        "reason": reason,
        "message": message,
        "type": "Warning" if warns else "Normal",
        "lastTimestamp": moment(),
    }
    await client.create(EVENTS, namespace, event)
