"""Requests and limits of containers: defaults, the platform's caps, one side from the other, GPU names.

Source: flyteplugins flytek8s/container_helper.go (ApplyResourceOverrides and what it calls).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flyteidl.core.tasks_pb2 import Resources

from ..quantity import parse_quantity
from ..schema import PATCH
from ..settings import Settings
from ..wire import Manifest
from .containers import with_each_container

GPU = "gpu"
"""What flytekit calls a GPU; the platform's settings tell its Kubernetes name."""

_NAMES = {
    Resources.CPU: "cpu",
    Resources.MEMORY: "memory",
    Resources.GPU: GPU,
    Resources.EPHEMERAL_STORAGE: "ephemeral-storage",
}
SIDES = ("requests", "limits")


def from_flyte(resources: Resources) -> Manifest:
    """Kubernetes' resources of a flyteidl container; what is zero counts as not set.

    D24 (design): a GPU takes the configured name, by `with_gpu_name`.

    Source: k8s_resource_adds.go ToK8sResourceRequirements.
    """
    return {
        side: {
            _NAMES[entry.name]: entry.value
            for entry in getattr(resources, side)
            if entry.name in _NAMES and not _is_zero(entry.value)
        }
        for side in SIDES
    }


def with_gpu_name(resources: Mapping[str, Any], settings: Settings) -> Manifest:
    """The resources with `gpu` under the platform's name for it, on both sides.

    Source: container_helper.go SanitizeGPUResourceRequirements.
    """
    renamed = dict(resources)
    for side in SIDES:
        if (amounts := renamed.get(side)) and GPU in amounts:
            renamed[side] = {k: v for k, v in amounts.items() if k != GPU} | {
                settings.k8s.gpu_resource_name: amounts[GPU]
            }
    return renamed


def with_gpu_names(spec: Manifest, settings: Settings) -> Manifest:
    """The pod spec with `gpu` under the platform's name for it in each container."""
    return with_each_container(
        spec,
        lambda c, _: {**c, "resources": with_gpu_name(resources_of(c), settings)} if c.get("resources") else c,
    )


def with_missing(resources: Mapping[str, Any], fallback: Mapping[str, Any]) -> Manifest:
    """The resources with the amounts of `fallback` where a key is missing, side by side, but for a side `is_whole`.

    A null is not missing.

    Source: container_helper.go MergeResourcesIfMissing.
    """
    below = {side: {} if is_whole(resources, side) else fallback.get(side) or {} for side in SIDES}
    sides = {side: {**below[side], **(resources.get(side) or {})} for side in SIDES}
    return {**resources, **_without_taken(sides, resources)}


def within_platform(resources: Mapping[str, Any], settings: Settings, *, assign: bool) -> Manifest:
    """The resources within the platform's limits.

    Args:
        resources: A container's resources, `gpu` already renamed.
        settings: Defaults and caps.
        assign: Whether what is unset is filled, in primary and init containers: the request from the limit or the
            platform's default, the limit from the request. Else amounts are only lowered; unset cpu and memory are 0.

    Source: container_helper.go ApplyResourceOverrides.
    """
    sides = {side: dict(resources.get(side) or {}) for side in SIDES}
    platform = with_gpu_name(settings.kuberay.platform_resources, settings)
    defaults = {
        "cpu": settings.k8s.default_cpus,
        "memory": settings.k8s.default_memory,
        **(platform.get("requests") or {}),
    }
    caps = platform.get("limits") or {}
    for name in _adjusted_names(sides, settings.k8s.gpu_resource_name):
        request, limit = sides["requests"].get(name, "0"), sides["limits"].get(name, "0")
        if assign and _is_zero(request):
            request = defaults.get(name, "0") if _is_zero(limit) else limit
        if _is_zero(limit):
            limit = request  # Go does so with `assign` alone, and leaves a limit of 0 that the API server refuses
        limit = _at_most(limit, caps.get(name, "0"))
        sides["requests"][name] = _at_most(_at_most(request, caps.get(name, "0")), limit)
        sides["limits"][name] = limit
    return {**resources, **_with_equal_sides(sides)}


