"""Whose log a person means who asks for a task's: pure, from the submission mode and the pods to containers.

What the user's code prints is the log of whoever hands the job over and follows it. In HTTPMode nobody does: there it
stays in a file of the head's, which Ray's dashboard shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..wire import Manifest
from .capsule import LogSource
from .pods import HEAD, SUBMITTER, WORKER, ContainerView, PodView
from .status import JobView
from .submitter import SUBMITTER_CONTAINER

DRIVER = "driver"
WHICH = (DRIVER, HEAD, WORKER, SUBMITTER)


@dataclass(frozen=True)
class DashboardLog:
    """Where Ray's dashboard has a job's log, for a GET through the API server.

    Source: Ray's dashboard/modules/state/state_head.py get_logs. Older Rays mark each piece unless `format` is text,
    and all want to be told a node, although the job decides about it.
    """

    service: str  # with its port
    job_id: str

    def path(self, *, follow: bool) -> str:
        """What to ask for: the stream has no end."""
        return f"api/v0/logs/{'stream' if follow else 'file'}"

    def query(self, lines: int = -1) -> tuple[tuple[str, str], ...]:
        """With it; by default for the whole log."""
        return (("submission_id", self.job_id), ("lines", str(lines)), ("format", "text"), ("node_ip", "any"))


def mode_of(manifest: Manifest) -> str:
    """The submission mode of a RayJob manifest."""
    return str((manifest.get("spec") or {}).get("submissionMode") or "K8sJobMode")


def places_of(which: str, mode: str, job: JobView, pods: Iterable[PodView]) -> list[LogSource] | DashboardLog:
    """Where a log is, in containers or behind Ray's dashboard; [] where there is none yet, or none any more.

    Args:
        which: One of `WHICH`.
        mode: The RayJob's submission mode.
        job: The RayJob.
        pods: Its pods.
    """
    if which == DRIVER and mode == "HTTPMode":
        return dashboard_log(job) or []
    return log_sources(which, mode, pods)


def dashboard_log(job: JobView) -> DashboardLog | None:
    """Where the dashboard has the job's log; None while there is no dashboard, or the job has not begun."""
    host, _, port = job.dashboard.rpartition(":")
    service = host.rpartition("/")[2].partition(".")[0]
    has_begun = job.job_id and job.job not in ("", "PENDING")
    return DashboardLog(f"{service}:{port}", job.job_id) if service and port and has_begun else None


def log_sources(which: str, mode: str, pods: Iterable[PodView]) -> list[LogSource]:
    """The containers whose logs are meant, as far as they have one; of a head or submitter the newest.

    Args:
        which: One of `WHICH`.
        mode: The RayJob's submission mode.
        pods: Its pods.
    """
    newest = sorted(pods, key=lambda pod: pod.created, reverse=True)
    if which in (DRIVER, SUBMITTER):
        if mode == "HTTPMode":
            return []
        role = HEAD if mode == "SidecarMode" else SUBMITTER
        return _sources([pod for pod in newest if pod.role == role], SUBMITTER_CONTAINER)[:1]
    if which == HEAD:
        return _sources([pod for pod in newest if pod.role == HEAD])[:1]
    workers = [pod for pod in newest if pod.role == WORKER]
    return _sources(sorted(workers, key=lambda pod: (pod.group, pod.name)))


def _sources(pods: Sequence[PodView], name: str = "") -> list[LogSource]:
    """The pods' containers of that name, or Ray's, where they have begun."""
    found = [(pod, _container(pod, name)) for pod in pods]
    return [
        LogSource(pod.name, each.name, previous=bool(each.waiting))
        for pod, each in found
        if each is not None and each.has_started
    ]


def _container(pod: PodView, name: str) -> ContainerView | None:
    own = [each for each in pod.containers if not each.init]
    named = [each for each in own if each.name == name]
    return next(iter(named if name and pod.role == HEAD else named or own), None)
