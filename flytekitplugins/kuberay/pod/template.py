"""From a task template to the one pod that all pods of its cluster start from.

The order is Flyte's: the raw pod, the platform's configuration, the base PodTemplate under it, extended resources.

Source: flyteplugins flytek8s/pod_helper.go (ToK8sPodSpec, BuildRawPod, ApplyFlytePodConfiguration).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..schema import PATCH
from ..settings import Settings
from ..wire import FlyteTask, Manifest
from ..wire.protojson import has_field
from . import scheduling
from .account import service_account, with_one_service_account
from .arguments import with_rendered_arguments
from .base import base_container, over_base, template_spec
from .containers import with_each_container
from .environment import with_flyte_env
from .metadata import task_annotations, task_labels
from .processed import unmerged
from .resources import (
    SIDES,
    from_flyte,
    is_whole,
    resources_of,
    with_gpu_name,
    with_gpu_names,
    with_missing,
    within_platform,
)
from .shared_memory import with_shared_memory
from .target import CONTAINER_NAME, own_pod_spec, primary_name


@dataclass(frozen=True)
class PodTemplate:
    """A pod template, and which of its containers runs the task."""

    spec: Manifest
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    primary: str


def build_task_pod(task: FlyteTask, settings: Settings, base: Manifest | None) -> PodTemplate:
    """The pod template that head and workers start from, labels and annotations included.

    What its resources ask of a node comes with each group, whose own may be others (`scheduling`).

    Args:
        task: A task without `target_problems`.
        settings: The platform's settings.
        base: The PodTemplate object to put under it, if any.
    """
    spec, primary = _raw_pod(task, settings, base)
    base_spec = with_gpu_names(template_spec(base), settings)
    spec = _customised(spec, base_spec, primary, task, settings)
    spec = _with_platform_pod(spec, task, settings, primary)
    spec = over_base(_with_default_affinity(spec, base_spec, settings), base_spec, primary)
    spec = with_each_container(spec, lambda c, _: with_flyte_env(c, task.execution, settings))
    spec = scheduling.with_tolerations(spec, scheduling.default_tolerations(task, settings))
    spec = with_shared_memory(spec, task, primary)
    return PodTemplate(spec, task_labels(task, settings, base), task_annotations(task, settings, base), primary)


def _raw_pod(task: FlyteTask, settings: Settings, base: Manifest | None) -> tuple[Manifest, str]:
    """The pod as the task defines it, and its primary container. Source: pod_helper.go BuildRawPod."""
    if has_field(task.template, "container"):
        return {"containers": [_raw_container(task, settings)]}, CONTAINER_NAME
    primary = primary_name(task)
    own = _without_empty_lists(unmerged(own_pod_spec(task), task, settings, base, primary), primary)
    return with_one_service_account(own), primary


def _raw_container(task: FlyteTask, settings: Settings) -> Manifest:
    """Source: container_helper.go BuildRawContainer."""
    container = task.template.container
    raw = {
        "name": CONTAINER_NAME,
        "image": container.image,
        "command": list(container.command),
        "args": list(container.args),
        "env": [{"name": pair.key, "value": pair.value} for pair in container.env],
        "resources": from_flyte(container.resources),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "imagePullPolicy": settings.k8s.image_pull_policy,
    }
    return {key: value for key, value in raw.items() if value}


def _without_empty_lists(spec: Manifest, primary: str) -> Manifest:
    """The pod spec without the empty command and env that flytekit writes into the primary one: they say nothing."""
    containers = [
        {k: v for k, v in c.items() if not (k in ("command", "env") and v == [])} if c["name"] == primary else c
        for c in spec["containers"]
    ]
    return {**spec, "containers": containers}


def _customised(spec: Manifest, base_spec: Manifest, primary: str, task: FlyteTask, settings: Settings) -> Manifest:
    """The pod spec with arguments rendered and resources settled in each container.

    Source: container_helper.go AddFlyteCustomizationsToContainerWithPodTemplate.
    """

    def customised(container: Manifest, field: str) -> Manifest:
        name = container["name"]
        whole = container.get(PATCH) == "replace" or is_whole(container, "resources")
        below = {} if whole else resources_of(base_container(name, field, base_spec, primary))
        resources = with_missing(with_gpu_name(resources_of(container), settings), below)
        assign = field == "initContainers" or name == primary
        settled = within_platform(resources, settings, assign=assign)
        settled |= {side: {PATCH: "replace", **settled[side]} for side in SIDES}  # what the base has is in it already
        return {**with_rendered_arguments(container, task), "resources": settled}

    return with_each_container(spec, customised)


def _with_platform_pod(spec: Manifest, task: FlyteTask, settings: Settings, primary: str) -> Manifest:
    """The pod spec with the platform's configuration where the task says nothing. Source: pod_helper.go UpdatePod."""
    k8s = settings.k8s
    selector = {**k8s.default_node_selector, **(spec.get("nodeSelector") or {})}
    if scheduling.is_interruptible(task):
        selector |= k8s.interruptible_node_selector
    defaults = {
        "restartPolicy": "Never",
        "schedulerName": k8s.scheduler_name,
        "securityContext": k8s.default_pod_security_context,
        "dnsConfig": k8s.default_pod_dns_config,
    }
    unsaid = {key: value for key, value in defaults.items() if value and spec.get(key) in (None, "")}
    spec = {**spec, **{key: _default(spec, key, value) for key, value in unsaid.items()}}
    if selector:
        spec["nodeSelector"] = _default(spec, "nodeSelector", selector)
    if k8s.enable_host_networking_pod is not None:
        spec["hostNetwork"] = k8s.enable_host_networking_pod
    if account := service_account(spec, task, settings):
        spec["serviceAccountName"] = account
    spec["containers"] = [
        _with_default_security(c, settings) if c["name"] == primary else c for c in spec["containers"]
    ]
    return spec


def _with_default_security(container: Manifest, settings: Settings) -> Manifest:
    default = settings.k8s.default_security_context
    if not default or container.get("securityContext") is not None:
        return container
    return {**container, "securityContext": _default(container, "securityContext", default)}


def _default(owner: Manifest, field: str, value: Any) -> Any:
    """The platform's value of a field; where the owner says null, with nothing of the base PodTemplate's beside it."""
    return {**value, PATCH: "replace"} if isinstance(value, Mapping) and owner.get(field, "") is None else value


def _with_default_affinity(spec: Manifest, base_spec: Manifest, settings: Settings) -> Manifest:
    """The pod spec with the platform's affinity, where neither task, by so much as {}, nor base has one."""
    default = settings.k8s.default_affinity
    if not default or spec.get("affinity") is not None or base_spec.get("affinity"):
        return spec
    return {**spec, "affinity": default}
