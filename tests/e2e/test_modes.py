"""What goes wrong around a task, in each way of handing it over: KubeRay's submission modes, on a real node.

Each test runs its task in all modes at once. docs/submission-modes.md has what was seen, and which mode is the default
for what reason.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from flytekitplugins.kuberay.config import SUBMISSION_MODES

from .conftest import Start
from .looking import left_by_code, pods_of, seen
from .node import NAMESPACE, Node
from .propeller import Execution

CORE, FULL = pytest.mark.e2e, pytest.mark.e2e_full
LONG = 180.0  # seconds in which three tasks at once have come to run on two busy cores

# The submission is its container's first process, to which no signal comes that it does not handle.
END_SUBMISSION = """
import os, signal
for pid in (each for each in os.listdir("/proc") if each.isdigit()):
    if b"submit" in open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0"):
        os.kill(int(pid), signal.SIGINT)
"""


def in_each_mode(scenario: Callable[[str], None]) -> None:
    """Plays the scenario in all modes at once; fails with what failed first, and prints the others."""
    with ThreadPoolExecutor(len(SUBMISSION_MODES)) as pool:
        played = {mode: pool.submit(scenario, mode) for mode in SUBMISSION_MODES}
    failures = {mode: error for mode, future in played.items() if (error := future.exception())}
    for mode, error in failures.items():
        print(f"{mode}: {error}")
    for error in failures.values():
        raise error


def at_work(execution: Execution, node: Node) -> None:
    """Waits until the task's code has begun."""
    seen(lambda: left_by_code(node, execution), within=LONG)


@FULL
def test_a_task_runs_once(start: Start, node: Node, user: ModuleType) -> None:
    """With its worker there, but in SidecarMode, which does not wait for it."""
    found = {}

    def scenario(mode: str) -> None:
        execution = start(user.steady, mode=mode)
        run = execution.end()
        found[mode] = run.outputs["o0"]
        assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
        assert len(left_by_code(node, execution)) == 1

    in_each_mode(scenario)
    assert (found["K8sJobMode"], found["HTTPMode"]) == (1, 1)


@FULL
def test_a_users_exception_fails_the_task(start: Start, node: Node, user: ModuleType) -> None:
    """With its text, and no other attempt."""

    def scenario(mode: str) -> None:
        execution = start(user.raising, mode=mode)
        run = execution.end()
        assert (run.phase, run.attempts, run.error["code"]) == ("FAILED", 1, "USER:RuntimeError")
        assert "ValueError: no luck today" in run.error["message"]
        assert len(left_by_code(node, execution)) == 1

    in_each_mode(scenario)


def lose_head(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """A lost head ends the attempt; the code runs once in each, and the first attempt's RayJob is gone."""
    execution = start(user.head_lost, mode=mode)
    at_work(execution, node)
    execution.until("RUNNING", within=LONG)
    (first,) = node.objects("rayjobs", execution.stem)
    (head,) = pods_of(node, execution, "head")
    node.delete_pod(head["metadata"]["name"])
    execution.until("FAILED")
    run = execution.end()

    assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 2, {"o0": 1})
    assert f"the job can't go on: head pod {head['metadata']['name']} is being deleted" in run.reasons
    assert [len(left_by_code(node, execution, attempt)) for attempt in (0, 1)] == [1, 1]
    assert first["metadata"]["name"] not in [job["metadata"]["name"] for job in node.objects("rayjobs")]


@CORE
def test_a_lost_head_is_another_attempt(start: Start, node: Node, user: ModuleType) -> None:
    """The code runs once in each."""
    lose_head(start, node, user, "")


@FULL
def test_a_lost_head_is_another_attempt_in_each_mode(start: Start, node: Node, user: ModuleType) -> None:
    """The same."""
    in_each_mode(lambda mode: lose_head(start, node, user, mode))


