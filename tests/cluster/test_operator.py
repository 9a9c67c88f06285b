"""A RayJob fitted to what the cluster's KubeRay knows; real CRDs are in tests/connector/test_versions.py."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.cluster.operator import (
    Fitted,
    Operator,
    fitted,
    operator_of,
)
from flytekitplugins.kuberay.errors import TaskError
from flytekitplugins.kuberay.wire import Manifest

TEXT: Manifest = {"type": "string"}
QUANTITY: Manifest = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def obj(**properties: Manifest) -> Manifest:
    """The schema of an object."""
    return {"type": "object", "properties": properties}


def listed(item: Manifest) -> Manifest:
    """The schema of a list."""
    return {"type": "array", "items": item}


def schema(*newer: str) -> Manifest:
    """A RayJob's schema, small, as KubeRay 1.3 has it, with fields that newer versions have.

    Args:
        newer: Paths.
    """
    container = obj(name=TEXT, env=listed(obj(name=TEXT, valueFrom=obj(fieldRef=obj(fieldPath=TEXT)))))
    template = obj(metadata=obj(labels={"additionalProperties": TEXT}), spec=obj(containers=listed(container)))
    cluster = obj(
        headGroupSpec=obj(template=template),
        workerGroupSpecs=listed(obj(groupName=TEXT, template=template)),
        autoscalerOptions=obj(
            idleTimeoutSeconds={"type": "integer"}, resources=obj(limits={"additionalProperties": QUANTITY})
        ),
    )
    whole = obj(
        apiVersion=TEXT,
        kind=TEXT,
        metadata={"allOf": [{"$ref": "x"}]},
        spec=obj(submissionMode=TEXT, rayClusterSpec=cluster),
    )
    for path in newer:
        *parents, name = path.split(".")
        place = whole
        for parent in parents:
            place = place["properties"][parent]
        place["properties"][name] = obj(mode=TEXT)
    return whole


NEWER = {
    "1.3": (),
    "1.4": ("spec.rayClusterSpec.autoscalerOptions.version",),
    "1.5": ("spec.rayClusterSpec.autoscalerOptions.version", "spec.rayClusterSpec.authOptions"),
    "1.6": ("spec.rayClusterSpec.authOptions", "spec.preRunningDeadlineSeconds"),
}
"""By version, what tells it."""
OPERATORS = {version: operator_of(schema(*newer)) for version, newer in NEWER.items()}


def job(cluster: Manifest | None = None, **spec: Any) -> Manifest:
    """A RayJob with these fields."""
    spec = {"submissionMode": "K8sJobMode", "rayClusterSpec": cluster or {}, **spec}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "j", "labels": {"a": "b"}}, "spec": spec}


def pod(**fields: Any) -> Manifest:
    """A pod template of one container with these fields."""
    return {"spec": {"containers": [{"name": "ray-head", **fields}]}}


@pytest.mark.parametrize("version", NEWER)
def test_a_version_is_known_by_its_fields(version: str) -> None:
    """By those that came with it."""
    assert OPERATORS[version].version == version


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param({}, id="no schema at all"),
        pytest.param(
            obj(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True}), id="a spec of anything"
        ),
        pytest.param(
            obj(spec=obj(submissionMode=TEXT, rayClusterSpec={"type": "object"})),
            id="a cluster of which nothing is said",
        ),
    ],
)
def test_a_schema_that_says_little_tells_no_version(cut: Manifest) -> None:
    """Some cut the CRD, for it is large. Then nothing is left out, and nothing is refused."""
    operator = operator_of(cut)
    whole = job({"authOptions": {"mode": "token"}}, submissionMode="SidecarMode")
    assert operator.version == ""
    assert fitted(whole, operator) == Fitted(whole)


def test_nothing_is_left_out_where_nothing_is_known() -> None:
    """The API server tells what it drops."""
    whole = job({"authOptions": {"mode": "token"}}, submissionMode="SidecarMode", anything=1)
    assert fitted(whole, Operator()) == Fitted(whole)


@pytest.mark.parametrize(
    ("cluster", "kept", "lost"),
    [
        pytest.param({"headGroupSpec": {"template": pod()}}, None, "", id="all is known"),
        pytest.param(
            {"upgradeStrategy": {"type": "None"}},
            {},
            "spec.rayClusterSpec.upgradeStrategy (since KubeRay 1.6)",
            id="an object",
        ),
        pytest.param(
            {"headGroupSpec": {"labels": {"a": "b"}, "template": pod()}},
            {"headGroupSpec": {"template": pod()}},
            "head: labels (since KubeRay 1.5)",
            id="a field of the head",
        ),
        pytest.param(
            {"workerGroupSpecs": [{"groupName": "a"}, {"groupName": "b", "resources": {"x": "1"}}]},
            {"workerGroupSpecs": [{"groupName": "a"}, {"groupName": "b"}]},
            "worker group b: resources (since KubeRay 1.5)",
            id="a field of one of the items of a list",
        ),
        pytest.param(
            {"headGroupSpec": {"template": pod(restartPolicyRules=[], notYet=1)}},
            {"headGroupSpec": {"template": pod()}},
            "head: template.spec.containers[ray-head].restartPolicyRules (since KubeRay 1.5),"
            " head: template.spec.containers[ray-head].notYet",
            id="two of a container, one that no version has",
        ),
        pytest.param(
            {"headGroupSpec": {"template": {"metadata": {"labels": {"a.b/c": "d"}}}}},
            None,
            "",
            id="the keys of a map are the user's own",
        ),
        pytest.param(
            {"autoscalerOptions": {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}},
            None,
            "",
            id="numbers and texts of a map stay",
        ),
        pytest.param(
            {"headGroupSpec": {"template": "odd"}, "workerGroupSpecs": {"template": 1}},
            None,
            "",
            id="what is of another type is left to the API server",
        ),
        pytest.param(
            {"authOptions": {"mode": "disabled"}},
            {},
            "spec.rayClusterSpec.authOptions (since KubeRay 1.5)",
            id="no authentication, where there is none",
        ),
    ],
)
def test_what_is_not_known_is_left_out_and_told(cluster: Manifest, kept: Manifest | None, lost: str) -> None:
    """In the user's words, with the first version that has it; the RayJob that was given stays as it is."""
    whole = job(cluster)
    before = deepcopy(whole)
    told = f"without effect, since this cluster's KubeRay 1.3 or older does not know it: {lost}" if lost else ""
    assert fitted(whole, OPERATORS["1.3"]) == Fitted(job(cluster if kept is None else kept), told)
    assert whole == before


