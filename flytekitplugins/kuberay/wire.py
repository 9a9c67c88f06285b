"""What a Ray task looks like on the wire: `RayJobConfig` <-> flyteidl.plugins.RayJob <-> the template's `custom`.

The middle form is `RayTask`: frozen, plain values, nothing of flyteidl. `from_config` makes it of what the user
wrote, `to_custom` and `to_config_entry` write it into a task template, `from_template` reads it back from tasks of
this package and of flytekitplugins-ray 1.13 to 1.16. What flyteidl has no field for travels as `Extras` in the
template's `config["kuberay"]`.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from flyteidl.admin.agent_pb2 import TaskExecutionMetadata
from flyteidl.core.literals_pb2 import LiteralMap
from flyteidl.core.tasks_pb2 import TaskTemplate

from flytekitplugins.kuberay.errors import Problem, TaskError
from flytekitplugins.kuberay.protojson import boolean, count, list_of, mapping, message, one_of, plain_struct
from flytekitplugins.kuberay.protojson import text, texts, whole

CONFIG_KEY = "kuberay"
"""The key of our extras in `TaskTemplate.config`."""

EXTRAS_VERSION = 1
SUBMISSION_MODES = ("K8sJobMode", "HTTPMode", "SidecarMode")

GROUP_NAME = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # a DNS label, of the lower-cased name
GROUP_NAME_RULE = "use letters, digits and '-', begin and end with a letter or digit, at most 63"

_log = logging.getLogger(__name__)

Manifest = dict[str, Any]
"""A Kubernetes object, or a part of one, as plain camelCase data."""


@dataclass(frozen=True)
class K8sPod:
    """flyteidl.core.K8sPod: a pod spec with labels, annotations and the name of its primary container ("": none)."""

    pod_spec: Manifest
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    primary_container_name: str = ""


@dataclass(frozen=True)
class HeadGroup:
    """The head group; None means that the task says nothing, which is not the same as an empty map."""

    ray_start_params: Mapping[str, str] | None = None
    k8s_pod: K8sPod | None = None


@dataclass(frozen=True)
class WorkerGroup:
    """One worker group, with the replica bounds as they came."""

    group_name: str
    replicas: int
    min_replicas: int
    max_replicas: int
    ray_start_params: Mapping[str, str] | None = None
    k8s_pod: K8sPod | None = None


@dataclass(frozen=True)
class AutoscalerOptions:
    """Options of Ray's autoscaler; None, "" and {} mean unset."""

    upscaling_mode: str | None = None  # KubeRay's word: Default, Conservative, Aggressive
    idle_timeout_seconds: int | None = None
    image: str = ""
    env: tuple[tuple[str, str], ...] = ()
    requests: Mapping[str, str] = field(default_factory=dict)  # Kubernetes resource name -> quantity
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Extras:
    """`config["kuberay"]`, version 1: what flyteidl has no field for. None means unset."""

    shutdown: bool | None = None
    ttl: int | None = None  # seconds
    submission_mode: str | None = None  # K8sJobMode, HTTPMode, SidecarMode
    submitter_resources: Manifest | None = None  # {"requests": {...}, "limits": {...}}
    submitter_template: K8sPod | None = None
    start_deadline: int | None = None  # seconds
    run_deadline: int | None = None  # seconds
    queue: str | None = None
    priority: str | None = None
    backoff_limit: int | None = None
    ray_job_patch: Manifest | None = None
    address: str | None = None  # of a cluster that is not ours: only local runs can use it


@dataclass(frozen=True)
class RayTask:
    """A Ray task's settings, whatever release of whichever plugin registered it."""

    workers: tuple[WorkerGroup, ...] = ()
    head: HeadGroup | None = None
    enable_autoscaling: bool = False
    autoscaler_options: AutoscalerOptions | None = None
    runtime_env_yaml: str = ""  # of the old base64 form, where only that is there, its YAML
    runtime_env_base64: str = ""  # the old form as it came, for Go plugins before runtime_env_yaml
    shutdown: bool | None = None  # extras before custom; a False in custom can't be told from unset, so it is None
    ttl: int | None = None  # seconds; custom's counts only with its shutdown
    extras: Extras = Extras()


