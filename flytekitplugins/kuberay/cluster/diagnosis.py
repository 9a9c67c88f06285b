"""Why a RayJob's pods are not up, in one line that names group, count, cause and since when; and when that is final.

Source: flyteplugins flytek8s/pod_helper.go DemystifyPending, for the causes and their graces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from ..settings import Settings
from .pods import HEAD, SUBMITTER, WORKER, ContainerView, PodView

_STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})
_SECONDS = timedelta(seconds=1)
_FORGIVEN = timedelta(minutes=2)
"""Trouble that was not seen for so long is over; the pods of a crash loop look well between their crashes."""

_FOR_HEAD = "wait-gcs-ready"
"""KubeRay's init container of workers, which waits for the head. Source: ray-operator/controllers/ray/common/pod.go."""


class Cause(Enum):
    """Why a pod is not up, the ones that need a person first."""

    INVALID_IMAGE = "InvalidImageName"
    CONFIG = "CreateContainerConfigError"
    CREATE = "CreateContainerError"
    IMAGE_PULL = "ImagePullBackOff"
    CRASH = "CrashLoopBackOff"
    INIT = "InitContainer"
    UNSCHEDULABLE = "Unschedulable"
    STARTING = "Starting"


_BY_REASON = {
    "InvalidImageName": Cause.INVALID_IMAGE,
    "CreateContainerConfigError": Cause.CONFIG,
    "ErrImageNeverPull": Cause.CONFIG,
    "CreateContainerError": Cause.CREATE,
    "RunContainerError": Cause.CREATE,
    "ErrImagePull": Cause.IMAGE_PULL,
    "ImagePullBackOff": Cause.IMAGE_PULL,
    "ImageInspectError": Cause.IMAGE_PULL,
    "RegistryUnavailable": Cause.IMAGE_PULL,
    "SignatureValidationFailed": Cause.IMAGE_PULL,
    "CrashLoopBackOff": Cause.CRASH,
}
"""Source: k8s.io/kubernetes pkg/kubelet/images/types.go and pkg/kubelet/container/sync_result.go."""

_PERMANENT = frozenset({Cause.INVALID_IMAGE, Cause.CONFIG, Cause.CREATE})
"""Causes that another attempt would meet again."""

Grace = Callable[[Settings], timedelta]
_GRACES: dict[Cause, Grace] = {
    Cause.INVALID_IMAGE: lambda settings: timedelta(0),
    Cause.CONFIG: lambda settings: settings.k8s.create_container_config_error_grace_period,
    Cause.CREATE: lambda settings: settings.k8s.create_container_error_grace_period,
    Cause.IMAGE_PULL: lambda settings: settings.k8s.image_pull_backoff_grace_period,
    Cause.CRASH: lambda settings: settings.k8s.image_pull_backoff_grace_period,
}


@dataclass(frozen=True)
class Waiting:
    """Why one group is not up; role and group are as in `PodView`."""

    role: str
    group: str
    count: int  # of its pods that wait for this
    cause: Cause
    text: str
    since: datetime
    pending: bool = False  # some of its pods have not begun to run

    def line(self, now: datetime) -> str:
        """`head: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu (3m)`."""
        name = f"worker group {self.group}" if self.role == WORKER else self.role
        many = f" ({self.count} pods)" if self.count > 1 else ""
        return f"{name}{many}: {self.text} ({format_duration(now - self.since)})"


@dataclass(frozen=True)
class Trouble:
    """When a cluster on its way was first and last seen with a cause that ends it after a grace; since when without."""

    first: datetime
    last: datetime
    fine: datetime | None = None


def waiting_groups(pods: Iterable[PodView]) -> list[Waiting]:
    """Why each group is not up, head first, then what needs a person before what only takes its time."""
    found: dict[tuple[str, str, Cause], list[Waiting]] = {}
    for pod in pods:
        if pod.ready or pod.terminating or _is_done(pod):
            continue
        cause, text = _cause_of(pod)
        pending = pod.phase in ("", "Pending")
        why = Waiting(pod.role, pod.group, 1, cause, text, pod.since, pending)
        found.setdefault((pod.role, pod.group, cause), []).append(why)
    waiting = [
        replace(
            several[0],
            count=len(several),
            since=min(each.since for each in several),
            pending=any(each.pending for each in several),
        )
        for several in found.values()
    ]
    order = list(Cause)
    return sorted(waiting, key=lambda each: (each.role != HEAD, order.index(each.cause), each.group))


