"""A user's own template on top of a built pod; which container goes where is in the tests of group and submitter."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.cluster.overlay import overlay_problems, with_overlay
from flytekitplugins.kuberay.pod.template import PodTemplate
from flytekitplugins.kuberay.wire import K8sPod, Manifest
from tests.pod.samples import IMAGE, settings, sidecar

REFERENCE = {"resource": "limits.cpu"}
BUILT = PodTemplate(
    {"containers": [{"name": "ray-head", "image": IMAGE}, sidecar()]}, {"l": "task"}, {"a": "task"}, "ray-head"
)


def variable(container: str) -> Manifest:
    """A variable that tells a container's CPUs."""
    return {"name": "CPUS", "valueFrom": {"resourceFieldRef": {**REFERENCE, "containerName": container}}}


def test_nothing_said() -> None:
    """A template that says nothing changes nothing."""
    assert with_overlay(BUILT, K8sPod({}), "", "primary", settings()) == BUILT


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("mine", "ray-head", id="the main container by its own name"),
        pytest.param("primary", "ray-head", id="the main container by the task's name for it"),
        pytest.param("sidecar", "sidecar", id="another container"),
        pytest.param("", "", id="none: the container in which it stands"),
    ],
)
def test_references(written: str, expected: str) -> None:
    """D18 (design): what refers to the main container refers to it by its new name, in sidecars too."""
    own = K8sPod({"containers": [{"name": "mine"}, {"name": "sidecar", "env": [variable(written)]}]})
    got = with_overlay(BUILT, own, "mine", "primary", settings()).spec["containers"]
    assert [[each["name"] for each in got], got[1]["env"]] == [["ray-head", "sidecar"], [variable(expected)]]


def test_references_to_a_container_of_the_template() -> None:
    """D18 (design): a template that has a container of the task's primary's name means that one."""
    told = {"name": "told", "env": [variable("primary"), {**variable("ray-head"), "name": "RAY"}]}
    own = K8sPod({"containers": [{"name": "ray-head"}, {"name": "primary", "image": "i"}, told]})
    got = with_overlay(BUILT, own, "ray-head", "primary", settings()).spec["containers"]
    assert next(each for each in got if each["name"] == "told") == told


def test_amounts_of_a_sidecar_alone() -> None:
    """A sidecar that only the template has gets the limit of a GPU that the API server wants; all else stays."""
    amounts = {"requests": {"gpu": "1", "cpu": "2"}, "limits": {"cpu": "1"}}
    own = K8sPod({"containers": [{"name": "own", "image": "i", "resources": amounts}]})
    got = with_overlay(BUILT, own, "", "primary", settings()).spec["containers"][-1]["resources"]
    assert got == {"requests": {"nvidia.com/gpu": "1", "cpu": "2"}, "limits": {"nvidia.com/gpu": "1", "cpu": "1"}}


def test_labels_and_annotations() -> None:
    """D15 (design): the template's stand above the task's."""
    got = with_overlay(BUILT, K8sPod({}, {"l": "own"}, {"b": "own"}), "", "primary", settings())
    assert [got.labels, got.annotations] == [{"l": "own"}, {"a": "task", "b": "own"}]


def test_overlay_problems() -> None:
    """A template is checked as it was written: its pod spec and its metadata."""
    pod = K8sPod({"containers": [{"name": "A"}]}, labels={"a b": "c"})
    problems = [problem.path for problem in overlay_problems(pod, "custom.rayCluster.headGroupSpec.k8sPod")]
    assert problems == [
        "custom.rayCluster.headGroupSpec.k8sPod.podSpec.containers[0].name",
        "custom.rayCluster.headGroupSpec.k8sPod.metadata.labels",
    ]
