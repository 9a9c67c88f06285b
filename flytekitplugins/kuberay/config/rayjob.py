"""What a user writes for a Ray task: frozen dataclasses, checked on creation.

Names, arguments and their order are those of flytekitplugins-ray 1.16; what is ours comes after them, by keyword. All
that is wrong with a value comes in one ConfigError, with the place of each fault in the user's terms. Nothing that was
passed is changed, now or later.
"""

from __future__ import annotations

import datetime
import enum
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from flytekit.core.resources import Resources

from . import checks, podtemplate
from ..errors import ConfigError, Problem
from .podtemplate import PodTemplateLike

_log = logging.getLogger(__name__)

RAY_HEAD = "ray-head"
RAY_WORKER = "ray-worker"
"""The names of Ray's containers in the pods of the head and of the worker groups."""

SubmissionMode: TypeAlias = Literal["K8sJobMode", "HTTPMode", "SidecarMode"]
SUBMISSION_MODES: tuple[str, ...] = get_args(SubmissionMode)


class _Checked:
    """A dataclass that checks itself on creation."""

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            ConfigError: Some of them can't be; all problems at once.
        """
        problems = list(self.problems(type(self).__name__))
        if problems:
            raise ConfigError(problems)

    def problems(self, path: str) -> Iterator[Problem]:
        """What is wrong with the values, `path` being the user's name for the whole."""
        raise NotImplementedError


@dataclass(frozen=True)
class HeadNodeConfig(_Checked):
    """The head of the Ray cluster.

    Args:
        ray_start_params: Parameters of `ray start` by name without dashes, all values text: `{"num-cpus": "0"}`.
        pod_template: flytekit's PodTemplate, or a pod spec as a dict of Kubernetes' names. It is merged over the
            task's pod. Ray's container is its primary container, or the one called `ray-head`.
        requests: What Ray's container asks for. Wins over the same resources in `pod_template`; all else stays. What
            it leaves out comes from `@task`, GPUs too.
        limits: As requests; one side alone stands for both.

    Raises:
        ConfigError: A value can't be.
    """

    ray_start_params: Mapping[str, str] | None = None
    pod_template: PodTemplateLike | None = None
    requests: Resources | None = None
    limits: Resources | None = None

    def problems(self, path: str) -> Iterator[Problem]:
        """What is wrong with the values, `path` being the user's name for the whole."""
        yield from checks.start_params(f"{path}.ray_start_params", self.ray_start_params)
        yield from podtemplate.group_problems(path, self.pod_template, RAY_HEAD, self.requests, self.limits)


@dataclass(frozen=True)
class WorkerNodeConfig(_Checked):
    """A group of like workers.

    Args:
        group_name: Unique in the task, case aside: letters, digits and `-`. With `_` it registers, but never runs.
        replicas: How many workers to start with; the bounds give way to it.
        min_replicas: The fewest workers that the autoscaler leaves, by default `replicas`.
        max_replicas: The most workers that the autoscaler starts, by default `replicas`.
        ray_start_params: As HeadNodeConfig's.
        pod_template: As HeadNodeConfig's; Ray's container is called `ray-worker`.
        requests: As HeadNodeConfig's, of each worker. What it leaves out comes from `@task`.
        limits: As HeadNodeConfig's, of each worker.

    Raises:
        ConfigError: A value can't be.
    """

    group_name: str
    replicas: int
    min_replicas: int | None = None
    max_replicas: int | None = None
    ray_start_params: Mapping[str, str] | None = None
    pod_template: PodTemplateLike | None = None
    requests: Resources | None = None
    limits: Resources | None = None

    def problems(self, path: str) -> Iterator[Problem]:
        """What is wrong with the values, `path` being the user's name for the whole."""
        yield from checks.group_name(f"{path}.group_name", self.group_name)
        yield from checks.required(f"{path}.replicas", self.replicas)
        counts = [
            *checks.whole_number(f"{path}.replicas", self.replicas),
            *checks.whole_number(f"{path}.min_replicas", self.min_replicas),
            *checks.whole_number(f"{path}.max_replicas", self.max_replicas),
        ]
        yield from counts or self._bounds_problems(path)
        yield from checks.start_params(f"{path}.ray_start_params", self.ray_start_params)
        yield from podtemplate.group_problems(path, self.pod_template, RAY_WORKER, self.requests, self.limits)

    def __post_init__(self) -> None:
        """Checks the values, and warns of a name that only local runs and registration take."""
        super().__post_init__()
        if "_" in self.group_name:
            text = "%s.group_name: is %r, which no pod can be called: the task runs here, not on a cluster; write %s"
            _log.warning(text, type(self).__name__, self.group_name, self.group_name.replace("_", "-"))

    def _bounds_problems(self, path: str) -> Iterator[Problem]:
        if self.min_replicas is not None and self.max_replicas is not None and self.min_replicas > self.max_replicas:
            what = f"is {self.min_replicas}, above max_replicas {self.max_replicas}"
            yield Problem(f"{path}.min_replicas", what, "write the smaller one as min_replicas")


