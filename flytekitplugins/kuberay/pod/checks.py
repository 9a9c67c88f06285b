"""What is wrong with a pod spec or its metadata, found before the cluster would find it, or would silently accept it.

Each function yields problems, raises nothing and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import Problem
from ..quantity import parse_quantity
from ..schema import PATCH, type_problems
from ..syntax import is_dns_label, is_env_name, is_label_key
from ..wire import Manifest
from .containers import LISTS, each_container
from .merge import ENTRY_KEYS, entry_key
from .resources import is_extended

DIRECTIVES = ("replace", "delete", "merge")
_CONTAINER_LISTS = (*LISTS, "ephemeralContainers")
_KEYED_IN_CONTAINERS = frozenset({"env", "ports", "volumeMounts", "volumeDevices"})
_KEYED_IN_PODS = frozenset(ENTRY_KEYS) - _KEYED_IN_CONTAINERS
_MAX_DEPTH = 40
_MAX_METADATA = 256 * 1024


def pod_spec_problems(spec: Any, path: str, directives: Sequence[str] = DIRECTIVES) -> list[Problem]:
    """What is wrong with a pod spec as somebody wrote it: types, names, duplicates within one list."""
    return shape_problems(spec, path) or content_problems(spec, path, directives)


def container_problems(container: Any, path: str, directives: Sequence[str] = DIRECTIVES) -> Iterator[Problem]:
    """As `pod_spec_problems`, of one container alone, at its own path."""
    for problem in pod_spec_problems({"containers": [container]}, path, directives):
        yield replace(problem, path=problem.path.replace(f"{path}.containers[0]", path, 1))


def shape_problems(spec: Any, path: str, kind: str = "V1PodSpec") -> list[Problem]:
    """What in a pod spec, or another Kubernetes type, is of the wrong type, or nested too deep."""
    if _depth(spec) > _MAX_DEPTH:
        return [Problem(path, f"is nested more than {_MAX_DEPTH} levels deep", "no field of a pod is")]
    return list(type_problems(spec, path, kind))


def content_problems(spec: Manifest, path: str, directives: Sequence[str] = DIRECTIVES) -> list[Problem]:
    """What is wrong with a pod spec without `shape_problems`: names, duplicates within one list.

    Args:
        spec: A pod spec.
        path: Where it stands, for the reader.
        directives: What `$patch` may say; nothing where the spec goes on top of none.
    """
    return [
        *_directive_problems(spec, path, directives),
        *_name_problems(spec, path),
        *_volume_problems(spec, path),
        *_duplicates(spec, path),
    ]


def metadata_problems(labels: Mapping[str, str], annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Label and annotation keys that Kubernetes refuses, and annotations that are too large together."""
    for field, keys in (("labels", labels), ("annotations", annotations)):
        for key in keys:
            if not is_label_key(key):
                remedy = "write [prefix.example.com/]name, the name with letters, digits, '-', '_' and '.', at most 63"
                yield Problem(f"{path}.{field}", f"{key!r} is no valid key", remedy)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MAX_METADATA:
        yield Problem(
            f"{path}.annotations",
            f"hold {size} bytes, more than Kubernetes' {_MAX_METADATA}",
            "put large text elsewhere",
        )


def final_pod_problems(spec: Manifest, primary: str, path: str) -> Iterator[Problem]:
    """What is wrong with a pod after all merges: a name twice, no image, a mount without a volume, odd amounts."""
    yield from _duplicates(spec, path)
    if primary not in [container.get("name") for container in spec.get("containers") or []]:
        yield Problem(path, f"has no container {primary!r} left", "merge with it: don't delete or replace it")
    volumes = {volume["name"] for volume in spec.get("volumes") or []}
    containers = [container for _, container in each_container(spec, lists=_CONTAINER_LISTS)]
    for name, count in Counter(container.get("name") for container in containers).items():
        if count > 1:
            yield Problem(path, f"{count} containers of the pod are called {name!r}", "rename all but one")
    for container in containers:
        where = f"{path}: container {container.get('name')!r}"
        if not container.get("image"):
            yield Problem(where, "has no image", "give it one, or name it as a container that has one")
        yield from _mount_problems(container, volumes, where)
        yield from _port_problems(container, where)
        yield from _amount_problems(container.get("resources") or {}, where)


def _mount_problems(container: Manifest, volumes: set[str], where: str) -> Iterator[Problem]:
    for mount in container.get("volumeMounts") or []:
        if mount.get("name") not in volumes:
            what = f"no volume is called {mount.get('name')!r}"
            yield Problem(f"{where} mounts {mount.get('mountPath')!r}", what, "add it to the pod's volumes")


