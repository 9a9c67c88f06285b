"""What flytekit leaves to do of a task's own pod: it can't serialise a dict, and lists some variables twice.

What is wrong with such a dict `config.podtemplate` says, before anything here is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flyteidl.core.tasks_pb2 import Resources
from flytekit.configuration import SerializationSettings
from flytekit.core.pod_template import PodTemplate
from flytekit.core.python_auto_container import get_registerable_container_image
from flytekit.models.task import Container, K8sObjectMetadata, K8sPod
from flytekit.models.task import Resources as ContainerResources

from .config.podtemplate import CONTAINER_FIELDS, pod_spec_of


def k8s_pod_of(template: PodTemplate, task: Container, settings: SerializationSettings) -> K8sPod:
    """The template as a K8sPod, the task in its primary container, and each image by the name that is pulled.

    Args:
        template: Its pod spec is a dict without problems.
        task: What flytekit makes of the task without a template.
        settings: Of the registration; it builds an ImageSpec that the image configuration does not know.

    Raises:
        Exception: Whatever flytekit raises of an image that it can't build, or does not know.

    Source: flytekit/core/utils.py _serialize_pod_spec, which leaves the images of init containers as they are.
    """
    spec, primary = pod_spec_of(template), template.primary_container_name
    if primary not in [container.get("name") for container in spec.get("containers") or []]:
        spec["containers"] = [*(spec.get("containers") or []), {"name": primary}]
    for field in CONTAINER_FIELDS:
        if spec.get(field):
            spec[field] = [_with_image(container, settings) for container in spec[field]]
    spec["containers"] = [
        _with_task(container, task) if container.get("name") == primary else container
        for container in spec["containers"]
    ]
    metadata = K8sObjectMetadata(labels=template.labels, annotations=template.annotations)
    return K8sPod(metadata, spec, primary_container_name=primary)


def with_each_variable_once(pod: K8sPod, primary: str) -> K8sPod:
    """The pod with the last entry of each name in its primary container's env: Kubernetes takes that one.

    flytekit puts the task's `environment` and `pyflyte run --env` in front of the container's own.
    """
    containers = [dict(container) for container in pod.pod_spec.get("containers") or []]
    for container in containers:
        if container.get("name") == primary and (env := container.get("env")):
            last = {entry.get("name"): entry for entry in env}
            container["env"] = [entry for entry in env if entry is last[entry.get("name")]]
    return K8sPod(pod.metadata, {**pod.pod_spec, "containers": containers}, pod.data_config, pod.primary_container_name)


def _with_image(container: Mapping[str, Any], settings: SerializationSettings) -> dict[str, Any]:
    image = container.get("image")
    found = {"image": get_registerable_container_image(image, settings.image_config)} if image else {}
    return {**container, **found}


def _with_task(container: Mapping[str, Any], task: Container) -> dict[str, Any]:
    """The primary container with the task in it."""
    resources = {"limits": _quantities(task.resources.limits), "requests": _quantities(task.resources.requests)}
    env = [{"name": name, "value": value} for name, value in (task.env or {}).items()]
    return {
        "image": task.image,
        **container,
        "command": task.command,
        "args": task.args,
        "env": [*env, *(container.get("env") or [])],
        **({"resources": resources} if any(resources.values()) else {}),
    }


def _quantities(entries: Sequence[ContainerResources.ResourceEntry]) -> dict[str, str]:
    """The amounts by Kubernetes' names; a GPU is `gpu`, until the platform says its name.

    Source: flytekit/core/utils.py _sanitize_resource_name.
    """
    names = [Resources.ResourceName.Name(entry.name) for entry in entries]  # type: ignore[attr-defined]  # stubs lack it
    return {name.lower().replace("_", "-"): entry.value for name, entry in zip(names, entries, strict=True)}
