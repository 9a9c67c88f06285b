"""A task of a local run, from the user's call to what comes back, over a real API server; a test plays its pods."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from flyteidl.core.literals_pb2 import LiteralMap as LiteralMapMessage
from flytekit import map_task, task, workflow
from flytekit.core.context_manager import FlyteContextManager
from flytekit.core.type_engine import TypeEngine
from flytekit.models.literals import LiteralMap
from typing_extensions import override

from flytekitplugins.kuberay import KubeRayError, RayJobConfig
from flytekitplugins.kuberay.direct import choice
from flytekitplugins.kuberay.direct.remote_error import RemoteTaskError
from flytekitplugins.kuberay.direct.run import run_on
from flytekitplugins.kuberay.kube import Manifest, Resource
from tests.connector.seam import Seam

from .cluster import interrupt_when, prefix_of, put_error, put_outputs, stored
from .conftest import Direct, close, cluster_of

STARTING, RUNNING = {"jobDeploymentStatus": "Initializing"}, {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
SUCCEEDED = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
SUBMISSION_FAILED = {"jobDeploymentStatus": "Failed", "reason": "SubmissionFailed", "message": "BackoffLimitExceeded"}
FAILED_YET_RUNNING = {"jobDeploymentStatus": "Failed", "jobStatus": "RUNNING", "reason": "JobDeadlineExceeded"}
UNFIT = "Trace:\n\n    Traceback (most recent call last):\n    ValueError: unfit\n\nMessage:\n\n    ValueError: unfit"


class Both(NamedTuple):
    """Two outputs."""

    number: int
    text: str


@task(task_config=RayJobConfig(worker_node_config=[]))
def doubled(x: int) -> int:
    """Never runs here."""
    return -1


@task(task_config=RayJobConfig(worker_node_config=[]))
def both(x: int) -> Both:
    """Never runs here."""
    return Both(-1, "")


@task(task_config=RayJobConfig(worker_node_config=[]), retries=1)
def report(x: int) -> None:
    """Never runs here."""
    raise AssertionError("it ran in the user's process")


@task(task_config=RayJobConfig(worker_node_config=[], ttl_seconds_after_finished=60, shutdown_after_job_finishes=True))
def kept(x: int) -> int:
    """Never runs here, and says itself how long its cluster stands."""
    return -1


@task(
    task_config=RayJobConfig(worker_node_config=[], ttl_seconds_after_finished=60, shutdown_after_job_finishes=True),
    timeout=timedelta(seconds=1),
)
def kept_and_hurried(x: int) -> int:
    """Never runs here."""
    return -1


@task(task_config=RayJobConfig(worker_node_config=[]), timeout=timedelta(seconds=1))
def hurried(x: int) -> int:
    """Never runs here."""
    return -1


@task(task_config=RayJobConfig(worker_node_config=[]), timeout=timedelta(0))
def unhurried(x: int) -> int:
    """Never runs here."""
    return -1


@workflow
def through(x: int = 4) -> int:
    """One Ray task after another."""
    return doubled(x=doubled(x=x))  # type: ignore[return-value]  # flytekit's promises


@workflow
def mapped(xs: list[int]) -> list[int]:
    """One for each."""
    return map_task(doubled)(x=xs)  # type: ignore[no-any-return]


def doubling(job: Manifest) -> Sequence[Manifest]:
    """Pods that double the input."""
    given = LiteralMapMessage.FromString(stored(f"{prefix_of(job).rpartition('/')[0]}/inputs.pb"))
    outputs = LiteralMapMessage()
    outputs.literals["o0"].scalar.primitive.integer = 2 * given.literals["x"].scalar.primitive.integer
    put_outputs(job, outputs)
    return STARTING, RUNNING, SUCCEEDED


def raising(job: Manifest) -> Sequence[Manifest]:
    """Pods whose code raises a ValueError."""
    put_error(job, UNFIT)
    return STARTING, SUCCEEDED


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch, direct: Direct) -> Iterator[None]:
    """Each test is a process of its own, as far as the choice of a cluster goes."""
    own = choice.Choice(os.environ)
    monkeypatch.setattr(choice, "_CHOICE", own)
    yield
    close(own)


def test_its_outputs_come_back_through_the_object_store(direct: Direct) -> None:
    """A workflow's Ray tasks run on the cluster, one after the other; nothing of them is left there."""
    pods = direct.playing(doubling)
    assert through(x=4) == 16
    assert len(pods.jobs) == 2
    assert pods.left() == []


