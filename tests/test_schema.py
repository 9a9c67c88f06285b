"""The types of a pod spec's fields, and how a wrong one is told."""

from __future__ import annotations

from typing import Any

import pytest

from flytekitplugins.kuberay.schema import name_problems, type_problems

SEE = "see the field in Kubernetes' documentation of a pod"
VALID = {
    "containers": [
        {
            "name": "c",
            "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": 2, "memory": "1Gi"}},
            "livenessProbe": {"httpGet": {"port": "http"}},
            "tty": True,
        }
    ],
    "nodeSelector": {"a": "b"},
    "tolerations": [{"tolerationSeconds": 5}],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    "hostNetwork": None,
    "fieldOfTheFuture": {"any": ["thing"]},
}


def test_a_valid_spec() -> None:
    """Known fields of the right type, nulls and unknown fields are no problem."""
    assert list(type_problems(VALID, "spec")) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param([], "spec: must be a mapping, got a value of type list", id="no mapping"),
        pytest.param(
            {"containers": {"name": "c"}}, "spec.containers: must be a list, got a value of type dict", id="no list"
        ),
        pytest.param(
            {"containers": ["c"]},
            "spec.containers[0]: must be a mapping, got a value of type str",
            id="an entry that is no mapping",
        ),
        pytest.param(
            {"containers": [None]}, "spec.containers[0]: must be an entry, got None", id="an entry that is null"
        ),
        pytest.param({"hostname": 5}, "spec.hostname: must be text, got 5", id="a number for text"),
        pytest.param({"priority": "5"}, "spec.priority: must be a whole number, got '5'", id="text for a number"),
        pytest.param(
            {"priority": 5.5}, "spec.priority: must be a whole number, got 5.5", id="a fraction for a whole number"
        ),
        pytest.param(
            {"priority": True}, "spec.priority: must be a whole number, got True", id="a boolean for a number"
        ),
        pytest.param(
            {"hostNetwork": "yes"}, "spec.hostNetwork: must be true or false, got 'yes'", id="text for a boolean"
        ),
        pytest.param({"hostNetwork": 0}, "spec.hostNetwork: must be true or false, got 0", id="a number for a boolean"),
        pytest.param(
            {"nodeSelector": ["a"]},
            "spec.nodeSelector: must be a mapping, got a value of type list",
            id="a list for a map",
        ),
        pytest.param(
            {"nodeSelector": {"a": 1}}, "spec.nodeSelector[a]: must be text, got 1", id="a number in a map of texts"
        ),
        pytest.param(
            {"overhead": {"cpu": "a lot"}},
            "spec.overhead[cpu]: must be a quantity such as 500m or 4Gi, got 'a lot'",
            id="no quantity",
        ),
        pytest.param(
            {"volumes": [{"emptyDir": {"sizeLimit": "big"}}]},
            "spec.volumes[0].emptyDir.sizeLimit: must be a quantity such as 500m or 4Gi, got 'big'",
            id="no quantity deep within",
        ),
        pytest.param(
            {"priority": "x" * 99},
            f"spec.priority: must be a whole number, got '{'x' * 79}...",
            id="a long value is cut",
        ),
    ],
)
def test_wrong_types(spec: Any, expected: str) -> None:
    """A value of the wrong type is told with its path, what it must be, and what it is."""
    assert [str(problem) for problem in type_problems(spec, "spec")] == [f"{expected}; {SEE}"]


ENV = 'write [{"name": ..., "value": ...}]'


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        pytest.param(
            {"env": [{"name": "TOKEN", "value": 5}]},
            f"env[0].value: must be text, got a value of type int; {SEE}",
            id="a value",
        ),
        pytest.param({"env": {"TOKEN": "abc"}}, f"env: must be a list, got a value of type dict; {ENV}", id="a dict"),
        pytest.param({"env": "TOKEN=abc"}, f"env: must be a list, got a value of type str; {ENV}", id="text"),
        pytest.param({"env": ["TOKEN=abc"]}, f"env[0]: must be a mapping, got a value of type str; {ENV}", id="texts"),
        pytest.param({"args": "--token=abc"}, f"args: must be a list, got a value of type str; {SEE}", id="arguments"),
        pytest.param(
            {"command": ["a", 5]}, f"command[1]: must be text, got a value of type int; {SEE}", id="a command"
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"exec": {"command": [5]}}}},
            f"lifecycle.preStop.exec.command[0]: must be text, got a value of type int; {SEE}",
            id="a handler's command",
        ),
    ],
)
def test_what_may_be_a_secret_is_not_shown(container: Any, expected: str) -> None:
    """Nothing of what stands under env, args and command, and nothing of a dict or list."""
    got = [str(problem) for problem in type_problems({"containers": [container]}, "spec")]
    assert got == [f"spec.containers[0].{expected}"]


def test_all_problems_at_once() -> None:
    """Each wrong field is told, not only the first."""
    spec = {"hostname": 5, "containers": [{"name": 1, "env": {}}, {"tty": "x"}]}
    assert [problem.path for problem in type_problems(spec, "spec")] == [
        "spec.hostname",
        "spec.containers[0].name",
        "spec.containers[0].env",
        "spec.containers[1].tty",
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"container": [], "nodeselector": {}},
            ["spec.container: is no field of Kubernetes; write containers"]
            + ["spec.nodeselector: is no field of Kubernetes; write nodeSelector"],
            id="nearly a field",
        ),
        pytest.param(
            {"host_network": True, "containers": [{"volume_mount": [], "volumeMounts": [{"mount_path": "/x"}]}]},
            ["spec.host_network: is no field of Kubernetes; write hostNetwork"]
            + ["spec.containers[0].volume_mount: is no field of Kubernetes; write volumeMounts"]
            + ["spec.containers[0].volumeMounts[0].mount_path: is no field of Kubernetes; write mountPath"],
            id="Python's names, at any depth",
        ),
        pytest.param(
            {"containers": [{"env": [{"API_TOKEN=abc": ""}]}]},
            ["spec.containers[0].env[0].API_TOKEN=...: is no field of Kubernetes; write APIToken=..."],
            id="what may be a secret",
        ),
        pytest.param({"no_such": 1}, ["spec.no_such: is no field of Kubernetes; write noSuch"], id="like no field"),
        pytest.param(VALID, [], id="a field of the future"),
        pytest.param(
            {"nodeSelector": {"node_selector": "x"}, "overhead": {"cpus": "1"}, "containers": [{"$patch": "replace"}]},
            [],
            id="keys of a user's own, and a directive",
        ),
        pytest.param([], [], id="another type, of which type_problems tells"),
    ],
)
def test_wrong_names(spec: Any, expected: list[str]) -> None:
    """A key that an API server would drop in silence is told, with the field that is meant."""
    assert [str(problem) for problem in name_problems(spec, "spec")] == expected


def test_a_directive_is_no_entry() -> None:
    """`$patch` fits wherever a map does."""
    spec = {"overhead": {"$patch": "replace", "cpu": "1"}, "containers": [{"$patch": "delete", "name": "x"}]}
    assert list(type_problems(spec, "spec")) == []


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        pytest.param("V1ResourceRequirements", {"limits": {"cpu": "x"}}, ["at.limits[cpu]"], id="a type by its name"),
        pytest.param("{}quantity", {"cpu": "1"}, [], id="a map"),
        pytest.param("any", {1: object}, [], id="anything"),
    ],
)
def test_a_part_of_a_spec(kind: str, value: Any, expected: list[str]) -> None:
    """Parts of a pod spec are checked by the name of their type."""
    assert [problem.path for problem in type_problems(value, "at", kind)] == expected
