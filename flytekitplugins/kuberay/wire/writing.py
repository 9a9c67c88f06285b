"""From what a user wrote to the Ray settings, and from these into a task template.

What flyteidl has a field for goes into `custom`, all else into `config["kuberay"]`, which Flyte's Go plugin ignores.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from flytekit.core.pod_template import PRIMARY_CONTAINER_DEFAULT_NAME
from flytekit.core.resources import Resources

from ..config import RAY_HEAD, RAY_WORKER, HeadNodeConfig, RayJobConfig, WorkerNodeConfig
from ..config import podtemplate
from ..config.checks import quantities
from ..config.podtemplate import PodTemplateLike
from .raytask import CONFIG_KEY, EXTRAS_VERSION, RESOURCE_NAMES, UPSCALING_MODES
from .raytask import AutoscalerOptions, Extras, HeadGroup, K8sPod, RayTask, WorkerGroup
from .runtime_env import format_runtime_env, to_base64


def from_config(config: RayJobConfig, task_primary: str = "") -> RayTask:
    """The Ray settings that a user wrote.

    Args:
        config: What the user wrote; it is not changed.
        task_primary: The name of the primary container of the task's own pod template, "" without one.
    """
    runtime_env = _as_json(config.runtime_env) or None
    extras = _extras_of(config)
    return RayTask(
        workers=tuple(_worker_group_of(group, task_primary) for group in config.worker_node_config),
        head=_head_group_of(config, task_primary),
        enable_autoscaling=bool(config.enable_autoscaling),
        autoscaler_options=_autoscaler_options_of(config),
        runtime_env_yaml=format_runtime_env(runtime_env) if runtime_env else "",
        runtime_env_base64=to_base64(runtime_env) if runtime_env else "",
        shutdown=config.shutdown_after_job_finishes,
        ttl=config.ttl_seconds_after_finished,
        extras=extras,
    )


def _worker_group_of(group: WorkerNodeConfig, task_primary: str) -> WorkerGroup:
    least = group.replicas if group.min_replicas is None else group.min_replicas
    most = group.replicas if group.max_replicas is None else group.max_replicas
    return WorkerGroup(
        group_name=group.group_name,
        replicas=group.replicas,
        min_replicas=min(group.replicas, least),
        max_replicas=max(group.replicas, most),
        ray_start_params=None if group.ray_start_params is None else dict(group.ray_start_params),
        k8s_pod=_group_pod(group, RAY_WORKER, task_primary),
    )


def _head_group_of(config: RayJobConfig, task_primary: str) -> HeadGroup | None:
    head = config.head_node_config
    if head is None:
        return None
    params = None if head.ray_start_params is None else dict(head.ray_start_params)
    return HeadGroup(params, _group_pod(head, RAY_HEAD, task_primary))


def _group_pod(group: HeadNodeConfig | WorkerNodeConfig, ray_name: str, task_primary: str) -> K8sPod | None:
    if group.requests is None and group.limits is None:
        return _pod_of(group.pod_template)
    pod = _pod_of(group.pod_template) or K8sPod({}, primary_container_name=PRIMARY_CONTAINER_DEFAULT_NAME)
    index = podtemplate.ray_container_of(pod.pod_spec, (pod.primary_container_name, ray_name, task_primary))
    return replace(
        pod, pod_spec=podtemplate.with_resources(pod.pod_spec, index, ray_name, group.requests, group.limits)
    )


def _pod_of(template: PodTemplateLike | None) -> K8sPod | None:
    if template is None:
        return None
    return K8sPod(
        pod_spec=podtemplate.pod_spec_of(template),
        labels=dict(getattr(template, "labels", None) or {}),
        annotations=dict(getattr(template, "annotations", None) or {}),
        primary_container_name=podtemplate.primary_of(template),
    )


def _autoscaler_options_of(config: RayJobConfig) -> AutoscalerOptions | None:
    options = config.autoscaler_options
    if options is None:
        return None
    return AutoscalerOptions(
        upscaling_mode=list(UPSCALING_MODES.values())[options.upscaling_mode or 0],
        idle_timeout_seconds=options.idle_timeout_seconds,
        image=options.image or "",
        env=tuple((options.env or {}).items()),
        requests=_text_quantities(options.requests),
        limits=_text_quantities(options.limits),
    )


def _text_quantities(resources: Resources | None) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in quantities(resources).items()}


def _extras_of(config: RayJobConfig) -> Extras:
    """What flyteidl can't say: a shutdown of False, a ttl without a shutdown or of 0, and all that is ours."""
    shutdown, ttl, submitter = config.shutdown_after_job_finishes, config.ttl_seconds_after_finished, config.submitter
    resources = (
        {}
        if submitter is None
        else {"requests": _text_quantities(submitter.requests), "limits": _text_quantities(submitter.limits)}
    )
    return Extras(
        shutdown=False if shutdown is False else None,
        ttl=None if shutdown and ttl else ttl,
        submission_mode=config.submission_mode,
        submitter_resources={side: found for side, found in resources.items() if found} or None,
        submitter_template=None if submitter is None else _pod_of(submitter.pod_template),
        start_deadline=_seconds(config.start_deadline),
        run_deadline=_seconds(config.run_deadline),
        queue=config.queue,
        priority=config.priority,
        backoff_limit=config.backoff_limit,
        ray_job_patch=_as_json(config.ray_job_patch),
        address=config.address,
    )


