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
from typing import Any

from ..settings import Settings
from ..wire import FlyteTask, Manifest
from . import scheduling
from .base import base_parts, template_spec
from .containers import with_each_container, without_containers
from .environment import IDENTITY_MARK, execution_env, identity_env, platform_env
from .merge import ONE_OF


def unmerged(spec: Manifest, task: FlyteTask, settings: Settings, base: Manifest | None, primary: str) -> Manifest:
    """The K8sPod target's pod spec without what an earlier pass added; a raw one as it is."""
    if not is_processed(spec, task):
        return spec
    base_spec = template_spec(base)
    added = [*platform_env(settings), *execution_env(task.execution), *identity_env(task.execution)]
    weak = _weak_fields(task)
    taken = _without_base(spec, base_spec, task, settings)
    taken = {key: value for key, value in taken.items() if key not in weak or value != base_spec.get(key)}
    return with_each_container(
        taken,
        lambda c, field: _unmerged_container(c, base_parts(c.get("name", ""), field, base_spec, primary), added),
    )


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
    if scheduling.limits_gpus(spec, settings):
        spec = scheduling.without_last_requirements(spec, scheduling.accelerator_requirements(task.template, settings))
    spec = _without_prefixes(spec, without_containers(base_spec))
    spec = scheduling.without_last_requirements(spec, scheduling.interruptible_requirements(task, settings))
    default = settings.k8s.default_affinity if base_spec.get("affinity") else None  # which then does not count
    return {key: value for key, value in spec.items() if key != "affinity" or value != default}


def _unmerged_container(container: Manifest, parts: list[Manifest], added: list[Manifest]) -> Manifest:
    for part in parts:
        container = _without_prefixes(container, part)
    backwards = _entries(container.get("env"))[::-1]
    for entry in added:  # each stands once, behind the task's own
        if entry in backwards:
            backwards.remove(entry)
    rest = {key: value for key, value in container.items() if key != "env"}
    return {**rest, "env": backwards[::-1]} if backwards else rest


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
