"""Where a pod may run: tolerations, node selectors, and the platform's node affinity requirements.

Source: flyteplugins flytek8s/pod_helper.go (UpdatePod, ApplyGPUNodeSelectors, AddTolerationsForExtendedResources) and
utils.go (GetPodTolerations).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flyteidl.core.tasks_pb2 import TaskTemplate

from ..settings import Settings
from ..wire import FlyteTask, Manifest
from ..wire.protojson import which
from .containers import each_container
from .merge import copied
from .resources import requested_names

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def with_platform_scheduling(spec: Manifest, task: FlyteTask, settings: Settings) -> Manifest:
    """A pod spec with what its resources and the platform ask of its node, each put in once.

    Applied to each group's pod, whose template may have brought or taken away a GPU, or have its own affinity, and to
    the submitter's.
    """
    requirements = interruptible_requirements(task, settings)
    if limits_gpus(spec, settings):
        requirements += accelerator_requirements(task.template, settings)
    return with_requirements(with_tolerations(spec, brought_tolerations(spec, task, settings)), requirements)


def brought_tolerations(spec: Manifest, task: FlyteTask, settings: Settings) -> list[Manifest]:
    """What the pod tolerates for the resources that its containers ask for."""
    tolerations = [*resource_tolerations(spec, settings), *extended_resource_tolerations(spec, settings)]
    return tolerations + (accelerator_tolerations(task.template, settings) if limits_gpus(spec, settings) else [])


def is_interruptible(task: FlyteTask) -> bool:
    """Whether this attempt may run on nodes that can be taken away.

    A label of the execution tells what propeller made of the task, the node, the execution and the attempts so far.

    Source: flytepropeller nodes/node_exec_context.go NodeInterruptibleLabel.
    """
    label = task.execution.labels.get("interruptible")
    return label == "true" if label in ("true", "false") else bool(task.template.metadata.interruptible)


def default_tolerations(task: FlyteTask, settings: Settings) -> list[Manifest]:
    """The platform's tolerations for every pod, and for interruptible ones."""
    interruptible = settings.k8s.interruptible_tolerations if is_interruptible(task) else ()
    return [dict(toleration) for toleration in (*interruptible, *settings.k8s.default_tolerations)]


def resource_tolerations(spec: Manifest, settings: Settings) -> list[Manifest]:
    """The platform's tolerations for the resources that the pod's containers name.

    Source: utils.go GetPodTolerations.
    """
    names = requested_names(spec.get("containers") or [])  # Go takes an amount of 0 for one
    return _configured_tolerations(settings, lambda name: name in names)


def extended_resource_tolerations(spec: Manifest, settings: Settings) -> list[Manifest]:
    """A toleration for each extended resource of the settings' list that a container requests.

    Source: pod_helper.go AddTolerationsForExtendedResources.
    """
    requested = requested_names((container for _, container in each_container(spec)), ["requests"])
    wanted = sorted(requested.intersection(settings.k8s.add_tolerations_for_extended_resources))
    return [_exists_toleration(name) for name in wanted]


def accelerator_tolerations(template: TaskTemplate, settings: Settings) -> list[Manifest]:
    """The tolerations for the task's accelerator. Source: pod_helper.go ApplyGPUNodeSelectors."""
    accelerator = template.extended_resources.gpu_accelerator
    tolerations = []
    if accelerator.device:
        tolerations.append(_equal_toleration(settings.k8s.gpu_device_node_label, accelerator.device))
    if which(accelerator, "partition_size_value") == "partition_size":
        tolerations.append(_equal_toleration(settings.k8s.gpu_partition_size_node_label, accelerator.partition_size))
    elif accelerator.unpartitioned and settings.k8s.gpu_unpartitioned_toleration:
        tolerations.append(dict(settings.k8s.gpu_unpartitioned_toleration))
    return tolerations


def device_tolerations(template: TaskTemplate, settings: Settings) -> list[Manifest]:
    """All tolerations that devices can bring to a pod of the task, whether it has them or not."""
    extended = _configured_tolerations(settings, lambda name: "/" in name)
    listed = [_exists_toleration(name) for name in settings.k8s.add_tolerations_for_extended_resources]
    return [*accelerator_tolerations(template, settings), *extended, *listed]


def accelerator_requirements(template: TaskTemplate, settings: Settings) -> list[Manifest]:
    """The node requirements of the task's accelerator. Source: pod_helper.go ApplyGPUNodeSelectors."""
    accelerator = template.extended_resources.gpu_accelerator
    requirements: list[Manifest] = []
    if accelerator.device:
        requirements.append(
            {"key": settings.k8s.gpu_device_node_label, "operator": "In", "values": [accelerator.device]}
        )
    size_label = settings.k8s.gpu_partition_size_node_label
    if which(accelerator, "partition_size_value") == "partition_size":
        requirements.append({"key": size_label, "operator": "In", "values": [accelerator.partition_size]})
    elif accelerator.unpartitioned:
        configured = settings.k8s.gpu_unpartitioned_node_selector_requirement
        requirements.append(dict(configured) if configured else {"key": size_label, "operator": "DoesNotExist"})
    return requirements


