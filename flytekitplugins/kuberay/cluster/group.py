"""The pod template of the head and of each worker group.

Both start from the task's pod: its primary container becomes the Ray container, the group's own template is merged on
top, and what the platform asks of a pod's node is applied again, since that template may have brought a GPU.

Source: flyteplugins plugins/k8s/ray/ray.go (buildHeadPodTemplate, buildWorkerPodTemplate, injectLogsSidecar).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..errors import Problem
from ..pod import scheduling
from ..pod.account import with_one_service_account
from ..pod.checks import final_pod_problems, metadata_problems, pod_spec_problems
from ..pod.environment import FAIL_ON_ERROR, merge_env, with_container_renamed, with_ordered_env
from ..pod.merge import copied, merge_pod_spec
from ..pod.resources import resources_of, with_gpu_name, with_sides_agreeing
from ..pod.shared_memory import shared_memory_conflicts
from ..pod.containers import container_of
from ..pod.template import PodTemplate
from ..settings import Settings
from ..wire import FlyteTask, K8sPod, Manifest

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
    return {"name": name, "valueFrom": {"resourceFieldRef": {"containerName": "ray-worker", "resource": resource}}}


HEAD = Role("ray-head", (_POD_IP,), {})
WORKER = Role(
    "ray-worker",
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


def group_template_problems(pod: K8sPod | None, path: str) -> Iterator[Problem]:
    """What is wrong with a group's own template as it was written."""
    if pod is not None:
        yield from pod_spec_problems(pod.pod_spec, f"{path}.podSpec")
        yield from metadata_problems(pod.labels, pod.annotations, f"{path}.metadata")


def build_group_template(
    task_pod: PodTemplate, role: Role, pod: K8sPod | None, task: FlyteTask, settings: Settings
) -> PodTemplate:
    """The pod template of one group.

    Args:
        task_pod: What all groups start from.
        role: HEAD or WORKER.
        pod: The group's own template, without `group_template_problems`.
        task: For its accelerator and interruptibility.
        settings: The platform's settings.
    """
    spec = _with_ray_container(task_pod, role)
    if pod is not None:
        spec = _merged(spec, _overlay(pod, task_pod, role, settings), role)
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"  # D23 (design): else pods can't resolve each other
    spec = with_ordered_env(scheduling.with_platform_scheduling(spec, task, settings))
    if role is HEAD and settings.ray.logs_sidecar and spec.get("containers"):
        spec = _with_logs_sidecar(spec, settings.ray.logs_sidecar)
    own = pod if pod is not None else K8sPod({})
    return replace(
        task_pod,
        spec=spec,
        labels={**task_pod.labels, **own.labels},
        annotations={**task_pod.annotations, **own.annotations},
        primary=role.container,
    )


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


def _overlay(pod: K8sPod, task_pod: PodTemplate, role: Role, settings: Settings) -> Manifest:
    """The group's own pod spec with its Ray container under the Ray container's name."""
    spec = with_one_service_account(pod.pod_spec)
    name = _ray_container_name(pod, task_pod, role)
    for old in {name, task_pod.primary} - {""}:
        spec = with_container_renamed(spec, old, role.container)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            spec[field] = [_overlay_container(c, name, role, settings) for c in spec[field]]
    return spec


def _overlay_container(container: Manifest, ray_name: str, role: Role, settings: Settings) -> Manifest:
    renamed = {**container, "name": role.container} if ray_name and container.get("name") == ray_name else container
    return (
        {**renamed, "resources": with_gpu_name(resources_of(renamed), settings)}
        if renamed.get("resources")
        else renamed
    )


def _ray_container_name(pod: K8sPod, task_pod: PodTemplate, role: Role) -> str:
    """Which container of a group's template is its Ray container; "" for none.

    D2 (design): the one that it names as primary, the one called as Ray's, the one called as the task's primary, a lone
    one without an image that is no sidecar of the task.
    """
    names = [container["name"] for container in pod.pod_spec.get("containers") or [] if "name" in container]
    for wanted in (pod.primary_container_name, role.container, task_pod.primary):
        if wanted in names:
            return wanted
    sidecars = {container["name"] for container in task_pod.spec["containers"]}
    if len(names) == 1 and names[0] not in sidecars and not pod.pod_spec["containers"][0].get("image"):
        return str(names[0])
    return ""


def _merged(spec: Manifest, overlay: Manifest, role: Role) -> Manifest:
    """The pod spec with the group's on top, resources that were given on one side settled."""
    merged = merge_pod_spec(spec, overlay)
    for field in ("containers", "initContainers"):
        given = {c["name"]: resources_of(c) for c in overlay.get(field) or [] if "name" in c}
        known = {c["name"] for c in spec.get(field) or []}
        if merged.get(field):
            merged[field] = [
                _settled(c, given[c["name"]]) if c["name"] in given.keys() & known else c for c in merged[field]
            ]
    if merged.get("containers"):  # D8 (design), whatever a `$patch` made of the order
        merged["containers"] = sorted(merged["containers"], key=lambda c: bool(c["name"] != role.container))
    return merged


def _settled(container: Manifest, overlay: Manifest) -> Manifest:
    resources = resources_of(container)
    return {**container, "resources": with_sides_agreeing(resources, overlay)} if resources else container


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
