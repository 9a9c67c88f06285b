"""The RayJob of a Flyte task: one pure call from what a connector is given to the manifest that is created.

Source: flyteplugins plugins/k8s/ray/ray.go (BuildResource, constructRayJob) and flytepropeller plugin_manager.go
(addObjectMetadata).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import Problem, TaskError
from ..pod.containers import container_of
from ..pod.metadata import valid_label_values
from ..pod.secrets import secret_annotations, secret_labels
from ..pod.target import target_problems
from ..pod.template import PodTemplate, build_task_pod
from ..settings import Settings
from ..settings.flyte import NodeSettings
from ..wire import FlyteTask, Manifest, RayTask, WorkerGroup, read_template
from . import names
from .auth import build_auth_options, with_ray_version
from .autoscaler import AUTOSCALER_PATH, autoscaler_problems, build_autoscaler_options
from .entrypoint import argv_problems, format_entrypoint
from .group import HEAD_ROLE, WORKER_ROLE, build_group_template, group_problems
from .link_templates import link_annotation
from .overlay import overlay_problems
from .patch import patched_problems, ready_for_api, with_patches
from .probes import with_quick_probes
from .submit_command import with_submit_command
from .submitter import SUBMITTER_PATH, build_submitter, built_submitter_problems, submitter_problems

API_VERSION = "ray.io/v1"
KIND = "RayJob"
_HEAD_PATH = "custom.rayCluster.headGroupSpec.k8sPod"
_WORKER_PATH = "custom.rayCluster.workerGroupSpec[{}].k8sPod"


@dataclass(frozen=True)
class _Pods:
    """The pod templates of one RayJob; no submitter where KubeRay wants none."""

    head: PodTemplate
    workers: list[PodTemplate]
    submitter: PodTemplate | None


def build_ray_job(task: FlyteTask, settings: Settings, base: Manifest | None = None) -> Manifest:
    """The RayJob that runs the task.

    Args:
        task: What a connector is given.
        settings: The platform's settings.
        base: The PodTemplate object that `pod.base.base_template_name` names, where the cluster has it.

    Raises:
        TaskError: The task can't become a RayJob; with all problems at once.
    """
    ray = _read(task, settings, base)
    task_pod = build_task_pod(task, settings, base)
    argv = container_of(task_pod.spec, task_pod.primary)["args"]  # what the driver is to get
    pods = _build_pods(task_pod, ray, task, settings)
    _refuse([*argv_problems(argv, "args"), *_built_problems(pods, task)])
    job = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": _object_metadata(task_pod, ray, task, settings),
        "spec": {
            "entrypoint": format_entrypoint(argv),
            "submissionMode": _submission_mode(ray, settings),
            **_ending(ray, settings),
            **_deadline(ray, settings),
            **({"runtimeEnvYAML": ray.runtime_env_yaml} if ray.runtime_env_yaml else {}),
            **({"backoffLimit": ray.extras.backoff_limit} if ray.extras.backoff_limit is not None else {}),
            "rayClusterSpec": _cluster_spec(ray, pods, task, settings),
            **({"submitterPodTemplate": _pod_manifest(pods.submitter, task, secrets=False)} if pods.submitter else {}),
        },
    }
    patched: Manifest = ready_for_api(with_patches(job, (settings.kuberay.ray_job_patch, ray.extras.ray_job_patch)))
    _refuse(list(patched_problems(patched, job)))
    built = with_submit_command(with_ray_version(patched))
    return with_quick_probes(built) if settings.kuberay.health_probes == "quick" else built


def deadlines_of(ray: RayTask, settings: Settings) -> tuple[int | None, int | None]:
    """The start and the run deadline in seconds, the task's before the platform's; None for none, as 0 says too."""
    own, extras = settings.kuberay, ray.extras
    start = extras.start_deadline if extras.start_deadline is not None else _seconds(own.start_deadline)
    run = extras.run_deadline if extras.run_deadline is not None else _seconds(own.run_deadline)
    return start or None, run or None


def _read(task: FlyteTask, settings: Settings, base: Manifest | None) -> RayTask:
    """The task's Ray settings, when nothing in the task as it came is wrong.

    Raises:
        TaskError: Something is; with all problems at once.
    """
    ray, unread = read_template(task.template)
    problems = [*unread, *target_problems(task, settings, base)]
    pods = {_HEAD_PATH: ray.head.k8s_pod if ray.head else None}
    pods |= {_WORKER_PATH.format(index): group.k8s_pod for index, group in enumerate(ray.workers)}
    for path, pod in pods.items():
        problems += overlay_problems(pod, path) if pod is not None else ()
    # of what could not be read, the next two would tell in other words
    if ray.autoscaler_options is not None and not _is_below(AUTOSCALER_PATH, unread):
        problems += autoscaler_problems(ray.autoscaler_options)
    if not _is_below(SUBMITTER_PATH, unread):
        problems += submitter_problems(ray.extras)
    _refuse(problems)
    return ray


def _is_below(path: str, problems: list[Problem]) -> bool:
    return any(problem.path.startswith(path) for problem in problems)


def _build_pods(task_pod: PodTemplate, ray: RayTask, task: FlyteTask, settings: Settings) -> _Pods:
    with_submitter = _submission_mode(ray, settings) == "K8sJobMode"
    return _Pods(
        head=build_group_template(task_pod, HEAD_ROLE, ray.head.k8s_pod if ray.head else None, task, settings),
        workers=[build_group_template(task_pod, WORKER_ROLE, group.k8s_pod, task, settings) for group in ray.workers],
        submitter=build_submitter(task_pod, ray, task, settings) if with_submitter else None,
    )


def _built_problems(pods: _Pods, task: FlyteTask) -> Iterator[Problem]:
    """What is wrong with the pods after all merges, each at its wire path."""
    yield from group_problems(pods.head, task, _HEAD_PATH)
    for index, worker in enumerate(pods.workers):
        yield from group_problems(worker, task, _WORKER_PATH.format(index))
    if pods.submitter is not None:
        yield from built_submitter_problems(pods.submitter)


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise TaskError(problems)


def _submission_mode(ray: RayTask, settings: Settings) -> str:
    return ray.extras.submission_mode or settings.kuberay.submission_mode


def _object_metadata(task_pod: PodTemplate, ray: RayTask, task: FlyteTask, settings: Settings) -> Manifest:
    """The RayJob's own metadata: what its pods have, and the queue."""
    own = settings.kuberay
    queue = {own.queue_label: ray.extras.queue or own.queue, own.priority_label: ray.extras.priority}
    metadata = _metadata(task_pod, task, secrets=True)
    labels = {**metadata["labels"], **{key: value for key, value in queue.items() if value}}
    annotations = {**metadata["annotations"], **link_annotation(task, settings)}
    return {
        "name": names.job_name(task),
        "namespace": task.execution.namespace,
        "labels": labels,
        "annotations": annotations,
    }