@dataclass(frozen=True)
class AutoscalerOptionsConfig(_Checked):
    """Options of Ray's autoscaler, a container beside the head; they count with `enable_autoscaling`.

    Args:
        upscaling_mode: One of `AutoscalerOptionsConfig.UpscalingMode`.
        idle_timeout_seconds: After how many seconds without work a worker goes.
        env: Environment variables of the autoscaler's container.
        image: Its image, by default that of the head.
        requests: What its container asks for.
        limits: What its container may use.

    Raises:
        ConfigError: A value can't be.
    """

    class UpscalingMode(enum.IntEnum):
        """How fast the autoscaler adds workers; the numbers are flyteidl's."""

        UNSPECIFIED = 0
        DEFAULT = 1
        AGGRESSIVE = 2
        CONSERVATIVE = 3

    upscaling_mode: AutoscalerOptionsConfig.UpscalingMode | int | None = None
    idle_timeout_seconds: int | None = None
    env: Mapping[str, str] | None = None
    image: str | None = None
    requests: Resources | None = None
    limits: Resources | None = None

    def problems(self, path: str) -> Iterator[Problem]:
        """What is wrong with the values, `path` being the user's name for the whole."""
        modes = list(self.UpscalingMode)
        mode = self.upscaling_mode
        if mode is not None and (isinstance(mode, bool) or not isinstance(mode, int) or mode not in modes):
            remedy = "write AutoscalerOptionsConfig.UpscalingMode." + ", ".join(mode.name for mode in modes)
            yield Problem(f"{path}.upscaling_mode", f"is {checks.shown(mode)}", remedy)
        yield from checks.whole_number(f"{path}.idle_timeout_seconds", self.idle_timeout_seconds)
        yield from checks.texts(f"{path}.env", self.env, secret=True)
        yield from checks.text(f"{path}.image", self.image)
        yield from checks.resources(path, self.requests, self.limits)


@dataclass(frozen=True)
class SubmitterConfig(_Checked):
    """The submitter, a small pod that hands the job to the cluster and follows it (K8sJobMode).

    Args:
        requests: What its container asks for, by default little.
        limits: What its container may use.
        pod_template: Merged over the submitter's pod; as HeadNodeConfig's.

    Raises:
        ConfigError: A value can't be.
    """

    requests: Resources | None = None
    limits: Resources | None = None
    pod_template: PodTemplateLike | None = None

    def problems(self, path: str) -> Iterator[Problem]:
        """What is wrong with the values, `path` being the user's name for the whole."""
        yield from checks.resources(path, self.requests, self.limits)
        yield from podtemplate.problems_of(f"{path}.pod_template", self.pod_template)


