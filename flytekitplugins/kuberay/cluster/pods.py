"""What is read of a RayJob's pods: who each is, why it is not up, how its containers ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..errors import shortened
from ..wire import Manifest
from .names import ATTEMPT_KEY
from .redaction import redacted, secrets_of
from .status import parse_time, read_time

HEAD, WORKER, SUBMITTER = "head", "worker", "submitter"


@dataclass(frozen=True)
class ContainerView:
    """One container's state. `exit_code` and `reason` are those of the last end where it waits to start again."""

    name: str
    init: bool
    policy: (
        str  # whether it starts again when it ends: Always (an init container that never need end), OnFailure, Never
    )
    waiting: str  # reason, as ImagePullBackOff
    message: str
    running: datetime | None  # since when
    exit_code: int | None  # None while it has not ended
    reason: str  # why it ended, as OOMKilled
    restarts: int
    id: str  # with the runtime's scheme, as containerd://...; "" before it was made

    @property
    def has_started(self) -> bool:
        """Whether it runs, or ran."""
        return self.running is not None or self.exit_code is not None

    @property
    def is_over(self) -> bool:
        """Whether it has ended and does not start again."""
        if self.exit_code is None:
            return False
        return self.policy == "Never" or (self.policy == "OnFailure" and self.exit_code == 0)


@dataclass(frozen=True)
class PodView:
    """One pod of a RayJob."""

    name: str
    uid: str
    attempt_key: str
    node: str  # "" until it has one
    hostname: str
    cluster: str  # the RayCluster; "" for a submitter
    role: str  # head, worker or submitter
    group: str  # a worker group's name, which the user chooses: also head, say; of others the role
    phase: str
    reason: str
    message: str
    created: datetime
    terminating: bool
    unscheduled: str  # the scheduler's text, or the gates; "" once it has a node
    since: datetime  # when it began to be as it is
    ready: bool
    first: str  # the name of its first container, Ray's or the submitter's
    disrupted: str  # why Kubernetes takes it away: preemption, eviction, a node that goes
    containers: tuple[ContainerView, ...]  # in the order of the spec: first the init containers, then Ray's


def pod_view_of(manifest: Manifest) -> PodView:
    """The view of a pod's manifest."""
    metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
    labels = metadata.get("labels") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or []}
    created = parse_time(metadata["creationTimestamp"])
    role = labels.get("ray.io/node-type") or SUBMITTER
    changed = [moment for each in conditions.values() if (moment := read_time(each.get("lastTransitionTime")))]
    return PodView(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        attempt_key=labels.get(ATTEMPT_KEY, ""),
        node=spec.get("nodeName", ""),
        hostname=spec.get("hostname") or metadata["name"],
        cluster=labels.get("ray.io/cluster", ""),
        role=role,
        group=labels.get("ray.io/group", "") if role == WORKER else role,
        phase=status.get("phase", ""),
        reason=status.get("reason", ""),
        message=_short(status.get("message", "")),
        created=created,
        terminating="deletionTimestamp" in metadata,
        unscheduled=_unscheduled(manifest, conditions.get("PodScheduled")),
        since=max(changed, default=created),
        ready=(conditions.get("Ready") or {}).get("status") == "True",
        first=next((each["name"] for each in spec.get("containers") or []), ""),
        disrupted=_disruption(conditions.get("DisruptionTarget")),
        containers=tuple(_containers(manifest, status)),
    )


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


def _containers(manifest: Manifest, status: Manifest) -> Iterator[ContainerView]:
    """The views in the order of the spec: a status lists containers by name, so its first need not be Ray's."""
    spec = manifest.get("spec") or {}
    policy = spec.get("restartPolicy", "Always")
    for kind, default in (("initContainer", "OnFailure" if policy == "Always" else policy), ("container", policy)):
        found = {each["name"]: each for each in status.get(f"{kind}Statuses") or []}
        for each in spec.get(f"{kind}s") or []:
            if each["name"] in found:
                own = each.get("restartPolicy") or default
                yield _container(manifest, found[each["name"]], init=kind == "initContainer", policy=own)


def _container(manifest: Manifest, status: Manifest, *, init: bool, policy: str) -> ContainerView:
    state, last = status.get("state") or {}, status.get("lastState") or {}
    waiting = state.get("waiting") or {}
    ended: Mapping[str, Any] = state.get("terminated") or (last.get("terminated") if waiting else None) or {}
    said = waiting.get("message", "")
    if waiting.get("reason") in (None, "CrashLoopBackOff"):  # its own message tells only when the next try is
        said = ended.get("message") or ""
    if ended and said:  # the end of its log, by Flyte's message policy
        said = redacted(said, secrets_of(manifest))
    return ContainerView(
        name=status["name"],
        init=init,
        policy=policy,
        waiting=waiting.get("reason", ""),
        message=_short(said),
        running=read_time((state.get("running") or {}).get("startedAt")),
        exit_code=ended.get("exitCode"),
        reason=ended.get("reason", ""),
        restarts=status.get("restartCount", 0),
        id=status.get("containerID", ""),
    )


def _short(text: str) -> str:
    """The text on one line, its middle cut out where it is long: a registry's answer stands at the end."""
    return shortened(" ".join(text.split()), longest=480, front=160, mark=" ... ")
