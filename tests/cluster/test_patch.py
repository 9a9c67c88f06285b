"""The last word on a RayJob."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.cluster.patch import patched_problems, ready_for_api, with_patches
from flytekitplugins.kuberay.wire import Manifest

OWN = {"kuberay.flyte.org/attempt-key": "k"}
RESOURCES_REMEDY = """write a text as '{"name": 1}'"""
JOB: Manifest = {
    "apiVersion": "ray.io/v1",
    "kind": "RayJob",
    "metadata": {"name": "n", "namespace": "ns", "labels": {**OWN, "a": "1"}, "annotations": {}},
    "spec": {"suspend": False, "rayClusterSpec": {"workerGroupSpecs": [{"groupName": "w", "replicas": 1}]}},
}


def test_patches_reach_any_field() -> None:
    """A group is patched by its name, a new field comes in, and the later patch wins."""
    group = {"rayClusterSpec": {"workerGroupSpecs": [{"groupName": "w", "numOfHosts": 2}]}}
    got = with_patches(JOB, [{"spec": {"suspend": True, **group}}, None, {"spec": {"suspend": None}}])
    groups = [{"groupName": "w", "replicas": 1, "numOfHosts": 2}]
    assert got == {**JOB, "spec": {"rayClusterSpec": {"workerGroupSpecs": groups}}}


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"kind": "Pod", "apiVersion": "v1"}, id="another kind"),
        pytest.param({"metadata": {"name": "other", "namespace": "other"}}, id="another name"),
        pytest.param({"metadata": {"labels": dict.fromkeys(OWN, "x")}}, id="our labels' values"),
        pytest.param({"metadata": {"labels": dict.fromkeys(OWN)}}, id="our labels"),
        pytest.param({"metadata": {"labels": {"$patch": "replace", "a": "1"}}}, id="all labels"),
    ],
)
def test_a_patch_keeps_identity(patch: Manifest) -> None:
    """By its name and our labels the RayJob is found again, so no patch changes them."""
    assert with_patches(JOB, [patch]) == JOB


@pytest.mark.parametrize(
    "patch", [pytest.param({"metadata": None}, id="null"), pytest.param({"metadata": []}, id="a list")]
)
def test_identity_outlives_metadata(patch: Manifest) -> None:
    """What a patch leaves of no metadata is our own."""
    expected = {"name": "n", "namespace": "ns", "labels": OWN, "annotations": {}}
    assert with_patches(JOB, [patch])["metadata"] == expected


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        pytest.param({"spec": None}, "rayJobPatch.spec: leaves None of the RayJob's spec", id="no spec"),
        pytest.param(
            {"spec": {"rayClusterSpec": "x"}},
            "rayJobPatch.spec.rayClusterSpec: leaves 'x' of the cluster's spec",
            id="a text for the cluster",
        ),
    ],
)
def test_a_patch_that_leaves_no_ray_job_is_told(patch: Manifest, told: str) -> None:
    """What is built on must be there."""
    problems = list(patched_problems(ready_for_api(with_patches(JOB, [patch])), JOB))
    assert [str(problem) for problem in problems] == [f"{told}; patch its fields, not all of it at once"]


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"spec": {"rayClusterSpec": None, "clusterSelector": {"a": "b"}}}, id="another's cluster"),
    ],
)
def test_a_patch_may_do_without_a_cluster(patch: Manifest) -> None:
    """A clusterSelector takes its place."""
    assert list(patched_problems(ready_for_api(with_patches(JOB, [patch])), JOB)) == []


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param(
            {"runtimeEnvYAML": "a: hunter2\nb: [hunter2"},
            ["rayJobPatch.spec.runtimeEnvYAML: is no YAML (line 2); write a mapping as YAML"],
            id="no YAML",
        ),
        pytest.param(
            {"runtimeEnvYAML": "- hunter2"},
            ["rayJobPatch.spec.runtimeEnvYAML: is not a mapping; write a mapping as YAML"],
            id="a list",
        ),
        pytest.param(
            {"entrypointResources": "hunter2"},
            [f"rayJobPatch.spec.entrypointResources: is no JSON object; {RESOURCES_REMEDY}"],
            id="resources that are no JSON",
        ),
        pytest.param(
            {"entrypointResources": "[1]"},
            [f"rayJobPatch.spec.entrypointResources: is no JSON object; {RESOURCES_REMEDY}"],
            id="a list of resources",
        ),
        pytest.param({"runtimeEnvYAML": "pip: [a]", "entrypointResources": '{"a": 1}'}, [], id="both well"),
        pytest.param({"runtimeEnvYAML": "", "entrypointResources": ""}, [], id="both empty"),
        pytest.param({"runtimeEnvYAML": {"pip": []}, "entrypointResources": {"a": 1}}, [], id="no texts: the API's"),
    ],
)
def test_texts_that_ray_could_not_read_are_told(spec: Manifest, told: list[str]) -> None:
    """Before a cluster is started for them, and without their content, which may be secret."""
    assert [str(problem) for problem in patched_problems(with_patches(JOB, [{"spec": spec}]), JOB)] == told


def test_what_no_patch_has_said_is_no_fault_of_it() -> None:
    """The task's own runtime environment was looked at when it was read."""
    job = {**JOB, "spec": {"runtimeEnvYAML": "- a"}}
    assert list(patched_problems(job, job)) == []


def test_ready_for_api() -> None:
    """Nulls go, and a fraction is text: as a number the API server takes none."""
    assert ready_for_api({"a": None, "b": [{"c": None, "cpu": 0.5}], "d": 1}) == {"b": [{"cpu": "0.5"}], "d": 1}


def test_the_drivers_share_of_a_cpu_is_a_number() -> None:
    """As text the API server takes neither."""
    spec = {"entrypointNumCpus": 0.5, "entrypointNumGpus": 0.25}
    assert ready_for_api({"spec": spec}) == {"spec": spec}
