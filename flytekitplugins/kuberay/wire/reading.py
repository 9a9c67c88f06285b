"""From a task template to the Ray settings in it, of this package or of flytekitplugins-ray 1.13 to 1.16."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from flyteidl.core.tasks_pb2 import TaskTemplate

from ..config import SUBMISSION_MODES
from ..config.checks import GROUP_NAME_RULE, is_group_name
from ..errors import Problem, TaskError
from .protojson import boolean, count, has_field, list_of, mapping, message, one_of
from .protojson import plain_struct, text, texts
from .raytask import CONFIG_KEY, CONFIG_PATH, EXTRAS_VERSION, RESOURCE_NAMES, UPSCALING_MODES
from .raytask import AutoscalerOptions, Extras, HeadGroup, K8sPod, RayTask, WorkerGroup
from .runtime_env import read_runtime_env

_log = logging.getLogger(__name__)


def _enum(names: Mapping[str, Any]) -> Any:
    return one_of(names, dict(enumerate(names.values())))


_K8S_POD = message(metadata=message(labels=texts, annotations=texts), podSpec=mapping, primaryContainerName=text)
_RESOURCE_ENTRIES = list_of(message(name=_enum(RESOURCE_NAMES), value=text))
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
            upscalingMode=_enum(UPSCALING_MODES),
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

    Raises:
        TaskError: `custom` or `config["kuberay"]` can't be read, or says what can't be; all problems at once.
    """
    ray, problems = read_template(template)
    if problems:
        raise TaskError(problems)
    return ray


def read_template(template: TaskTemplate) -> tuple[RayTask, list[Problem]]:
    """What can be read of a task template's Ray settings, and what is wrong with the rest.

    Keys are read in camelCase and snake_case; unknown ones are left aside, in `config["kuberay"]` with a warning.
    """
    problems: list[Problem] = []
    job = _read_custom(template, problems)
    extras = _read_extras(template.config.get(CONFIG_KEY, ""), problems)
    cluster = job.get("rayCluster", {})
    groups = cluster.get("workerGroupSpec", [])
    _check_group_names(groups, problems)
    runtime_env_yaml = read_runtime_env(job, problems)
    # False can't be told from unset: releases before ours never sent it
    shutdown = job.get("shutdownAfterJobFinishes") or None
    ttl = job.get("ttlSecondsAfterFinished") if shutdown else None
    ray = RayTask(
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
    return ray, problems


def _read_custom(template: TaskTemplate, problems: list[Problem]) -> dict[str, Any]:
    remedy = "register the task anew, with a RayJobConfig"
    if not has_field(template, "custom"):
        problems.append(Problem("custom", "is missing", remedy))
        return {}
    found = len(problems)
    job: dict[str, Any] = _RAY_JOB(plain_struct(template.custom), "custom", problems)
    if "rayCluster" not in job and len(problems) == found:
        problems.append(Problem("custom.rayCluster", "is missing", remedy))
    return job


def _read_extras(entry: str, problems: list[Problem]) -> Extras:
    path = CONFIG_PATH
    if not entry:
        return Extras()
    try:
        value = json.loads(entry)
    except ValueError as error:
        problems.append(Problem(path, f"is no JSON ({error})", "register the task anew"))
        return Extras()
    # one that is no number is told below
    version = count(value.get("version"), path, []) if isinstance(value, dict) else 0
    if version > EXTRAS_VERSION:
        remedy = f"it reads up to {EXTRAS_VERSION}: update flytekitplugins-kuberay where the connector runs"
        problems.append(Problem(f"{path}.version", f"is {version}, newer than this connector", remedy))
        return Extras()
    return _extras(_EXTRAS(value, path, problems), problems)


def _extras(found: Mapping[str, Any], problems: list[Problem]) -> Extras:
    submitter, deadlines = found.get("submitter", {}), found.get("deadlines", {})
    if "address" in found:
        remedy = "use a plain @task that calls ray.init(address=...) itself, or drop address"
        what = "names a cluster of your own, but Flyte starts one for each Ray task"
        problems.append(Problem(f"{CONFIG_PATH}.address", what, remedy))
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
        if not is_group_name(name):
            what = f"is {name!r}" if name else "is empty"
            problems.append(Problem(f"{path}.groupName", what, GROUP_NAME_RULE))
        elif first != index:
            what = f"is {name!r}, as workerGroupSpec[{first}]'s"
            problems.append(Problem(f"{path}.groupName", what, "give each group a name of its own, case aside"))


def _head_group(found: Mapping[str, Any] | None) -> HeadGroup | None:
    return None if found is None else HeadGroup(found.get("rayStartParams"), _k8s_pod(found.get("k8sPod")))


def _worker_group(found: Mapping[str, Any]) -> WorkerGroup:
    return WorkerGroup(
        group_name=found.get("groupName", ""),
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
