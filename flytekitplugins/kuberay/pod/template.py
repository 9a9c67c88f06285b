"""From a task template to the one pod that all pods of its cluster start from.

The order is Flyte's: the raw pod, the platform's configuration, the base PodTemplate under it, extended resources.

Source: flyteplugins flytek8s/pod_helper.go (ToK8sPodSpec, BuildRawPod, ApplyFlytePodConfiguration).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import Problem
from ..quantity import is_quantity
from ..settings import Settings
from ..wire import FlyteTask, Manifest
from ..wire.protojson import has_field, plain_struct, which
from . import scheduling
from .account import service_account, with_one_service_account
from .arguments import argument_problems, with_rendered_arguments
from .base import base_container, base_problems, over_base, template_spec
from .checks import container_problems, content_problems, metadata_problems, shape_problems
from .containers import container_of, each_container, with_each_container
from .environment import with_flyte_env
from .merge import PATCH
from .metadata import task_annotations, task_labels
from .platform import platform_problems
from .processed import unmerged
from .resources import from_flyte, resources_of, with_gpu_name, with_gpu_names, with_missing, within_platform
from .shared_memory import shared_memory_problems, with_shared_memory

CONTAINER_NAME = "flyte-task"
"""The primary container of a container target, which has no name of its own, before it becomes a Ray container."""


@dataclass(frozen=True)
class PodTemplate:
    """A pod template, and which of its containers runs the task."""

    spec: Manifest
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    primary: str


def target_problems(task: FlyteTask, settings: Settings, base: Manifest | None) -> Iterator[Problem]:
    """What is wrong with the task's own pod, with the base PodTemplate it names, and with the execution's metadata."""
    problems = list(base_problems(task, settings, base))
    yield from problems
    yield from platform_problems(settings)
    yield from metadata_problems(task.execution.labels, task.execution.annotations, "execution")
    decorator = task.template.metadata.metadata
    yield from metadata_problems(decorator.labels, decorator.annotations, "metadata.metadata")
    yield from shared_memory_problems(task)
    match which(task.template, "target"):
        case "container":
            yield from _container_problems(task)
        case "k8s_pod":
            yield from _k8s_pod_problems(task, settings, None if problems else base)
        case _:
            yield Problem("taskTemplate", "has neither a container nor a k8sPod", "a Ray task needs one of them to run")


def build_task_pod(task: FlyteTask, settings: Settings, base: Manifest | None) -> PodTemplate:
    """The pod template that head and workers start from, labels and annotations included.

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
    spec = with_shared_memory(spec, task, primary)
    spec = scheduling.with_platform_scheduling(spec, task, settings)
    return PodTemplate(spec, task_labels(task, settings, base), task_annotations(task, settings, base), primary)


def primary_name(task: FlyteTask) -> str:
    """The name of a K8sPod target's primary container; "" where none is named and there are several."""
    named = task.template.k8s_pod.primary_container_name or task.template.config.get("primary_container_name", "")
    containers = [each for each in _list_of(_pod_spec(task), "containers") if isinstance(each, Mapping)]
    return named or (str(containers[0].get("name") or "") if len(containers) == 1 else "")


def _raw_pod(task: FlyteTask, settings: Settings, base: Manifest | None) -> tuple[Manifest, str]:
    """The pod as the task defines it, and its primary container. Source: pod_helper.go BuildRawPod."""
    if has_field(task.template, "container"):
        return {"containers": [_raw_container(task, settings)]}, CONTAINER_NAME
    primary = primary_name(task)
    own = _without_empty_lists(unmerged(_pod_spec(task), task, settings, base, primary), primary)
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


def _pod_spec(task: FlyteTask) -> Manifest:
    """The K8sPod target's pod spec; nulls stay, whole numbers are integers."""
    spec: Manifest = plain_struct(task.template.k8s_pod.pod_spec)
    return spec


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
        below = resources_of(base_container(name, field, base_spec, primary))
        resources = with_missing(with_gpu_name(resources_of(container), settings), below)
        assign = field == "initContainers" or name == primary
        rendered = with_rendered_arguments(container, task)
        return {**rendered, "resources": within_platform(resources, settings, assign=assign)}

    return with_each_container(spec, customised)