def trouble_of(waiting: Iterable[Waiting], before: Trouble | None, now: datetime) -> Trouble | None:
    """Since when the cluster is in trouble, as far as this connector has seen; None where it is not.

    Pods tell since when they were scheduled, not since when their image can't be pulled: one that was pulled for an
    hour has its grace for the first error, too. And a failed pod is made anew, so its own time says little.
    """
    if before is not None and before.fine is not None and now - before.fine > _FORGIVEN:
        before = None
    if not any(each.cause in _GRACES for each in waiting):
        return replace(before, fine=before.fine or now) if before else None
    return Trouble(before.first if before else now, now)


def is_final(waiting: Waiting, settings: Settings, now: datetime, trouble: Trouble | None = None) -> bool:
    """Whether the group has waited longer than the platform's grace for its cause.

    Args:
        waiting: The group.
        settings: The platform's.
        now: The time.
        trouble: As seen so far; None to go by the pods' own times.
    """
    pending = settings.k8s.pod_pending_timeout
    if pending > timedelta() and waiting.pending and now - waiting.since >= pending:
        return True
    grace = _GRACES.get(waiting.cause)
    since = max(waiting.since, trouble.first) if trouble else waiting.since
    return grace is not None and now - since >= grace(settings)


def is_permanent(waiting: Waiting) -> bool:
    """Whether another attempt would end the same way."""
    return waiting.cause in _PERMANENT


def unexplained(pods: Iterable[PodView]) -> list[str] | None:
    """The names of pods that only their events explain; None where a pod tells why the cluster is not up."""
    pods = list(pods)
    if any(each.cause is not Cause.STARTING for each in waiting_groups(pods)):
        return None
    return [pod.name for pod in pods if pod.phase == "Pending" and not pod.terminating]


def head_loss(pods: Sequence[PodView], provisioned: datetime | None) -> str:
    """How the job lost its head, in words; "" where it has not.

    Args:
        pods: The pods of the job's cluster.
        provisioned: When all pods of the cluster were ready for the first time; None when they were not yet.

    A lost head makes the operator run the user's code again, in silence, in two of three submission modes.
    """
    if provisioned is None:
        return ""
    heads = [pod for pod in pods if pod.role == HEAD]
    for pod in heads:
        if text := end_of_pod(pod):
            return text
        if pod.terminating:
            return f"head pod {pod.name} is being deleted"
        if pod.created > provisioned:
            return f"pod {pod.name} is a new head, the one that ran the job is gone"
        ray = ray_container(pod)
        if ray is not None and ray.restarts and ray.running is not None and ray.running > provisioned:
            return f"pod {pod.name}: container {ray.name} was restarted"
    return "" if heads else "the head pod is gone"


def format_duration(duration: timedelta) -> str:
    """`45s`, `3m`, `2h5m`."""
    seconds = max(int(duration / _SECONDS), 0)
    if seconds < 60:
        return f"{seconds}s"
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}h{minutes}m" if hours else f"{minutes}m"


def autoscaler_end(pods: Sequence[PodView]) -> str:
    """How the head's autoscaler ended for good, in words; "" where it runs or there is none.

    Flyte's pods never restart a container, and without it workers never come.
    """
    for pod in pods:
        ended = next((each for each in pod.containers if each.name == "autoscaler" and each.is_over), None)
        if pod.role == HEAD and ended is not None and not pod.terminating:
            return f"pod {pod.name}: the autoscaler ended with {end_text(ended)}"
    return ""


def submitter_end(pods: Sequence[PodView], now: datetime, grace: timedelta) -> str:
    """How the last submitter ended, longer ago than the grace; "" where one runs or none was."""
    submitters = [pod for pod in pods if pod.role == SUBMITTER and not pod.terminating]
    if not submitters or any(pod.phase not in ("Succeeded", "Failed") for pod in submitters):
        return ""
    last = max(submitters, key=lambda pod: pod.created)
    return f"submitter {end_of_pod(last) or f'pod {last.name} is done'}" if now - last.since >= grace else ""


