"""Why a RayJob's pods are not up, in one line that names group, count, cause and since when; and when that is final.

Source: flyteplugins flytek8s/pod_helper.go DemystifyPending, for the causes and their graces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from ..settings import Settings
from .pods import HEAD, SUBMITTER, ContainerView, PodView

_STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})
_SECONDS = timedelta(seconds=1)


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
    "CreateContainerError": Cause.CREATE,
    "RunContainerError": Cause.CREATE,
    "ErrImagePull": Cause.IMAGE_PULL,
    "ImagePullBackOff": Cause.IMAGE_PULL,
    "ErrImageNeverPull": Cause.CONFIG,
    "CrashLoopBackOff": Cause.CRASH,
}
_PERMANENT = frozenset({Cause.INVALID_IMAGE, Cause.CONFIG, Cause.CREATE})
"""Causes that another attempt would meet again."""

Grace = Callable[[Settings], timedelta | None]
_GRACES: dict[Cause, Grace] = {
    Cause.INVALID_IMAGE: lambda settings: timedelta(0),
    Cause.CONFIG: lambda settings: settings.k8s.create_container_config_error_grace_period,
    Cause.CREATE: lambda settings: settings.k8s.create_container_error_grace_period,
    Cause.IMAGE_PULL: lambda settings: settings.k8s.image_pull_backoff_grace_period,
    Cause.CRASH: lambda settings: settings.k8s.image_pull_backoff_grace_period,
}


@dataclass(frozen=True)
class Waiting:
    """Why one group is not up."""

    group: str
    count: int  # of its pods that wait for this
    cause: Cause
    text: str
    since: datetime

    def line(self, now: datetime) -> str:
        """`head: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu (3m)`."""
        name = self.group if self.group in (HEAD, SUBMITTER) else f"worker group {self.group}"
        many = f" ({self.count} pods)" if self.count > 1 else ""
        return f"{name}{many}: {self.text} ({format_duration(now - self.since)})"


def waiting_groups(pods: Iterable[PodView]) -> list[Waiting]:
    """Why each group is not up, head first, then what needs a person before what only takes its time."""
    pods = list(pods)
    began = min((pod.created for pod in pods), default=None)  # a failed pod is made anew: its own time says little
    found: dict[tuple[str, Cause], list[Waiting]] = {}
    for pod in pods:
        if pod.ready or pod.terminating or pod.phase == "Succeeded":
            continue
        cause, text = _cause_of(pod)
        since = began if pod.phase == "Failed" and began else pod.since
        found.setdefault((pod.group, cause), []).append(Waiting(pod.group, 1, cause, text, since))
    waiting = [
        replace(several[0], count=len(several), since=min(each.since for each in several)) for several in found.values()
    ]
    order = list(Cause)
    return sorted(waiting, key=lambda each: (each.group != HEAD, order.index(each.cause), each.group))


def is_final(waiting: Waiting, settings: Settings, now: datetime) -> bool:
    """Whether the group has waited longer than the platform's grace for its cause."""
    pending = settings.k8s.pod_pending_timeout
    if pending and now - waiting.since >= pending:
        return True
    grace = _GRACES.get(waiting.cause)
    limit = grace(settings) if grace else None
    return limit is not None and now - waiting.since >= limit


def is_permanent(waiting: Waiting) -> bool:
    """Whether another attempt would end the same way."""
    return waiting.cause in _PERMANENT


def head_loss(pods: Sequence[PodView], provisioned: datetime | None) -> str:
    """How the job lost its head, in words; "" where it has not.

    Args:
        pods: The job's pods.
        provisioned: When all pods of the cluster were ready for the first time; None when they were not yet.

    A lost head makes the operator run the user's code again, in silence, in two of three submission modes.
    """
    if provisioned is None:
        return ""
    heads = [pod for pod in pods if pod.group == HEAD]
    for pod in heads:
        if text := end_of_pod(pod):
            return text
        if pod.terminating:
            return f"head pod {pod.name} is being deleted"
        if pod.created > provisioned:
            return f"pod {pod.name} is a new head, the one that ran the job is gone"
    return "" if heads else "the head pod is gone"