@dataclass(frozen=True)
class FlyteTask:
    """All that a connector is given to create a task: flyteidl.admin.CreateTaskRequest."""

    template: TaskTemplate
    execution: TaskExecutionMetadata
    output_prefix: str
    inputs: LiteralMap | None = None


_UPSCALING_MODES = {
    "UPSCALING_MODE_UNSPECIFIED": None,
    "UPSCALING_MODE_DEFAULT": "Default",
    "UPSCALING_MODE_AGGRESSIVE": "Aggressive",
    "UPSCALING_MODE_CONSERVATIVE": "Conservative",
}
_RESOURCE_NAMES = {
    "UNKNOWN": None,
    "CPU": "cpu",
    "GPU": "nvidia.com/gpu",  # as flytek8s' ToK8sResourceList, the one use being the autoscaler's container
    "MEMORY": "memory",
    "STORAGE": None,
    "EPHEMERAL_STORAGE": "ephemeral-storage",
}


def _enum(names: Mapping[str, Any]) -> Any:
    return one_of(names, dict(enumerate(names.values())))


_K8S_POD = message(metadata=message(labels=texts, annotations=texts), podSpec=mapping, primaryContainerName=text)
_RESOURCE_ENTRIES = list_of(message(name=_enum(_RESOURCE_NAMES), value=text))
_RAY_JOB = message(
    rayCluster=message(
        headGroupSpec=message(rayStartParams=texts, k8sPod=_K8S_POD),
        workerGroupSpec=list_of(
            message(
                groupName=text,
                replicas=count,
                minReplicas=count,
                maxReplicas=count,
                rayStartParams=texts,
                k8sPod=_K8S_POD,
            )
        ),
        enableAutoscaling=boolean,
        autoscalerOptions=message(
            upscalingMode=_enum(_UPSCALING_MODES),
            idleTimeoutSeconds=count,
            env=list_of(message(key=text, value=text)),
            image=text,
            resources=message(requests=_RESOURCE_ENTRIES, limits=_RESOURCE_ENTRIES),
        ),
    ),
    runtimeEnv=text,
    shutdownAfterJobFinishes=boolean,
    ttlSecondsAfterFinished=count,
    runtimeEnvYaml=text,
)


def _warn_unknown(path: str) -> None:
    _log.warning("%s is not known to this release and is left aside", path)


_EXTRAS = message(
    _warn_unknown,
    version=count,
    shutdown=boolean,
    ttl=count,
    submissionMode=one_of({mode: mode for mode in SUBMISSION_MODES}),
    submitter=message(_warn_unknown, resources=message(_warn_unknown, requests=texts, limits=texts), template=_K8S_POD),
    deadlines=message(_warn_unknown, start=count, run=count),
    queue=text,
    priority=text,
    backoffLimit=count,
    rayJobPatch=mapping,
    address=text,
)


def from_template(template: TaskTemplate) -> RayTask:
    """The Ray settings of a task template, of any release of this package or of flytekitplugins-ray since 1.13.

    Keys are read in camelCase and snake_case; unknown ones are left aside, in `config["kuberay"]` with a warning.

    Raises:
        TaskError: `custom` or `config["kuberay"]` can't be read, or says what can't be; all problems at once.
    """
    problems: list[Problem] = []
    job = _read_custom(template, problems)
    extras = _read_extras(template.config.get(CONFIG_KEY, ""), problems)
    cluster = job.get("rayCluster", {})
    groups = cluster.get("workerGroupSpec", [])
    _check_group_names(groups, problems)
    runtime_env_yaml = _runtime_env_yaml(job, problems)
    if problems:
        raise TaskError(problems)
    # False can't be told from unset: releases before ours never sent it
    shutdown = job.get("shutdownAfterJobFinishes") or None
    ttl = job.get("ttlSecondsAfterFinished") if shutdown else None
    return RayTask(
        workers=tuple(_worker_group(group) for group in groups),
        head=_head_group(cluster.get("headGroupSpec")),
        enable_autoscaling=cluster.get("enableAutoscaling", False),
        autoscaler_options=_autoscaler_options(cluster.get("autoscalerOptions")),
        runtime_env_yaml=runtime_env_yaml,
        runtime_env_base64=job.get("runtimeEnv", ""),
        shutdown=shutdown if extras.shutdown is None else extras.shutdown,
        ttl=ttl if extras.ttl is None else extras.ttl,
        extras=extras,
    )


