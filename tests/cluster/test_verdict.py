"""A task's phase from all that is known: each row of docs/failures.md, and what must not fail a task."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from flytekitplugins.kuberay.cluster.diagnosis import Trouble
from flytekitplugins.kuberay.cluster.phase import Results, needs_results
from flytekitplugins.kuberay.cluster.pods import PodView, pod_view_of
from flytekitplugins.kuberay.cluster.status import JobView, view_of
from flytekitplugins.kuberay.cluster.verdict import Deadlines, Sight, verdict_of, waiting_of, was_initializing
from flytekitplugins.kuberay.settings import Settings, parse_settings

from .scenes import (
    APP_FAILED,
    CLUSTER,
    FAILURES,
    INITIALIZED,
    NEW_HEAD,
    NOT_FOUND,
    NOW,
    OUTPUTS,
    PREEMPTED,
    PROVISIONED,
    RUNNING,
    STARTING,
    SUBMITTING,
    UP,
    Scene,
    ago,
    container,
    ended,
    failed,
    job,
    phase_name,
    pod,
    stuck,
    unschedulable,
)

ROOT = Path(__file__).parents[2]
STATUSES = ROOT / "tests" / "statuses"
NEW = Trouble(NOW, NOW)
SHORT = Deadlines(start=timedelta(minutes=5), run=timedelta(minutes=5))


def documented() -> dict[str, tuple[str, ...]]:
    """The rows of docs/failures.md by their ids: what is answered, what becomes of the RayJob, what the user reads."""
    lines = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8").splitlines()
    rows = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines if line.startswith("| ")]
    return {row[0]: row[2:] for row in rows if len(row) == 5 and row[0] not in ("row", "---")}


def test_each_failure_is_documented() -> None:
    """And no row is without a scene that makes it true."""
    assert list(documented()) == list(FAILURES)


@pytest.mark.parametrize("row", FAILURES)
def test_a_failure_is_as_documented(row: str) -> None:
    """The phase, whether we clean up, and the words."""
    verdict = FAILURES[row].verdict()
    assert documented()[row] == (phase_name(verdict.phase), "deleted" if verdict.ours else "kept", verdict.message)


@pytest.mark.parametrize("page", ["failures", "controls"])
def test_a_page_names_what_there_is(page: str) -> None:
    """Its tests, its links, and the rows of the other page."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/.]+)`", text)
    linked = [f"docs/{link}" for link in re.findall(r"\]\(([\w/.]+)\)", text)]
    assert [path for path in (*named, *linked) if not (ROOT / path).exists()] == []
    assert set(re.findall(r"\[failures\]\(failures\.md\) `([\w-]+)`", text)) <= set(FAILURES)


