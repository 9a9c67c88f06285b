"""How tasks end on a real node when something goes wrong, each as a user meets it: what is said, when, what is left.

The scenarios are those in which Flyte's Go plugin is wrong or silent; docs/comparison.md has both sides' figures.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, TypeVar

import pytest

from flytekitplugins.kuberay.wire import Manifest

from .node import BUCKET, NAMESPACE, Node
from .propeller import Execution, Propeller

CORE, FULL = pytest.mark.e2e, pytest.mark.e2e_full
T = TypeVar("T")
Start = Callable[..., Execution]

ODD = ["it's", 'say "hi"', "$HOME", "$(id)", "`id`", "a;b", "line\nbreak", '{"a": ["b c", "$(X)"]}', "", "größer 🚀"]
WRITE_ARGS = """
import json, os, sys, s3fs
endpoint, key, secret = (os.environ["FLYTE_AWS_" + name] for name in ("ENDPOINT", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
store = s3fs.S3FileSystem(endpoint_url=endpoint, key=key, secret=secret)
store.pipe_file("bucket/left/" + sys.argv[1] + "/args", json.dumps(sys.argv[2:]).encode())
"""


@pytest.fixture
def start(propeller: Propeller, node: Node) -> Iterator[Start]:
    """Begins a task without inputs; nothing of it is left after the test. The diagnosis is printed where it fails."""
    begun: list[Execution] = []

    def start(task: Any, *options: str, args: Sequence[str] | None = None) -> Execution:
        begun.append(propeller.start(task, {}, *options, args=args))
        return begun[-1]

    yield start
    print(node.diagnosis())
    _end(begun, node)


@pytest.fixture(scope="module")
def stuck(propeller: Propeller, node: Node, user: ModuleType) -> Iterator[dict[str, Execution]]:
    """Tasks that never start, begun together: they need little but time."""
    begun = {name: propeller.start(getattr(user, name), {}) for name in ("no_image", "no_room", "no_config_map")}
    begun["aborted_early"] = propeller.start(user.aborted_early, {}, "--abort-after", "8s")
    yield begun
    _end(begun.values(), node)


@pytest.fixture(scope="module")
def pair(propeller: Propeller, node: Node, user: ModuleType) -> Iterator[dict[str, Execution]]:
    """Two short tasks, begun together: more of them would slow each other down."""
    begun = {
        "odd": propeller.start(user.odd_by_submitter, {}, args=odd_args("odd_by_submitter")),
        "talkative": propeller.start(user.talkative, {}),
    }
    yield begun
    _end(begun.values(), node)


def _end(begun: Iterable[Execution], node: Node) -> None:
    for execution in begun:
        execution.stop()
        node.delete_tasks(execution.stem)


def odd_args(place: str) -> list[str]:
    """A program that leaves its further arguments at a place of the object store, with odd ones."""
    return ["python", "-c", WRITE_ARGS, place, *ODD]


def seen(look: Callable[[], T | None], within: float = 60.0) -> T:
    """What the look finds, once it finds something."""
    deadline = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not seen within {within:g} s"
        time.sleep(0.3)


def pods_of(node: Node, execution: Execution, group: str) -> list[Manifest]:
    """The live pods of a group of an execution: head, submitter or the worker group's name."""
    kinds = {"head": "head", "submitter": None}
    pods = [pod for pod in node.objects("pods", execution.stem) if "deletionTimestamp" not in pod["metadata"]]
    labels = [(pod, pod["metadata"]["labels"]) for pod in pods]
    if group in kinds:
        return [pod for pod, found in labels if found.get("ray.io/node-type") == kinds[group]]
    return [pod for pod, found in labels if found.get("ray.io/group") == group]


def left_by_code(node: Node, place: str) -> list[str]:
    """What the user's code left at a place of the object store, one text for each time that it ran."""
    return [path.read_text() for path in sorted((node.store / BUCKET / "left" / place).glob("*"))]


def diagnosis_of(node: Node, execution: Execution) -> str:
    """The diagnosis that stands beside the first attempt's outputs."""
    prefix = f"metadata/propeller/{NAMESPACE}-{execution.name}"
    found = [path for path in (node.store / BUCKET / prefix).rglob("kuberay-diagnosis.txt") if path.parent.name == "0"]
    return found[0].read_text() if found else ""


@CORE
def test_a_missing_image_fails_with_the_registrys_text(stuck: dict[str, Execution], node: Node) -> None:
    """While it waits the reason is the registry's answer; past the grace it fails with it, and is removed."""
    run = stuck["no_image"].end()
    assert (run.phase, run.attempts) == ("FAILED", 1)
    image = "worker group w: init container wait-gcs-ready: "  # KubeRay's, of the same image
    while_waiting, _, failing = run.reasons.rpartition("failed to run the job: ")
    for text in (while_waiting, failing):
        assert image in text
        assert 'failed to resolve reference "registry.invalid/nobody/nothing:1"' in text
    assert "the cluster did not come up: " in failing
    assert run.seconds < 60
    assert node.settled(stuck["no_image"].stem) == []


@CORE
def test_a_worker_without_a_place_says_so(stuck: dict[str, Execution], node: Node) -> None:
    """While it waits the reason is the scheduler's; past its own start deadline it fails with it, and is removed."""
    run = stuck["no_room"].end()
    assert (run.phase, run.attempts) == ("FAILED", 1)
    assert run.phases[-2:] == ["WAITING_FOR_RESOURCES", "FAILED"]
    while_waiting, _, failing = run.reasons.rpartition("failed to run the job: ")
    for text in (while_waiting, failing):
        assert "worker group big: 0/1 nodes are available: 1 Insufficient cpu" in text
    assert "the job did not start within its 15s: " in failing
    assert 15 < run.seconds < 45
    assert node.settled(stuck["no_room"].stem) == []


@CORE
def test_a_missing_config_map_fails_at_once(stuck: dict[str, Execution], node: Node) -> None:
    """No attempt is wasted on what another one would meet again."""
    run = stuck["no_config_map"].end()
    assert (run.phase, run.attempts) == ("FAILED", 1)
    assert 'configmap "nowhere" not found' in run.error["message"]
    assert "head: container ray-head: CreateContainerConfigError" in run.error["message"]
    assert run.seconds < 30
    assert node.settled(stuck["no_config_map"].stem) == []


@CORE
def test_an_abort_of_what_waits_leaves_nothing(stuck: dict[str, Execution], node: Node) -> None:
    """Before the cluster is up, too."""
    run = stuck["aborted_early"].end()
    assert (run.phase, run.phases[-2:]) == ("ABORTED", ["WAITING_FOR_RESOURCES", "ABORTED"])
    assert node.settled(stuck["aborted_early"].stem) == []


@CORE
def test_odd_arguments_arrive(pair: dict[str, Execution], node: Node) -> None:
    """The driver gets the container's arguments as they are."""
    run = pair["odd"].end()
    assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
    assert [json.loads(text) for text in left_by_code(node, "odd_by_submitter")] == [ODD]


@CORE
def test_a_diagnosis_stands_beside_the_error(pair: dict[str, Execution], node: Node, user: ModuleType) -> None:
    """It ends with the driver's last lines, and holds no secret of the task."""
    run = pair["talkative"].end()
    assert (run.phase, run.attempts, run.error["code"]) == ("FAILED", 1, "USER:RuntimeError")
    diagnosis = diagnosis_of(node, pair["talkative"])
    assert "the token is [redacted] and this is the last line" in diagnosis
    assert user.TOKEN not in diagnosis


@CORE
def test_a_lost_head_is_another_attempt(start: Start, node: Node, user: ModuleType) -> None:
    """Seen in seconds; the user's code runs once in each attempt, and the first attempt's RayJob is gone."""
    execution = start(user.head_lost)
    execution.until("RUNNING")
    seen(lambda: left_by_code(node, "head_lost/0"))
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
    assert [len(left_by_code(node, f"head_lost/{attempt}")) for attempt in (0, 1)] == [1, 1]
    assert first["metadata"]["name"] not in [job["metadata"]["name"] for job in node.objects("rayjobs")]


@CORE
def test_templates_arrive_in_the_pods(start: Start, node: Node, user: ModuleType) -> None:
    """A sidecar with its volume, a Ray container of another name, a service account, and requests beside a template."""
    node.run("kubectl", "create", "serviceaccount", "trainer", f"--namespace={NAMESPACE}")
    execution = start(user.templates)
    execution.until("RUNNING")
    pods = {group: pods_of(node, execution, group) for group in ("head", "w")}
    submitters = seen(lambda: pods_of(node, execution, "submitter"))
    run = execution.end()

    assert (run.phase, run.outputs) == ("SUCCEEDED", {"o0": ["from the sidecar", "main"]})
    (head,), (worker,), (submitter,) = pods["head"], pods["w"], submitters
    assert [c["name"] for c in head["spec"]["containers"]] == ["ray-head", "writer"]
    assert [c["name"] for c in worker["spec"]["containers"]] == ["ray-worker"]
    assert [pod["spec"]["serviceAccountName"] for pod in (head, worker, submitter)] == ["trainer"] * 3
    assert [pod["metadata"]["labels"].get("team") for pod in (head, worker, submitter)] == ["vision"] * 3
    resources = worker["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "120m", "memory": "310Mi"}
    assert resources["limits"] == {"cpu": "2", "memory": "2Gi"}


@pytest.mark.parametrize(
    "task",
    [pytest.param("odd_by_http", id="HTTPMode"), pytest.param("odd_by_sidecar", id="SidecarMode")],
)
@FULL
def test_odd_arguments_arrive_otherwise(start: Start, node: Node, user: ModuleType, task: str) -> None:
    """However the job is handed over."""
    run = start(getattr(user, task), args=odd_args(task)).end()
    assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
    assert [json.loads(text) for text in left_by_code(node, task)] == [ODD]


@pytest.mark.parametrize(
    "task", [pytest.param("hungry", id="in the driver"), pytest.param("hungry_function", id="in a remote function")]
)
@FULL
def test_too_little_memory_is_said(start: Start, user: ModuleType, task: str) -> None:
    """By us where the kernel was first, by Ray's own monitor else; another attempt would meet it again."""
    run = start(getattr(user, task)).end()
    assert (run.phase, run.attempts, run.error["kind"]) == ("FAILED", 1, "USER")
    assert re.search("OOM|OutOfMemory", run.error["message"])


@pytest.mark.parametrize(
    ("task", "ttl"),
    [
        pytest.param("kept", 86400, id="False keeps it for as long as the platform allows"),
        pytest.param("gone_at_once", 0, id="0 removes it at once"),
        pytest.param("gone_soon", 5, id="5 removes it 5 seconds later"),
    ],
)
@FULL
def test_a_cluster_stands_as_long_as_its_user_says(
    start: Start, node: Node, user: ModuleType, task: str, ttl: int
) -> None:
    """What falsehood and zero say counts; the RayJob stays, and tells how it was."""
    execution = start(getattr(user, task))
    assert execution.end().phase == "SUCCEEDED"
    ended = time.monotonic()
    (job,) = node.objects("rayjobs", execution.stem)
    assert (job["spec"]["shutdownAfterJobFinishes"], job["spec"]["ttlSecondsAfterFinished"]) == (True, ttl)
    if ttl > 60:
        time.sleep(10)
        assert len(pods_of(node, execution, "head")) == 1
    else:
        seen(lambda: not pods_of(node, execution, "head"))
        print(f"{task}: gone {time.monotonic() - ended:.0f} s after the end")
        assert len(node.objects("rayjobs", execution.stem)) == len(pods_of(node, execution, "submitter")) == 1


@FULL
def test_groups_scale_up_from_nothing(start: Start, node: Node, user: ModuleType) -> None:
    """The autoscaler adds a worker of each group for what waits for it."""
    run = start(user.scaled).end()
    assert (run.phase, run.outputs) == ("SUCCEEDED", {"o0": ["red", "blue"]})


@FULL
def test_a_lost_worker_is_replaced(start: Start, node: Node, user: ModuleType) -> None:
    """Ray runs its function once more on the new worker, and the task goes on."""
    execution = start(user.worker_lost)
    seen(lambda: left_by_code(node, "worker_lost"), within=90)
    (worker,) = pods_of(node, execution, "w")
    node.delete_pod(worker["metadata"]["name"])
    run = execution.end()
    assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
    assert len(left_by_code(node, "worker_lost")) == 2


@FULL
def test_a_lost_submitter_changes_nothing(start: Start, node: Node, user: ModuleType) -> None:
    """Its Job makes another one, which follows the job that runs."""
    execution = start(user.submitter_lost)
    seen(lambda: left_by_code(node, "submitter_lost"), within=90)
    (submitter,) = pods_of(node, execution, "submitter")
    node.delete_pod(submitter["metadata"]["name"])
    run = execution.end()
    assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
    assert len(left_by_code(node, "submitter_lost")) == 1