@pytest.mark.parametrize(
    ("version", "named"),
    [
        pytest.param("1.4", "KubeRay 1.4", id="one between"),
        pytest.param("1.6", "KubeRay 1.6 or newer", id="the newest that is told apart"),
        pytest.param("1.3", "KubeRay 1.3 or older", id="the oldest"),
    ],
)
def test_the_clusters_version_is_named(version: str, named: str) -> None:
    """As far as it is known."""
    assert f"since this cluster's {named} does not know it: spec.odd" in fitted(job(odd=1), OPERATORS[version]).lost


FIELD_OF_FILE = {"fileKeyRef": {"path": "x"}}


@pytest.mark.parametrize(
    ("whole", "version", "expected"),
    [
        pytest.param(
            job({"authOptions": {"mode": "token"}}),
            "1.4",
            "spec.rayClusterSpec.authOptions: is not known to this cluster's KubeRay 1.4 (since KubeRay 1.5);"
            " without it everybody in the cluster's network could run code on the Ray cluster; have KubeRay upgraded,"
            " or take back plugins.kuberay.ray-auth or what ray_job_patch says",
            id="a token that nobody would ask for",
        ),
        pytest.param(
            job(deletionStrategy={"deletionRules": []}, shutdownAfterJobFinishes=False),
            "1.4",
            "spec.deletionStrategy: is not known to this cluster's KubeRay 1.4 (since KubeRay 1.5); without it nothing"
            " would end the Ray cluster; set shutdownAfterJobFinishes",
            id="a cluster that nothing would end",
        ),
        pytest.param(
            job(deletionPolicy="DeleteSelf"),
            "1.5",
            "spec.deletionPolicy: is not known to this cluster's KubeRay 1.5 (until KubeRay 1.4); without it nothing"
            " would end the Ray cluster; write deletionStrategy",
            id="the same as an older version said it",
        ),
        pytest.param(
            job({"headGroupSpec": {"template": pod(env=[{"name": "A", "valueFrom": FIELD_OF_FILE}])}}),
            "1.4",
            "head: template.spec.containers[ray-head].env[A].valueFrom.fileKeyRef: is not known to this cluster's"
            " KubeRay 1.4 (since KubeRay 1.5); without it the pod can't be made; have KubeRay upgraded",
            id="a pod that would be refused",
        ),
        pytest.param(
            job(submissionMode="SidecarMode"),
            "1.4",
            "spec.submissionMode: is SidecarMode, which this cluster's KubeRay 1.4 does not know (since KubeRay 1.5);"
            " write K8sJobMode or HTTPMode as submission_mode or plugins.kuberay.submission-mode",
            id="a job that nobody would submit",
        ),
    ],
)
def test_what_a_task_needs_is_refused(whole: Manifest, version: str, expected: str) -> None:
    """The field, the version that has it, what would become of the task, and what to do."""
    with pytest.raises(TaskError) as caught:
        fitted(whole, OPERATORS[version])
    assert str(caught.value) == expected


def test_all_that_is_refused_comes_at_once() -> None:
    """As problems of one error."""
    with pytest.raises(TaskError) as caught:
        fitted(job({"authOptions": {"mode": "token"}}, submissionMode="SidecarMode"), OPERATORS["1.3"])
    assert [problem.path for problem in caught.value.problems] == [
        "spec.submissionMode",
        "spec.rayClusterSpec.authOptions",
    ]


@pytest.mark.parametrize(
    ("whole", "version"),
    [
        pytest.param(job(submissionMode="SidecarMode"), "1.5", id="SidecarMode since 1.5"),
        pytest.param(job({"authOptions": {"mode": "token"}}), "1.6", id="a token since 1.5"),
        pytest.param(
            job(deletionPolicy="x", shutdownAfterJobFinishes=True), "1.6", id="a cluster that ends all the same"
        ),
    ],
)
def test_what_a_task_does_not_need_is_not_refused(whole: Manifest, version: str) -> None:
    """Known, or no harm without it."""
    assert fitted(whole, OPERATORS[version]).manifest["spec"]["rayClusterSpec"] == whole["spec"]["rayClusterSpec"]


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["spec", "rayClusterSpec", "headGroupSpec", "template", "containers", "x"]), inner
        )
    ),
)


@given(VALUES)
def test_twice_is_once(value: Any) -> None:
    """Whatever stands in it: what is fitted fits."""
    once = fitted(job(value, shutdownAfterJobFinishes=True), OPERATORS["1.3"]).manifest
    assert fitted(once, OPERATORS["1.3"]) == Fitted(once)
