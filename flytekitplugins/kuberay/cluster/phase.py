"""What a RayJob's status means for its Flyte task: pure, from status and result files to a phase and its reason.

What the caller makes of an answer decides much here: with declared outputs, SUCCEEDED makes propeller read error.pb
itself, so that the user's own error code, kind and recoverability arrive; FAILED is flattened and never retried.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from flyteidl.core.execution_pb2 import TaskExecution

from ..errors import shortened
from .status import JobView

WAITING: Mapping[str, tuple[TaskExecution.Phase, str]] = {
    "": (TaskExecution.QUEUED, "KubeRay has not looked at it yet"),
    "Waiting": (TaskExecution.QUEUED, "KubeRay waits for the cluster to submit to"),
    "Suspending": (TaskExecution.QUEUED, "it is being suspended"),
    "Suspended": (TaskExecution.QUEUED, "it is suspended, waiting for its queue"),
    "Initializing": (TaskExecution.INITIALIZING, "the Ray cluster is starting"),
    "Retrying": (TaskExecution.INITIALIZING, "KubeRay starts another cluster for it"),
}
"""States before the job runs, when whatever jobStatus says is stale. New is an empty status."""

FAILURES: Mapping[TaskExecution.Phase, str] = {
    TaskExecution.FAILED: "FAILED",
    TaskExecution.RETRYABLE_FAILED: "RETRYABLE_FAILED",
}
"""The phases of a bad end, with their names."""

ENDS = frozenset({TaskExecution.SUCCEEDED, *FAILURES})
"""The phases after which nothing comes."""

ENDED_DEPLOYMENTS = frozenset({"Complete", "Failed", "ValidationFailed"})
_ENDED_JOBS = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
_LIVE_JOBS = frozenset({"PENDING", "RUNNING"})
_PERMANENT_REASONS: Mapping[str, str] = {
    "AppFailed": "the task's process failed",
    "DeadlineExceeded": "it ran longer than its deadline",
    "ValidationFailed": "KubeRay refuses it",
}
"""Reasons of a failure that another attempt would meet again; with any other one it may help."""

_KILLED = re.compile(r"Job entrypoint command failed with exit code (?:-9|137|247)\b")
"""Signal 9 as Python, a shell and pyflyte-fast-execute hand it on. Source: Ray's job_supervisor.py run."""


@dataclass(frozen=True)
class UserError:
    """What error.pb says."""

    code: str
    message: str
    recoverable: bool


@dataclass(frozen=True)
class Verdict:
    """A phase and the reason in words for the task's owner."""

    phase: TaskExecution.Phase
    message: str
    ours: bool = False  # KubeRay would not end it, so the RayJob has to go


@dataclass(frozen=True)
class Results:
    """Which result files of an attempt stand; `unreadable` says why that isn't known."""

    outputs: bool = False
    error: UserError | None = None
    declared: Verdict | None = None  # by an earlier look, in the diagnosis that it left
    unreadable: str = ""


def needs_results(view: JobView | None) -> bool:
    """Whether the phase depends on the result files: the job has ended, or its RayJob is gone (None)."""
    if view is None or view.deployment in ENDED_DEPLOYMENTS:
        return True
    return view.deployment == "Running" and view.job in _ENDED_JOBS and not (view.job == "FAILED" and view.retries)


def phase_of(view: JobView | None, results: Results, *, has_outputs: bool) -> Verdict:
    """The task's phase, as the RayJob and the result files tell it.

    Args:
        view: The RayJob; None when it is gone.
        results: The result files, where `needs_results`.
        has_outputs: Whether the task declares outputs.
    """
    if needs_results(view):
        return _end_of(view, results, has_outputs=has_outputs)
    assert view is not None  # needs_results says so
    if view.deployment in WAITING:
        stops = view.suspended and view.deployment in ("", "Initializing")  # KubeRay passes through both, in this order
        phase, text = WAITING["Suspended" if stops else view.deployment]
        return Verdict(phase, f"{text}: {view.message}" if view.message and view.deployment != "Suspended" else text)
    if view.deployment == "Running":
        return Verdict(TaskExecution.RUNNING, view.message or "the Ray cluster is up, the job is being submitted")
    return Verdict(TaskExecution.RUNNING, f"KubeRay reports {view.deployment!r}, which this release does not know")


