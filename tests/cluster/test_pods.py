"""What is read of a pod: who it is, since when it is as it is, and its containers in the order of its spec."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from flytekitplugins.kuberay.cluster.names import ATTEMPT_KEY
from flytekitplugins.kuberay.cluster.pods import ContainerView, PodView, pod_view_of

from .scenes import CLUSTER, INITIALIZED, NOW, ago, container, ended, pod, stamp, unschedulable, waiting

STATUSES = Path(__file__).parents[1] / "statuses"


def recorded(recording: str) -> list[PodView]:
    """The pods at a recording's end."""
    found = json.loads((STATUSES / f"{recording}.json").read_text(encoding="utf-8"))
    return [pod_view_of(manifest) for manifest in found["final_pods"]]


def test_recorded_pods_are_told_apart() -> None:
    """A head, a worker of its group, and two submitters, which belong to no cluster."""
    found = sorted((each.group, each.cluster != "", each.phase, each.ready) for each in recorded("head-deleted-k8sjob"))
    assert [each for each in found if each[0] != "w"] == [
        ("head", True, "Running", True),
        ("submitter", False, "Failed", False),
        ("submitter", False, "Succeeded", False),
    ]
    assert {each[:2] for each in found if each[0] == "w"} == {("w", True)}


def test_a_recorded_worker_has_kuberays_init_container_first() -> None:
    """Which ended well, while its container runs."""
    worker = next(each for each in recorded("stopped") if each.group == "w")
    assert [(each.name, each.init, each.exit_code) for each in worker.containers] == [
        ("wait-gcs-ready", True, 0),
        ("ray-worker", False, None),
    ]


def test_a_pod_with_no_status_is_read() -> None:
    """The API server has it, nobody has looked at it."""
    labels = {ATTEMPT_KEY: "k", "ray.io/cluster": CLUSTER, "ray.io/node-type": "worker", "ray.io/group": "cpu"}
    metadata = {"name": "p", "uid": "u", "creationTimestamp": stamp(NOW), "labels": labels}
    assert pod_view_of({"metadata": metadata}) == PodView(
        name="p", uid="u", attempt_key="k", node="", hostname="p", cluster=CLUSTER, role="worker", group="cpu",
        phase="", reason="", message="", created=NOW,
        terminating=False, unscheduled="", since=NOW, ready=False, first="", disrupted="", containers=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"nodeName": "node-1"}, ("node-1", "p"), id="a host named as the pod"),
        pytest.param({"nodeName": "node-1", "hostname": "ray"}, ("node-1", "ray"), id="a host with a name of its own"),
        pytest.param({}, ("", "p"), id="no node yet"),
    ],
)
def test_a_pod_says_where_it_is(spec: dict[str, str], expected: tuple[str, str]) -> None:
    """Its node, and what it calls itself there."""
    view = pod_view_of({"metadata": {"name": "p", "creationTimestamp": stamp(NOW)}, "spec": spec})
    assert (view.node, view.hostname) == expected


def test_a_container_has_an_id_once_it_is_made() -> None:
    """With its runtime's scheme."""
    found = pod("head", {**container("c", running=NOW), "containerID": "containerd://4e"}, container("d"))
    assert [each.id for each in found.containers] == ["containerd://4e", ""]


def test_containers_stand_in_the_order_of_the_spec() -> None:
    """A status has them by name: KubeRay's own container is the spec's first, whatever it is called."""
    containers = [container("ray-head", running=INITIALIZED), container("a-sidecar", terminated=ended(1))]
    assert [each.name for each in pod("head", *containers).containers] == ["ray-head", "a-sidecar"]


def test_a_container_is_read() -> None:
    """One that crashed and waits tells of its last end, with the end of its log."""
    crashed = container(
        "c", waiting=waiting("CrashLoopBackOff", "back-off 40s"), last=ended(1, "Error", "boom"), restarts=3
    )
    assert pod("head", crashed, policy="Always").containers == (
        ContainerView("c", False, "Always", "CrashLoopBackOff", "boom", None, 1, "Error", 3, ""),
    )