@dataclass(frozen=True)
class RayJobConfig(_Checked):
    """A Ray task: `@task(task_config=RayJobConfig(...))` runs the function as the driver on a cluster of its own.

    Args:
        worker_node_config: The worker groups; none is fine, the head works too.
        head_node_config: The head.
        enable_autoscaling: Whether Ray's autoscaler moves each group within its bounds.
        autoscaler_options: Its options.
        runtime_env: Ray's runtime environment, a dict that JSON can hold. It is readable for all who see the task:
            put secrets into the task's `secret_requests`.
        address: Of a running cluster, for local runs only: Flyte starts a cluster for each task and refuses this.
        shutdown_after_job_finishes: True ends the cluster with the job, at once where no ttl is set; False keeps it
            for as long as the platform allows; None is the platform's default.
        ttl_seconds_after_finished: How many seconds after the end the cluster goes; 0 is at once. It is enough alone.
        submission_mode: How KubeRay starts the driver: K8sJobMode, HTTPMode or SidecarMode.
        submitter: The submitter's pod.
        start_deadline: How long the cluster may take until the driver runs, seconds or a timedelta.
        run_deadline: How long the driver may run, seconds or a timedelta.
        queue: The name of the Kueue local queue that admits the job.
        priority: The name of Kueue's priority class for the job.
        backoff_limit: How often KubeRay itself tries again, with a new cluster; Flyte's retries are the better way.
        ray_job_patch: Merged into the RayJob at last: the way to fields that we do not know.
        excludes: Patterns, as in .gitignore, of files of the working directory that the workers need not get.

    Raises:
        ConfigError: A value can't be, or two can't be together.
    """

    worker_node_config: Sequence[WorkerNodeConfig] = field(default_factory=list)
    head_node_config: HeadNodeConfig | None = None
    enable_autoscaling: bool = False
    autoscaler_options: AutoscalerOptionsConfig | None = None
    runtime_env: Mapping[str, Any] | None = None
    address: str | None = None
    shutdown_after_job_finishes: bool | None = None
    ttl_seconds_after_finished: int | None = None
    submission_mode: SubmissionMode | None = field(default=None, kw_only=True)
    submitter: SubmitterConfig | None = field(default=None, kw_only=True)
    start_deadline: datetime.timedelta | int | None = field(default=None, kw_only=True)
    run_deadline: datetime.timedelta | int | None = field(default=None, kw_only=True)
    queue: str | None = field(default=None, kw_only=True)
    priority: str | None = field(default=None, kw_only=True)
    backoff_limit: int | None = field(default=None, kw_only=True)
    ray_job_patch: Mapping[str, Any] | None = field(default=None, kw_only=True)
    excludes: list[str] | tuple[str, ...] | None = field(default=None, kw_only=True)

    def problems(self, path: str) -> Iterator[Problem]:
        """What is wrong with the values, `path` being the user's name for the whole."""
        yield from self._group_problems(path)
        yield from checks.flag(f"{path}.enable_autoscaling", self.enable_autoscaling)
        yield from _part(f"{path}.autoscaler_options", self.autoscaler_options, AutoscalerOptionsConfig)
        yield from checks.json_mapping(f"{path}.runtime_env", self.runtime_env)
        yield from checks.text(f"{path}.address", self.address)
        yield from checks.flag(f"{path}.shutdown_after_job_finishes", self.shutdown_after_job_finishes)
        yield from checks.whole_number(f"{path}.ttl_seconds_after_finished", self.ttl_seconds_after_finished)
        yield from checks.one_of(f"{path}.submission_mode", self.submission_mode, SUBMISSION_MODES)
        yield from _part(f"{path}.submitter", self.submitter, SubmitterConfig)
        yield from checks.seconds(f"{path}.start_deadline", self.start_deadline)
        yield from checks.seconds(f"{path}.run_deadline", self.run_deadline)
        yield from checks.label_value(f"{path}.queue", self.queue)
        yield from checks.label_value(f"{path}.priority", self.priority)
        yield from checks.whole_number(f"{path}.backoff_limit", self.backoff_limit)
        yield from checks.ray_job_patch(f"{path}.ray_job_patch", self.ray_job_patch)
        yield from checks.text_list(f"{path}.excludes", self.excludes)
        yield from self._contradictions(path)

    def _group_problems(self, path: str) -> Iterator[Problem]:
        groups = self.worker_node_config
        if not isinstance(groups, (list, tuple)):
            remedy = "write a list of WorkerNodeConfig"
            yield Problem(f"{path}.worker_node_config", f"is {checks.shown(groups)}", remedy)
            groups = ()
        seen: dict[str, int] = {}
        for index, group in enumerate(groups):
            place = f"{path}.worker_node_config[{index}]"
            found = list(_part(place, group, WorkerNodeConfig, required=True))
            yield from found
            # KubeRay lower-cases the names
            first = index if found else seen.setdefault(group.group_name.lower(), index)
            if first != index:
                what = f"is {group.group_name!r}, as worker_node_config[{first}]'s"
                yield Problem(f"{place}.group_name", what, "give each group a name of its own, case aside")
        yield from _part(f"{path}.head_node_config", self.head_node_config, HeadNodeConfig)

    def _contradictions(self, path: str) -> Iterator[Problem]:
        if self.shutdown_after_job_finishes is False and self.ttl_seconds_after_finished is not None:
            what = "is set, but shutdown_after_job_finishes=False keeps the cluster"
            yield Problem(f"{path}.ttl_seconds_after_finished", what, "drop one of the two")
        if self.submission_mode in ("HTTPMode", "SidecarMode") and getattr(self.submitter, "pod_template", None):
            what = f"is set, but {self.submission_mode} starts no submitter pod"
            yield Problem(f"{path}.submitter.pod_template", what, "drop it, or write K8sJobMode")
        if self.address is not None and (self.worker_node_config or self.head_node_config or self.autoscaler_options):
            what = "is set, and so are settings of a new cluster"
            yield Problem(f"{path}.address", what, "drop address, or the head, the workers and the autoscaler")


def _part(path: str, value: Any, kind: type[_Checked], required: bool = False) -> Iterator[Problem]:
    if isinstance(value, kind):
        yield from value.problems(path)
    elif type(value).__name__ == kind.__name__:  # half a file moved over from flytekitplugins-ray
        package = kind.__module__.partition(".config")[0]
        yield Problem(path, f"is that of {type(value).__module__}", f"import {kind.__name__} from {package}")
    elif value is not None or required:
        yield Problem(path, f"is {checks.shown(value)}", f"write {checks.with_article(kind.__name__)}(...)")