def _read_custom(template: TaskTemplate, problems: list[Problem]) -> dict[str, Any]:
    remedy = "register the task anew, with a RayJobConfig"
    if not template.HasField("custom"):
        problems.append(Problem("custom", "is missing", remedy))
        return {}
    found = len(problems)
    job: dict[str, Any] = _RAY_JOB(plain_struct(template.custom), "custom", problems)
    if "rayCluster" not in job and len(problems) == found:
        problems.append(Problem("custom.rayCluster", "is missing", remedy))
    return job


def _read_extras(entry: str, problems: list[Problem]) -> Extras:
    path = f'config["{CONFIG_KEY}"]'
    if not entry:
        return Extras()
    try:
        value = json.loads(entry)
    except ValueError as error:
        problems.append(Problem(path, f"is no JSON ({error})", "register the task anew"))
        return Extras()
    version = value.get("version") if isinstance(value, dict) else None
    if isinstance(version, int) and version > EXTRAS_VERSION:
        remedy = f"it reads up to {EXTRAS_VERSION}: update flytekitplugins-kuberay where the connector runs"
        problems.append(Problem(f"{path}.version", f"is {version}, newer than this connector", remedy))
        return Extras()
    return _extras(_EXTRAS(value, path, problems), problems)


def _extras(found: Mapping[str, Any], problems: list[Problem]) -> Extras:
    submitter, deadlines = found.get("submitter", {}), found.get("deadlines", {})
    if "address" in found:
        remedy = "use a plain @task that calls ray.init(address=...) itself, or drop address"
        what = "names a cluster of your own, but Flyte starts one for each Ray task"
        problems.append(Problem(f'config["{CONFIG_KEY}"].address', what, remedy))
    return Extras(
        shutdown=found.get("shutdown"),
        ttl=found.get("ttl"),
        submission_mode=found.get("submissionMode"),
        submitter_resources=submitter.get("resources"),
        submitter_template=_k8s_pod(submitter.get("template")),
        start_deadline=deadlines.get("start"),
        run_deadline=deadlines.get("run"),
        queue=found.get("queue"),
        priority=found.get("priority"),
        backoff_limit=found.get("backoffLimit"),
        ray_job_patch=found.get("rayJobPatch"),
        address=found.get("address"),
    )


def _check_group_names(groups: Sequence[Mapping[str, Any]], problems: list[Problem]) -> None:
    """Notes names that no KubeRay pod could carry; it lower-cases them, so case makes no difference."""
    noted = {problem.path for problem in problems}
    seen: dict[str, int] = {}
    for index, group in enumerate(groups):
        path = f"custom.rayCluster.workerGroupSpec[{index}]"
        name = group.get("groupName", "")
        if noted & {path, f"{path}.groupName"}:
            continue
        first = seen.setdefault(name.lower(), index)
        if not GROUP_NAME.fullmatch(name.lower()):
            what = f"is {name!r}" if name else "is empty"
            problems.append(Problem(f"{path}.groupName", what, GROUP_NAME_RULE))
        elif first != index:
            what = f"is {name!r}, as workerGroupSpec[{first}]'s"
            problems.append(Problem(f"{path}.groupName", what, "give each group a name of its own, case aside"))


