"""Which RayJobs go: those of executions that are gone, and those that ended long ago, never one of a live execution."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from flytekitplugins.kuberay.cluster.status import view_of
from flytekitplugins.kuberay.cluster.sweep import Owner, execution_of, owner_of, sweepable
from flytekitplugins.kuberay.wire import Manifest

NOW = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
CREATED = "2026-01-01T09:00:00Z"
RUNNING = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
ENDED = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "endTime": "2026-01-01T10:00:00Z"}
FAILED = {"jobDeploymentStatus": "Failed", "reason": "SubmissionFailed", "endTime": "2026-01-01T10:00:00Z"}
REFUSED = {"jobDeploymentStatus": "ValidationFailed"}
HOUR = timedelta(hours=1)
GONE, OVER = "its execution is gone", "its execution has ended"


def job(status: Manifest, **metadata: str) -> Manifest:
    """A RayJob created three hours ago."""
    return {"metadata": {"name": "j", "uid": "u", "creationTimestamp": CREATED, **metadata}, "status": status}


@pytest.mark.parametrize(
    ("status", "owner", "older_than", "why"),
    [
        pytest.param(RUNNING, Owner.LIVE, timedelta(0), "", id="a live execution's job runs"),
        pytest.param(ENDED, Owner.LIVE, timedelta(0), "", id="a live execution's job stays after its end"),
        pytest.param(RUNNING, Owner.GONE, None, GONE, id="nobody will ever end it"),
        pytest.param({}, Owner.GONE, None, GONE, id="nor this one, which KubeRay has not looked at"),
        pytest.param(ENDED, Owner.GONE, None, GONE, id="nobody will ask for its end"),
        pytest.param(ENDED, Owner.GONE, 3 * HOUR, "", id="nobody will ask, but it is to be kept"),
        pytest.param(ENDED, Owner.GONE, HOUR, "it ended 2h0m ago", id="nobody will ask, and it was kept"),
        pytest.param(RUNNING, Owner.ENDED, None, OVER, id="the execution ended and left it running"),
        pytest.param(ENDED, Owner.ENDED, HOUR, "it ended 2h0m ago", id="kept for long enough"),
        pytest.param(FAILED, Owner.ENDED, HOUR, "it ended 2h0m ago", id="that it failed changes nothing"),
        pytest.param(REFUSED, Owner.ENDED, HOUR, "it ended 3h0m ago", id="refused by KubeRay: ended when created"),
        pytest.param(ENDED, Owner.ENDED, 2 * HOUR, "", id="still kept to be looked at"),
        pytest.param(ENDED, Owner.ENDED, None, "", id="kept without a limit"),
        pytest.param(RUNNING, Owner.UNKNOWN, timedelta(0), "", id="it runs, perhaps for somebody"),
        pytest.param(ENDED, Owner.UNKNOWN, HOUR, "it ended 2h0m ago", id="it ended, whosever it was"),
    ],
)
def test_what_goes(status: Manifest, owner: Owner, older_than: timedelta | None, why: str) -> None:
    """Its execution decides, then whether it has ended, then its age."""
    assert sweepable(view_of(job(status)), owner, older_than=older_than, now=NOW) == why


def test_what_is_going_already_is_left_alone() -> None:
    """A second deletion changes nothing."""
    going = job(RUNNING, deletionTimestamp="2026-01-01T11:00:00Z")
    assert sweepable(view_of(going), Owner.GONE, older_than=timedelta(0), now=NOW) == ""


@pytest.mark.parametrize(
    ("phase", "owner"),
    [
        pytest.param(None, Owner.LIVE, id="not begun"),
        pytest.param(0, Owner.LIVE, id="ready"),
        pytest.param(1, Owner.LIVE, id="running"),
        pytest.param(2, Owner.LIVE, id="succeeding"),
        pytest.param(3, Owner.ENDED, id="success"),
        pytest.param(4, Owner.LIVE, id="failing"),
        pytest.param(5, Owner.ENDED, id="failed"),
        pytest.param(6, Owner.ENDED, id="aborted"),
        pytest.param(7, Owner.LIVE, id="handling a failure node"),
        pytest.param(8, Owner.LIVE, id="a phase that this release does not know"),
    ],
)
def test_a_workflow_lives_until_a_terminal_phase(phase: int | None, owner: Owner) -> None:
    """All of flytepropeller's WorkflowPhase, as they stand in a FlyteWorkflow."""
    assert owner_of({"status": {"phase": phase}} if phase is not None else {}) == owner


def test_a_workflow_that_is_not_there_is_gone() -> None:
    """Propeller makes it before any RayJob, and removes it a day after its end."""
    assert owner_of(None) == Owner.GONE


@pytest.mark.parametrize(
    ("label", "ours", "execution"),
    [
        pytest.param("f0", "p/d/f0", "f0", id="propeller's label and our annotation agree"),
        pytest.param("mine", "p/d/f0", "", id="a task's own label of that name tells nothing"),
        pytest.param("", "p/d/f0", "", id="no label: not from propeller"),
        pytest.param("f0", "", "", id="not an execution of ours"),
    ],
)
def test_the_execution_of_a_rayjob(label: str, ours: str, execution: str) -> None:
    """What does not tell its execution for certain is never taken for an orphan."""
    metadata = {"labels": {"execution-id": label} if label else {}}
    metadata |= {"annotations": {"kuberay.flyte.org/execution": ours} if ours else {}}
    assert execution_of({"metadata": metadata}) == execution