FINE = pod("cpu", created=ago(minutes=1))
GOES_ON = [
    pytest.param(Scene(RUNNING), "RUNNING", id="a job that runs"),
    pytest.param(Scene(RUNNING, None), "RUNNING", id="pods that are not known"),
    pytest.param(Scene(replace(RUNNING, provisioned=None, started=None), ()), "RUNNING", id="a job not known to run"),
    pytest.param(Scene(replace(RUNNING, going=True), ()), "RUNNING", id="a RayJob that is being deleted"),
    pytest.param(Scene(replace(RUNNING, elsewhere=True), ()), "RUNNING", id="a cluster that is elsewhere"),
    pytest.param(Scene(replace(RUNNING, outlives_head=True), (NEW_HEAD,)), "RUNNING", id="a head that may be replaced"),
    pytest.param(
        Scene(RUNNING, (*UP, pod(name="old", cluster="train-c0", deleted=True))),
        "RUNNING",
        id="the head of a cluster before, which is slow to go",
    ),
    pytest.param(Scene(RUNNING, (pod(ready=False), pod("cpu"))), "RUNNING", id="a head not ready for a moment"),
    pytest.param(Scene(RUNNING, (pod(conditions=PREEMPTED), pod("cpu"))), "RUNNING", id="a disruption that is no end"),
    pytest.param(Scene(RUNNING, (pod(),)), "RUNNING", id="all workers scaled down"),
    pytest.param(Scene(RUNNING, (pod(), failed("cpu", 1), FINE)), "RUNNING", id="a worker that is replaced"),
    pytest.param(Scene(RUNNING, (pod(), pod("cpu", deleted=True))), "RUNNING", id="a worker that goes"),
    pytest.param(
        Scene(RUNNING, (pod(), stuck("cpu", "ImagePullBackOff", NOT_FOUND)), trouble=Trouble(ago(hours=1), NOW)),
        "RUNNING",
        id="a worker that does not come while the job runs",
    ),
    pytest.param(
        Scene(
            RUNNING,
            (pod("head", container("ray-head", running=INITIALIZED), container("a-sidecar", terminated=ended(1))),),
        ),
        "RUNNING",
        id="a sidecar before Ray's container in a status, which is ordered by name, that ended",
    ),
    pytest.param(
        Scene(
            RUNNING,
            (
                pod(
                    "head",
                    container("ray-head", running=INITIALIZED),
                    container("autoscaler", waiting={"reason": "CrashLoopBackOff"}, last=ended(1)),
                    policy="Always",
                ),
            ),
        ),
        "RUNNING",
        id="an autoscaler that starts again",
    ),
    pytest.param(
        Scene(
            RUNNING,
            (
                pod(
                    "head",
                    container("ray-head", running=INITIALIZED),
                    container("ray-job-submitter", terminated=ended(0)),
                ),
            ),
        ),
        "RUNNING",
        id="the submitter of SidecarMode, done a moment before Ray says so",
    ),
    pytest.param(
        Scene(RUNNING, (*UP, failed("submitter", 1, created=PROVISIONED, since=ago(hours=1)))),
        "RUNNING",
        id="a submitter whose log was cut while the job runs",
    ),
    pytest.param(
        Scene(SUBMITTING, (*UP, failed("submitter", 1, created=PROVISIONED)), trouble=Trouble(ago(hours=1), NOW)),
        "RUNNING",
        id="a submitter that failed and whose Job makes another",
    ),
    pytest.param(
        Scene(SUBMITTING, (*UP, failed("submitter", 1, since=ago(hours=1)), pod("submitter", name="s2"))),
        "RUNNING",
        id="a second submitter",
    ),
    pytest.param(
        Scene(SUBMITTING, (*UP, stuck("submitter", "ContainerCreating", main="ray-job-submitter"))),
        "RUNNING",
        id="a submitter that starts",
    ),
    pytest.param(
        Scene(SUBMITTING, (*UP, pod("submitter")), deadlines=Deadlines(start=timedelta(minutes=5))),
        "RUNNING",
        id="a job that its submitter follows, of which KubeRay can't ask Ray",
    ),
    pytest.param(
        Scene(STARTING, (pod("cpu", phase="Pending", inits=[container("wait-gcs-ready", running=INITIALIZED)]),)),
        "INITIALIZING",
        id="an init container that takes its time",
    ),
    pytest.param(
        Scene(
            STARTING,
            (stuck("head", "ImagePullBackOff", NOT_FOUND, since=ago(hours=1)),),
            trouble=Trouble(ago(seconds=9), NOW),
        ),
        "INITIALIZING",
        id="the first error after a long pull",
    ),
    pytest.param(Scene(STARTING, (failed("cpu", 1),), trouble=Trouble(NOW, NOW)), "INITIALIZING", id="a first crash"),
    pytest.param(
        Scene(STARTING, (pod("cpu", phase="Failed", conditions=PREEMPTED),), trouble=Trouble(ago(hours=1), NOW)),
        "INITIALIZING",
        id="a worker preempted while others start",
    ),
    pytest.param(
        Scene(job("Retrying"), (failed("head", 1),), trouble=Trouble(ago(hours=1), NOW), deadlines=SHORT),
        "INITIALIZING",
        id="the cluster before KubeRay's own retry",
    ),
    pytest.param(
        Scene(replace(STARTING, created=ago(hours=9), initialized=ago(minutes=1)), (), deadlines=SHORT),
        "INITIALIZING",
        id="nine hours of suspension before a start",
    ),
    pytest.param(Scene(job("Suspended"), (), deadlines=SHORT), "QUEUED", id="a suspension longer than the deadline"),
    pytest.param(Scene(job(""), (), deadlines=Deadlines(start=timedelta(hours=1))), "QUEUED", id="a RayJob just made"),
    pytest.param(
        Scene(replace(job(""), initialized=INITIALIZED), (), deadlines=SHORT),
        "QUEUED",
        id="a suspension that ended now",
    ),
    pytest.param(Scene(replace(job(""), suspended=True), (), deadlines=SHORT), "QUEUED", id="suspended from the start"),
    pytest.param(Scene(RUNNING, deadlines=Deadlines(run=timedelta(hours=1))), "RUNNING", id="a run within its time"),
    pytest.param(Scene(job("Novel"), ()), "RUNNING", id="a state to come"),
    pytest.param(Scene(job("Complete", "SUCCEEDED"), (), OUTPUTS), "SUCCEEDED", id="pods gone after a success, ttl 0"),
]