@FULL
def test_a_lost_head_never_runs_the_code_again(start: Start, node: Node, user: ModuleType) -> None:
    """Nor where nobody looks for two minutes: KubeRay makes no other head."""

    def scenario(mode: str) -> None:
        execution = start(user.unseen, "--resync", "120s", mode=mode)
        at_work(execution, node)
        (head,) = seen(lambda: pods_of(node, execution, "head"))
        time.sleep(15)  # until KubeRay knows that the cluster was up
        node.delete_pod(head["metadata"]["name"])
        run = execution.end()
        assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 2, {"o0": 1})
        assert [len(left_by_code(node, execution, attempt)) for attempt in (0, 1)] == [1, 1]

    in_each_mode(scenario)


@FULL
def test_a_head_lost_before_the_workers_are_there(start: Start, node: Node, user: ModuleType) -> None:
    """Is made anew, which is another attempt where the code may have run: in SidecarMode."""

    def scenario(mode: str) -> None:
        execution = start(user.early, mode=mode)
        execution.until("INITIALIZING")
        if mode == "SidecarMode":
            at_work(execution, node)
        else:
            time.sleep(25)
        (head,) = pods_of(node, execution, "head")
        node.delete_pod(head["metadata"]["name"])
        run = execution.end()
        assert (run.phase, run.attempts) == ("SUCCEEDED", 2 if mode == "SidecarMode" else 1)
        counts = [len(left_by_code(node, execution, attempt)) for attempt in range(run.attempts)]
        assert counts == [1] * run.attempts

    in_each_mode(scenario)


@FULL
def test_a_lost_worker_is_replaced(start: Start, node: Node, user: ModuleType) -> None:
    """Ray runs its function once more on the new worker, and the task goes on."""

    def scenario(mode: str) -> None:
        execution = start(user.worker_lost, mode=mode)
        at_work(execution, node)
        (worker,) = pods_of(node, execution, "w")
        node.delete_pod(worker["metadata"]["name"])
        run = execution.end()
        assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
        assert len(left_by_code(node, execution)) == 2

    in_each_mode(scenario)


@FULL
def test_a_lost_submitter(start: Start, node: Node, user: ModuleType) -> None:
    """Changes nothing where its Job makes another, which follows the job that runs; beside the head it ends the job."""

    def scenario(mode: str) -> None:
        execution = start(user.submitter_lost, mode=mode)
        at_work(execution, node)
        execution.until("RUNNING", within=LONG)
        if mode == "K8sJobMode":
            (submitter,) = pods_of(node, execution, "submitter")
            node.delete_pod(submitter["metadata"]["name"])
        if mode == "SidecarMode":
            (head,) = pods_of(node, execution, "head")
            inside = ["--container=ray-job-submitter", "--", "python", "-c", END_SUBMISSION]
            node.run("kubectl", "exec", head["metadata"]["name"], f"--namespace={NAMESPACE}", *inside)
        run = execution.end()
        assert (run.phase, run.attempts) == ("FAILED" if mode == "SidecarMode" else "SUCCEEDED", 1)
        if mode == "SidecarMode":
            assert "[SubmissionFailed]" in run.error["message"]
        assert len(left_by_code(node, execution)) == 1

    in_each_mode(scenario)


@FULL
def test_a_driver_without_memory_says_so(start: Start, node: Node, user: ModuleType) -> None:
    """Another attempt would meet it again."""

    def scenario(mode: str) -> None:
        execution = start(user.hungry, mode=mode)
        run = execution.end()
        assert (run.phase, run.attempts, run.error["kind"]) == ("FAILED", 1, "USER")
        assert re.search("OOM|OutOfMemory", run.error["message"])
        assert len(left_by_code(node, execution)) == 1

    in_each_mode(scenario)


@FULL
def test_a_function_without_memory_says_so(start: Start, user: ModuleType) -> None:
    """By the user's own error: Ray's, of its memory monitor."""
    run = start(user.hungry_function).end()
    assert (run.phase, run.attempts, run.error["kind"]) == ("FAILED", 1, "USER")
    assert re.search("OOM|OutOfMemory", run.error["message"])


