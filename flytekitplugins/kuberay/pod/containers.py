"""The containers of a pod spec: finding one, and looking at or changing each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..wire import Manifest

LISTS = ("initContainers", "containers")
"""A pod's lists of containers, in the order in which Flyte goes through them."""


def container_of(spec: Manifest, name: str) -> Manifest:
    """The pod's container of that name."""
    found: Manifest = next(container for container in spec["containers"] if container["name"] == name)
    return found


def each_container(spec: Manifest, path: str = "", lists: Sequence[str] = LISTS) -> Iterator[tuple[str, Manifest]]:
    """Each container with its path, which begins with the pod spec's own."""
    for field in lists:
        for index, container in enumerate(spec.get(field) or []):
            yield f"{path}.{field}[{index}]", container


def without_containers(spec: Manifest) -> Manifest:
    """The rest of the pod spec."""
    return {key: value for key, value in spec.items() if key not in LISTS}


def with_each_container(spec: Manifest, change: Callable[[Manifest, str], Manifest]) -> Manifest:
    """The pod spec with what `change` makes of each container, given it and the name of its list."""
    return {**spec, **{field: [change(c, field) for c in spec[field]] for field in LISTS if spec.get(field)}}