def _runtime_env_yaml(job: Mapping[str, Any], problems: list[Problem]) -> str:
    """The runtime environment as YAML; the old base64 form counts only where there is no YAML, as in Go.

    Source: ray.go convertBase64RuntimeEnvToYaml.
    """
    if job.get("runtimeEnvYaml"):
        return _checked_yaml(job["runtimeEnvYaml"], problems)
    if not job.get("runtimeEnv"):
        return ""
    path, remedy = "custom.runtimeEnv", "register the task anew, with a mapping as runtime_env"
    try:
        value = json.loads(
            base64.b64decode(job["runtimeEnv"], validate=True), parse_float=lambda digits: whole(float(digits))
        )
    except (binascii.Error, ValueError):  # no text of theirs: it may hold a secret of the environment
        problems.append(Problem(path, "is not base64 of JSON", remedy))
        return ""
    if not isinstance(value, dict):
        problems.append(Problem(path, f"is a {type(value).__name__}, not a mapping", remedy))
        return ""
    return format_runtime_env(value)


def _checked_yaml(document: str, problems: list[Problem]) -> str:
    path, remedy = "custom.runtimeEnvYaml", "register the task anew, with a mapping as runtime_env"
    try:
        root = yaml.compose(document, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        problems.append(Problem(path, f"is no YAML (line {line})", remedy))
        return ""
    if root is not None and not isinstance(root, yaml.MappingNode):
        problems.append(Problem(path, "is not a mapping", remedy))
    return document if root is not None else ""


def _head_group(found: Mapping[str, Any] | None) -> HeadGroup | None:
    return None if found is None else HeadGroup(found.get("rayStartParams"), _k8s_pod(found.get("k8sPod")))


def _worker_group(found: Mapping[str, Any]) -> WorkerGroup:
    return WorkerGroup(
        group_name=found["groupName"],
        replicas=found.get("replicas", 0),
        min_replicas=found.get("minReplicas", 0),
        max_replicas=found.get("maxReplicas", 0),
        ray_start_params=found.get("rayStartParams"),
        k8s_pod=_k8s_pod(found.get("k8sPod")),
    )


def _k8s_pod(found: Mapping[str, Any] | None) -> K8sPod | None:
    if found is None:
        return None
    metadata = found.get("metadata", {})
    return K8sPod(
        pod_spec=found.get("podSpec", {}),
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
        primary_container_name=found.get("primaryContainerName", ""),
    )


def _autoscaler_options(found: Mapping[str, Any] | None) -> AutoscalerOptions | None:
    if found is None:
        return None
    resources = found.get("resources", {})
    return AutoscalerOptions(
        upscaling_mode=found.get("upscalingMode"),
        idle_timeout_seconds=found.get("idleTimeoutSeconds"),
        image=found.get("image", ""),
        env=tuple((pair.get("key", ""), pair.get("value", "")) for pair in found.get("env", ())),
        requests=_quantities(resources.get("requests", ())),
        limits=_quantities(resources.get("limits", ())),
    )


def _quantities(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in entries if entry.get("name")}


# Text that PyYAML leaves plain, but that another reader takes for a number or a truth value: Go's yaml.v2 reads `1e-5`
# and `08` as numbers and `y` as true, YAML 1.2 reads `0o17` as one.
_AMBIGUOUS = re.compile(r"[-+]?\.?\d[\d_,.:]*([eE][-+]?\d*)?|0[oOxXbB][\da-fA-F_]*|[yYnN]")


class _RuntimeEnvDumper(yaml.SafeDumper):
    """Writes text so that every YAML reader, 1.1 or 1.2, reads text."""


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "'" if _AMBIGUOUS.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_RuntimeEnvDumper.add_representer(str, _represent_text)


def format_runtime_env(runtime_env: Mapping[str, Any]) -> str:
    """The runtime environment as YAML with sorted keys, which every YAML reader understands alike."""
    return yaml.dump(runtime_env, Dumper=_RuntimeEnvDumper)
