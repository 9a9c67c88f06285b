"""Requests and limits: where each amount comes from, and what caps it."""

from __future__ import annotations

from typing import Any

import pytest
from flyteidl.core.tasks_pb2 import Resources
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.pod.resources import (
    from_flyte,
    requested_names,
    with_gpu_name,
    with_missing,
    with_sides_agreeing,
    within_platform,
)
from flytekitplugins.kuberay.wire import Manifest
from tests.pod.samples import settings


GPU = "nvidia.com/gpu"


def test_from_flyte() -> None:
    """Resources of flyteidl get Kubernetes' names, a GPU the name `gpu`; zero and unknown names count as not set."""
    resources = {
        "requests": [
            {"name": "CPU", "value": "500m"},
            {"name": "MEMORY", "value": "1Gi"},
            {"name": "EPHEMERAL_STORAGE", "value": "2Gi"},
            {"name": "STORAGE", "value": "3Gi"},
        ],
        "limits": [{"name": "CPU", "value": "0"}, {"name": "GPU", "value": "2"}],
    }
    assert from_flyte(ParseDict(resources, Resources())) == {
        "requests": {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "2Gi"},
        "limits": {"gpu": "2"},
    }


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(
            {"requests": {"gpu": "1", "cpu": "2"}, "limits": {"gpu": 1}},
            {"requests": {"amd.com/gpu": "1", "cpu": "2"}, "limits": {"amd.com/gpu": 1}},
            id="D24 gpu takes the configured name on both sides",
        ),
        pytest.param(
            {"limits": {"gpu": "2", "amd.com/gpu": "1"}},
            {"limits": {"amd.com/gpu": "2"}},
            id="and beats that name's own",
        ),
        pytest.param({"claims": [{"name": "c"}]}, {"claims": [{"name": "c"}]}, id="claims stay, no side is made up"),
    ],
)
def test_with_gpu_name(resources: Manifest, expected: Manifest) -> None:
    """`gpu` is flytekit's word for what the platform calls by another name."""
    assert with_gpu_name(resources, settings(k8s={"gpu-resource-name": "amd.com/gpu"})) == expected


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param({"limits": None}, {"requests": {GPU: "1", "cpu": "2"}, "limits": {}}, id="a side"),
        pytest.param(
            {"limits": {"$patch": "replace", "cpu": "1"}},
            {"requests": {GPU: "1", "cpu": "2"}, "limits": {"$patch": "replace", "cpu": "1"}},
            id="a side, by a directive",
        ),
        pytest.param(
            {"limits": {GPU: None}},
            {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}},
            id="an extended resource on one side: it has none without the other",
        ),
        pytest.param(
            {"requests": {GPU: None}, "limits": {GPU: "2"}},
            {"requests": {GPU: None, "cpu": "2"}, "limits": {GPU: "2", "cpu": "3"}},
            id="not where the other side is given",
        ),
    ],
)
def test_with_missing_and_nulls(own: Manifest, expected: Manifest) -> None:
    """D4 (design): what a null, or a directive, takes away does not come from the fallback."""
    fallback = {"requests": {GPU: "1", "cpu": "2"}, "limits": {GPU: "1", "cpu": "3"}}
    assert with_missing(own, fallback) == expected


def test_with_missing() -> None:
    """What a side lacks comes from the fallback, key by key."""
    own = {"requests": {"cpu": "1"}, "claims": [{"name": "c"}]}
    fallback = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "3"}}
    assert with_missing(own, fallback) == {
        "requests": {"cpu": "1", "memory": "2Gi"},
        "limits": {"cpu": "3"},
        "claims": [{"name": "c"}],
    }


