"""The pod that hands the job to the cluster, in K8sJobMode: small, without GPU, sidecar, volume or secret (design D7).

It must pull the task's image from where the task may, run where the task's own pods may run, and pass a quota.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import Problem
from ..pod import scheduling
from ..pod.checks import container_problems, final_pod_problems
from ..pod.containers import container_of
from ..pod.environment import merge_env, platform_env, with_container_renamed
from ..pod.resources import with_missing, with_sides_agreeing
from ..pod.template import PodTemplate
from ..settings import Settings
from ..wire import CONFIG_PATH, Extras, FlyteTask, K8sPod, Manifest, RayTask
from .overlay import overlay_problems, with_overlay

SUBMITTER_CONTAINER = "ray-job-submitter"
"""Beside the head in SidecarMode, too. Source: KubeRay v1.6.2, ray-operator/controllers/ray/utils/constant.go."""

SUBMITTER_PATH = f"{CONFIG_PATH}.submitter"
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
        yield from overlay_problems(extras.submitter_template, f"{SUBMITTER_PATH}.template")
    if extras.submitter_resources is not None:
        container = {"name": SUBMITTER_CONTAINER, "resources": extras.submitter_resources}
        yield from container_problems(container, SUBMITTER_PATH, directives=())


def build_submitter(task_pod: PodTemplate, ray: RayTask, task: FlyteTask, settings: Settings) -> PodTemplate:
    """The submitter's pod template, with the user's own on top.

    Args:
        task_pod: The pod that the groups start from; never a group's.
        ray: With the task's resources and template for the submitter, without `submitter_problems`.
        task: For its accelerator, whose scheduling the submitter does not share.
        settings: The platform's settings.
    """
    scheduled = _without_gpu_scheduling(
        scheduling.with_platform_scheduling(task_pod.spec, task, settings), task, settings
    )
    spec: Manifest = {key: scheduled[key] for key in _KEPT if scheduled.get(key)}
    spec |= {"restartPolicy": "Never", "containers": [_container(task_pod, ray, settings)]}
    built, own = replace(task_pod, spec=spec, primary=SUBMITTER_CONTAINER), ray.extras.submitter_template
    return built if own is None else with_overlay(built, own, _main_container(own), task_pod.primary, settings)


def built_submitter_problems(built: PodTemplate) -> Iterator[Problem]:
    """What is wrong with the submitter's pod after all merges."""
    yield from final_pod_problems(built.spec, built.primary, f"{SUBMITTER_PATH}.template")


def _container(task_pod: PodTemplate, ray: RayTask, settings: Settings) -> Manifest:
    renamed = with_container_renamed(task_pod.spec, task_pod.primary, SUBMITTER_CONTAINER)  # D18 (design)
    primary = container_of(renamed, task_pod.primary)
    resources = ray.extras.submitter_resources or {}
    ray_env = [entry for entry in primary.get("env") or [] if entry["name"].startswith("RAY_")]
    container = {
        "name": SUBMITTER_CONTAINER,
        "image": primary.get("image"),
        "imagePullPolicy": primary.get("imagePullPolicy"),
        "env": merge_env(platform_env(settings), ray_env),
        "resources": with_sides_agreeing(with_missing(resources, settings.kuberay.submitter_resources), resources),
    }
    return {key: value for key, value in container.items() if value}


def _main_container(own: K8sPod) -> str:
    """Which container of the user's template is the submitter's; "" for none.

    Unlike a Ray container, an only one may have an image: the submitter's may be another than the task's.
    """
    names = [each["name"] for each in own.pod_spec.get("containers") or [] if each.get("name")]
    wanted = [name for name in (SUBMITTER_CONTAINER, own.primary_container_name) if name in names]
    return next(iter(wanted or (names if len(names) == 1 else [])), "")


def _without_gpu_scheduling(spec: Manifest, task: FlyteTask, settings: Settings) -> Manifest:
    """The pod spec without the tolerations and node requirements that extended resources and accelerators bring."""
    less = scheduling.without_tolerations(spec, scheduling.device_tolerations(task.template, settings))
    return scheduling.without_requirements(less, scheduling.accelerator_requirements(task.template, settings))
