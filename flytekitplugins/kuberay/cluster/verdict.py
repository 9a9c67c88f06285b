"""A task's phase from all that is known at one moment: the RayJob, its pods, its result files, the clock.

`phase` tells what status and results mean. This adds what KubeRay does not report, or not in time: why a cluster does
not come up and when that is final, a job that lost its head, deadlines, and how the pods of a failed job ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from flyteidl.core.execution_pb2 import TaskExecution

from ..errors import shortened
from ..settings import Settings
from .diagnosis import (
    Cause,
    Trouble,
    Waiting,
    autoscaler_end,
    format_duration,
    head_loss,
    is_final,
    is_permanent,
    pod_failures,
    submitter_end,
    waiting_groups,
)
from .phase import FAILURES, Results, Verdict, by_results, needs_results, phase_of
from .pods import HEAD, SUBMITTER, PodView
from .sidecar_mode import early_end
from .status import JobView

_MOST_LINES = 3
_SUBMITTER_GRACE = timedelta(minutes=10)
"""The Job of a submitter that failed waits up to six minutes before its next one."""

_JOB_REFUSED = "FailedCreate:"
_REFUSED = (_JOB_REFUSED, "FailedToCreate")
"""How events begin that tell of what could not be made, as for a quota: those of a Job, and those of KubeRay."""


@dataclass(frozen=True)
class Deadlines:
    """A task's own; None for none."""

    start: timedelta | None = None  # until the job runs, less suspension
    run: timedelta | None = None


@dataclass(frozen=True)
class Sight:
    """What is known of a task's RayJob at one moment."""

    job: JobView | None  # None: it is gone
    pods: Sequence[PodView] | None = ()  # None: they are not known, so nothing follows from their absence
    results: Results = Results()
    events: Sequence[str] = ()  # of KubeRay's objects, newest last; read while no pod explains the waiting
    trouble: Trouble | None = None  # as seen so far; None to go by the pods' own times
    was_initializing: bool = False  # when something went wrong, or now


def verdict_of(sight: Sight, *, has_outputs: bool, deadlines: Deadlines, settings: Settings, now: datetime) -> Verdict:
    """The task's phase and the reason in words for its owner.

    Args:
        sight: What is known.
        has_outputs: Whether the task declares outputs.
        deadlines: The task's own.
        settings: The platform's graces.
        now: The time, aware of its zone.
    """
    plain = phase_of(sight.job, sight.results, has_outputs=has_outputs)
    job = sight.job
    if job is None:
        return plain
    sight = replace(sight, pods=_pods_of(job, sight.pods))
    if needs_results(job):
        return _with_ends(plain, job, sight.pods, sight.results, now)
    waiting = waiting_of(job, sight.pods)
    declared = None
    if not job.going:
        early = early_end(job, sight.pods or (), sight.results, has_outputs=has_outputs)
        declared = early or _declared(job, sight, waiting, deadlines, settings, now)
    if declared is not None:
        told = replace(declared, message=declared.message + _stages(job, now))
        return by_results(told, sight.results, has_outputs=has_outputs)
    return _shown(plain, job, sight, waiting, now)


def waiting_of(job: JobView, pods: Sequence[PodView] | None) -> list[Waiting]:
    """Why the job does not run yet: its cluster does not come up, or nobody can hand it over."""
    if job.deployment == "Initializing":
        return waiting_groups(_pods_of(job, pods) or ())
    if job.is_unsubmitted:
        waiting = waiting_groups(_pods_of(job, pods) or ())
        return [each for each in waiting if each.role == SUBMITTER and each.cause is not Cause.STARTING]
    return []


def was_initializing(verdict: Verdict, waiting: Sequence[Waiting], before: bool) -> bool:
    """The next sight's `was_initializing`: as before while something is wrong, so that the phase stays, too."""
    if any(each.cause is Cause.UNSCHEDULABLE for each in waiting):
        return False
    return before if _is_stuck(waiting) else verdict.phase == TaskExecution.INITIALIZING


