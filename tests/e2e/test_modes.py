"""What goes wrong around a task, in each way of handing it over: KubeRay's submission modes, on a real node.

docs/submission-modes.md has what was seen, and which mode is the default for what reason.
"""

from __future__ import annotations

import re
import time
from types import ModuleType

import pytest

from .conftest import Start
from .looking import left_by_code, pods_of, seen
from .node import NAMESPACE, Node
from .propeller import Execution

CORE, FULL = pytest.mark.e2e, pytest.mark.e2e_full
MODES = ["K8sJobMode", "HTTPMode", "SidecarMode"]
in_each_mode = pytest.mark.parametrize("mode", MODES)

KILL_SUBMISSION = """
import os, signal
for pid in (each for each in os.listdir("/proc") if each.isdigit()):
    if b"submit" in open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0"):
        os.kill(int(pid), signal.SIGKILL)
"""


@FULL
@in_each_mode
def test_a_task_runs_once(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """With its worker there, as its cluster says."""
    execution = start(user.steady, mode=mode)
    run = execution.end()
    assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 1, {"o0": 1})
    assert len(left_by_code(node, execution)) == 1


@FULL
@in_each_mode
def test_a_users_exception_fails_the_task(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """With its text, and no other attempt."""
    execution = start(user.raising, mode=mode)
    run = execution.end()
    assert (run.phase, run.attempts, run.error["code"]) == ("FAILED", 1, "USER:RuntimeError")
    assert "ValueError: no luck today" in run.error["message"]
    assert len(left_by_code(node, execution)) == 1


@pytest.mark.parametrize(
    "mode", [pytest.param("", id="by default", marks=CORE), *(pytest.param(mode, marks=FULL) for mode in MODES)]
)
def test_a_lost_head_is_another_attempt(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """Seen in seconds; the user's code runs once in each attempt, and the first attempt's RayJob is gone."""
    execution = start(user.head_lost, mode=mode)
    seen(lambda: left_by_code(node, execution), within=120)
    execution.until("RUNNING", within=120)
    (first,) = node.objects("rayjobs", execution.stem)
    (head,) = pods_of(node, execution, "head")
    node.delete_pod(head["metadata"]["name"])
    lost = time.monotonic()
    execution.until("FAILED", within=20)
    noticed = time.monotonic() - lost
    run = execution.end()

    assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 2, {"o0": 1})
    assert noticed < 10
    assert f"the job can't go on: head pod {head['metadata']['name']} is being deleted" in run.reasons
    assert [len(left_by_code(node, execution, attempt)) for attempt in (0, 1)] == [1, 1]
    assert first["metadata"]["name"] not in [job["metadata"]["name"] for job in node.objects("rayjobs")]


@FULL
@in_each_mode
def test_a_lost_head_never_runs_the_code_again(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """Nor where nobody looks for a minute."""
    execution = start(user.head_lost_unseen, "--resync", "60s", mode=mode)
    seen(lambda: left_by_code(node, execution), within=120)
    (head,) = seen(lambda: pods_of(node, execution, "head"))
    node.delete_pod(head["metadata"]["name"])
    run = execution.end()
    assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 2, {"o0": 1})
    assert [len(left_by_code(node, execution, attempt)) for attempt in (0, 1)] == [1, 1]


@FULL
@in_each_mode
def test_a_lost_worker_is_replaced(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """Ray runs its function once more on the new worker, and the task goes on."""
    execution = start(user.worker_lost, mode=mode)
    seen(lambda: left_by_code(node, execution), within=120)
    (worker,) = pods_of(node, execution, "w")
    node.delete_pod(worker["metadata"]["name"])
    run = execution.end()
    assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
    assert len(left_by_code(node, execution)) == 2


@FULL
def test_a_lost_submitter_changes_nothing(start: Start, node: Node, user: ModuleType) -> None:
    """Its Job makes another one, which follows the job that runs."""
    execution = start(user.submitter_lost, mode="K8sJobMode")
    seen(lambda: left_by_code(node, execution), within=120)
    (submitter,) = pods_of(node, execution, "submitter")
    node.delete_pod(submitter["metadata"]["name"])
    run = execution.end()
    assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
    assert len(left_by_code(node, execution)) == 1


@FULL
def test_a_lost_submitter_beside_the_head_ends_the_job(start: Start, node: Node, user: ModuleType) -> None:
    """KubeRay fails the RayJob in SidecarMode, though Ray would go on."""
    execution = start(user.submitter_lost, mode="SidecarMode")
    seen(lambda: left_by_code(node, execution), within=120)
    execution.until("RUNNING")
    (head,) = pods_of(node, execution, "head")
    inside = ["--container=ray-job-submitter", "--", "python", "-c", KILL_SUBMISSION]
    node.run("kubectl", "exec", head["metadata"]["name"], f"--namespace={NAMESPACE}", *inside)
    run = execution.end()
    assert (run.phase, run.attempts) == ("FAILED", 1)
    assert "the Ray job failed [SubmissionFailed]" in run.error["message"]
    assert len(left_by_code(node, execution)) == 1


@FULL
@in_each_mode
def test_a_driver_without_memory_says_so(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """Another attempt would meet it again."""
    execution = start(user.hungry, mode=mode)
    run = execution.end()
    assert (run.phase, run.attempts, run.error["kind"]) == ("FAILED", 1, "USER")
    assert re.search("OOM|OutOfMemory", run.error["message"])
    assert len(left_by_code(node, execution)) == 1


@FULL
def test_a_function_without_memory_says_so(start: Start, user: ModuleType) -> None:
    """By the user's own error: Ray's, of its memory monitor."""
    run = start(user.hungry_function).end()
    assert (run.phase, run.attempts, run.error["kind"]) == ("FAILED", 1, "USER")
    assert re.search("OOM|OutOfMemory", run.error["message"])


@FULL
@in_each_mode
def test_a_missing_image_fails_with_the_registrys_text(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """Past the grace, and nothing stays."""
    execution = start(user.no_image, mode=mode)
    run = execution.end()
    assert (run.phase, run.attempts) == ("FAILED", 1)
    assert 'failed to resolve reference "registry.invalid/nobody/nothing:1"' in run.error["message"]
    assert "the cluster did not come up: worker group w: " in run.error["message"]
    assert node.settled(execution.stem) == []


@FULL
@in_each_mode
def test_a_worker_without_a_place_says_so(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """Past the task's start deadline, and nothing stays."""
    execution = start(user.no_room, mode=mode)
    run = execution.end()
    assert (run.phase, run.attempts) == ("FAILED", 1)
    text = "the job did not start within its 30s: worker group w: 0/1 nodes are available: 1 Insufficient cpu"
    assert text in run.error["message"]
    assert node.settled(execution.stem) == []


@pytest.fixture(scope="module", params=MODES)
def aborted(request: pytest.FixtureRequest, start_for_all: Start, user: ModuleType) -> dict[str, Execution]:
    """Tasks that somebody aborts, begun together: most wait only."""
    start = start_for_all
    return {
        "QUEUED": start(user.aborted_queued, "--abort-after", "5s", mode=request.param),
        "WAITING_FOR_RESOURCES": start(user.aborted_waiting, "--abort-after", "12s", mode=request.param),
        "INITIALIZING": start(user.aborted_starting, "--abort-after", "25s", mode=request.param),
        "RUNNING": start(user.aborted_running, "--abort-after", "60s", mode=request.param),
    }


@FULL
@pytest.mark.parametrize("phase", ["QUEUED", "WAITING_FOR_RESOURCES", "INITIALIZING", "RUNNING"])
def test_an_abort_leaves_nothing(aborted: dict[str, Execution], node: Node, phase: str) -> None:
    """Whatever the task was at."""
    run = aborted[phase].end()
    assert (run.phase, run.phases[-2:]) == ("ABORTED", [phase, "ABORTED"])
    assert node.settled(aborted[phase].stem) == []


@FULL
@in_each_mode
def test_a_suspended_task_goes_on_when_resumed(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """From its start, as a queue does it: the pods go, and come again."""
    execution = start(user.suspended, mode=mode)
    seen(lambda: left_by_code(node, execution), within=120)
    execution.until("RUNNING")
    node.suspend(execution.stem, True)
    seen(lambda: execution.phase == "QUEUED")
    seen(lambda: not node.objects("pods", execution.stem))
    assert execution.phase == "QUEUED"
    node.suspend(execution.stem, False)
    run = execution.end()
    assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 1, {"o0": 1})
    assert "it is suspended, waiting for its queue" in run.reasons or "it is being suspended" in run.reasons
    assert len(left_by_code(node, execution)) == 2


@FULL
@in_each_mode
def test_a_restarted_operator_changes_nothing(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """While the job runs, and ends."""
    execution = start(user.unattended, mode=mode)
    seen(lambda: left_by_code(node, execution), within=120)
    execution.until("RUNNING")
    node.restart("operator", after=20)
    run = execution.end()
    assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 1, {"o0": 1})
    assert len(left_by_code(node, execution)) == 1


@FULL
@pytest.mark.parametrize(
    ("mode", "workers"),
    [
        pytest.param("K8sJobMode", 1),
        pytest.param("HTTPMode", 1),
        pytest.param("SidecarMode", 0, id="SidecarMode, which does not wait for them"),
    ],
)
def test_a_worker_may_be_late(start: Start, node: Node, user: ModuleType, mode: str, workers: int) -> None:
    """The code finds it there, and runs once."""
    execution = start(user.late, mode=mode)
    run = execution.end()
    assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 1, {"o0": workers})
    assert len(left_by_code(node, execution)) == 1


@FULL
@in_each_mode
def test_a_head_lost_before_the_workers_are_there(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """Is made anew; no code has run until then, or it is another attempt."""
    execution = start(user.head_lost_early, mode=mode)
    execution.until("INITIALIZING")
    time.sleep(15)
    (head,) = pods_of(node, execution, "head")
    node.delete_pod(head["metadata"]["name"])
    run = execution.end()
    assert run.phase == "SUCCEEDED"
    assert [len(left_by_code(node, execution, attempt)) for attempt in range(run.attempts)] == [1] * run.attempts


@FULL
@in_each_mode
def test_a_busy_head_is_no_lost_head(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """Though it answers late."""
    execution = start(user.busy, mode=mode)
    run = execution.end()
    assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 1, {"o0": 1})
    assert len(left_by_code(node, execution)) == 1
