"""What is told of pods as a real node reports them (KubeRay 1.6.2, Kubernetes 1.34), in scenarios of tests/e2e."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from flytekitplugins.kuberay.cluster.diagnosis import autoscaler_end, end_of_pod, head_loss, waiting_groups
from flytekitplugins.kuberay.cluster.pods import PodView, pod_view_of

PODS = Path(__file__).parents[1] / "statuses" / "pods"
SECOND = timedelta(seconds=1)


def recorded(name: str) -> PodView:
    """The pod of a file."""
    return pod_view_of(json.loads((PODS / f"{name}.json").read_text(encoding="utf-8")))


WAITING = [
    pytest.param(
        "image-missing-worker",
        "w: init container wait-gcs-ready: ErrImagePull: failed to pull and unpack image "
        '"registry.invalid/nobody/nothing:1": failed to resolve reference',
        id="an image that is nowhere, first needed by KubeRay's own init container",
    ),
    pytest.param(
        "config-map-missing-head",
        'head: container ray-head: CreateContainerConfigError: configmap "nowhere" not found',
        id="a ConfigMap that is nowhere",
    ),
    pytest.param(
        "unschedulable-worker", "big: 0/1 nodes are available: 1 Insufficient cpu.", id="more cores than any node has"
    ),
    pytest.param("starting-worker", "w: waits for the head", id="a worker that waits for its head"),
]


@pytest.mark.parametrize(("name", "text"), WAITING)
def test_why_it_waits(name: str, text: str) -> None:
    """The cause, in the words of who knows it."""
    (waiting,) = waiting_groups([recorded(name)])
    assert f"{waiting.group}: {waiting.text}".startswith(text)


@pytest.mark.parametrize("name", ["autoscaler-head", "sidecar-head"])
def test_a_head_with_a_second_container_is_well(name: str) -> None:
    """Nothing is said against one that runs."""
    head = recorded(name)
    assert (waiting_groups([head]), head_loss([head], head.created + SECOND * 60), autoscaler_end([head])) == (
        [],
        "",
        "",
    )


def test_a_deleted_head_is_lost() -> None:
    """As soon as somebody deletes it, while it still runs."""
    head = recorded("deleted-head")
    assert head_loss([head], head.created + SECOND * 10) == f"head pod {head.name} is being deleted"


def test_a_deleted_submitter_ended_by_its_deletion() -> None:
    """Its container was killed, so its Job makes another."""
    submitter = recorded("deleted-submitter")
    assert (submitter.group, submitter.terminating) == ("submitter", True)
    assert end_of_pod(submitter).startswith(f"pod {submitter.name}: container ray-job-submitter ended with exit code")


def test_every_recorded_pod_is_read() -> None:
    """None is left over."""
    used = {str(row.values[0]) for row in WAITING}
    used |= {"autoscaler-head", "sidecar-head", "deleted-head", "deleted-submitter"}
    assert {file.stem for file in PODS.glob("*.json")} == used
