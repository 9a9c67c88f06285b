"""A task's phase from all that is known at one moment: the RayJob, its pods, its result files, the clock.

`phase` tells what status and results mean. This adds what KubeRay does not report, or not in time: why a cluster does
not come up and when that is final, a job that lost its head, deadlines, and how the pods of a failed job ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from flyteidl.core.execution_pb2 import TaskExecution

from ..settings import Settings
from .diagnosis import (
    Cause,
    autoscaler_end,
    format_duration,
    head_loss,
    is_final,
    is_permanent,
    pod_failures,
    submitter_end,
    waiting_groups,
)
from .phase import FAILURES, Results, Verdict, needs_results, phase_of
from .pods import PodView
from .status import JobView, shortened

_MOST_LINES = 3
_SUBMITTER_GRACE = timedelta(minutes=5)
"""KubeRay itself ends a job whose submitter is done after 300 s."""


@dataclass(frozen=True)
class Deadlines:
    """A task's own; None for none."""

    start: timedelta | None = None  # from the create until the job runs, less suspension
    run: timedelta | None = None


@dataclass(frozen=True)
class Sight:
    """What is known of a task's RayJob at one moment."""

    job: JobView | None  # None: it is gone
    pods: Sequence[PodView] | None = ()  # None: they are not known, so nothing follows from their absence
    results: Results = Results()
    events: Sequence[str] = ()  # of KubeRay's objects, newest last; read while no pod explains the waiting


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
    if needs_results(job):
        return _with_ends(plain, job, sight)
    if job.deployment in ("Initializing", "Retrying"):
        return _starting(plain, job, sight, deadlines, settings, now)
    if job.deployment == "Running":
        return _running(plain, job, sight, deadlines, now)
    return replace(plain, message=f"{plain.message}: {sight.events[-1]}") if sight.events else plain


def _starting(
    plain: Verdict, job: JobView, sight: Sight, deadlines: Deadlines, settings: Settings, now: datetime
) -> Verdict:
    """A cluster on its way: what it waits for, and whether that is final."""
    waiting = waiting_groups(sight.pods or ())
    lines = [each.line(now) for each in waiting]
    text = "; ".join(lines[:_MOST_LINES]) + (f"; and {len(lines) - _MOST_LINES} more" if lines[_MOST_LINES:] else "")
    for each in waiting:
        if is_final(each, settings, now):
            phase = TaskExecution.FAILED if is_permanent(each) else TaskExecution.RETRYABLE_FAILED
            return Verdict(phase, f"the cluster did not come up: {text}", ours=True)
    since = job.cluster_created or job.created
    if deadlines.start is not None and since is not None and now - since > deadlines.start:
        waited = f"the job did not start within its {format_duration(deadlines.start)}"
        return Verdict(TaskExecution.RETRYABLE_FAILED, f"{waited}: {text or plain.message}", ours=True)
    if any(each.cause is Cause.UNSCHEDULABLE for each in waiting):
        return Verdict(TaskExecution.WAITING_FOR_RESOURCES, text)
    if not waiting and sight.events:
        return Verdict(TaskExecution.WAITING_FOR_RESOURCES, sight.events[-1])
    return replace(plain, message=text or plain.message)


def _running(plain: Verdict, job: JobView, sight: Sight, deadlines: Deadlines, now: datetime) -> Verdict:
    """A job under way: whether it can still end well."""
    if sight.pods is not None:
        lost = head_loss(sight.pods, job.provisioned or job.started)
        lost = lost or autoscaler_end(sight.pods) or submitter_end(sight.pods, now, _SUBMITTER_GRACE)
        if lost:
            return Verdict(TaskExecution.RETRYABLE_FAILED, f"the job can't go on: {lost}{_stages(job)}", ours=True)
    if deadlines.run is not None and job.started is not None and now - job.started > deadlines.run:
        text = f"the job ran longer than its {format_duration(deadlines.run)}"
        return Verdict(TaskExecution.FAILED, text + _stages(job), ours=True)
    return plain


def _with_ends(plain: Verdict, job: JobView, sight: Sight) -> Verdict:
    """A failure with how the pods ended, which is no fault of the code where they were taken away."""
    if plain.phase not in FAILURES or sight.results.error is not None:
        return plain
    ends = pod_failures(sight.pods or ())
    text = plain.message + "".join(f"; {end}" for end in ends[:_MOST_LINES]) + _stages(job)
    taken = any(end.startswith("head: ") for end in ends) and job.job != "STOPPED"
    return replace(plain, message=shortened(text), phase=TaskExecution.RETRYABLE_FAILED if taken else plain.phase)


def _stages(job: JobView) -> str:
    """How long each stage took: ` (cluster up after 30s, job started after 35s, ran 2m)`."""
    parts = []
    if job.created and job.provisioned:
        parts.append(f"cluster up after {format_duration(job.provisioned - job.created)}")
    if job.created and job.started:
        parts.append(f"job started after {format_duration(job.started - job.created)}")
    if job.started and job.ended:
        parts.append(f"ran {format_duration(job.ended - job.started)}")
    return f" ({', '.join(parts)})" if parts else ""
