"""The pod that hands the job to the cluster, in K8sJobMode: small, without GPU, sidecar, volume or secret (design D7).

It must pull the task's image from where the task may, run where the task's own pods may run, and pass a quota.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import Problem
from ..pod import scheduling
from ..pod.account import with_one_service_account
from ..pod.checks import final_pod_problems, metadata_problems, pod_spec_problems
from ..pod.environment import merge_env, platform_env, with_container_renamed
from ..pod.merge import merge_pod_spec
from ..pod.resources import resources_of, with_gpu_names, with_missing, with_sides_agreeing
from ..pod.containers import container_of
from ..pod.template import PodTemplate
from ..settings import Settings
from ..wire import Extras, FlyteTask, K8sPod, Manifest, RayTask
from .submit_command import submit_command

CONTAINER_NAME = "ray-job-submitter"
_PATH = "config.kuberay.submitter"
_KEPT = (
    "serviceAccountName",
    "imagePullSecrets",
    "securityContext",
    "schedulerName",
    "priorityClassName",
    "dnsPolicy",
    "dnsConfig",
    "nodeSelector",
    "tolerations",
    "affinity",
)
"""What the submitter takes from the task's pod."""


def submitter_problems(extras: Extras) -> Iterator[Problem]:
    """What is wrong with the submitter that the task asks for."""
    if extras.submitter_template is not None:
        pod = extras.submitter_template
        yield from pod_spec_problems(pod.pod_spec, f"{_PATH}.template.podSpec")
        yield from metadata_problems(pod.labels, pod.annotations, f"{_PATH}.template.metadata")
    if extras.submitter_resources is not None:
        resources = {"containers": [{"name": CONTAINER_NAME, "resources": extras.submitter_resources}]}
        for problem in pod_spec_problems(resources, _PATH):
            yield replace(problem, path=problem.path.replace(".containers[0]", ""))


def build_submitter(task_pod: PodTemplate, ray: RayTask, task: FlyteTask, settings: Settings) -> PodTemplate:
    """The submitter's pod template, with the user's own on top.

    Args:
        task_pod: The pod that the groups start from; never a group's.
        ray: With the task's resources and template for the submitter, without `submitter_problems`.
        task: For its accelerator, whose scheduling the submitter does not share.
        settings: The platform's settings.
    """
    scheduled = _without_gpu_scheduling(task_pod.spec, task, settings)
    spec: Manifest = {key: scheduled[key] for key in _KEPT if scheduled.get(key)}
    spec |= {"restartPolicy": "Never", "containers": [_container(task_pod, ray, settings)]}
    own = ray.extras.submitter_template or K8sPod({})
    return replace(
        task_pod,
        spec=_merged(spec, _overlay(own, settings)),
        labels={**task_pod.labels, **own.labels},
        annotations={**task_pod.annotations, **own.annotations},
        primary=CONTAINER_NAME,
    )


def built_submitter_problems(built: PodTemplate) -> Iterator[Problem]:
    """What is wrong with the submitter's pod after all merges."""
    yield from final_pod_problems(built.spec, built.primary, f"{_PATH}.template")


def _container(task_pod: PodTemplate, ray: RayTask, settings: Settings) -> Manifest:
    renamed = with_container_renamed(task_pod.spec, task_pod.primary, CONTAINER_NAME)  # D18 (design)
    primary = container_of(renamed, task_pod.primary)
    resources = ray.extras.submitter_resources or {}
    ray_env = [entry for entry in primary.get("env") or [] if entry["name"].startswith("RAY_")]
    container = {
        "name": CONTAINER_NAME,
        "image": primary.get("image"),
        "imagePullPolicy": primary.get("imagePullPolicy"),
        "env": merge_env(platform_env(settings), ray_env),
        "resources": with_sides_agreeing(with_missing(resources, settings.kuberay.submitter_resources), resources),
        **submit_command(primary["args"], ray.runtime_env_yaml),
    }
    return {key: value for key, value in container.items() if value}


def _merged(spec: Manifest, overlay: Manifest) -> Manifest:
    """The pod spec with the user's on top, resources that were given on one side settled (design D19)."""
    merged = merge_pod_spec(spec, overlay)
    given: Manifest = next((c for c in overlay["containers"] if c.get("name") == CONTAINER_NAME), {})
    merged["containers"] = [
        {**c, "resources": with_sides_agreeing(resources_of(c), resources_of(given))}
        if c.get("name") == CONTAINER_NAME
        else c
        for c in merged["containers"]
    ]
    return merged


def _overlay(pod: K8sPod, settings: Settings) -> Manifest:
    """The user's template with its main container, named as primary or alone, under the submitter's name."""
    containers = pod.pod_spec.get("containers") or []
    names = [container.get("name") for container in containers]
    main = (
        pod.primary_container_name if pod.primary_container_name in names else (names[0] if len(names) == 1 else None)
    )
    renamed = [
        {**c, "name": CONTAINER_NAME} if c.get("name") == main and CONTAINER_NAME not in names else c
        for c in containers
    ]
    return with_gpu_names(with_one_service_account({**pod.pod_spec, "containers": renamed}), settings)


def _without_gpu_scheduling(spec: Manifest, task: FlyteTask, settings: Settings) -> Manifest:
    """The pod spec without the tolerations and node requirements that extended resources and accelerators bring."""
    brought = scheduling.device_tolerations(task.template, settings)
    kept = [each for each in spec.get("tolerations") or [] if not scheduling.is_among(each, brought)]
    return scheduling.without_requirements(
        {**spec, "tolerations": kept}, scheduling.accelerator_requirements(task.template, settings)
    )