def test_the_pods_get_the_code_of_pyflyte_run(direct: Direct) -> None:
    """The driver unpacks what `pyflyte run` uploaded, and reads and writes below one folder of the object store."""
    pods = direct.playing(doubling)
    doubled(x=1)
    entrypoint = pods.jobs[0]["spec"]["entrypoint"]
    assert "pyflyte-fast-execute --additional-distribution memory://bucket/code.tar.gz --dest-dir . --" in entrypoint
    assert f"--output-prefix {prefix_of(pods.jobs[0])}" in entrypoint


def test_sweep_does_not_take_it_for_an_orphan(direct: Direct) -> None:
    """Flyte's own label, by which sweep asks for the execution, is not there; the annotation names this run."""
    pods = direct.playing(doubling)
    doubled(x=1)
    metadata = pods.jobs[0]["metadata"]
    assert "execution-id" not in metadata["labels"]
    assert metadata["annotations"]["kuberay.flyte.org/execution"].startswith("local/local/run-")


def test_several_outputs_keep_their_names(direct: Direct) -> None:
    """A NamedTuple comes back by its fields."""

    def play(job: Manifest) -> Sequence[Manifest]:
        outputs = LiteralMapMessage()
        outputs.literals["number"].scalar.primitive.integer = 3
        outputs.literals["text"].scalar.primitive.string_value = "three"
        put_outputs(job, outputs)
        return (SUCCEEDED,)

    direct.playing(play)
    assert both(x=1) == (3, "three")


def test_map_task_runs_a_cluster_for_each_item(direct: Direct) -> None:
    """In the items' order."""
    pods = direct.playing(doubling)
    assert mapped(xs=[3, 5]) == [6, 10]
    assert len(pods.jobs) == 2


@pytest.mark.parametrize("raises", [pytest.param(report, id="no outputs"), pytest.param(doubled, id="outputs")])
def test_the_users_exception_comes_back(
    direct: Direct, capfd: pytest.CaptureFixture[str], raises: Callable[..., object]
) -> None:
    """Of its type, without another attempt, and nothing stays on the cluster; what is known of it is told."""
    pods = direct.playing(raising)
    with pytest.raises(ValueError, match="unfit") as caught:
        raises(x=1)
    assert isinstance(caught.value, RemoteTaskError)
    assert (len(pods.jobs), pods.left()) == (1, [])
    assert f"diagnosis: {prefix_of(pods.jobs[0])}/kuberay-diagnosis.txt" in capfd.readouterr().err


def test_a_failure_that_may_pass_is_tried_again(direct: Direct) -> None:
    """As often as `retries` says, each attempt with a RayJob and a folder of its own."""

    def play(job: Manifest) -> Sequence[Manifest]:
        return (SUBMISSION_FAILED,) if len(pods.jobs) == 1 else (SUCCEEDED,)

    pods = direct.playing(play)
    report(x=1)
    first, second = (prefix_of(job) for job in pods.jobs)
    assert (first[-2:], second) == ("/0", f"{first[:-2]}/1")


def test_after_the_last_attempt_its_reason_is_raised(direct: Direct) -> None:
    """With the task's name and KubeRay's word."""
    pods = direct.playing(lambda job: (SUBMISSION_FAILED,))
    with pytest.raises(KubeRayError, match=r"test_run\.report: the Ray job failed \[SubmissionFailed\]"):
        report(x=1)
    assert len(pods.jobs) == 2


def test_a_recoverable_exception_is_tried_again(direct: Direct) -> None:
    """The last one comes back."""

    def play(job: Manifest) -> Sequence[Manifest]:
        put_error(job, UNFIT, recoverable=True)
        return (SUCCEEDED,)

    pods = direct.playing(play)
    with pytest.raises(ValueError, match="unfit"):
        report(x=1)
    assert len(pods.jobs) == 2