def pod_failures(pods: Iterable[PodView]) -> list[tuple[PodView, str]]:
    """The pods that failed and how, head first: killed for memory, evicted, preempted, crashed.

    What ends because it is deleted, as the pods of a cluster that is shut down, has not failed.
    """
    failed = [pod for pod in pods if pod.disrupted or not pod.terminating]
    ranked = sorted(failed, key=lambda pod: (pod.role != HEAD, pod.role != SUBMITTER, pod.name))
    return [(pod, text) for pod in ranked if (text := end_of_pod(pod))]


def end_of_pod(pod: PodView) -> str:
    """How a pod that should run has ended, in words; "" where it runs, or ended well."""
    if pod.disrupted and (pod.terminating or pod.phase == "Failed"):  # a disruption that was called off ends nothing
        return f"pod {pod.name}: {pod.disrupted}"
    if pod.phase == "Failed":
        ended = next((each for each in pod.containers if each.exit_code not in (None, 0)), None)
        why = f"{pod.reason} {pod.message}".strip()
        return (
            f"pod {pod.name}: {why or (f'container {ended.name} ended with {end_text(ended)}' if ended else 'failed')}"
        )
    ray = ray_container(pod)
    if ray is not None and ray.exit_code is not None and (ray.exit_code or pod.role != SUBMITTER):
        return f"pod {pod.name}: container {ray.name} ended with {end_text(ray)}"
    return ""


def _is_done(pod: PodView) -> bool:
    """Whether nobody waits for it: after a submitter that failed comes the next one of its Job, or KubeRay's word."""
    return pod.phase == "Succeeded" or (pod.role == SUBMITTER and pod.phase == "Failed")


def ray_container(pod: PodView) -> ContainerView | None:
    """Ray's container, or the submitter's: KubeRay takes the first."""
    return next((each for each in pod.containers if not each.init), None)


def _cause_of(pod: PodView) -> tuple[Cause, str]:
    if pod.phase == "Failed":  # KubeRay makes another
        return Cause.STARTING if pod.disrupted else Cause.CRASH, end_of_pod(pod)
    if pod.unscheduled:
        return Cause.UNSCHEDULABLE, pod.unscheduled
    for container in sorted(pod.containers, key=lambda each: each.waiting in _STARTING):
        if found := _cause_of_container(container):
            return found
    return Cause.STARTING, _progress(pod)


def _cause_of_container(container: ContainerView) -> tuple[Cause, str] | None:
    kind = "init container" if container.init else "container"
    cause = _BY_REASON.get(container.waiting)
    if cause is not None:
        return cause, f"{kind} {container.name}: {_waiting_text(container)}"
    if container.waiting not in _STARTING:  # a reason to come
        return Cause.STARTING, f"{kind} {container.name}: {_waiting_text(container)}"
    if container.init:
        failed = container.exit_code not in (None, 0)
        return (Cause.INIT, f"{kind} {container.name} ended with {end_text(container)}") if failed else None
    if container.is_over:
        ended = f"{kind} {container.name} ended with {end_text(container)}"
        return Cause.CRASH, f"{ended} and does not start again, so that the pod is never ready"
    return None


def _progress(pod: PodView) -> str:
    """How far a pod is with which nothing is wrong; an init container that lasts is up while the others start."""
    inits = [each for each in pod.containers if each.init and each.policy != "Always"]
    running = next((each for each in inits if each.running is not None), None)
    if running is None:
        return "starting" if pod.phase != "Running" else "running, not ready yet"
    return "waits for the head" if running.name == _FOR_HEAD else f"init container {running.name} is running"


def _waiting_text(container: ContainerView) -> str:
    if container.waiting == "CrashLoopBackOff":
        return f"crashed {container.restarts} times, last with {end_text(container)}"
    return f"{container.waiting}: {container.message}" if container.message else container.waiting


def end_text(container: ContainerView) -> str:
    """`exit code 137 (OOMKilled): its last words`."""
    reason = f" ({container.reason})" if container.reason and container.reason != "Error" else ""
    message = f": {container.message}" if container.message else ""
    return f"exit code {container.exit_code}{reason}{message}"