def format_duration(duration: timedelta) -> str:
    """`45s`, `3m`, `2h5m`."""
    seconds = max(int(duration / _SECONDS), 0)
    if seconds < 60:
        return f"{seconds}s"
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours}h{minutes}m" if hours else f"{minutes}m"


def _cause_of(pod: PodView) -> tuple[Cause, str]:
    if pod.phase == "Failed":
        return Cause.CRASH, end_of_pod(pod)
    if pod.unscheduled:
        return Cause.UNSCHEDULABLE, pod.unscheduled
    for container in sorted(pod.containers, key=lambda each: each.waiting in _STARTING):
        cause = _BY_REASON.get(container.waiting)
        if cause is not None:
            return cause, f"container {container.name}: {_waiting_text(container)}"
        if container.init and container.exit_code not in (None, 0):
            return Cause.INIT, f"init container {container.name} ended with {_end_text(container)}"
    running_init = next((c for c in pod.containers if c.init and not c.waiting and c.exit_code is None), None)
    if running_init is not None:
        return Cause.STARTING, f"init container {running_init.name} is running"
    return Cause.STARTING, "starting"


def _waiting_text(container: ContainerView) -> str:
    if container.waiting == "CrashLoopBackOff":
        return f"crashed {container.restarts} times, last with {_end_text(container)}"
    return f"{container.waiting}: {container.message}" if container.message else container.waiting


def _end_text(container: ContainerView) -> str:
    reason = f" ({container.reason})" if container.reason and container.reason != "Error" else ""
    message = f": {container.message}" if container.message else ""
    return f"exit code {container.exit_code}{reason}{message}"


def autoscaler_end(pods: Sequence[PodView]) -> str:
    """How the head's autoscaler ended, in words; "" where it runs or there is none.

    Flyte's pods never restart a container, and without it workers never come.
    """
    for pod in pods:
        ended = next((c for c in pod.containers if c.name == "autoscaler" and c.exit_code is not None), None)
        if pod.group == HEAD and ended is not None and not pod.terminating:
            return f"pod {pod.name}: the autoscaler ended with {_end_text(ended)}"
    return ""


def submitter_end(pods: Sequence[PodView], now: datetime, grace: timedelta) -> str:
    """How the last submitter ended while its job goes on, for longer than the grace; "" where one runs or none was."""
    submitters = [pod for pod in pods if pod.group == SUBMITTER]
    if not submitters or any(pod.phase not in ("Succeeded", "Failed") for pod in submitters):
        return ""
    last = max(submitters, key=lambda pod: pod.created)
    return f"submitter {end_of_pod(last) or f'pod {last.name} is done'}" if now - last.since >= grace else ""


def pod_failures(pods: Iterable[PodView]) -> list[str]:
    """How pods ended that failed, head first: killed for memory, evicted, preempted, crashed.

    What ends because it is deleted, as the pods of a cluster that is shut down, has not failed.
    """
    failed = [pod for pod in pods if pod.disrupted or not pod.terminating]
    ranked = sorted(failed, key=lambda pod: (pod.group != HEAD, pod.group != SUBMITTER, pod.name))
    return [f"{pod.group}: {text}" for pod in ranked if (text := end_of_pod(pod))]


def end_of_pod(pod: PodView) -> str:
    """How a pod that should run has ended, in words; "" where it runs, or ended well."""
    if pod.disrupted:
        return f"pod {pod.name}: {pod.disrupted}"
    if pod.phase == "Failed":
        ended = next((c for c in pod.containers if c.exit_code not in (None, 0)), None)
        why = f"{pod.reason} {pod.message}".strip() or (_end_text(ended) if ended else "it failed")
        return f"pod {pod.name}: {why}"
    first = next((c for c in pod.containers if not c.init), None)
    if first is not None and first.exit_code is not None and (first.exit_code or pod.group != SUBMITTER):
        return f"pod {pod.name}: container {first.name} ended with {_end_text(first)}"
    return ""