def with_sides_agreeing(merged: Mapping[str, Any], overlay: Mapping[str, Any]) -> Manifest:
    """The merged resources, where the overlay gave only one side of one the other side follows when it must.

    D19 (design): an extended resource needs both sides equal, and a request may not exceed its limit.
    """
    sides = _without_taken({side: merged.get(side) or {} for side in SIDES}, overlay)
    for given, other in (SIDES, SIDES[::-1]):
        only_here = _given(overlay, given).keys() - _given(overlay, other).keys()
        for name in only_here & sides[given].keys():
            if is_extended(name) or (name in sides[other] and _exceeds(sides["requests"][name], sides["limits"][name])):
                sides[other][name] = sides[given][name]
    settled = _with_equal_sides(sides)
    return {**merged, **{side: amounts for side, amounts in settled.items() if amounts or side in merged}}


def is_extended(name: str) -> bool:
    """Whether the resource is a device's or the like, of which the API server wants request and limit equal."""
    return "/" in name


def requested_names(containers: Iterable[Manifest], sides: Iterable[str] = SIDES) -> set[str]:
    """The names of all resources that the containers request or limit; of what is 0 they ask for nothing."""
    amounts = [resources_of(container).get(side) or {} for container in containers for side in sides]
    return {name for each in amounts for name, amount in each.items() if name != PATCH and not _is_zero(amount)}


def is_whole(owner: Mapping[str, Any], field: str) -> bool:
    """Whether nothing from below adds to the field: it is null, or says `$patch: replace`."""
    value = owner.get(field, {})
    return value is None or value.get(PATCH) == "replace"


def resources_of(container: Manifest) -> Manifest:
    """A container's resources; empty where it has none."""
    resources: Manifest = container.get("resources") or {}
    return resources


def _adjusted_names(sides: Mapping[str, Mapping[str, Any]], gpu: str) -> Iterator[str]:
    yield from ("cpu", "memory")
    yield from (name for name in ("ephemeral-storage", gpu) if any(name in sides[side] for side in SIDES))


def _given(resources: Mapping[str, Any], side: str) -> Manifest:
    """The amounts of one side that are no nulls."""
    return {name: amount for name, amount in (resources.get(side) or {}).items() if amount is not None}


def _without_taken(sides: Mapping[str, Mapping[str, Any]], own: Mapping[str, Any]) -> dict[str, Manifest]:
    """The merged sides without the extended resources of which the upper one has nulls alone."""
    named = {name for side in SIDES for name in own.get(side) or {} if is_extended(name)}
    taken = named - _given(own, "requests").keys() - _given(own, "limits").keys()
    return {side: {n: a for n, a in amounts.items() if n not in taken} for side, amounts in sides.items()}


def _with_equal_sides(sides: Mapping[str, Manifest]) -> Mapping[str, Manifest]:
    """The sides, of an extended resource a missing limit as its request, and a side of 0 as the other.

    The API server wants them equal, and takes a missing request from the limit. Go leaves a sidecar's at 0.
    """
    requests, limits = (dict(sides[side]) for side in SIDES)
    for name in filter(is_extended, sides["requests"]):
        if _is_zero(limits.get(name)):
            limits[name] = requests[name]
        elif _is_zero(requests[name]):
            requests[name] = limits[name]
    return {"requests": requests, "limits": limits}


def _is_zero(amount: Any) -> bool:
    return amount is None or parse_quantity(amount) == 0


def _exceeds(amount: Any, limit: Any) -> bool:
    return parse_quantity(amount) > parse_quantity(limit)


def _at_most(amount: Any, limit: Any) -> Any:
    """The amount, lowered to the limit; zero on either side means that there is nothing to lower."""
    return limit if not (_is_zero(amount) or _is_zero(limit)) and _exceeds(amount, limit) else amount
