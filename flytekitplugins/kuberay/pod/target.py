"""The task's own pod, a container or a K8sPod, as the task defines it: how it is read, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import Problem
from ..quantity import is_quantity
from ..schema import PATCH
from ..settings import Settings
from ..wire import FlyteTask, Manifest
from ..wire.protojson import plain_struct, which
from .arguments import argument_problems
from .base import base_problems
from .checks import container_problems, content_problems, metadata_problems, shape_problems
from .containers import container_of, each_container
from .processed import unmerged
from .shared_memory import shared_memory_problems

CONTAINER_NAME = "flyte-task"
"""The primary container of a container target, which has no name of its own, before it becomes a Ray container."""


def target_problems(task: FlyteTask, settings: Settings, base: Manifest | None) -> Iterator[Problem]:
    """What is wrong with the task's own pod, with the base PodTemplate it names, and with the execution's metadata."""
    problems = list(base_problems(task, settings, base))
    yield from problems
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


def primary_name(task: FlyteTask) -> str:
    """The name of a K8sPod target's primary container; "" where none is named and there are several."""
    named = task.template.k8s_pod.primary_container_name or task.template.config.get("primary_container_name", "")
    found = own_pod_spec(task).get("containers")
    containers = [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
    return named or (str(containers[0].get("name") or "") if len(containers) == 1 else "")


def own_pod_spec(task: FlyteTask) -> Manifest:
    """The K8sPod target's pod spec; nulls stay, whole numbers are integers."""
    spec: Manifest = plain_struct(task.template.k8s_pod.pod_spec)
    return spec


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
    path, spec = "k8sPod.podSpec", own_pod_spec(task)
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