def test_a_container_that_runs_again_has_not_ended() -> None:
    """Its end before does not count any more."""
    again = container("c", running=ago(minutes=1), last=ended(1), restarts=1)
    assert pod("head", again).containers == (
        ContainerView("c", False, "Never", "", "", ago(minutes=1), None, "", 1, ""),
    )


@pytest.mark.parametrize(
    ("policy", "state", "expected"),
    [
        pytest.param("Never", {"terminated": ended(0)}, True, id="never, ended well"),
        pytest.param("Never", {"terminated": ended(1)}, True, id="never, ended badly"),
        pytest.param("OnFailure", {"terminated": ended(0)}, True, id="on failure, ended well"),
        pytest.param("OnFailure", {"terminated": ended(1)}, False, id="on failure, ended badly"),
        pytest.param("Always", {"terminated": ended(1)}, False, id="always"),
        pytest.param("Never", {"waiting": waiting("PodInitializing")}, False, id="not begun"),
        pytest.param("Never", {"running": NOW}, False, id="running"),
    ],
)
def test_a_container_is_over_when_nothing_starts_it_again(policy: str, state: dict[str, Any], expected: bool) -> None:
    """By the pod's restart policy."""
    assert pod("head", container("c", **state), policy=policy).containers[0].is_over == expected


def test_an_init_container_may_last() -> None:
    """A native sidecar has a restart policy of its own; other init containers are tried again until they end well."""
    inits = [{**container("mesh", running=NOW), "restartPolicy": "Always"}, container("data", terminated=ended(1))]
    found = pod("head", policy="Always", inits=inits).containers
    assert [(each.name, each.policy) for each in found[:2]] == [("mesh", "Always"), ("data", "OnFailure")]


def test_a_pod_without_a_node_tells_why() -> None:
    """In the scheduler's words; or the gates that hold it, of which the scheduler says nothing."""
    assert unschedulable("head", "0/4 nodes are available").unscheduled == "0/4 nodes are available"
    gated = unschedulable("head", "Scheduling is blocked", gates=("example.com/a", "example.com/b"))
    assert gated.unscheduled == "held back by the scheduling gates example.com/a, example.com/b"


def test_a_disruption_counts_while_it_stands() -> None:
    """Kubernetes takes the condition back when nothing came of it."""
    told = {"DisruptionTarget": (True, "EvictionByEvictionAPI", "Eviction API: evicting")}
    assert pod(conditions=told).disrupted == "EvictionByEvictionAPI Eviction API: evicting"
    assert pod(conditions={"DisruptionTarget": (False, "", "")}).disrupted == ""


def test_a_pod_is_as_it_is_since_its_last_change() -> None:
    """Not since it was made."""
    assert pod(since=ago(minutes=2)).since == NOW - timedelta(minutes=2)


def test_a_long_text_keeps_both_ends() -> None:
    """The registry's answer stands at the end of a line that begins with the image."""
    text = f"Back-off pulling image {'x' * 2000}: 429 Too Many Requests"
    shown = pod("head", container("c", waiting=waiting("ImagePullBackOff", text))).containers[0].message
    assert len(shown) == 480
    assert shown.startswith("Back-off pulling image")
    assert shown.endswith("429 Too Many Requests")


def test_the_end_of_a_log_is_redacted() -> None:
    """By the pod's own variables: Kubernetes puts the last lines of a failed container into its status."""
    containers = [{"name": "c", "env": [{"name": "DB_PASSWORD", "value": "hunter22"}]}]
    status = {"name": "c", "state": {"terminated": ended(1, "Error", "can't log in with hunter22")}}
    manifest = {
        "metadata": {"name": "p", "creationTimestamp": stamp(NOW)},
        "spec": {"containers": containers},
        "status": {"containerStatuses": [status]},
    }
    assert pod_view_of(manifest).containers[0].message == "can't log in with [redacted]"