def _port_problems(container: Manifest, where: str) -> Iterator[Problem]:
    names = Counter(port["name"] for port in container.get("ports") or [] if port.get("name"))
    for name, count in names.items():
        if count > 1:
            yield Problem(where, f"has {count} ports called {name!r}", "rename yours: Ray's are redis, head, dashboard")


def _amount_problems(resources: Manifest, where: str) -> Iterator[Problem]:
    """Requests above a limit, where 0 is what Flyte writes for none; of extended resources, requests below it too."""
    limits = resources.get("limits") or {}
    for name, amount in (resources.get("requests") or {}).items():
        limit = limits.get(name)
        if None in (amount, limit):
            continue
        if is_extended(name) and parse_quantity(amount) != parse_quantity(limit):
            yield Problem(
                where,
                f"requests {amount} of {name}, and its limit is {limit}",
                "write one of them: they have to be equal",
            )
        elif parse_quantity(amount) > parse_quantity(limit) > 0:
            yield Problem(
                where, f"requests {amount} of {name}, above its limit of {limit}", "lower one or raise the other"
            )


def _name_problems(spec: Manifest, path: str) -> Iterator[Problem]:
    names: dict[str, str] = {}
    for where, container in each_container(spec, path, _CONTAINER_LISTS):
        if set(container) == {PATCH}:
            continue
        name = container.get("name")
        if not name:
            yield Problem(f"{where}.name", "the container has no name", "give it one")
        elif not is_dns_label(name):
            yield Problem(
                f"{where}.name", f"{name!r} is no DNS label", "use lower-case letters, digits and '-', at most 63"
            )
        elif name in names and PATCH not in container:
            yield Problem(f"{where}.name", f"{name!r} is the name of {names[name]} too", "rename one of them")
        names.setdefault(name or where, where)
        yield from _env_problems(container.get("env") or [], f"{where}.env")


def _env_problems(entries: Iterable[Manifest], path: str) -> Iterator[Problem]:
    for index, entry in enumerate(entries):
        name = entry.get("name")
        if set(entry) == {PATCH} or is_env_name(name or ""):
            continue
        yield Problem(
            f"{path}[{index}].name",
            f"{name or ''!r} is no name of an environment variable",
            "use printable characters but '='",
        )


def _volume_problems(spec: Manifest, path: str) -> Iterator[Problem]:
    for index, volume in enumerate(spec.get("volumes") or []):
        if set(volume) != {PATCH} and not is_dns_label(volume.get("name") or ""):
            remedy = "use lower-case letters, digits and '-', at most 63"
            yield Problem(f"{path}.volumes[{index}].name", f"{volume.get('name')!r} is no DNS label", remedy)


def _duplicates(spec: Manifest, path: str) -> Iterator[Problem]:
    """Two entries of one keyed list that have the same key."""
    yield from _list_duplicates(spec, _KEYED_IN_PODS, path)
    for where, container in each_container(spec, path, _CONTAINER_LISTS):
        yield from _list_duplicates(container, _KEYED_IN_CONTAINERS, where)


def _list_duplicates(owner: Manifest, fields: frozenset[str], path: str) -> Iterator[Problem]:
    for field in sorted(fields):
        seen: dict[Any, int] = {}
        for index, entry in enumerate(owner.get(field) or []):
            if PATCH in entry:
                continue
            key = entry_key(field, entry)
            if key in seen:
                shown = ", ".join(
                    f"{name} {part!r}"
                    for name, part in zip(ENTRY_KEYS[field], key or (), strict=True)
                    if part is not None
                )
                yield Problem(
                    f"{path}.{field}[{index}]", f"has the same {shown} as {field}[{seen[key]}]", "keep one of them"
                )
            seen.setdefault(key, index)


def _directive_problems(value: Any, path: str, allowed: Sequence[str]) -> Iterator[Problem]:
    if isinstance(value, Mapping):
        if value.get(PATCH) is not None and value[PATCH] not in allowed:
            remedy = f"use one of {', '.join(allowed)}" if allowed else "drop it, there is nothing under it to patch"
            yield Problem(f"{path}.{PATCH}", f"{value[PATCH]!r} is no directive here", remedy)
        for key, entry in value.items():
            yield from _directive_problems(entry, f"{path}.{key}", allowed)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _directive_problems(entry, f"{path}[{index}]", allowed)


def _depth(value: Any) -> int:
    """How deep mappings and lists nest, without recursion so that no input can exhaust the stack."""
    depth, level = 0, [value]
    while level and depth <= _MAX_DEPTH:
        level = [
            entry
            for each in level
            if isinstance(each, (Mapping, list))
            for entry in (each.values() if isinstance(each, Mapping) else each)
        ]
        depth += 1
    return depth
