"""Pods that a propeller has processed already: what its pass added is taken off, so that twice is once (design 5.2).

Propellers since 1.16.7 run ToK8sPodSpec on K8sPod targets before they call a connector; older ones send them raw. Their
merge appends: a list of the base PodTemplate stands in front of the task's, the execution's and the platform's
environment variables behind the task's, and the platform's node requirements behind each term's. Here each list gets
back what the task had.

Source: flyteplugins flytek8s/pod_helper.go (MergeBasePodSpecOntoTemplate, with mergo.WithAppendSlice; before it
UpdatePod, after it ApplyGPUNodeSelectors).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ..quantity import parse_quantity
from ..settings import Settings
from ..wire import FlyteTask, Manifest
from . import scheduling
from .base import base_parts, template_spec
from .containers import with_each_container, without_containers
from .environment import IDENTITY_MARK, execution_env, identity_env, platform_env
from .merge import ONE_OF
from .resources import SIDES, is_extended, resources_of, with_gpu_name


def unmerged(spec: Manifest, task: FlyteTask, settings: Settings, base: Manifest | None, primary: str) -> Manifest:
    """The K8sPod target's pod spec without what an earlier pass added; a raw one as it is."""
    if not is_processed(spec, task):
        return spec
    base_spec = template_spec(base)
    identity = identity_env(task.execution)
    added = [*platform_env(settings), *execution_env(task.execution), *identity]
    weak = _weak_fields(task)
    taken = _without_base(spec, base_spec, task, settings)
    taken = {key: value for key, value in taken.items() if key not in weak or value != base_spec.get(key)}
    lent = _lent_devices(base_spec, settings)

    def unmerged_container(container: Manifest, field: str) -> Manifest:
        name = container.get("name", "")
        if field == "containers" and name != primary:
            container = _without_lent(container, lent)
        return _unmerged_container(container, base_parts(name, field, base_spec, primary), added, identity)

    return with_each_container(taken, unmerged_container)


def is_processed(spec: Manifest, task: FlyteTask) -> bool:
    """Whether a container names this execution in the environment, which only a propeller's pass can have put there."""
    mark = {"name": IDENTITY_MARK, "value": task.execution.task_execution_id.node_execution_id.execution_id.name}
    containers = spec.get("containers")
    return isinstance(containers, list) and any(
        isinstance(c, Mapping) and mark in _entries(c.get("env")) for c in containers
    )


def _weak_fields(task: FlyteTask) -> set[str]:
    """What counts less, or not at all, when it comes from the base PodTemplate.

    A service account comes from there only where the execution has none: else that one went into the pod before.
    """
    return {"dnsPolicy"} if task.execution.k8s_service_account else {"dnsPolicy", "serviceAccountName"}


def _without_base(spec: Manifest, base_spec: Manifest, task: FlyteTask, settings: Settings) -> Manifest:
    """The pod spec, but for its containers, without what base PodTemplate and platform put into it.

    The other way round than they came: accelerator, base PodTemplate, interruptibility, default affinity.
    """
    asking = _with_amounts(spec)
    tolerations = scheduling.brought_tolerations(asking, task, settings)
    if scheduling.limits_gpus(asking, settings):
        spec = scheduling.without_last_requirements(spec, scheduling.accelerator_requirements(task.template, settings))
    spec = _without_prefixes(spec, without_containers(base_spec))
    spec = scheduling.without_tolerations(spec, tolerations)  # a group may have none of what they are for
    spec = scheduling.without_last_requirements(spec, scheduling.interruptible_requirements(task, settings))
    default = settings.k8s.default_affinity if base_spec.get("affinity") else None  # which then does not count
    return {key: value for key, value in spec.items() if key != "affinity" or value != default}


def _with_amounts(spec: Manifest) -> Manifest:
    """The pod spec with 1 of each resource that it names: Flyte takes an amount of 0 for one, too."""

    def asking(container: Manifest, field: str) -> Manifest:
        sides = {side: dict.fromkeys(resources_of(container).get(side) or {}, "1") for side in SIDES}
        return {**container, "resources": sides}

    return with_each_container(spec, asking)