def by_results(declared: Verdict, results: Results, *, has_outputs: bool) -> Verdict:
    """An end that we declare, unless the result files tell another: a job that lost its head may have been done."""
    if results.error is not None:
        return replace(_user_failure(results.error, has_outputs=has_outputs), ours=True)
    return Verdict(TaskExecution.SUCCEEDED, "the outputs were written", ours=True) if results.outputs else declared


def _end_of(view: JobView | None, results: Results, *, has_outputs: bool) -> Verdict:
    """The phase of a job that has ended, which we clean up where KubeRay leaves something that works on.

    It never looks again at one that it refuses. And of one that it calls failed while Ray runs it, as where the
    submitter was lost or a deadline has passed, the code would run until the ttl is over.
    """
    end = _judged(view, results, has_outputs=has_outputs)
    refused = view is not None and view.deployment == "ValidationFailed"
    runs_on = view is not None and view.deployment == "Failed" and view.job in _LIVE_JOBS
    return replace(end, ours=refused or runs_on)


def _judged(view: JobView | None, results: Results, *, has_outputs: bool) -> Verdict:
    """The phase of a job that has ended; what the user's code left decides before what Ray says."""
    if results.error is not None:
        return _user_failure(results.error, has_outputs=has_outputs)
    if view is not None and view.job == "STOPPED":
        return Verdict(TaskExecution.FAILED, "the Ray job was stopped by someone")
    if view is None or view.job != "SUCCEEDED":
        written = Verdict(TaskExecution.SUCCEEDED, "the outputs were written")
        return written if results.outputs else _failure(view, results)
    return success(view, results, has_outputs=has_outputs)


def success(view: JobView, results: Results, *, has_outputs: bool) -> Verdict:
    """The phase of a job that Ray calls succeeded: with declared outputs, not before they stand."""
    if results.outputs or not has_outputs:
        return Verdict(TaskExecution.SUCCEEDED, "the Ray job has succeeded")
    if results.unreadable:
        unread = f"the outputs were not looked at: {results.unreadable}"
        return Verdict(TaskExecution.SUCCEEDED, f"the Ray job has succeeded; {unread}")
    if view.deployment == "Running":
        return Verdict(TaskExecution.RUNNING, "the Ray job has ended, its outputs are awaited")
    return Verdict(TaskExecution.RETRYABLE_FAILED, "the Ray job has succeeded but wrote no outputs")


def _user_failure(error: UserError, *, has_outputs: bool) -> Verdict:
    text = shortened(f"{error.code}: {error.message}")
    if has_outputs:
        return Verdict(TaskExecution.SUCCEEDED, text)  # makes propeller read error.pb
    return Verdict(TaskExecution.RETRYABLE_FAILED if error.recoverable else TaskExecution.FAILED, text)


def _failure(view: JobView | None, results: Results) -> Verdict:
    unread = f" (the result files were not read: {results.unreadable})" if results.unreadable else ""
    if view is None:
        text = "the RayJob was deleted by someone else before the task had ended"
        return Verdict(TaskExecution.RETRYABLE_FAILED, text + unread)
    reason = view.reason or ("AppFailed" if view.job == "FAILED" else view.deployment)
    # KubeRay says AppFailed, too, when the head is gone and took what it knew of the job with it
    permanent = None if reason == "AppFailed" and view.job != "FAILED" else _PERMANENT_REASONS.get(reason)
    what = permanent or "the Ray job failed"
    if _KILLED.match(view.message):
        what += ": killed with signal 9, most likely as it needed more memory than the head's limit (OOMKilled)"
    text = f"{what} [{reason}] {view.message}".rstrip()
    return Verdict(TaskExecution.FAILED if permanent else TaskExecution.RETRYABLE_FAILED, text + unread)