def _as_json(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A copy in the very types that JSON knows: Ray's RuntimeEnv and enums of text are none."""
    return None if value is None else json.loads(json.dumps(podtemplate.plain(value)))


def _seconds(time: timedelta | int | None) -> int | None:
    return math.ceil(time.total_seconds()) if isinstance(time, timedelta) else time


def to_custom(task: RayTask) -> dict[str, Any]:
    """The task's `custom`: flyteidl.plugins.RayJob in protobuf's JSON, what is unset left out."""
    cluster = {
        "headGroupSpec": None if task.head is None else _group_json(task.head),
        "workerGroupSpec": [_worker_json(group) for group in task.workers] or None,
        "enableAutoscaling": task.enable_autoscaling or None,
        "autoscalerOptions": _autoscaler_json(task.autoscaler_options),
    }
    return _present(
        {
            "rayCluster": _present(cluster),
            "runtimeEnv": task.runtime_env_base64 or None,
            "runtimeEnvYaml": task.runtime_env_yaml or None,
            "shutdownAfterJobFinishes": task.shutdown or None,
            "ttlSecondsAfterFinished": task.ttl or None,
        }
    )


def _present(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if value is not None}


def _worker_json(group: WorkerGroup) -> dict[str, Any]:
    counts = {"replicas": group.replicas, "minReplicas": group.min_replicas, "maxReplicas": group.max_replicas}
    return {
        "groupName": group.group_name,
        **{key: count for key, count in counts.items() if count},
        **_group_json(group),
    }


def _group_json(group: HeadGroup | WorkerGroup) -> dict[str, Any]:
    params = None if group.ray_start_params is None else dict(group.ray_start_params)
    return _present({"rayStartParams": params, "k8sPod": _pod_json(group.k8s_pod)})


def _pod_json(pod: K8sPod | None) -> dict[str, Any] | None:
    if pod is None:
        return None
    metadata = {"labels": dict(pod.labels) or None, "annotations": dict(pod.annotations) or None}
    return _present(
        {
            "metadata": _present(metadata),
            "podSpec": pod.pod_spec or None,
            "primaryContainerName": pod.primary_container_name or None,
        }
    )


def _autoscaler_json(options: AutoscalerOptions | None) -> dict[str, Any] | None:
    if options is None:
        return None
    mode = {name: key for key, name in UPSCALING_MODES.items() if name}.get(options.upscaling_mode or "")
    resources = {"requests": _entries(options.requests), "limits": _entries(options.limits)}
    return _present(
        {
            "upscalingMode": mode,
            "idleTimeoutSeconds": options.idle_timeout_seconds,
            "env": [{"key": key, "value": value} for key, value in options.env] or None,
            "image": options.image or None,
            "resources": _present(resources),
        }
    )


def _entries(found: Mapping[str, str]) -> list[dict[str, str]] | None:
    names = {kubernetes: flyte for flyte, kubernetes in RESOURCE_NAMES.items()}
    return [{"name": names[name], "value": value} for name, value in found.items()] or None


def to_config_entry(task: RayTask) -> dict[str, str]:
    """What the task adds to its template's config: our extras as JSON, nothing where none is set."""
    extras = task.extras
    submitter = {"resources": extras.submitter_resources, "template": _pod_json(extras.submitter_template)}
    deadlines = {"start": extras.start_deadline, "run": extras.run_deadline}
    entry = _present(
        {
            "shutdown": extras.shutdown,
            "ttl": extras.ttl,
            "submissionMode": extras.submission_mode,
            "submitter": _present(submitter) or None,
            "deadlines": _present(deadlines) or None,
            "queue": extras.queue,
            "priority": extras.priority,
            "backoffLimit": extras.backoff_limit,
            "rayJobPatch": extras.ray_job_patch,
            "address": extras.address,
        }
    )
    return {CONFIG_KEY: json.dumps({"version": EXTRAS_VERSION, **entry}, sort_keys=True)} if entry else {}