def _is_stuck(waiting: Sequence[Waiting]) -> bool:
    """Whether something is wrong that does not pass by itself."""
    return any(each.cause is not Cause.STARTING for each in waiting)


def _pods_of(job: JobView, pods: Sequence[PodView] | None) -> Sequence[PodView] | None:
    """The pods of the job's present cluster: those of one before a suspension or a retry may take long to go."""
    if pods is None or job.elsewhere:
        return None
    return [pod for pod in pods if pod.cluster in ("", job.cluster)]


def _declared(
    job: JobView,
    sight: Sight,
    waiting: Sequence[Waiting],
    deadlines: Deadlines,
    settings: Settings,
    now: datetime,
) -> Verdict | None:
    """An end that KubeRay does not tell of; None where the job may still end well."""
    text = _text_of(waiting, now) or (sight.events[-1] if sight.events else "")
    for each in waiting:
        if is_final(each, settings, now, sight.trouble):
            phase = TaskExecution.FAILED if is_permanent(each) else TaskExecution.RETRYABLE_FAILED
            what = "the job could not be submitted" if each.role == SUBMITTER else "the cluster did not come up"
            return Verdict(phase, f"{what}: {text}", ours=True)
    since = _start_clock(job, sight.pods or ())
    if deadlines.start is not None and since is not None and now - since > deadlines.start:
        late = f"the job did not start within its start deadline of {format_duration(deadlines.start)}"
        text = text or ("the cluster is up, but the job was not handed over" if job.is_unsubmitted else "")
        return Verdict(TaskExecution.RETRYABLE_FAILED, f"{late}: {text}" if text else late, ours=True)
    return _declared_in_run(job, sight, deadlines, now) if job.deployment == "Running" else None


def _declared_in_run(job: JobView, sight: Sight, deadlines: Deadlines, now: datetime) -> Verdict | None:
    """The same of a job under way: what it can't go on without is gone, or it takes too long."""
    pods = sight.pods
    if pods is not None and not job.outlives_head:
        lost = head_loss(pods, job.provisioned or job.started) or autoscaler_end(pods)
        if not lost and job.job != "RUNNING":  # one that runs needs no submitter: only its log was cut
            lost = submitter_end(pods, now, _SUBMITTER_GRACE)
        if lost:
            return Verdict(TaskExecution.RETRYABLE_FAILED, f"the job can't go on: {lost}", ours=True)
    began = job.started or (_handed_over(pods or ()) if job.is_unsubmitted else None)
    if deadlines.run is not None and began is not None and now - began > deadlines.run:
        text = f"the job ran longer than its run deadline of {format_duration(deadlines.run)}"
        return Verdict(TaskExecution.FAILED, text, ours=True)
    return None


def _handed_over(pods: Sequence[PodView]) -> datetime | None:
    """Since when a submitter's pod is up; None where there is none.

    It hands the job over or ends badly, though KubeRay may not be able to ask Ray. One in the head's pod may wait on.
    """
    return min((pod.since for pod in pods if pod.role == SUBMITTER and pod.ready), default=None)


def _start_clock(job: JobView, pods: Sequence[PodView]) -> datetime | None:
    """Since when the job could have started; None while it is suspended, retried or runs."""
    if job.deployment in ("Initializing", "Waiting") or (job.is_unsubmitted and _handed_over(pods) is None):
        return job.initialized or job.created
    unseen = not job.deployment and not job.suspended and job.initialized is None  # MultiKueue copies a status late
    return job.created if unseen and not job.elsewhere else None


