"""How tasks end on a real node when something goes wrong, each as a user meets it: what is said, when, what is left.

The scenarios are those in which Flyte's Go plugin is wrong or silent; docs/comparison.md has both sides' figures.
"""

from __future__ import annotations

import json
import time
from types import ModuleType

import pytest

from .conftest import Start
from .looking import diagnosis_of, left_by_code, pods_of, seen
from .node import Node
from .propeller import Execution

CORE, FULL = pytest.mark.e2e, pytest.mark.e2e_full

ODD = ["it's", 'say "hi"', "$HOME", "$(id)", "`id`", "a;b", "line\nbreak", '{"a": ["b c", "$(X)"]}', "", "größer 🚀"]
WRITE_ARGS = """
import json, os, sys, s3fs
endpoint, key, secret = (os.environ["FLYTE_AWS_" + name] for name in ("ENDPOINT", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
store = s3fs.S3FileSystem(endpoint_url=endpoint, key=key, secret=secret)
store.pipe_file("bucket/left/" + sys.argv[1] + "/0/args", json.dumps(sys.argv[2:]).encode())
"""


@pytest.fixture(scope="module")
def stuck(start_for_all: Start, user: ModuleType) -> dict[str, Execution]:
    """Tasks that never start, begun together: they need little but time."""
    begun = {name: start_for_all(getattr(user, name)) for name in ("no_image", "no_room", "no_config_map")}
    return begun | {"aborted_early": start_for_all(user.aborted_early, "--abort-after", "8s")}


@pytest.fixture(scope="module")
def pair(start_for_all: Start, user: ModuleType) -> dict[str, Execution]:
    """Two short tasks, begun together: more of them would slow each other down."""
    odd = start_for_all(user.odd, args=odd_args("odd"), mode="K8sJobMode")
    return {"odd": odd, "talkative": start_for_all(user.talkative)}


def odd_args(place: str) -> list[str]:
    """A program that leaves its further arguments at a place of the object store, with odd ones."""
    return ["python", "-c", WRITE_ARGS, place, *ODD]


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
    assert "the job did not start within its start deadline of 15s: " in failing
    assert run.seconds > 15
    assert node.settled(stuck["no_room"].stem) == []


@CORE
def test_a_missing_config_map_fails_at_once(stuck: dict[str, Execution], node: Node) -> None:
    """No attempt is wasted on what another one would meet again."""
    run = stuck["no_config_map"].end()
    assert (run.phase, run.attempts) == ("FAILED", 1)
    assert 'configmap "nowhere" not found' in run.error["message"]
    assert "head: container ray-head: CreateContainerConfigError" in run.error["message"]
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
    assert [json.loads(text) for text in left_by_code(node, "odd")] == [ODD]


@CORE
def test_a_diagnosis_stands_beside_the_error(pair: dict[str, Execution], node: Node, user: ModuleType) -> None:
    """It ends with the driver's last lines, and holds no secret of the task."""
    run = pair["talkative"].end()
    assert (run.phase, run.attempts, run.error["code"]) == ("FAILED", 1, "USER:RuntimeError")
    diagnosis = diagnosis_of(node, pair["talkative"])
    assert "the token is [redacted] and this is the last line" in diagnosis
    assert user.TOKEN not in diagnosis


@pytest.mark.parametrize("mode", ["HTTPMode", "SidecarMode"])
@FULL
def test_odd_arguments_arrive_otherwise(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """However the job is handed over."""
    execution = start(user.odd, args=odd_args(f"odd-{mode}"), mode=mode)
    run = execution.end()
    assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
    assert [json.loads(text) for text in left_by_code(node, f"odd-{mode}")] == [ODD]


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
