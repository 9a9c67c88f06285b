"""Environment variables of containers, by their order of precedence (design D10).

Low to high: platform defaults < base PodTemplate < task < execution < Flyte's identity < Ray's < group template.

Source: flyteplugins flytek8s/k8s_resource_adds.go (DecorateEnvVars).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from flyteidl.admin.agent_pb2 import TaskExecutionMetadata

from ..settings import Settings
from ..wire import Manifest
from ..wire.protojson import has_field
from .containers import each_container, with_each_container
from .merge import copied

FAIL_ON_ERROR = {"name": "FLYTE_FAIL_ON_ERROR", "value": "true"}
"""D14 (design): without it `pyflyte-execute` ends with 0 when the user's code raised."""

_REFERENCE = re.compile(r"\$\(([^)]+)\)")

IDENTITY_MARK = "FLYTE_INTERNAL_EXECUTION_ID"


def platform_env(settings: Settings) -> list[Manifest]:
    """The variables that the platform gives to every container."""
    return _entries({**settings.k8s.default_env_vars, **settings.k8s.default_env_vars_from_env})


def execution_env(execution: TaskExecutionMetadata) -> list[Manifest]:
    """The variables that the execution was started with."""
    return _entries(execution.environment_variables)


def identity_env(execution: TaskExecutionMetadata) -> list[Manifest]:
    """What tells the code which execution and task it is; empty where there is no execution.

    Source: k8s_resource_adds.go GetExecutionEnvVars.
    """
    task_execution = execution.task_execution_id
    run = task_execution.node_execution_id.execution_id
    if not run.name:  # flytekit's model turns an absent execution into an empty one
        return []
    values = {
        IDENTITY_MARK: run.name,
        "FLYTE_INTERNAL_EXECUTION_PROJECT": run.project,
        "FLYTE_INTERNAL_EXECUTION_DOMAIN": run.domain,
        "FLYTE_ATTEMPT_NUMBER": str(task_execution.retry_attempt),
    }
    if has_field(task_execution, "task_id"):
        task = task_execution.task_id
        values |= {
            "FLYTE_INTERNAL_TASK_PROJECT": task.project,
            "FLYTE_INTERNAL_TASK_DOMAIN": task.domain,
            "FLYTE_INTERNAL_TASK_NAME": task.name,
            "FLYTE_INTERNAL_TASK_VERSION": task.version,
        }
    return _entries(values)


def with_flyte_env(container: Manifest, execution: TaskExecutionMetadata, settings: Settings) -> Manifest:
    """The container with the platform's variables below its own, the execution's and Flyte's above them."""
    layers = (platform_env(settings), container.get("env") or [], execution_env(execution), identity_env(execution))
    settled = {"env": merge_env(*layers), "envFrom": _env_from(container.get("envFrom") or [], settings)}
    return {key: value for key, value in {**container, **settled}.items() if value or key not in settled}


def merge_env(*layers: Iterable[Mapping[str, Any]]) -> list[Manifest]:
    """One entry a name: the highest layer's, at the place of the first."""
    merged: dict[str, Manifest] = {}
    for layer in layers:
        for entry in layer:
            merged[entry["name"]] = copied(dict(entry))
    return list(merged.values())


def with_ordered_env(spec: Manifest) -> Manifest:
    """The pod spec with each variable after those that its value refers to as `$(NAME)`; else in their order.

    Kubernetes resolves only what stands before. A merge keeps the place of the entry that it replaces, and so may put
    a value in front of what it refers to.
    """
    return with_each_container(spec, lambda c, _: {**c, "env": _ordered(c["env"])} if c.get("env") else c)


def _ordered(entries: list[Manifest]) -> list[Manifest]:
    by_name = {entry["name"]: entry for entry in entries}
    ordered: dict[str, Manifest] = {}
    entered: set[str] = set()
    waiting = [entry["name"] for entry in reversed(entries)]
    while waiting:
        name = waiting[-1]
        referred = [] if name in entered else _REFERENCE.findall(str(by_name[name].get("value") or ""))
        missing = [each for each in referred if each in by_name and each not in entered]
        entered.add(name)
        if missing:
            waiting += [each for each in reversed(missing) if each != name]
            continue
        ordered.setdefault(waiting.pop(), by_name[name])
    return list(ordered.values())


def with_container_renamed(spec: Manifest, old: str, new: str) -> Manifest:
    """A copy of the pod spec whose resource field references name a container by its new name (design D18)."""
    renamed: Manifest = copied(spec)
    for reference in _resource_field_references(renamed):
        if reference.get("containerName") == old:
            reference["containerName"] = new
    return renamed


def _resource_field_references(spec: Manifest) -> Iterable[Manifest]:
    for _, container in each_container(spec):
        for entry in container.get("env") or []:
            yield from _present((entry.get("valueFrom") or {}).get("resourceFieldRef"))
    for volume in spec.get("volumes") or []:
        projected = [source.get("downwardAPI") for source in (volume.get("projected") or {}).get("sources") or []]
        for source in _present(volume.get("downwardAPI"), *projected):
            for item in source.get("items") or []:
                yield from _present(item.get("resourceFieldRef"))


def _present(*values: Manifest | None) -> Iterable[Manifest]:
    return [value for value in values if value]


def _env_from(present: list[Manifest], settings: Settings) -> list[Manifest]:
    """A container's sources, then the platform's, none twice; the platform's may be absent from a namespace."""
    ours = [
        *({"secretRef": {"name": name, "optional": True}} for name in settings.k8s.default_env_from_secrets),
        *({"configMapRef": {"name": name, "optional": True}} for name in settings.k8s.default_env_from_configmaps),
    ]
    return [*present, *(source for source in ours if source not in present)]


def _entries(values: Mapping[str, str]) -> list[Manifest]:
    return [{"name": name, "value": value} for name, value in values.items()]
