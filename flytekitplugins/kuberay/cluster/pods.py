"""What is read of a RayJob's pods: who each is, why it is not up, how its containers ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from ..wire import Manifest
from .names import ATTEMPT_KEY
from .status import read_time

HEAD = "head"
SUBMITTER = "submitter"
_LONGEST = 400


@dataclass(frozen=True)
class ContainerView:
    """One container's state. `exit_code` is None while it has not ended; `restarts` counts earlier ends."""

    name: str
    init: bool
    waiting: str  # reason, as ImagePullBackOff
    message: str
    exit_code: int | None
    reason: str  # why it ended, as OOMKilled; of the last end where it waits to start again
    restarts: int


@dataclass(frozen=True)
class PodView:
    """One pod of a RayJob."""

    name: str
    uid: str
    attempt_key: str
    cluster: str  # the RayCluster; "" for a submitter
    group: str  # head, submitter, or the worker group's name
    phase: str
    reason: str
    message: str
    created: datetime
    terminating: bool
    unscheduled: str  # the scheduler's text, or the gates; "" once it has a node
    since: datetime  # when it began to be as it is
    ready: bool
    disrupted: str  # why Kubernetes takes it away: preemption, eviction, a node that goes
    containers: tuple[ContainerView, ...]


def pod_view_of(manifest: Manifest) -> PodView:
    """The view of a pod's manifest."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    labels = metadata.get("labels") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    created = datetime.fromisoformat(metadata["creationTimestamp"].replace("Z", "+00:00"))
    changed = [moment for each in conditions.values() if (moment := read_time(each.get("lastTransitionTime")))]
    return PodView(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        attempt_key=labels.get(ATTEMPT_KEY, ""),
        cluster=labels.get("ray.io/cluster", ""),
        group=_group_of(labels),
        phase=status.get("phase", ""),
        reason=status.get("reason", ""),
        message=_short(status.get("message", "")),
        created=created,
        terminating="deletionTimestamp" in metadata,
        unscheduled=_unscheduled(manifest, conditions.get("PodScheduled")),
        since=max(changed, default=created),
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        disrupted=_disruption(conditions.get("DisruptionTarget")),
        containers=tuple(_containers(status)),
    )


def _group_of(labels: Mapping[str, str]) -> str:
    kind = labels.get("ray.io/node-type", "")
    if kind == "worker":
        return labels.get("ray.io/group", "")
    return HEAD if kind == HEAD else SUBMITTER


def _unscheduled(manifest: Manifest, condition: Mapping[str, str] | None) -> str:
    if condition is None or condition.get("status") != "False":
        return ""
    gates = ", ".join(gate["name"] for gate in manifest.get("spec", {}).get("schedulingGates") or [])
    if gates:
        return f"held back by the scheduling gates {gates}"
    return _short(condition.get("message") or condition.get("reason") or "not scheduled")


def _disruption(condition: Mapping[str, str] | None) -> str:
    if condition is None or condition.get("status") != "True":
        return ""
    return _short(f"{condition.get('reason', '')} {condition.get('message', '')}")


def _containers(status: Manifest) -> Iterator[ContainerView]:
    for field, init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for each in status.get(field) or []:
            state, last = each.get("state") or {}, each.get("lastState") or {}
            waiting = state.get("waiting") or {}
            ended = state.get("terminated") or (last.get("terminated") if waiting else None) or {}
            yield ContainerView(
                name=each["name"],
                init=init,
                waiting=waiting.get("reason", ""),
                message=_short(waiting.get("message") or ended.get("message") or ""),
                exit_code=ended.get("exitCode"),
                reason=ended.get("reason", ""),
                restarts=each.get("restartCount", 0),
            )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
