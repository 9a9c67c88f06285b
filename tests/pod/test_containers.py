"""The containers of a pod spec, one by one."""

from flytekitplugins.kuberay.pod.containers import container_of, each_container, with_each_container, without_containers
from flytekitplugins.kuberay.wire import Manifest

POD: Manifest = {
    "containers": [{"name": "a"}, {"name": "b"}],
    "initContainers": [{"name": "i"}],
    "ephemeralContainers": [{"name": "e"}],
    "hostname": "h",
}


def test_container_of() -> None:
    """A container is found by its name."""
    assert container_of(POD, "b") is POD["containers"][1]


def test_each_container() -> None:
    """Init containers come first, each with its place; ephemeral ones where they are asked for."""
    assert [(place, container["name"]) for place, container in each_container(POD, "pod")] == [
        ("pod.initContainers[0]", "i"),
        ("pod.containers[0]", "a"),
        ("pod.containers[1]", "b"),
    ]
    assert list(each_container(POD, "pod", ["ephemeralContainers"])) == [("pod.ephemeralContainers[0]", {"name": "e"})]


def test_without_containers() -> None:
    """All else of the pod."""
    assert without_containers({**POD, "ephemeralContainers": None}) == {"hostname": "h", "ephemeralContainers": None}


def test_with_each_container() -> None:
    """Each container is changed in its place, all else stays, and no list is made where there was none."""
    changed = with_each_container(POD, lambda container, field: {"name": container["name"], "list": field})
    assert changed == {
        **POD,
        "containers": [{"name": "a", "list": "containers"}, {"name": "b", "list": "containers"}],
        "initContainers": [{"name": "i", "list": "initContainers"}],
    }
    assert with_each_container({"initContainers": None}, lambda *_: {}) == {"initContainers": None}