def _unmerged_container(
    container: Manifest, parts: list[Manifest], added: list[Manifest], identity: list[Manifest]
) -> Manifest:
    env = _entries(container.get("env"))
    end = next((index for index, entry in enumerate(env) if entry in identity), len(env))
    own = {**container, "env": env[:end]}
    for part in parts:
        own = _without_prefixes(own, part)
    names = {entry.get("name") for entry in env[:end]}
    settled = _settled_env(own.pop("env", []), env[end:], names, added)
    return {**own, "env": settled} if settled else own


def _settled_env(env: list[Manifest], behind: list[Manifest], names: set[Any], added: list[Manifest]) -> list[Manifest]:
    """The task's own variables, one entry a name.

    Of two of the task's the last counts, as in Kubernetes: SDKs put `environment` in front of the pod's own.

    Args:
        env: What stands before Flyte's identity, without the base PodTemplate's.
        behind: From the identity on. What our settings don't know of it are defaults of propeller's.
        names: Of task and base PodTemplate, which stand above such a default.
        added: What we put there ourselves later.
    """
    backwards, behind = env[::-1], list(behind)
    for entry in added:  # each stands once, behind the task's own
        part = behind if entry in behind else backwards
        if entry in part:
            part.remove(entry)
    own: dict[Any, Manifest] = {}
    for entry in backwards:
        own.setdefault(entry.get("name"), entry)
    return [*reversed(own.values()), *(entry for entry in behind if entry.get("name") not in names)]


def _lent_devices(base_spec: Manifest, settings: Settings) -> Manifest:
    """The extended resources of the base PodTemplate's `primary`, side by side, which Go hands to sidecars too."""
    named: Manifest = next((c for c in base_spec.get("containers") or [] if c.get("name") == "primary"), {})
    resources = with_gpu_name(resources_of(named), settings)
    return {side: {n: a for n, a in (resources.get(side) or {}).items() if is_extended(n)} for side in SIDES}


def _without_lent(container: Manifest, lent: Manifest) -> Manifest:
    """The container without the resources of which it has what is lent, no more on one side: else they are its own."""
    resources = resources_of(container)
    sides = {side: resources[side] for side in SIDES if resources.get(side)}
    brought = {
        name
        for name in {**lent["requests"], **lent["limits"]}
        if all(_amount(sides.get(side, {}).get(name)) == _amount(lent[side].get(name)) for side in SIDES)
    }
    kept = {side: {name: amount for name, amount in own.items() if name not in brought} for side, own in sides.items()}
    return {**container, "resources": {**resources, **kept}} if brought else container


def _amount(amount: Any) -> Fraction:
    """The amount on one side of the resources, 0 where there is none: Go writes that for a GPU's."""
    return parse_quantity(0 if amount is None else amount)


def _without_prefixes(value: Manifest, base: Mapping[str, Any], field: str = "") -> Manifest:
    """The mapping with the base's lists taken off the front of its own, at any depth."""
    taken: Manifest = {}
    for key, own in value.items():
        theirs = base.get(key)
        if isinstance(own, Mapping) and isinstance(theirs, Mapping):
            rest = _without_prefixes(dict(own), theirs, key)
            brought = (own and not rest) or (own == theirs and key in ONE_OF.get(field, ()))  # a probe's other handler
            taken |= {} if brought else {key: rest}
        elif isinstance(own, list) and isinstance(theirs, list) and theirs and own[: len(theirs)] == theirs:
            taken |= {key: own[len(theirs) :]} if len(own) > len(theirs) else {}
        else:
            taken[key] = own
    return taken


def _entries(env: Any) -> list[Manifest]:
    return [entry for entry in env if isinstance(entry, dict)] if isinstance(env, list) else []
