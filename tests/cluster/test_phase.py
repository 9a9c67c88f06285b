"""What a RayJob's status means for its task: recordings of a real operator, then each state that there is."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.cluster.phase import (
    ENDED_DEPLOYMENTS,
    WAITING,
    Results,
    UserError,
    Verdict,
    by_results,
    needs_results,
    phase_of,
)
from flytekitplugins.kuberay.cluster.status import JobView, view_of

from .scenes import PHASES

STATUSES = Path(__file__).parents[1] / "statuses"
# Source: KubeRay v1.6.2, ray-operator/apis/ray/v1/rayjob_types.go.
DEPLOYMENTS = (
    "", "Initializing", "Running", "Complete", "Failed", "ValidationFailed", "Suspending", "Suspended", "Retrying",
    "Waiting",
)  # fmt: skip
JOBS = ("", "PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED")
REASONS = (
    "SubmissionFailed", "DeadlineExceeded", "PreRunningDeadlineExceeded", "AppFailed",
    "JobDeploymentStatusTransitionGracePeriodExceeded", "ValidationFailed",
)  # fmt: skip

NOTHING = Results()
OUTPUTS = Results(outputs=True)
FATAL = Results(error=UserError("USER:ValueError", "no luck", recoverable=False))
RECOVERABLE = Results(error=UserError("USER:Recoverable", "later perhaps", recoverable=True))
UNREADABLE = Results(unreadable="PermissionError: denied")


def view(deployment: str = "Running", job: str = "", reason: str = "", **fields: Any) -> JobView:
    """A RayJob in this state."""
    status = {"jobDeploymentStatus": deployment, "jobStatus": job, "reason": reason, **fields}
    return view_of({"metadata": {"uid": "u"}, "spec": {}, "status": status})


def phase(seen: JobView | None, results: Results = NOTHING, *, has_outputs: bool = True) -> str:
    """The name of the phase."""
    return PHASES[phase_of(seen, results, has_outputs=has_outputs).phase]


UP = "QUEUED INITIALIZING RUNNING"
RECORDINGS = [
    pytest.param("k8sjob-success", OUTPUTS, f"{UP} SUCCEEDED", id="a success"),
    pytest.param("k8sjob-success", NOTHING, f"{UP} RETRYABLE_FAILED", id="a success that wrote no outputs"),
    pytest.param("sidecar-success", OUTPUTS, f"{UP} SUCCEEDED", id="one in SidecarMode"),
    pytest.param("shutdown", OUTPUTS, f"{UP} SUCCEEDED", id="one whose cluster goes after it"),
    pytest.param("k8sjob-fail", NOTHING, f"{UP} FAILED", id="an entrypoint that exits 1"),
    pytest.param("k8sjob-fail", FATAL, f"{UP} SUCCEEDED", id="one that left an error.pb for propeller"),
    pytest.param("http-fail", NOTHING, f"{UP} FAILED", id="exit 1 in HTTPMode"),
    pytest.param("submission-failed", NOTHING, f"{UP} RETRYABLE_FAILED", id="a submitter that can't submit"),
    pytest.param("bad-image", NOTHING, "QUEUED INITIALIZING RETRYABLE_FAILED", id="an image that is not there"),
    pytest.param("stopped", NOTHING, f"{UP} FAILED", id="a job that somebody stopped"),
    pytest.param("suspend", NOTHING, f"{UP} QUEUED", id="a suspension"),
    pytest.param("head-deleted-k8sjob", OUTPUTS, f"{UP} SUCCEEDED", id="a lost head and a second run"),
    pytest.param("head-deleted-sidecar", NOTHING, f"{UP} RETRYABLE_FAILED", id="a lost head in SidecarMode"),
    pytest.param("validation-failed", NOTHING, "QUEUED FAILED", id="options that exclude each other"),
    pytest.param("deleted-by-user", NOTHING, f"{UP} RETRYABLE_FAILED", id="a RayJob that somebody deleted"),
]


@pytest.mark.parametrize(("recording", "results", "expected"), RECORDINGS)
def test_a_recording_gives_these_phases(recording: str, results: Results, expected: str) -> None:
    """In this order, each until the next."""
    steps = json.loads((STATUSES / f"{recording}.json").read_text(encoding="utf-8"))["steps"]
    views = [
        None if step["event"] == "DELETED" else view_of({"metadata": {}, "status": step["status"]}) for step in steps
    ]
    phases = [phase(each, results if needs_results(each) else NOTHING) for each in views]
    assert " ".join(name for name, _ in itertools.groupby(phases)) == expected


def test_every_recording_is_replayed() -> None:
    """One that is added gets its row."""
    assert {row.values[0] for row in RECORDINGS} == {file.stem for file in STATUSES.glob("*.json")}


def test_every_state_of_kuberay_has_its_place() -> None:
    """Before the run, the run, and the ends: nothing of KubeRay's is unknown to us."""
    assert set(WAITING) | {"Running", *ENDED_DEPLOYMENTS} == set(DEPLOYMENTS)