@pytest.mark.parametrize(
    ("resources", "platform", "expected"),
    [
        pytest.param(
            {},
            {},
            {"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": {"cpu": "1000m", "memory": "1024Mi"}},
            id="nothing set: the settings' defaults on both sides",
        ),
        pytest.param(
            {},
            {"requests": {"cpu": "250m"}},
            {"requests": {"cpu": "250m", "memory": "1024Mi"}, "limits": {"cpu": "250m", "memory": "1024Mi"}},
            id="platform-resources' requests before the settings' defaults",
        ),
        pytest.param(
            {"requests": {"cpu": "2"}, "limits": {"memory": "4Gi"}},
            {},
            {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "2", "memory": "4Gi"}},
            id="a side that is not set follows the other",
        ),
        pytest.param(
            {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "4", "memory": "2Gi"}},
            {"limits": {"cpu": "3", "memory": "3Gi"}},
            {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "3", "memory": "2Gi"}},
            id="limits are lowered to the platform's, never raised",
        ),
        pytest.param(
            {"requests": {"cpu": "8", "memory": "1Gi"}, "limits": {"cpu": "8", "memory": "1Gi"}},
            {"limits": {"cpu": "3"}},
            {"requests": {"cpu": "3", "memory": "1Gi"}, "limits": {"cpu": "3", "memory": "1Gi"}},
            id="requests are lowered with them",
        ),
        pytest.param(
            {"requests": {"cpu": "3", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
            {},
            {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
            id="a request is lowered to its limit",
        ),
        pytest.param(
            {"requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "4"}},
            {"limits": {"nvidia.com/gpu": "2"}},
            {
                "requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"},
                "limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"},
            },
            id="GPUs are mirrored and capped",
        ),
        pytest.param(
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"gpu": "8", GPU: "8"}},
            {"limits": {"gpu": "2"}},
            {
                "requests": {"cpu": "1", "memory": "1Gi", GPU: "2"},
                "limits": {"cpu": "1", "memory": "1Gi", "gpu": "8", GPU: "2"},
            },
            id="a platform's limit of `gpu`, in flyteadmin's words, is one of GPUs",
        ),
        pytest.param(
            {"limits": {"ephemeral-storage": "1Gi", "cpu": "1", "memory": "1Gi"}},
            {},
            {
                "requests": {"ephemeral-storage": "1Gi", "cpu": "1", "memory": "1Gi"},
                "limits": {"ephemeral-storage": "1Gi", "cpu": "1", "memory": "1Gi"},
            },
            id="ephemeral storage is mirrored where it is named",
        ),
        pytest.param(
            {"limits": {"example.com/fpga": "1"}},
            {},
            {
                "requests": {"cpu": "1000m", "memory": "1024Mi"},
                "limits": {"cpu": "1000m", "memory": "1024Mi", "example.com/fpga": "1"},
            },
            id="another extended resource is left alone",
        ),
        pytest.param(
            {"requests": {"example.com/fpga": "1", "cpu": "1", "memory": "1Gi"}},
            {},
            {
                "requests": {"cpu": "1", "memory": "1Gi", "example.com/fpga": "1"},
                "limits": {"cpu": "1", "memory": "1Gi", "example.com/fpga": "1"},
            },
            id="one that is only requested gets the limit that the API server wants",
        ),
        pytest.param(
            {"requests": {"cpu": 2, "memory": "2Gi"}},
            {"limits": {"cpu": "1500m"}},
            {"requests": {"cpu": "1500m", "memory": "2Gi"}, "limits": {"cpu": "1500m", "memory": "2Gi"}},
            id="numbers count as their text",
        ),
        pytest.param(
            {"requests": {"cpu": None, "memory": "1Gi"}, "limits": None},
            {},
            {"requests": {"cpu": "1000m", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1Gi"}},
            id="null is not set",
        ),
    ],
)
def test_within_platform(resources: Manifest, platform: Manifest, expected: Manifest) -> None:
    """Primary and init containers: what is unset is filled, what is too much lowered."""
    own = settings(kuberay={"platform-resources": platform})
    assert within_platform(resources, own, assign=True) == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param(
            {},
            {"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "0", "memory": "0"}},
            id="unset cpu and memory are 0",
        ),
        pytest.param(
            {"requests": {"cpu": "3"}},
            {"requests": {"cpu": "2", "memory": "0"}, "limits": {"cpu": "2", "memory": "0"}},
            id="a request is lowered to the platform's limit, and a limit of 0 follows it: the API server wants that",
        ),
        pytest.param(
            {"limits": {GPU: "1"}},
            {"requests": {"cpu": "0", "memory": "0", GPU: "1"}, "limits": {"cpu": "0", "memory": "0", GPU: "1"}},
            id="GPUs by their limit alone, which Go and an earlier pass of it leave with a request of 0",
        ),
        pytest.param(
            {"requests": {"example.com/fpga": "0"}, "limits": {"example.com/fpga": "1"}},
            {
                "requests": {"cpu": "0", "memory": "0", "example.com/fpga": "1"},
                "limits": {"cpu": "0", "memory": "0", "example.com/fpga": "1"},
            },
            id="any extended resource with a request of 0",
        ),
    ],
)
def test_sidecars_within_platform(resources: Manifest, expected: Manifest) -> None:
    """Sidecars get no defaults; their amounts are only lowered."""
    own = settings(kuberay={"platform-resources": {"limits": {"cpu": "2"}}})
    assert within_platform(resources, own, assign=False) == expected


