"""The pod template of the head and of each worker group.

Both start from the task's pod: its primary container becomes the Ray container, the group's own template is merged on
top, and what the platform asks of a pod's node comes last, since that template may have brought a GPU or taken one.

Source: flyteplugins plugins/k8s/ray/ray.go (buildHeadPodTemplate, buildWorkerPodTemplate, injectLogsSidecar).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..config import RAY_HEAD, RAY_WORKER
from ..config.podtemplate import ray_container_of
from ..errors import Problem
from ..pod import scheduling
from ..pod.checks import final_pod_problems
from ..pod.containers import container_of
from ..pod.environment import FAIL_ON_ERROR, merge_env, with_container_renamed, with_ordered_env
from ..pod.merge import copied, merge_pod_spec
from ..pod.shared_memory import shared_memory_conflicts
from ..pod.template import PodTemplate
from ..settings import Settings
from ..wire import FlyteTask, K8sPod, Manifest
from .overlay import with_overlay

_PORTS = [
    {"name": "redis", "containerPort": 6379},
    {"name": "head", "containerPort": 10001},
    {"name": "dashboard", "containerPort": 8265},
]
_POD_IP = {"name": "MY_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
_RAY_STOP = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}}
_RAY_LOGS_PATH = "/tmp/ray"  # noqa: S108 - Ray's own folder in the pod
_RAY_LOGS_VOLUME = "system-ray-state"


@dataclass(frozen=True)
class Role:
    """What a head or worker pod has of its own: its Ray container's name, environment and lifecycle."""

    container: str
    env: tuple[Manifest, ...]
    lifecycle: Mapping[str, Manifest]


def _resource_env(name: str, resource: str) -> Manifest:
    return {"name": name, "valueFrom": {"resourceFieldRef": {"containerName": RAY_WORKER, "resource": resource}}}


HEAD_ROLE = Role(RAY_HEAD, (_POD_IP,), {})
WORKER_ROLE = Role(
    RAY_WORKER,
    (
        {"name": "RAY_DISABLE_DOCKER_CPU_WARNING", "value": "1"},
        {"name": "TYPE", "value": "worker"},
        _resource_env("CPU_REQUEST", "requests.cpu"),
        _resource_env("CPU_LIMITS", "limits.cpu"),
        _resource_env("MEMORY_REQUESTS", "requests.memory"),  # D9 (design): Go takes cpu's
        _resource_env("MEMORY_LIMITS", "limits.memory"),
        {"name": "MY_POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        _POD_IP,
    ),
    _RAY_STOP,
)


def build_group_template(
    task_pod: PodTemplate, role: Role, pod: K8sPod | None, task: FlyteTask, settings: Settings
) -> PodTemplate:
    """The pod template of one group.

    Args:
        task_pod: What all groups start from.
        role: HEAD_ROLE or WORKER_ROLE.
        pod: The group's own template, without `overlay_problems`.
        task: For its accelerator and interruptibility.
        settings: The platform's settings.
    """
    built = replace(task_pod, spec=_with_ray_container(task_pod, role), primary=role.container)
    if pod is not None:
        built = with_overlay(built, pod, _ray_container_name(pod, task_pod, role), task_pod.primary, settings)
    spec = dict(built.spec)
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"  # D23 (design): else pods can't resolve each other
    spec = with_ordered_env(scheduling.with_platform_scheduling(spec, task, settings))
    if role is HEAD_ROLE and settings.ray.logs_sidecar and spec.get("containers"):
        spec = _with_logs_sidecar(spec, settings.ray.logs_sidecar)
    return replace(built, spec=spec)


def group_problems(built: PodTemplate, task: FlyteTask, path: str) -> Iterator[Problem]:
    """What is wrong with a group's pod after all merges, at the group's wire path."""
    yield from final_pod_problems(built.spec, built.primary, path)
    yield from shared_memory_conflicts(built.spec, task, built.primary, path)


def _with_ray_container(task_pod: PodTemplate, role: Role) -> Manifest:
    """The task's pod with its primary container made the Ray container, first in the list.

    D8 (design): KubeRay takes container 0 as the Ray container.
    """
    spec = with_container_renamed(task_pod.spec, task_pod.primary, role.container)
    primary = container_of(spec, task_pod.primary)
    ray = {key: value for key, value in primary.items() if key != "args"}
    ray["name"] = role.container
    ray["env"] = merge_env(ray.get("env") or [], [FAIL_ON_ERROR], role.env)
    ray["ports"] = merge_pod_spec({"ports": ray.get("ports") or []}, {"ports": _PORTS})["ports"]
    if role.lifecycle:
        ray["lifecycle"] = {**(ray.get("lifecycle") or {}), **copied(role.lifecycle)}
    return {**spec, "containers": [ray, *(c for c in spec["containers"] if c is not primary)]}


def _ray_container_name(pod: K8sPod, task_pod: PodTemplate, role: Role) -> str:
    """Which container of a group's template is its Ray container; "" for none."""
    names = (pod.primary_container_name, role.container, task_pod.primary)
    index = ray_container_of(pod.pod_spec, names, sidecars=[each["name"] for each in task_pod.spec["containers"]])
    return "" if index is None else str(pod.pod_spec["containers"][index]["name"])


def _with_logs_sidecar(spec: Manifest, sidecar: Mapping[str, object]) -> Manifest:
    """The head's pod with the platform's log sidecar, which reads what the Ray container writes to its log folder."""
    ray, others = spec["containers"][0], spec["containers"][1:]
    mount = next((m for m in ray.get("volumeMounts") or [] if m.get("mountPath") == _RAY_LOGS_PATH), None)
    if mount is None:
        mount = {"name": _RAY_LOGS_VOLUME, "mountPath": _RAY_LOGS_PATH}
        volume = {"name": _RAY_LOGS_VOLUME, "emptyDir": {}}
        spec = {**spec, "volumes": [*(spec.get("volumes") or []), volume]}
        ray = {**ray, "volumeMounts": [*(ray.get("volumeMounts") or []), mount]}
    reader = merge_pod_spec(copied(dict(sidecar)), {"volumeMounts": [{**mount, "readOnly": True}]})
    return {**spec, "containers": [ray, *others, reader]}