@FULL
def test_a_missing_image_fails_with_the_registrys_text(start: Start, node: Node, user: ModuleType) -> None:
    """Past the grace, and nothing stays."""

    def scenario(mode: str) -> None:
        execution = start(user.no_image, mode=mode)
        run = execution.end()
        assert (run.phase, run.attempts) == ("FAILED", 1)
        assert 'failed to resolve reference "registry.invalid/nobody/nothing:1"' in run.error["message"]
        text = "the cluster did not come up: .*worker group w: init container wait-gcs-ready: "
        assert re.search(text, run.error["message"])
        assert node.settled(execution.stem) == []

    in_each_mode(scenario)


@FULL
def test_a_worker_without_a_place_says_so(start: Start, node: Node, user: ModuleType) -> None:
    """Past the task's start deadline, and nothing stays."""

    def scenario(mode: str) -> None:
        execution = start(user.no_room, mode=mode)
        run = execution.end()
        assert (run.phase, run.attempts) == ("FAILED", 1)
        assert "the job did not start within its start deadline of 30s: " in run.error["message"]
        assert "worker group w: 0/1 nodes are available: 1 Insufficient cpu" in run.error["message"]
        assert node.settled(execution.stem) == []

    in_each_mode(scenario)


@FULL
@pytest.mark.parametrize(
    ("task", "phase", "seconds"),
    [
        pytest.param("aborted_queued", "QUEUED", 5),
        pytest.param("aborted_waiting", "WAITING_FOR_RESOURCES", 15),
        pytest.param("aborted_coming", "INITIALIZING", 30),
        pytest.param("aborted_running", "RUNNING", 75),
    ],
)
def test_an_abort_leaves_nothing(
    start: Start, node: Node, user: ModuleType, task: str, phase: str, seconds: int
) -> None:
    """Whatever the task was at."""

    def scenario(mode: str) -> None:
        execution = start(getattr(user, task), "--abort-after", f"{seconds}s", mode=mode)
        run = execution.end()
        assert (run.phase, run.phases[-2:]) == ("ABORTED", [phase, "ABORTED"])
        assert node.settled(execution.stem) == []

    in_each_mode(scenario)


@FULL
def test_a_suspended_task_goes_on_when_resumed(start: Start, node: Node, user: ModuleType) -> None:
    """From its start, as a queue does it: the pods go, and come again."""

    def scenario(mode: str) -> None:
        execution = start(user.suspended, mode=mode)
        at_work(execution, node)
        execution.until("RUNNING", within=LONG)
        node.suspend(execution.stem, True)
        seen(lambda: execution.phase == "QUEUED")
        seen(lambda: not node.objects("pods", execution.stem), within=90)
        assert execution.phase == "QUEUED"
        node.suspend(execution.stem, False)
        run = execution.end()
        assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 1, {"o0": 1})
        assert "suspended" in run.reasons
        assert len(left_by_code(node, execution)) == 2

    in_each_mode(scenario)


@FULL
def test_a_restarted_operator_changes_nothing(start: Start, node: Node, user: ModuleType) -> None:
    """While the job runs, and ends."""
    begun = [start(user.unattended, mode=mode) for mode in SUBMISSION_MODES]
    for execution in begun:
        at_work(execution, node)
        execution.until("RUNNING", within=LONG)
    node.restart("operator", after=20)
    for execution in begun:
        run = execution.end()
        assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 1, {"o0": 1})
        assert len(left_by_code(node, execution)) == 1


@FULL
def test_a_worker_may_be_late(start: Start, node: Node, user: ModuleType) -> None:
    """The code finds it there, but in SidecarMode, which does not wait for it; it runs once."""

    def scenario(mode: str) -> None:
        execution = start(user.late, mode=mode)
        run = execution.end()
        assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
        assert run.outputs == {"o0": 0 if mode == "SidecarMode" else 1}
        assert len(left_by_code(node, execution)) == 1

    in_each_mode(scenario)


@FULL
def test_a_busy_head_is_no_lost_head(start: Start, node: Node, user: ModuleType) -> None:
    """Though it answers late."""

    def scenario(mode: str) -> None:
        execution = start(user.busy, mode=mode)
        run = execution.end()
        assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 1, {"o0": 1})
        assert len(left_by_code(node, execution)) == 1

    in_each_mode(scenario)
