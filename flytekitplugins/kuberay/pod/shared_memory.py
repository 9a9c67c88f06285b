"""The task's shared memory: a memory-backed volume in the Ray containers.

Source: flyteplugins flytek8s/pod_helper.go ApplySharedMemory.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import Problem
from ..quantity import is_quantity, parse_quantity
from ..wire import FlyteTask, Manifest
from ..wire.protojson import has_field


def shared_memory_of(task: FlyteTask) -> tuple[Manifest, Manifest] | None:
    """The volume and the mount of the task's shared memory. Source: pod_helper.go ApplySharedMemory."""
    if not has_field(task.template.extended_resources, "shared_memory"):
        return None
    memory = task.template.extended_resources.shared_memory
    source = {"medium": "Memory", **({"sizeLimit": memory.size_limit} if memory.size_limit else {})}
    return {"name": memory.mount_name, "emptyDir": source}, {"name": memory.mount_name, "mountPath": memory.mount_path}


def with_shared_memory(spec: Manifest, task: FlyteTask, primary: str) -> Manifest:
    """The pod spec with the task's shared memory in its primary container; what holds it already stays as it is."""
    if (wanted := shared_memory_of(task)) is None:
        return spec
    volume, mount = wanted
    names = [each.get("name") for each in spec.get("volumes") or []]
    volumes = [*(spec.get("volumes") or []), *([] if volume["name"] in names else [volume])]
    containers = [_with_mount(c, mount) if c["name"] == primary else c for c in spec["containers"]]
    return {**spec, "volumes": volumes, "containers": containers}


def _with_mount(container: Manifest, mount: Manifest) -> Manifest:
    mounts = container.get("volumeMounts") or []
    return (
        container
        if mount["mountPath"] in [each.get("mountPath") for each in mounts]
        else {**container, "volumeMounts": [*mounts, mount]}
    )


def shared_memory_problems(task: FlyteTask) -> Iterator[Problem]:
    """What is wrong with the shared memory that the task asks for."""
    if not has_field(task.template.extended_resources, "shared_memory"):
        return
    memory, path = task.template.extended_resources.shared_memory, "extendedResources.sharedMemory"
    for field, value in (("mountName", memory.mount_name), ("mountPath", memory.mount_path)):
        if not value:
            yield Problem(f"{path}.{field}", "is not set", "use flytekit's shared_memory=")
    if memory.size_limit and not is_quantity(memory.size_limit):
        yield Problem(
            f"{path}.sizeLimit", f"{memory.size_limit!r} is no Kubernetes quantity", "write 2Gi, for instance"
        )


def shared_memory_conflicts(spec: Manifest, task: FlyteTask, primary: str, path: str) -> Iterator[Problem]:
    """Where the pod uses shared memory's volume name or path for something else.

    D13 (design): Flyte's Go code says so in one place and makes an invalid pod in others.
    """
    if (wanted := shared_memory_of(task)) is None:
        return
    volume, mount = wanted
    source = f"as the task's shared memory (extendedResources.sharedMemory, {mount['mountPath']}) does"
    for each in spec.get("volumes") or []:
        if each.get("name") == volume["name"] and not _same_volume(each, volume):
            yield Problem(
                f"{path}: volume {each['name']!r}", f"has the name of shared memory's volume, {source}", "rename it"
            )
    mounts = [
        each for c in spec.get("containers") or [] if c["name"] == primary for each in c.get("volumeMounts") or []
    ]
    for each in mounts:
        same = (each.get("name") == mount["name"], each.get("mountPath") == mount["mountPath"])
        if any(same) and not all(same):
            where = f"{path}: container {primary!r} mounts {each.get('name')!r} at {each.get('mountPath')!r}"
            yield Problem(where, f"uses the path or the volume {source}", "drop that mount, or shared_memory=")


def _same_volume(one: Manifest, other: Manifest) -> bool:
    """Whether both are the same memory-backed volume; a size limit of 0 is none."""
    sources = [dict(volume.get("emptyDir") or {}) for volume in (one, other)]
    sizes = [parse_quantity(source.pop("sizeLimit", None) or "0") for source in sources]
    return set(one) == {"name", "emptyDir"} and sources[0] == sources[1] and sizes[0] == sizes[1]