@pytest.mark.parametrize(("scene", "expected"), GOES_ON)
def test_what_may_still_end_well_is_not_failed(scene: Scene, expected: str) -> None:
    """Nothing terminal follows from what is missing, late, or none of the job's."""
    verdict = scene.verdict()
    assert (phase_name(verdict.phase), verdict.ours) == (expected, False)


@pytest.mark.parametrize(
    ("scene", "expected", "text"),
    [
        pytest.param(
            Scene(STARTING, (unschedulable("head", "0/4 nodes are available"), stuck("cpu", "PodInitializing"))),
            "WAITING_FOR_RESOURCES",
            "head: 0/4 nodes are available (9m); worker group cpu: starting (9m)",
            id="a pod that no node can take",
        ),
        pytest.param(
            Scene(STARTING, (pod(), stuck("cpu", "ErrImagePull", "not found")), trouble=NEW),
            "INITIALIZING",
            "worker group cpu: container ray-worker: ErrImagePull: not found (9m)",
            id="an image that can't be pulled",
        ),
        pytest.param(
            Scene(STARTING, (), events=["FailedToCreateHeadPod: pods is forbidden: exceeded quota: team"]),
            "WAITING_FOR_RESOURCES",
            "FailedToCreateHeadPod: pods is forbidden: exceeded quota: team",
            id="a quota that lets no pod in",
        ),
        pytest.param(
            Scene(STARTING, (pod(ready=False),), events=["FailedToCreateWorkerPod: exceeded quota: team"]),
            "WAITING_FOR_RESOURCES",
            "FailedToCreateWorkerPod: exceeded quota: team; head: running, not ready yet (9m)",
            id="a quota that lets the head in",
        ),
        pytest.param(
            Scene(STARTING, (stuck("head", "ContainerCreating"),), events=['FailedMount: secret "token" not found']),
            "INITIALIZING",
            'head: starting (9m); FailedMount: secret "token" not found',
            id="a volume that is not there",
        ),
        pytest.param(
            Scene(job("Suspended", suspend=True), (), events=["Pending: insufficient unused quota for cpu"]),
            "WAITING_FOR_RESOURCES",
            "it is suspended, waiting for its queue: Pending: insufficient unused quota for cpu",
            id="a queue that says why",
        ),
        pytest.param(
            Scene(job("", suspend=True), ()),
            "QUEUED",
            "it is suspended, waiting for its queue",
            id="a queue at the start",
        ),
        pytest.param(
            Scene(job("Initializing", suspend=True), ()),
            "QUEUED",
            "it is suspended, waiting for its queue",
            id="KubeRay passes through Initializing before it suspends one that begins so",
        ),
        pytest.param(
            Scene(SUBMITTING, (*UP, unschedulable("submitter", "0/4 nodes are available"))),
            "WAITING_FOR_RESOURCES",
            "submitter: 0/4 nodes are available (9m)",
            id="a submitter that no node can take",
        ),
        pytest.param(
            Scene(SUBMITTING, events=["FailedCreate: Error creating: exceeded quota: team"]),
            "WAITING_FOR_RESOURCES",
            "FailedCreate: Error creating: exceeded quota: team",
            id="a quota that lets no submitter in",
        ),
        pytest.param(
            Scene(SUBMITTING, events=["FailedToCreateWorkerPod: exceeded quota: team"]),
            "RUNNING",
            "the Ray cluster is up, the job is being submitted",
            id="what held back the cluster, which is up",
        ),
        pytest.param(
            Scene(STARTING, tuple(stuck(f"g{n}", "ErrImagePull", "no") for n in range(5)), trouble=NEW),
            "INITIALIZING",
            "; ".join(f"worker group g{n}: container ray-worker: ErrImagePull: no (9m)" for n in range(3))
            + "; and 2 more",
            id="more groups than a line takes",
        ),
        pytest.param(Scene(STARTING, ()), "INITIALIZING", "the Ray cluster is starting", id="nothing known yet"),
    ],
)
def test_what_it_waits_for_is_told(scene: Scene, expected: str, text: str) -> None:
    """In one line, by the phase that goes with the cause."""
    verdict = scene.verdict()
    assert (phase_name(verdict.phase), verdict.message) == (expected, text)