def _pod_manifest(pod: PodTemplate, task: FlyteTask, *, secrets: bool = True) -> Manifest:
    return {"metadata": _metadata(pod, task, secrets=secrets), "spec": pod.spec}


def _metadata(pod: PodTemplate, task: FlyteTask, *, secrets: bool) -> Manifest:
    """A pod template's labels and annotations, with the secrets' and ours above them."""
    wanted = task.template.security_context.secrets if secrets else []
    return {
        "labels": {**valid_label_values(pod.labels), **secret_labels(wanted), **names.own_labels(task)},
        "annotations": {**pod.annotations, **secret_annotations(wanted), **names.own_annotations(task)},
    }


def _ending(ray: RayTask, settings: Settings) -> Manifest:
    """Whether the cluster goes after the job's end, and how many seconds after (design D12)."""
    shutdown, ttl = settings.ray.shutdown_after_job_finishes, settings.ray.ttl_seconds_after_finished
    if ray.shutdown is not None:
        shutdown, ttl = True, ray.ttl or 0
    elif ray.ttl is not None:
        ttl = ray.ttl
    if ray.shutdown is False:
        kept = settings.kuberay.max_keep_seconds
        shutdown, ttl = (True, kept) if kept is not None else (False, 0)
    ending: Manifest = {"shutdownAfterJobFinishes": shutdown}
    return ending | ({"ttlSecondsAfterFinished": ttl} if shutdown else {})  # KubeRay refuses a ttl where nothing ends


def _deadline(ray: RayTask, settings: Settings) -> Manifest:
    """KubeRay's own deadline: both of ours and a margin, for ours act only while the connector is asked."""
    start, run = deadlines_of(ray, settings)
    if start is None or run is None:
        return {}
    return {"activeDeadlineSeconds": start + run + (_seconds(settings.kuberay.deadline_margin) or 0)}


def _seconds(duration: Any) -> int | None:
    return None if duration is None else math.ceil(duration.total_seconds())


def _cluster_spec(ray: RayTask, pods: _Pods, task: FlyteTask, settings: Settings) -> Manifest:
    config = settings.ray
    head_params = _start_params(ray.head.ray_start_params if ray.head else None, config.defaults.head_node, settings)
    head_defaults = {
        "include-dashboard": str(config.include_dashboard).lower(),
        "dashboard-host": config.dashboard_host,
    }
    spec: Manifest = {
        "headGroupSpec": {
            "serviceType": config.service_type,
            "enableIngress": config.enable_ingress,
            "rayStartParams": {**head_defaults, **head_params},
            "template": _pod_manifest(pods.head, task),
        },
        "workerGroupSpecs": [
            _worker_group(group, _pod_manifest(pod, task), settings)
            for group, pod in zip(ray.workers, pods.workers, strict=True)
        ],
        "enableInTreeAutoscaling": ray.enable_autoscaling,
        **build_auth_options(settings),
    }
    if ray.autoscaler_options is not None:
        spec["autoscalerOptions"] = build_autoscaler_options(ray.autoscaler_options)
    return spec


def _worker_group(group: WorkerGroup, template: Manifest, settings: Settings) -> Manifest:
    return {
        "groupName": group.group_name,
        "replicas": group.replicas,
        "minReplicas": min(group.min_replicas, group.replicas),
        "maxReplicas": max(group.max_replicas, group.replicas),
        "rayStartParams": _start_params(group.ray_start_params, settings.ray.defaults.worker_node, settings),
        "template": template,
    }


def _start_params(own: Mapping[str, str] | None, defaults: NodeSettings, settings: Settings) -> Manifest:
    """The parameters of `ray start`: the group's own, else the platform's; the missing ones by default."""
    missing = {"node-ip-address": defaults.ip_address}
    if not settings.ray.enable_usage_stats:
        missing["disable-usage-stats"] = "true"
    return {**missing, **(defaults.start_parameters if own is None else own)}