def test_a_task_that_says_how_long_its_cluster_stands_keeps_it(direct: Direct) -> None:
    """KubeRay ends it."""
    pods = direct.playing(doubling)
    assert kept(x=2) == 4
    assert len(pods.left(within=1)) == 1


def test_a_timeout_ends_an_attempt(direct: Direct) -> None:
    """The task's own, as on a Flyte backend; nothing stays."""
    pods = direct.playing(lambda job: (RUNNING,))
    with pytest.raises(KubeRayError, match=r"hurried: timed out after 0:00:01"):
        hurried(x=1)
    assert pods.left() == []


def test_a_timeout_ends_what_would_stand_after_its_end(direct: Direct) -> None:
    """The job has not ended, so its time would never begin: it would run on."""
    pods = direct.playing(lambda job: (RUNNING,))
    with pytest.raises(KubeRayError, match=r"kept_and_hurried: timed out after 0:00:01"):
        kept_and_hurried(x=1)
    assert pods.left() == []


def test_an_end_that_only_we_declare_is_waited_for(direct: Direct) -> None:
    """Whatever the task says: a process that ends takes the deletion in the background with it."""
    pods = direct.playing(lambda job: (RUNNING, FAILED_YET_RUNNING))
    with cluster_of(SlowOnce, direct) as (_, cluster), pytest.raises(KubeRayError, match="JobDeadlineExceeded"):
        run_on(cluster, kept, LiteralMap({}), FlyteContextManager.current_context())
    assert pods.left(within=0) == []


def test_a_timeout_of_0_is_none(direct: Direct) -> None:
    """As for Flyte."""
    direct.playing(doubling)
    assert unhurried(x=2) == 4


def test_ctrl_c_deletes_the_ray_job(direct: Direct, capfd: pytest.CaptureFixture[str]) -> None:
    """It says so first, and the interrupt goes on to the caller."""
    pods = direct.playing(lambda job: (RUNNING,))
    interrupt_when(lambda: bool(pods.jobs))
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        doubled(x=1)
    assert pods.left() == []
    once_more = f"leaves it as it is: flyte-kuberay delete {direct.namespace}/{pods.jobs[0]['metadata']['name']}"
    assert f"its RayJob is being deleted; Ctrl-C once more {once_more}" in capfd.readouterr().err


def test_ctrl_c_reaches_a_task_of_another_thread(direct: Direct, capfd: pytest.CaptureFixture[str]) -> None:
    """As in an eager workflow: the interrupt comes to the main thread alone. No other attempt follows."""
    pods = direct.playing(lambda job: (RUNNING,))
    interrupt_when(lambda: bool(pods.jobs))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(copy_context().run, report, x=1)
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            waiting.result()
    assert isinstance(waiting.exception(), KubeRayError)
    assert (len(pods.jobs), pods.left()) == (1, [])
    assert "its RayJob is being deleted" in capfd.readouterr().err


class SlowToDelete(Seam):
    """A cluster that does not answer so many deletions."""

    slow = 9

    @override
    async def delete(self, resource: Resource, namespace: str | None, name: str, **options: Any) -> None:
        self.calls.append("delete")
        if self.calls.count("delete") <= self.slow:
            await asyncio.sleep(60)
        await super().delete(resource, namespace, name, **options)


class SlowOnce(SlowToDelete):
    """Its second answer comes."""

    slow = 1


def test_a_second_ctrl_c_leaves_at_once(direct: Direct) -> None:
    """Though the cluster does not answer; the RayJob stays as it is."""
    pods = direct.playing(lambda job: (RUNNING,))
    with cluster_of(SlowToDelete, direct) as (seam, cluster):
        interrupt_when(lambda: bool(pods.jobs))
        interrupt_when(lambda: "delete" in seam.calls)
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            run_on(cluster, doubled, LiteralMap({}), FlyteContextManager.current_context())
    assert len(pods.left(within=0)) == 1


def test_ctrl_c_in_the_clean_up_deletes_too(direct: Direct, capfd: pytest.CaptureFixture[str]) -> None:
    """The task has ended, and who waits for a slow deletion and breaks off wants no cluster to stay."""
    pods = direct.playing(doubling)
    inputs = TypeEngine.dict_to_literal_map(FlyteContextManager.current_context(), {"x": 1}, {"x": int})
    with cluster_of(SlowOnce, direct) as (seam, cluster):
        interrupt_when(lambda: "delete" in seam.calls)
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            run_on(cluster, doubled, inputs, FlyteContextManager.current_context())
    assert pods.left() == []
    assert "its RayJob is being deleted" in capfd.readouterr().err