def test_a_pod_pends_as_long_as_the_platform_lets_it() -> None:
    """Source: flyteplugins flytek8s/pod_helper.go DemystifyPending: pod-pending-timeout, for pods that do not run."""
    settings = parse_settings({"plugins": {"k8s": {"pod-pending-timeout": "5m"}}})
    pending = Scene(STARTING, (unschedulable("head", "no node"),), settings=settings)
    assert phase_name(pending.verdict().phase) == "RETRYABLE_FAILED"
    assert phase_name(replace(pending, pods=(pod(ready=False),)).verdict().phase) == "INITIALIZING"


@pytest.mark.parametrize("deployment", ["Suspended", "Suspending", "Retrying", "Waiting"])
def test_pods_say_nothing_before_a_cluster_starts(deployment: str) -> None:
    """They are of a cluster that goes."""
    assert waiting_of(job(deployment), (failed("head", 1),)) == []


def test_a_stop_is_a_stop_whatever_became_of_the_head() -> None:
    """Somebody wanted it."""
    scene = Scene(job("Complete", "STOPPED"), (failed("head", 137),))
    assert phase_name(scene.verdict().phase) == "FAILED"


@pytest.mark.parametrize("reason", ["DeadlineExceeded", "ValidationFailed"])
def test_a_head_that_went_with_its_job_excuses_nothing(reason: str) -> None:
    """What ended the job ends it for good."""
    assert phase_name(Scene(job("Failed", "RUNNING", reason), (failed("head", 137),)).verdict().phase) == "FAILED"


def test_a_cluster_that_is_shut_down_took_no_head_from_the_job() -> None:
    """With ttl 0 its pods go at once, and end badly for that."""
    gone = failed("head", 137, deleted=True)
    assert phase_name(Scene(APP_FAILED, (gone,)).verdict().phase) == "FAILED"
    assert "137" not in Scene(APP_FAILED, (gone,)).verdict().message


def test_a_worker_of_a_group_called_head_took_no_head_from_the_job() -> None:
    """Its end is told, and the failure stays the code's."""
    verdict = Scene(APP_FAILED, (pod(), failed("head", 137, role="worker"))).verdict()
    assert (phase_name(verdict.phase), "exit code 137" in verdict.message) == ("FAILED", True)


def test_a_message_stays_short() -> None:
    """Whatever the pods say."""
    loud = tuple(failed("cpu", 1, "Error", "x" * 5000, name=f"p{number}") for number in range(9))
    assert len(Scene(replace(APP_FAILED, message="y" * 2000), loud).verdict().message) <= 2000


RECORDED = sorted(file.stem for file in STATUSES.glob("*.json"))


def replay(recording: str) -> tuple[list[JobView | None], list[PodView]]:
    """A recording's RayJob, step by step, and the pods at its end."""
    found = json.loads((STATUSES / f"{recording}.json").read_text(encoding="utf-8"))
    views = [
        None if step["event"] == "DELETED" else view_of({"metadata": {}, "status": step["status"]})
        for step in found["steps"]
    ]
    return views, [pod_view_of(manifest) for manifest in found.get("final_pods", [])]