@pytest.mark.parametrize(
    ("kind", "known"),
    [("JobDeploymentStatus", DEPLOYMENTS), ("JobStatus", JOBS), ("JobFailedReason", REASONS)],
)
def test_the_states_are_those_of_the_installed_kuberay(kind: str, known: tuple[str, ...]) -> None:
    """Its CRDs call them texts; its Go source, which the tests' cluster comes from, lists them."""
    cache = Path(os.environ.get("GOMODCACHE", Path.home() / "go" / "pkg" / "mod"))
    sources = sorted(cache.glob("github.com/ray-project/kuberay/ray-operator@v1.6.2/apis/ray/v1/rayjob_types.go"))
    if not sources:
        pytest.skip("KubeRay's Go source is not in the module cache")
    text = sources[0].read_text(encoding="utf-8")
    assert sorted(re.findall(rf'^\t\w+\s+{kind}\s+= "(\w*)"', text, re.MULTILINE)) == sorted(known)


ANY: tuple[str, ...] = ()
ENDS = ("Running", "Complete", "Failed", "ValidationFailed")
BOTH = (True, False)
TABLE: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[Results, ...], tuple[bool, ...], str]] = [
    (("", "Waiting", "Suspending", "Suspended"), ANY, ANY, (), BOTH, "QUEUED"),
    (("Initializing", "Retrying"), ANY, ANY, (), BOTH, "INITIALIZING"),
    (("Running",), ("", "PENDING", "RUNNING"), ANY, (), BOTH, "RUNNING"),
    (ENDS, ANY, ANY, (FATAL, RECOVERABLE), (True,), "SUCCEEDED"),  # propeller reads error.pb
    (ENDS, ANY, ANY, (FATAL,), (False,), "FAILED"),
    (ENDS, ANY, ANY, (RECOVERABLE,), (False,), "RETRYABLE_FAILED"),
    (ENDS, ("STOPPED",), ANY, (), BOTH, "FAILED"),
    (ENDS, ANY, ANY, (OUTPUTS,), BOTH, "SUCCEEDED"),
    (ENDS, ("SUCCEEDED",), ANY, (), (False,), "SUCCEEDED"),
    (ENDS, ("SUCCEEDED",), ANY, (UNREADABLE,), (True,), "SUCCEEDED"),  # propeller reads outputs.pb itself
    (("Running",), ("SUCCEEDED",), ANY, (NOTHING,), (True,), "RUNNING"),  # outputs that may still come
    (ENDS, ("SUCCEEDED",), ANY, (NOTHING,), (True,), "RETRYABLE_FAILED"),
    (ENDS, ANY, ("DeadlineExceeded", "ValidationFailed"), (), BOTH, "FAILED"),
    (ENDS, ("FAILED",), ("AppFailed", ""), (), BOTH, "FAILED"),
    (ENDS, ANY, ("AppFailed",), (), BOTH, "RETRYABLE_FAILED"),  # KubeRay lost the head
    (ENDS, ANY, ("SubmissionFailed", "PreRunningDeadlineExceeded"), (), BOTH, "RETRYABLE_FAILED"),
    (ENDS, ANY, ("JobDeploymentStatusTransitionGracePeriodExceeded",), (), BOTH, "RETRYABLE_FAILED"),
    (("ValidationFailed",), ANY, ("",), (), BOTH, "FAILED"),
    (ENDS, ANY, ("",), (), BOTH, "RETRYABLE_FAILED"),
]
"""Deployment states, job states, reasons, result files, whether outputs are declared; the first row that fits counts.

An empty tuple fits any."""


def row_of(deployment: str, job: str, reason: str, results: Results, has_outputs: bool) -> str:
    """The phase of the first row that fits, or what has none."""
    for deployments, jobs, reasons, files, outputs, expected in TABLE:
        fits = deployment in deployments and (not jobs or job in jobs) and (not reasons or reason in reasons)
        if fits and (not files or results in files) and has_outputs in outputs:
            return expected
    return f"no row for {deployment!r}, {job!r}, {reason!r}, {results}, {has_outputs}"


def test_every_combination_has_a_row_and_its_phase() -> None:
    """Each deployment state, job state, reason, result file and interface that there is."""
    reasons, files = (*REASONS, ""), (NOTHING, OUTPUTS, FATAL, RECOVERABLE, UNREADABLE)
    states = list(itertools.product(DEPLOYMENTS, JOBS, reasons, files, (True, False)))
    found = {state: phase(view(*state[:3]), state[3], has_outputs=state[4]) for state in states}
    assert {state: row_of(*state) for state in states} == found


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("deployment", WAITING)
def test_before_the_run_a_stale_job_status_says_nothing(deployment: str, job: str) -> None:
    """Kueue's suspension, and KubeRay's own retries, leave the last one behind."""
    assert phase(view(deployment, job), OUTPUTS) in ("QUEUED", "INITIALIZING")


