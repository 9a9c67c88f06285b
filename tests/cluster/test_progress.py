"""The live line: what it shows of a task, in its order, and always in one line."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.cluster.links import Link
from flytekitplugins.kuberay.cluster.phase import Verdict
from flytekitplugins.kuberay.cluster.pods import PodView
from flytekitplugins.kuberay.cluster.progress import Progress, line, news_of, progress_of, state_of
from flytekitplugins.kuberay.cluster.status import JobView

from .scenes import NOW, PHASES, RUNNING, STARTING, Scene, ago, at_start, container, ended, failed, job, pod, stuck

WANTING = replace(STARTING, workers_ready=1, workers_wanted=2)
LINK = Link("Ray Dashboard", "http://dashboard")
SUCCEEDED = Verdict(TaskExecution.SUCCEEDED, "the Ray job has succeeded")


def line_of(verdict: Verdict, job: JobView | None) -> str:
    """The line that is shown."""
    return line(progress_of(verdict, job, now=NOW))


@pytest.mark.parametrize(
    ("verdict", "view", "expected"),
    [
        pytest.param(
            Scene(WANTING, (stuck("w", "ImagePullBackOff", "not found", since=ago(seconds=30)),)).verdict(),
            WANTING,
            "INITIALIZING 10:00 · workers 1/2 · "
            "worker group w: container ray-worker: ImagePullBackOff: not found (30s)",
            id="a group that does not come up",
        ),
        pytest.param(
            Scene(RUNNING).verdict(),
            replace(RUNNING, workers_ready=2, workers_wanted=2, created=ago(hours=3, seconds=65)),
            "RUNNING 3:01:05 · workers 2/2 · the Ray cluster is up, the job is being submitted",
            id="hours",
        ),
        pytest.param(
            Verdict(TaskExecution.RUNNING, ""), RUNNING, "RUNNING 10:00", id="no workers, and nothing to tell"
        ),
        pytest.param(
            SUCCEEDED,
            replace(job("Complete", "SUCCEEDED"), workers_ready=2, workers_wanted=2, ended=ago(minutes=3)),
            "SUCCEEDED 7:00 · the Ray job has succeeded",
            id="after the end neither the clock nor workers count",
        ),
        pytest.param(
            Verdict(TaskExecution.FAILED, "\x1b[31mUSER:ValueError\x1b[0m: no luck\r\n\nTraceback:\n x"),
            None,
            "FAILED 0:00 · USER:ValueError: no luck ...",
            id="one line of several, which say nothing to the terminal",
        ),
        pytest.param(
            Verdict(TaskExecution.QUEUED, "KubeRay has not looked at it yet"),
            replace(job(""), created=ago(seconds=-2)),
            "QUEUED 0:00 · KubeRay has not looked at it yet",
            id="a cluster whose clock is ahead",
        ),
    ],
)
def test_the_line(verdict: Verdict, view: JobView | None, expected: str) -> None:
    """Phase, time, workers, and why, as far as there is something to tell."""
    assert line_of(verdict, view) == expected


def test_a_long_reason_is_cut() -> None:
    """A message of the user's may have a megabyte in one line."""
    assert line_of(Verdict(TaskExecution.FAILED, "x" * 2**20), None) == f"FAILED 0:00 · {'x' * 500} ..."


@pytest.mark.parametrize("phase", PHASES, ids=PHASES.get)
def test_every_phase_has_its_name(phase: TaskExecution.Phase) -> None:
    """As Flyte shows it."""
    assert line_of(Verdict(phase, ""), None) == f"{PHASES[phase]} 0:00"


def test_a_caller_may_count_from_elsewhere() -> None:
    """A direct run waits before its RayJob is there, and after it is gone."""
    shown = progress_of(at_start().verdict(), None, [LINK], now=NOW, begun=ago(seconds=42))
    assert shown == Progress("INITIALIZING", "the Ray cluster is starting", 0, 0, timedelta(seconds=42), (LINK,))


def test_time_alone_is_no_news() -> None:
    """Neither the clock nor how long something waits."""
    soon, later = (
        progress_of(
            Verdict(TaskExecution.QUEUED, f"head: no room ({age}); w: no room ({age})"), STARTING, now=NOW, begun=begun
        )
        for age, begun in (("45s", ago(seconds=45)), ("2h5m", ago(hours=2)))
    )
    assert line(soon) != line(later)
    assert news_of(soon) == news_of(later) == "QUEUED 0/0 head: no room; w: no room"


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(pod(), "", id="up"),
        pytest.param(stuck("w", "ErrImagePull", "no"), "container ray-worker: ErrImagePull: no", id="not up"),
        pytest.param(
            failed("head", 137, "OOMKilled"),
            "container ray-head ended with exit code 137 (OOMKilled)",
            id="ended",
        ),
        pytest.param(
            failed("submitter", 2),
            "container ray-job-submitter ended with exit code 2",
            id="a submitter that ended, for which nobody waits",
        ),
        pytest.param(pod(deleted=True), "being deleted", id="going"),
    ],
)
def test_what_is_told_of_a_pod(seen: PodView, expected: str) -> None:
    """In its row of a table."""
    assert state_of(seen) == expected


def test_nobody_waits_for_a_pod_after_the_end() -> None:
    """In SidecarMode the head's submitter is over then, which is no trouble; a pod that failed still tells."""
    done = pod("head", container("ray-head", running=ago()), container("ray-job-submitter", terminated=ended(0)))
    done = replace(done, ready=False)
    assert "ended with exit code 0" in state_of(done)
    assert state_of(done, ended=True) == ""
    assert state_of(failed("head", 137), ended=True) == "container ray-head ended with exit code 137"