def _shown(plain: Verdict, job: JobView, sight: Sight, waiting: Sequence[Waiting], now: datetime) -> Verdict:
    """The phase of a job that may still end well, with what it waits for."""
    event = sight.events[-1] if sight.events else ""
    if job.deployment in ("", "Suspended") and event:  # told by a phase of its own: a change within one is not shown
        return Verdict(TaskExecution.WAITING_FOR_RESOURCES, f"{plain.message}: {event}")
    if job.deployment == "Running" and not waiting and not (job.is_unsubmitted and event.startswith(_JOB_REFUSED)):
        return plain
    text = _text_of(waiting, now)
    if any(each.cause is Cause.UNSCHEDULABLE for each in waiting):
        return Verdict(TaskExecution.WAITING_FOR_RESOURCES, text)
    if event and event.startswith(_REFUSED) and not _is_stuck(waiting):
        return Verdict(TaskExecution.WAITING_FOR_RESOURCES, f"{event}; {text}" if text else event)
    told = "; ".join(part for part in (text, event) if part)
    phase = TaskExecution.INITIALIZING if waiting else plain.phase
    if sight.was_initializing and _is_stuck(waiting):
        phase = TaskExecution.WAITING_FOR_RESOURCES  # new words within a phase are not shown
    return Verdict(phase, told) if told else plain


def _text_of(waiting: Sequence[Waiting], now: datetime) -> str:
    lines = [each.line(now) for each in waiting]
    return "; ".join(lines[:_MOST_LINES]) + (f"; and {len(lines) - _MOST_LINES} more" if lines[_MOST_LINES:] else "")


def _with_ends(
    plain: Verdict, job: JobView, pods: Sequence[PodView] | None, results: Results, now: datetime
) -> Verdict:
    """A failure with how the pods ended, which is no fault of the code where they were taken away."""
    if plain.phase not in FAILURES:
        return plain
    if results.error is not None:
        return replace(plain, message=shortened(plain.message + _stages(job, now)))
    if lost := _head_lost_before(job, pods or ()):
        text = f"the job can't go on: {lost} [{job.reason}] {job.message}"
        return replace(plain, message=shortened(text + _stages(job, now)))
    failed = pod_failures(pods or ())
    never_up = waiting_groups(pods or ()) if job.provisioned is None and job.started is None else []
    ends = [f"{pod.group}: {end}" for pod, end in failed]
    told = [*ends, *(each.line(now) for each in never_up if each.cause is not Cause.CRASH)]
    text = plain.message + "".join(f"; {line}" for line in told[:_MOST_LINES]) + _stages(job, now)
    taken = any(pod.role == HEAD for pod, _ in failed) and job.job != "STOPPED" and job.reason in ("", "AppFailed")
    return replace(plain, message=shortened(text), phase=TaskExecution.RETRYABLE_FAILED if taken else plain.phase)


def _head_lost_before(job: JobView, pods: Sequence[PodView]) -> str:
    """How a running job lost its head, in words, where KubeRay saw only that its submitter failed; "" where it has not.

    Where no pod of the cluster is left, KubeRay has deleted it since.
    """
    if job.job != "RUNNING" or job.reason != "SubmissionFailed":
        return ""
    stands = any(pod.role != SUBMITTER and not pod.terminating for pod in pods)
    return head_loss(pods, job.provisioned or job.started) if stands else ""


def _stages(job: JobView, now: datetime) -> str:
    """How long each wait was, and the run: ` (queued 2m, cluster starting 30s, job starting 5s, ran 2m)`."""
    moments = [
        ("queued", job.created),
        ("cluster starting", job.initialized),
        ("job starting", job.provisioned or job.started),
        ("ran", job.started),
    ]
    known = [(name, moment) for name, moment in moments if moment is not None]
    ends = [*(moment for _, moment in known[1:]), job.ended or now]
    lengths = [(name, end - begin) for (name, begin), end in zip(known, ends, strict=False)]
    parts = [f"{name} {format_duration(length)}" for name, length in lengths if length >= timedelta(seconds=1)]
    return f" ({', '.join(parts)})" if parts else ""