@pytest.mark.parametrize(
    ("merged", "overlay", "expected"),
    [
        pytest.param(
            {"requests": {"cpu": "4"}, "limits": {"cpu": "2"}},
            {"requests": {"cpu": "4"}},
            {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}},
            id="D19 a request above the task's limit raises the limit",
        ),
        pytest.param(
            {"requests": {"cpu": "4"}, "limits": {"cpu": "2"}},
            {"limits": {"cpu": "2"}},
            {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}},
            id="D19 a limit below the task's request lowers the request",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            {"requests": {"cpu": "1"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            id="D19 sides that agree stay",
        ),
        pytest.param(
            {"requests": {"cpu": "4"}, "limits": {"cpu": "2"}},
            {"requests": {"cpu": "4"}, "limits": {"cpu": "2"}},
            {"requests": {"cpu": "4"}, "limits": {"cpu": "2"}},
            id="D19 what the group says of both sides is the user's own",
        ),
        pytest.param(
            {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "8"}},
            {"requests": {"nvidia.com/gpu": "1"}},
            {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}},
            id="an extended resource has both sides equal",
        ),
        pytest.param(
            {"limits": {"nvidia.com/gpu": "8"}},
            {"limits": {"nvidia.com/gpu": "8"}},
            {"requests": {"nvidia.com/gpu": "8"}, "limits": {"nvidia.com/gpu": "8"}},
            id="and gets the side that it lacks",
        ),
        pytest.param(
            {"requests": {GPU: "1", "cpu": "1"}, "limits": {"cpu": "1"}},
            {"limits": {GPU: None}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
            id="taken away on one side it is gone",
        ),
        pytest.param(
            {"requests": {GPU: "2"}, "limits": {}},
            {"requests": {GPU: "2"}, "limits": {GPU: None}},
            {"requests": {GPU: "2"}, "limits": {GPU: "2"}},
            id="unless the other side is given",
        ),
        pytest.param(
            {"requests": {GPU: "1", "cpu": "1"}},
            {"limits": None},
            {"requests": {GPU: "1", "cpu": "1"}, "limits": {GPU: "1"}},
            id="without any limits it keeps its own, cpu does not",
        ),
        pytest.param(
            {"limits": {GPU: "1"}},
            {},
            {"limits": {GPU: "1"}},
            id="a limit is enough, where the overlay says nothing of it",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            {"requests": {"cpu": "1"}},
            {"requests": {"cpu": "1"}},
            id="no side is made up for cpu",
        ),
    ],
)
def test_with_sides_agreeing(merged: Manifest, overlay: Manifest, expected: Manifest) -> None:
    """After a group's template was merged, a request and its limit fit together."""
    assert with_sides_agreeing(merged, overlay) == expected


def test_requested_names() -> None:
    """All resources that containers ask for, on either side; 0 of one is none."""
    containers: list[dict[str, Any]] = [
        {"resources": {"requests": {"cpu": "1"}}},
        {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
        {"resources": {"requests": {"example.com/fpga": "0"}, "limits": {"example.com/fpga": 0, "$patch": "replace"}}},
        {},
    ]
    assert requested_names(containers) == {"cpu", "nvidia.com/gpu"}
