"""What is refused of pod specs and metadata before the cluster sees them: designs D13, D21."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.errors import Problem
from flytekitplugins.kuberay.pod.checks import (
    final_pod_problems,
    metadata_problems,
    pod_spec_problems,
)
from flytekitplugins.kuberay.wire import Manifest

VARIABLE = "is no name of an environment variable; use printable characters but '='"
LABEL = "use lower-case letters, digits and '-', at most 63"


def nested(depth: int) -> Any:
    """Lists within lists."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [{"name": "c"}]}, [], id="the smallest"),
        pytest.param(
            {"containers": [{"image": "i"}]},
            ["spec.containers[0].name: the container has no name; give it one"],
            id="D21 a container without a name",
        ),
        pytest.param(
            {"containers": [{"name": "C_1"}]},
            [f"spec.containers[0].name: 'C_1' is no DNS label; {LABEL}"],
            id="D21 a container's name",
        ),
        pytest.param(
            {"containers": [{"name": "c"}], "initContainers": [{"name": "c"}]},
            ["spec.containers[0].name: 'c' is the name of spec.initContainers[0] too; rename one of them"],
            id="D21 two containers of one name, in whichever lists",
        ),
        pytest.param(
            {"containers": [{"name": "c", "env": [{"name": "A=B"}, {"value": "x"}, {"name": "a.b-c"}]}]},
            [
                f"spec.containers[0].env[0].name: 'A=B' {VARIABLE}",
                f"spec.containers[0].env[1].name: '' {VARIABLE}",
            ],
            id="D21 names of variables",
        ),
        pytest.param(
            {"volumes": [{"name": "A"}, {}]},
            [
                f"spec.volumes[0].name: 'A' is no DNS label; {LABEL}",
                f"spec.volumes[1].name: None is no DNS label; {LABEL}",
            ],
            id="D21 names of volumes",
        ),
        pytest.param(
            {"volumes": [{"name": "v"}, {"name": "w"}, {"name": "v"}]},
            ["spec.volumes[2]: has the same name 'v' as volumes[0]; keep one of them"],
            id="D13 a volume twice",
        ),
        pytest.param(
            {
                "containers": [
                    {"name": "c", "volumeMounts": [{"mountPath": "/a", "name": "x"}, {"mountPath": "/a", "name": "y"}]}
                ]
            },
            ["spec.containers[0].volumeMounts[1]: has the same mountPath '/a' as volumeMounts[0]; keep one of them"],
            id="D13 a mount path twice",
        ),
        pytest.param(
            {"initContainers": [{"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]},
            ["spec.initContainers[0].env[1]: has the same name 'A' as env[0]; keep one of them"],
            id="a variable twice in one list",
        ),
        pytest.param(
            {"containers": [{"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]}]},
            [
                "spec.containers[0].ports[1]: has the same containerPort 80, protocol 'TCP' as ports[0]; "
                "keep one of them",
            ],
            id="a port twice, in other words",
        ),
        pytest.param(
            {"containers": [{"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]}]},
            [],
            id="a port for two protocols",
        ),
        pytest.param(
            {
                "containers": [{"name": "a", "$patch": "delete"}, {"$patch": "replace"}],
                "volumes": [{"$patch": "replace"}],
            },
            [],
            id="directives of a merge",
        ),
        pytest.param(
            {"containers": [{"name": "a", "$patch": "remove"}]},
            ["spec.containers[0].$patch: 'remove' is no directive here; use one of replace, delete, merge"],
            id="an unknown directive",
        ),
        pytest.param(
            {"env": True, "ports": [{"containerPort": []}, {"containerPort": []}]},
            [],
            id="what a pod has no field for is left alone, whatever it holds",
        ),
        pytest.param(
            {"hostname": 5, "containers": [{}]},
            ["spec.hostname: must be text, got 5; see the field in Kubernetes' documentation of a pod"],
            id="wrong types first: names mean nothing then",
        ),
        pytest.param(
            nested(2000),
            ["spec: is nested more than 40 levels deep; no field of a pod is"],
            id="a value that nests without end",
        ),
    ],
)
def test_pod_spec_problems(spec: Any, expected: list[str]) -> None:
    """A pod spec as somebody wrote it: all that is wrong, each with its path and remedy."""
    assert [str(problem) for problem in pod_spec_problems(spec, "spec")] == expected


def test_no_directives() -> None:
    """Where a pod spec goes on top of none, a directive is a mistake."""
    problems = pod_spec_problems({"volumes": [{"$patch": "replace"}]}, "spec", directives=())
    expected = "spec.volumes[0].$patch: 'replace' is no directive here; drop it, there is nothing under it to patch"
    assert [str(problem) for problem in problems] == [expected]


def asking(requests: Manifest, limits: Manifest) -> Manifest:
    """A container with these amounts."""
    return {"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}


MOUNTING = {"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [MOUNTING], "volumes": [{"name": "v"}]}, [], id="a whole pod"),
        pytest.param(
            {"containers": [{"name": "c"}]},
            [Problem("head: container 'c'", "has no image", "give it one, or name it as a container that has one")],
            id="D21 no image",
        ),
        pytest.param(
            {"containers": [{"name": "c", "image": "i"}], "initContainers": [{"name": "c", "image": "i"}]},
            [Problem("head", "2 containers of the pod are called 'c'", "rename all but one")],
            id="two containers of one name",
        ),
        pytest.param(
            {"containers": [MOUNTING]},
            [Problem("head: container 'c' mounts '/v'", "no volume is called 'v'", "add it to the pod's volumes")],
            id="D13 a mount without a volume",
        ),
        pytest.param(
            {"containers": [MOUNTING], "volumes": [{"name": "v"}, {"name": "w"}, {"name": "v"}]},
            [Problem("head.volumes[2]", "has the same name 'v' as volumes[0]", "keep one of them")],
            id="D13 a volume twice",
        ),
        pytest.param(
            {"containers": [asking({"example.com/fpga": "1", "cpu": "1"}, {"example.com/fpga": "2", "cpu": "2"})]},
            [
                Problem(
                    "head: container 'c'",
                    "requests 1 of example.com/fpga, and its limit is 2",
                    "write one of them: they have to be equal",
                )
            ],
            id="an extended resource with a request below its limit",
        ),
        pytest.param(
            {"containers": [asking({"example.com/fpga": "1", "cpu": "1"}, {"example.com/fpga": 1000e-3, "cpu": "0"})]},
            [],
            id="amounts that are equal in other words, and a limit of 0 for none",
        ),
        pytest.param(
            {"containers": [{"name": "d", "image": "i"}]},
            [Problem("head", "has no container 'c' left", "merge with it: don't delete or replace it")],
            id="D21 the container that matters is gone",
        ),
    ],
)
def test_final_pod_problems(spec: Manifest, expected: list[Problem]) -> None:
    """A pod after all merges: what only then can be seen."""
    assert list(final_pod_problems(spec, "c", "head")) == expected


def test_metadata_problems() -> None:
    """Invalid keys of labels and annotations, and annotations larger than Kubernetes takes, at once."""
    problems = metadata_problems({"a b": "x"}, {"c/d/e": "y" * 262144}, "k8sPod.metadata")
    assert [(problem.path, problem.what) for problem in problems] == [
        ("k8sPod.metadata.labels", "'a b' is no valid key"),
        ("k8sPod.metadata.annotations", "'c/d/e' is no valid key"),
        ("k8sPod.metadata.annotations", "hold 262149 bytes, more than Kubernetes' 262144"),
    ]


FIELDS = ["containers", "initContainers", "env", "ports", "volumes", "name", "$patch", "volumeMounts", "x"]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=12,
)


@hypothesis.settings(deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), anything, max_size=4))
def test_anything_gets_an_answer(value: Manifest) -> None:
    """Whatever stands in a pod spec, the checks answer with paths below its own and do not fail."""
    problems = pod_spec_problems(value, "spec")
    assert [problem.path for problem in problems if not problem.path.startswith("spec")] == []