def test_a_full_disk_below_stderr_changes_nothing(direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task's outputs come, and its RayJob goes."""
    pods = direct.playing(doubling)
    full = open("/dev/full", "w", buffering=1)
    monkeypatch.setattr(sys, "stderr", full)
    assert doubled(x=2) == 4
    assert pods.left(within=0) == []
    with suppress(OSError):
        full.close()


def closed() -> io.StringIO:
    """A stream that somebody has closed."""
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stderr", [pytest.param(closed(), id="it is closed"), pytest.param(None, id="there is none")])
def test_without_stderr_nothing_changes(
    direct: Direct, stderr: io.StringIO | None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As where a service starts the process, or `2>&-`; what would be told does not go elsewhere."""
    direct.playing(doubling)
    monkeypatch.setattr(sys, "stderr", stderr)
    assert doubled(x=2) == 4
    assert capfd.readouterr().out == ""


class Paused(io.StringIO):
    """A stream whose reader pauses when the job runs, or has ended, as `2>&1 | less`: a pipe takes no more then."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full, self.goes_on = threading.Event(), threading.Event()

    @override
    def write(self, text: str) -> int:
        if "RUNNING" in text or "SUCCEEDED" in text:
            self.is_full.set()
            self.goes_on.wait()
        return super().write(text)


def test_a_reader_that_pauses_stops_its_task_alone(direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tasks of a process share one way to the cluster, as those of an eager workflow."""
    direct.playing(doubling)
    context, paused = FlyteContextManager.current_context(), Paused()
    inputs = TypeEngine.dict_to_literal_map(context, {"x": 2}, {"x": int})
    with cluster_of(Seam, direct) as (_, cluster), ThreadPoolExecutor(1) as pool:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", paused)
            waiting = pool.submit(run_on, cluster, doubled, inputs, context)
            assert paused.is_full.wait(60)
        try:
            other = run_on(cluster, doubled, inputs, context)
        finally:
            paused.goes_on.set()
        assert waiting.result() == other


def test_ctrl_c_passes_a_reader_that_pauses(direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """The RayJob goes."""
    pods = direct.playing(lambda job: (RUNNING,))
    paused = Paused()
    monkeypatch.setattr(sys, "stderr", paused)
    interrupt_when(paused.is_full.is_set)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        doubled(x=1)
    assert pods.left(within=0) == []
    assert "its RayJob is being deleted" in paused.getvalue()


def test_a_stderr_that_raises_leaves_nothing(direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of a notebook may, with anything: the RayJob goes, though that can't be said."""

    class Raising(io.StringIO):
        @override
        def write(self, text: str) -> int:
            if pods.jobs:
                raise RuntimeError("no kernel")
            return super().write(text)

    pods = direct.playing(lambda job: (RUNNING,))
    monkeypatch.setattr(sys, "stderr", Raising())
    with pytest.raises(RuntimeError, match="no kernel"):
        doubled(x=2)
    assert (len(pods.jobs), pods.left(within=0)) == (1, [])


def test_a_refused_task_says_why(direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the connector would, before anything is made."""
    refused = task(task_config=RayJobConfig(worker_node_config=[], ray_job_patch={"spec": {"suspend": 3}}))(
        both.task_function
    )
    pods = direct.playing(doubling)
    with pytest.raises(KubeRayError, match="suspend"):
        refused(x=1)
    assert pods.jobs == []


def test_what_the_cluster_refuses_is_told_without_our_own_code(
    direct: Direct, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here for a namespace that is not there: pyflyte would print the frames of a cause, and of libraries below."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(Path(direct.kubeconfig).read_text().replace(direct.namespace, "gone"))
    monkeypatch.setenv("KUBECONFIG", str(elsewhere))
    with pytest.raises(KubeRayError, match='namespaces "gone" not found') as caught:
        doubled(x=1)
    assert caught.value.__cause__ is None
    frames = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert not any("concurrent" in name for name in frames)