def judged(view: JobView | None, pods: list[PodView] | None, *, moment: timedelta = timedelta(0)) -> str:
    """What is said of a recording's state; where files decide, outputs stand if Ray says success."""
    done = view is not None and view.job == "SUCCEEDED" and needs_results(view)
    at = (view and (view.ended or view.started or view.initialized)) or NOW
    verdict = verdict_of(
        Sight(view, pods, OUTPUTS if done else Results()),
        has_outputs=True,
        deadlines=Deadlines(start=timedelta(hours=1), run=timedelta(hours=1)),
        settings=Settings(),
        now=at + moment,
    )
    return phase_name(verdict.phase)


@pytest.mark.parametrize("recording", RECORDED)
def test_a_recording_without_pods_is_judged_by_its_status(recording: str) -> None:
    """No step but the last one ends the task, and nothing follows from pods that are not known."""
    phases = [phase for phase, _ in itertools.groupby(judged(view, None) for view in replay(recording)[0])]
    assert not {"FAILED", "RETRYABLE_FAILED", "SUCCEEDED"} & set(phases[:-1])


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        pytest.param("head-deleted-k8sjob", "RETRYABLE_FAILED", id="a head that was replaced"),
        pytest.param("k8sjob-success", "RUNNING", id="the head that the job began with"),
        pytest.param("stopped", "RUNNING", id="one whose job was stopped later"),
    ],
)
def test_recorded_pods_tell_a_lost_head(recording: str, expected: str) -> None:
    """Of a job that KubeRay calls RUNNING: the operator says nothing of a second run, the head's age does."""
    views, pods = replay(recording)
    running = [view for view in views if view is not None and (view.deployment, view.job) == ("Running", "RUNNING")]
    heads = [each for each in pods if each.group == "head"]
    assert judged(running[-1], heads) == expected


def test_recorded_ends_are_told() -> None:
    """With what the pods of the real node said."""
    views, pods = replay("submission-failed")
    verdict = verdict_of(Sight(views[-1], pods), has_outputs=True, deadlines=Deadlines(), settings=Settings(), now=NOW)
    assert "; submitter: pod submission-failed-t6f4r: container s ended with exit code 3" in verdict.message
    assert CLUSTER not in verdict.message


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([(pod(ready=False),), (stuck("head", "ErrImagePull"),)], "INITIALIZING WAITING", id="starting"),
        pytest.param([(stuck("head", "ErrImagePull"),)] * 2, "INITIALIZING INITIALIZING", id="known at first sight"),
        pytest.param(
            [(pod(ready=False),), *[(stuck("head", "ErrImagePull"),)] * 3],
            "INITIALIZING WAITING WAITING WAITING",
            id="no change while nothing changes",
        ),
        pytest.param(
            [(pod(ready=False),), (unschedulable("head", "no"),), (stuck("head", "ErrImagePull"),)],
            "INITIALIZING WAITING INITIALIZING",
            id="a node that came late",
        ),
        pytest.param(
            [(pod(ready=False),), (stuck("head", "ErrImagePull"),), (pod(ready=False),)],
            "INITIALIZING WAITING INITIALIZING",
            id="what passed after all",
        ),
    ],
)
def test_a_fault_is_told_by_a_phase_of_its_own(pods: list[tuple[PodView, ...]], expected: str) -> None:
    """Flyte shows a task's words as they were when the phase began."""
    phases, was = [], False
    for each in pods:
        scene = Scene(STARTING, each, trouble=NEW)
        sight = Sight(scene.job, each, trouble=NEW, was_initializing=was)
        verdict = verdict_of(sight, has_outputs=True, deadlines=Deadlines(), settings=scene.settings, now=NOW)
        was = was_initializing(verdict, waiting_of(STARTING, each), was)
        phases.append(phase_name(verdict.phase).partition("_FOR")[0])
    assert " ".join(phases) == expected