@pytest.mark.parametrize("results", [NOTHING, OUTPUTS, FATAL, RECOVERABLE, UNREADABLE])
@pytest.mark.parametrize("has_outputs", [True, False])
def test_no_combination_is_undefined(results: Results, has_outputs: bool) -> None:
    """Each gives a phase that propeller takes, and a reason."""
    states = itertools.product((*DEPLOYMENTS, "Novel"), (*JOBS, "NOVEL"), (*REASONS, "", "Novel"))
    verdicts = [
        phase_of(each, results, has_outputs=has_outputs) for each in (None, *(view(*state) for state in states))
    ]
    assert {verdict.phase for verdict in verdicts} <= set(PHASES)
    assert all(verdict.message for verdict in verdicts)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(view("Novel"), "RUNNING", id="a deployment state to come"),
        pytest.param(view("Running", "NOVEL"), "RUNNING", id="a job state to come"),
        pytest.param(view("Failed", "FAILED", "Novel"), "RETRYABLE_FAILED", id="a reason to come"),
        pytest.param(view_of({"metadata": {}}), "QUEUED", id="no status at all"),
        pytest.param(view_of({"metadata": {}, "status": None}), "QUEUED", id="a null status"),
    ],
)
def test_what_is_unknown_ends_no_task_for_good(seen: JobView, expected: str) -> None:
    """A newer operator is no reason to lose a task."""
    assert phase(seen) == expected


@pytest.mark.parametrize(
    ("seen", "results", "with_outputs", "without"),
    [
        pytest.param(view(job="SUCCEEDED"), OUTPUTS, "SUCCEEDED", "SUCCEEDED", id="success while Running"),
        pytest.param(view(job="SUCCEEDED"), NOTHING, "RUNNING", "SUCCEEDED", id="outputs not yet there"),
        pytest.param(view("Complete", "SUCCEEDED"), NOTHING, "RETRYABLE_FAILED", "SUCCEEDED", id="outputs never there"),
        pytest.param(view("Complete", "SUCCEEDED"), UNREADABLE, "SUCCEEDED", "SUCCEEDED", id="outputs not looked at"),
        pytest.param(view("Complete", "SUCCEEDED"), FATAL, "SUCCEEDED", "FAILED", id="exit 0 and an error"),
        pytest.param(view(job="FAILED"), FATAL, "SUCCEEDED", "FAILED", id="an error"),
        pytest.param(view(job="FAILED"), RECOVERABLE, "SUCCEEDED", "RETRYABLE_FAILED", id="an error to be tried again"),
        pytest.param(view(job="FAILED"), NOTHING, "FAILED", "FAILED", id="a process that died with no word"),
        pytest.param(view(job="STOPPED"), NOTHING, "FAILED", "FAILED", id="stopped"),
        pytest.param(
            view("Failed", "FAILED", "AppFailed"), OUTPUTS, "SUCCEEDED", "SUCCEEDED", id="a failure after the outputs"
        ),
        pytest.param(
            view("Failed", "RUNNING", "AppFailed", message="Ray head pod not found."),
            NOTHING, "RETRYABLE_FAILED", "RETRYABLE_FAILED", id="AppFailed for a head that is gone",
        ),
        pytest.param(
            view("Failed", "FAILED", "JobDeploymentStatusTransitionGracePeriodExceeded"),
            NOTHING, "RETRYABLE_FAILED", "RETRYABLE_FAILED", id="an end that KubeRay forced",
        ),
        pytest.param(view("Failed", "RUNNING", "DeadlineExceeded"), NOTHING, "FAILED", "FAILED", id="the deadline"),
        pytest.param(
            view("Failed", "", "PreRunningDeadlineExceeded"),
            NOTHING, "RETRYABLE_FAILED", "RETRYABLE_FAILED", id="never started",
        ),
        pytest.param(None, OUTPUTS, "SUCCEEDED", "SUCCEEDED", id="gone, with outputs"),
        pytest.param(None, FATAL, "SUCCEEDED", "FAILED", id="gone, with an error"),
        pytest.param(None, NOTHING, "RETRYABLE_FAILED", "RETRYABLE_FAILED", id="gone, with nothing"),
    ],
)  # fmt: skip
def test_the_end(seen: JobView | None, results: Results, with_outputs: str, without: str) -> None:
    """Of a task that declares outputs, and of one that does not, where propeller reads no file."""
    assert (phase(seen, results), phase(seen, results, has_outputs=False)) == (with_outputs, without)