def interruptible_requirements(task: FlyteTask, settings: Settings) -> list[Manifest]:
    """What the platform asks of the node of a pod that can be taken away, or of one that can't."""
    k8s = settings.k8s
    one = (
        k8s.interruptible_node_selector_requirement
        if is_interruptible(task)
        else k8s.non_interruptible_node_selector_requirement
    )
    return [dict(one)] if one else []


def limits_gpus(spec: Manifest, settings: Settings) -> bool:
    """Whether a container of the pod has GPUs, by its limits as in Flyte; unlike there, 0 of them are none."""
    return settings.k8s.gpu_resource_name in requested_names(spec.get("containers") or [], ["limits"])


def with_tolerations(spec: Manifest, tolerations: Iterable[Mapping[str, Any]]) -> Manifest:
    """The pod spec with these tolerations too, none of them twice."""
    present = list(spec.get("tolerations") or [])
    missing: list[Any] = []
    for toleration in tolerations:
        if not is_among(toleration, [*present, *missing]):
            missing.append(copied(dict(toleration)))
    return {**spec, "tolerations": present + missing} if missing else spec


def without_tolerations(spec: Manifest, tolerations: list[Manifest]) -> Manifest:
    """The pod spec without its tolerations that mean the same as one of these, and without an empty list of them."""
    kept = [each for each in spec.get("tolerations") or [] if not is_among(each, tolerations)]
    rest = {key: value for key, value in spec.items() if key != "tolerations"}
    return {**rest, "tolerations": kept} if kept else rest


def is_among(toleration: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> bool:
    """Whether one of the others means the same."""
    return any(_canonical_toleration(toleration) == _canonical_toleration(other) for other in others)


def with_requirements(spec: Manifest, requirements: list[Manifest]) -> Manifest:
    """The pod spec with the requirements in each of its required node affinity terms, none of them twice.

    D11 (design): terms are alternatives, so a requirement that stands in one of them only is none.
    """
    if not requirements:
        return _without_empty_terms(spec)
    affinity = copied(spec.get("affinity") or {})
    selector = _at(_at(affinity, "nodeAffinity"), _REQUIRED)
    terms = selector.get("nodeSelectorTerms") or [{}]
    selector["nodeSelectorTerms"] = [_with_expressions(term, requirements) for term in terms]
    return {**spec, "affinity": affinity}


def without_requirements(spec: Manifest, requirements: list[Manifest]) -> Manifest:
    """The pod spec without these expressions in its required node affinity, nor what that leaves empty."""
    return _with_terms(spec, lambda present: [each for each in present if each not in requirements])


def without_last_requirements(spec: Manifest, requirements: list[Manifest]) -> Manifest:
    """The pod spec without these expressions where they end a required term, each once, nor what that leaves empty."""

    def shortened(present: list[Any]) -> list[Any]:
        for requirement in reversed(requirements):
            present = present[:-1] if present[-1:] == [requirement] else present
        return present

    return _with_terms(spec, shortened)


def _configured_tolerations(settings: Settings, wanted: Callable[[str], bool]) -> list[Manifest]:
    """The settings' tolerations for those resources whose name is wanted."""
    configured = settings.k8s.resource_tolerations.items()
    return [dict(toleration) for name, tolerations in configured if wanted(name) for toleration in tolerations]


def _exists_toleration(key: str) -> Manifest:
    return {"key": key, "operator": "Exists", "effect": "NoSchedule"}


def _equal_toleration(key: str, value: str) -> Manifest:
    return {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}


def _canonical_toleration(toleration: Mapping[str, Any]) -> Manifest:
    """A toleration without what says nothing; an absent operator means Equal."""
    return {key: value for key, value in {"operator": "Equal", **toleration}.items() if value not in (None, "")}


def _at(manifest: Manifest, key: str) -> Manifest:
    """The mapping at a key, made where there is none."""
    manifest[key] = manifest.get(key) or {}
    found: Manifest = manifest[key]
    return found


def _with_expressions(term: Manifest, requirements: list[Manifest]) -> Manifest:
    present = term.get("matchExpressions") or []
    return {
        **term,
        "matchExpressions": [*present, *(copied(each) for each in requirements if each not in present)],
    }


def _with_terms(spec: Manifest, change: Callable[[list[Any]], list[Any]]) -> Manifest:
    """The pod spec with the expressions of each required term changed; a term that this empties goes."""
    selector = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = selector.get("nodeSelectorTerms") or []
    changed = [_with_changed_expressions(term, change) for term in terms]
    if changed == terms:
        return spec
    affinity = copied(spec["affinity"])
    if kept := [term for term in changed if term]:
        affinity["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"] = kept
    else:
        del affinity["nodeAffinity"][_REQUIRED]
    return {**spec, "affinity": {key: value for key, value in affinity.items() if value}}


def _without_empty_terms(spec: Manifest) -> Manifest:
    """The pod spec without a list of no required terms, which a template needs to take others away: it is invalid."""
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    if _REQUIRED not in node or (node[_REQUIRED] or {}).get("nodeSelectorTerms"):
        return spec
    left = {key: value for key, value in node.items() if key != _REQUIRED}
    return {**spec, "affinity": {**spec["affinity"], "nodeAffinity": left}}


def _with_changed_expressions(term: Manifest, change: Callable[[list[Any]], list[Any]]) -> Manifest:
    present = term.get("matchExpressions") or []
    changed = change(present)
    return term if changed == present else {k: v for k, v in {**term, "matchExpressions": changed}.items() if v}
