"""The base PodTemplate: which one counts, and how it goes under a task's pod."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.pod.base import (
    base_container,
    base_problems,
    base_template_name,
    base_template_namespaces,
    find_base_template,
    over_base,
    template_spec,
)
from flytekitplugins.kuberay.wire import FlyteTask, Manifest
from tests.pod.samples import base_template, container_task, settings

NAMED = container_task(metadata={"podTemplateName": "mine"})
DEFAULT = settings(k8s={"default-pod-template-name": "theirs"})


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param(NAMED, "mine", id="the task's"),
        pytest.param(container_task(), "theirs", id="else the platform's"),
    ],
)
def test_base_template_name(task: FlyteTask, expected: str) -> None:
    """A task's own PodTemplate stands in place of the platform's."""
    assert base_template_name(task, DEFAULT) == expected


def test_no_base_template() -> None:
    """Without either name there is none."""
    assert [base_template_name(container_task(), settings()), template_spec(None)] == ["", {}]


@pytest.mark.parametrize(
    ("platform", "expected"),
    [pytest.param("flyte", ["p-d", "flyte"], id="two"), pytest.param("p-d", ["p-d"], id="one namespace for both")],
)
def test_base_template_namespaces(platform: str, expected: list[str]) -> None:
    """PodTemplates are looked up in the task's namespace, then in the platform's."""
    own = settings(kuberay={"platform-namespace": platform})
    assert base_template_namespaces(container_task(), own) == expected


MINE = base_template({"hostname": "task"}, name="mine")
THEIRS = base_template({"hostname": "platform"}, name="mine", namespace="flyte")
OTHER = base_template({"hostname": "other"}, name="mine", namespace="other")


@pytest.mark.parametrize(
    ("templates", "expected"),
    [
        pytest.param([THEIRS, MINE], MINE, id="the task's namespace first"),
        pytest.param([THEIRS, OTHER], THEIRS, id="then the platform's"),
        pytest.param([OTHER, base_template({}, name="another")], None, id="no other"),
    ],
)
def test_find_base_template(templates: list[Manifest], expected: Manifest | None) -> None:
    """The PodTemplate of the right name in the nearest namespace."""
    assert find_base_template(templates, NAMED, settings()) == expected


def named(*names: str) -> list[Manifest]:
    """Containers that differ in all but one key, which tells who wrote last."""
    return [{"name": name, "image": name, name: True} for name in names]


@pytest.mark.parametrize(
    ("name", "field", "expected"),
    [
        pytest.param(
            "main",
            "containers",
            {"image": "main", "default": True, "primary": True, "main": True},
            id="the primary: all three",
        ),
        pytest.param(
            "sidecar",
            "containers",
            {"image": "sidecar", "default": True, "sidecar": True},
            id="a sidecar: never `primary`",
        ),
        pytest.param("new", "containers", {"image": "default", "default": True}, id="one that the base does not know"),
        pytest.param(
            "setup", "initContainers", {"image": "setup", "default-init": True, "setup": True}, id="an init container"
        ),
        pytest.param("main", "initContainers", {"image": "default-init", "default-init": True}, id="lists do not mix"),
    ],
)
def test_base_container(name: str, field: str, expected: Manifest) -> None:
    """`default`, then `primary`, then the container of its name; the later wins."""
    base = {
        "containers": named("sidecar", "main", "primary", "default"),
        "initContainers": named("setup", "default-init"),
    }
    got = base_container(name, field, base, "main")
    assert {key: value for key, value in got.items() if key != "name"} == expected


def test_magic_names_count_once() -> None:
    """A task's container that is called `primary` takes the base's of that name once."""
    base = {"containers": [{"name": "primary", "env": [{"name": "A", "value": "1"}]}]}
    assert base_container("primary", "containers", base, "primary") == {
        "name": "primary",
        "env": [{"name": "A", "value": "1"}],
    }


@pytest.mark.parametrize(
    ("base", "spec", "expected"),
    [
        pytest.param({"hostname": "base"}, {}, {"hostname": "base"}, id="what the task does not say"),
        pytest.param(
            {"hostNetwork": True}, {"hostNetwork": False}, {"hostNetwork": False}, id="D4 the task wins, with false too"
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}], "tolerations": [{"key": "a"}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}], "tolerations": [{"key": "a"}, {"key": "b"}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}], "tolerations": [{"key": "a"}, {"key": "b"}]},
            id="D3 by the one merge",
        ),
        pytest.param(
            {"serviceAccount": "old"}, {}, {"serviceAccountName": "old"}, id="the old field of the service account"
        ),
        pytest.param({"dnsPolicy": "ClusterFirst"}, {}, {}, id="the API server's own default is no wish"),
        pytest.param({"dnsPolicy": "Default"}, {}, {"dnsPolicy": "Default"}, id="another DNS policy is"),
        pytest.param(
            {"containers": [{"name": "default", "tty": True}, {"name": "noop", "image": "noop"}]},
            {"containers": [{"name": "primary", "image": "i"}, {"name": "sidecar", "image": "s", "tty": False}]},
            {
                "containers": [
                    {"name": "primary", "image": "i", "tty": True},
                    {"name": "sidecar", "image": "s", "tty": False},
                ]
            },
            id="D1 containers of the base that match nothing go, as Flyte documents",
        ),
        pytest.param(
            {"initContainers": [{"name": "setup", "image": "x"}]},
            {},
            {},
            id="so do init containers that the task does not have",
        ),
    ],
)
def test_over_base(base: Manifest, spec: Manifest, expected: Manifest) -> None:
    """The task's pod over the base PodTemplate's."""
    assert over_base(spec, base, "primary") == expected


@pytest.mark.parametrize(
    ("task", "base", "expected"),
    [
        pytest.param(NAMED, MINE, [], id="it is there"),
        pytest.param(container_task(), None, [], id="the platform's may be absent"),
        pytest.param(
            NAMED,
            None,
            [
                "metadata.podTemplateName: no PodTemplate is called 'mine' in namespace 'p-d' or 'flyte'; "
                "create it there"
            ],
            id="the task's may not",
        ),
        pytest.param(
            container_task(metadata={"podTemplateName": "mine"}, execution={"namespace": "flyte"}),
            None,
            ["metadata.podTemplateName: no PodTemplate is called 'mine' in namespace 'flyte'; create it there"],
            id="one namespace is told once",
        ),
        pytest.param(
            NAMED,
            base_template({"containers": [{"image": "i"}]}, name="mine"),
            ["PodTemplate mine: template.spec.containers[0].name: the container has no name; give it one"],
            id="what is wrong within is told by its name",
        ),
        pytest.param(
            NAMED,
            base_template({"volumes": [{"$patch": "replace"}]}, name="mine"),
            [
                "PodTemplate mine: template.spec.volumes[0].$patch: 'replace' is no directive here; "
                "drop it, there is nothing under it to patch"
            ],
            id="nothing lies under it",
        ),
    ],
)
def test_base_problems(task: FlyteTask, base: Manifest | None, expected: list[str]) -> None:
    """What is wrong with the base PodTemplate."""
    assert [str(problem) for problem in base_problems(task, DEFAULT, base)] == expected