@pytest.mark.parametrize(
    ("failed", "limit", "expected"),
    [
        pytest.param(0, 0, "FAILED", id="no retries"),
        pytest.param(0, 1, "RUNNING", id="one is left"),
        pytest.param(1, 1, "FAILED", id="none is left"),
        pytest.param(2, 3, "RUNNING", id="the last is left"),
    ],
)
def test_a_failure_that_kuberay_retries_is_no_end(failed: int, limit: int, expected: str) -> None:
    """What KubeRay does: rayjob_controller.go, checkBackoffLimitAndUpdateStatusIfNeeded."""
    status = {"jobDeploymentStatus": "Running", "jobStatus": "FAILED", "failed": failed}
    assert phase(view_of({"metadata": {}, "spec": {"backoffLimit": limit}, "status": status})) == expected


@pytest.mark.parametrize(
    ("seen", "results", "expected"),
    [
        pytest.param(view("Initializing"), NOTHING, "the Ray cluster is starting", id="waiting"),
        pytest.param(
            view("Failed", "", "SubmissionFailed", message="BackoffLimitExceeded"),
            NOTHING,
            "the Ray job failed [SubmissionFailed] BackoffLimitExceeded",
            id="KubeRay's reason and text",
        ),
        pytest.param(
            view("ValidationFailed", reason="ValidationFailed", message="no"),
            NOTHING,
            "KubeRay refuses it [ValidationFailed] no",
            id="a refusal",
        ),
        pytest.param(view(job="FAILED"), FATAL, "USER:ValueError: no luck", id="the user's own error"),
        pytest.param(
            None,
            UNREADABLE,
            "the RayJob was deleted by someone else before the task had ended"
            " (the result files were not read: PermissionError: denied)",
            id="gone, and nobody knows more",
        ),
        pytest.param(view("Novel"), NOTHING, "KubeRay reports 'Novel', which this release does not know", id="unknown"),
    ],
)
def test_the_reason_in_words(seen: JobView | None, results: Results, expected: str) -> None:
    """For the task's owner."""
    assert phase_of(seen, results, has_outputs=False).message == expected


LOST = Verdict(TaskExecution.RETRYABLE_FAILED, "the head is gone", ours=True)


@pytest.mark.parametrize(
    ("results", "with_outputs", "without"),
    [
        pytest.param(NOTHING, "RETRYABLE_FAILED", "RETRYABLE_FAILED", id="nothing stands"),
        pytest.param(UNREADABLE, "RETRYABLE_FAILED", "RETRYABLE_FAILED", id="nobody knows"),
        pytest.param(OUTPUTS, "SUCCEEDED", "SUCCEEDED", id="it was done"),
        pytest.param(FATAL, "SUCCEEDED", "FAILED", id="it had failed"),
        pytest.param(RECOVERABLE, "SUCCEEDED", "RETRYABLE_FAILED", id="it had failed, to be tried again"),
    ],
)
def test_the_files_decide_before_our_own_word(results: Results, with_outputs: str, without: str) -> None:
    """A job that lost its head a moment after it was done; the RayJob has to go in each case."""
    ends = [by_results(LOST, results, has_outputs=has_outputs) for has_outputs in (True, False)]
    assert [PHASES[end.phase] for end in ends] == [with_outputs, without]
    assert all(end.ours for end in ends)


@pytest.mark.parametrize("results", [NOTHING, OUTPUTS, FATAL, RECOVERABLE, UNREADABLE])
def test_what_kuberay_refuses_is_ours_to_clean_up(results: Results) -> None:
    """It never looks at it again: no ttl would end a cluster that stands."""
    assert phase_of(view("ValidationFailed"), results, has_outputs=True).ours
    assert not phase_of(view("Failed", reason="SubmissionFailed"), results, has_outputs=True).ours


@pytest.mark.parametrize(
    ("code", "killed"),
    [
        pytest.param("247", True, id="as pyflyte-fast-execute ends"),
        pytest.param("137", True, id="as a shell ends"),
        pytest.param("-9", True, id="as Python tells"),
        pytest.param("1", False, id="an end of its own"),
    ],
)
def test_a_killed_driver_points_to_its_memory(code: str, killed: bool) -> None:
    """Ray tells the exit code only; where one process of a container is killed, its pod tells nothing."""
    message = f"Job entrypoint command failed with exit code {code}, last available logs (truncated to 20,000 chars):"
    verdict = phase_of(view("Failed", "FAILED", "AppFailed", message=message), NOTHING, has_outputs=True)
    assert ("OOMKilled" in verdict.message, f"exit code {code}," in verdict.message) == (killed, True)