def _with_platform_pod(spec: Manifest, task: FlyteTask, settings: Settings, primary: str) -> Manifest:
    """The pod spec with the platform's configuration where the task says nothing. Source: pod_helper.go UpdatePod."""
    k8s = settings.k8s
    spec = scheduling.with_tolerations(spec, scheduling.default_tolerations(task, settings))
    selector = {**k8s.default_node_selector, **(spec.get("nodeSelector") or {})}
    if scheduling.is_interruptible(task):
        selector |= k8s.interruptible_node_selector
    defaults = {
        "restartPolicy": "Never",
        "schedulerName": k8s.scheduler_name,
        "securityContext": k8s.default_pod_security_context,
        "dnsConfig": k8s.default_pod_dns_config,
    }
    spec = {**spec, **{key: value for key, value in defaults.items() if value and spec.get(key) in (None, "")}}
    if selector:
        spec["nodeSelector"] = selector
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
    return (
        {**container, "securityContext": default} if default and container.get("securityContext") is None else container
    )


def _with_default_affinity(spec: Manifest, base_spec: Manifest, settings: Settings) -> Manifest:
    """The pod spec with the platform's affinity, where neither task, by so much as {}, nor base has one."""
    default = settings.k8s.default_affinity
    if not default or spec.get("affinity") is not None or base_spec.get("affinity"):
        return spec
    return {**spec, "affinity": default}


def _list_of(spec: Manifest, field: str) -> list[Any]:
    found = spec.get(field)
    return found if isinstance(found, list) else []


def _container_problems(task: FlyteTask) -> Iterator[Problem]:
    container = task.template.container
    if not container.image:
        yield Problem(
            "container.image", "the container has no image", "set container_image or the image of the workflow"
        )
    if not container.args:
        yield Problem(
            "container.args", "the container has no args, so there is nothing to run", "register the task with flytekit"
        )
    for side in ("requests", "limits"):
        for index, entry in enumerate(getattr(container.resources, side)):
            if not is_quantity(entry.value):
                path = f"container.resources.{side}[{index}]"
                yield Problem(path, f"{entry.value!r} is no Kubernetes quantity", "write 500m, 2 or 4Gi")
    env = [{"name": pair.key} for pair in container.env]
    yield from container_problems({"name": CONTAINER_NAME, "env": env}, "container")
    yield from argument_problems({"command": list(container.command), "args": list(container.args)}, task, "container")


def _k8s_pod_problems(task: FlyteTask, settings: Settings, base: Manifest | None) -> Iterator[Problem]:
    path, spec = "k8sPod.podSpec", _pod_spec(task)
    metadata = task.template.k8s_pod.metadata
    yield from metadata_problems(metadata.labels, metadata.annotations, "k8sPod.metadata")
    if problems := shape_problems(spec, path):
        yield from problems
        return
    if not spec.get("containers"):
        yield Problem(f"{path}.containers", "the pod has no container", "the primary container is needed")
        return
    primary = primary_name(task)
    problems = content_problems(unmerged(spec, task, settings, base, primary), path)
    problems += _removal_problems(spec, path)
    yield from problems
    if not problems:
        yield from _primary_problems(spec, primary, path, task)


def _removal_problems(spec: Manifest, path: str) -> Iterator[Problem]:
    """Directives in place of containers: nothing of the base PodTemplate comes that the task does not name anyway."""
    for place, container in each_container(spec, path):
        if PATCH in container and ("name" not in container or container[PATCH] == "delete"):
            yield Problem(f"{place}.{PATCH}", "takes no container away here", "drop it")


def _primary_problems(spec: Manifest, primary: str, path: str, task: FlyteTask) -> Iterator[Problem]:
    names = [container["name"] for container in spec["containers"]]
    if not primary:
        yield Problem(
            path, f"none of its containers {', '.join(names)} is named as the primary one", "set primary_container_name"
        )
    elif primary not in names:
        yield Problem(
            path, f"no container is called {primary!r}, the primary_container_name", f"name one of {', '.join(names)}"
        )
    elif not container_of(spec, primary).get("args"):
        yield Problem(
            f"{path}: container {primary!r}",
            "has no args, so there is nothing to run",
            "register the task with flytekit",
        )
    for place, container in each_container(spec, path):
        yield from argument_problems(container, task, place)
