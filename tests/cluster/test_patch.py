"""The last word on a RayJob."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.cluster.patch import ready_for_api, with_patches
from flytekitplugins.kuberay.wire import Manifest

OWN = {"kuberay.flyte.org/attempt-key": "k"}
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


def test_ready_for_api() -> None:
    """Nulls go, and a fraction is text: as a number the API server takes none."""
    assert ready_for_api({"a": None, "b": [{"c": None, "cpu": 0.5}], "d": 1}) == {"b": [{"cpu": "0.5"}], "d": 1}
