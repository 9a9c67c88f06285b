"""The Kubernetes objects in the platform's settings."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.pod.platform import platform_problems
from flytekitplugins.kuberay.wire import Manifest
from tests.pod.samples import settings


@pytest.mark.parametrize(
    ("k8s", "ray", "expected"),
    [
        pytest.param({}, {}, [], id="Flyte's defaults"),
        pytest.param(
            {"default-affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["x"]}}},
            {},
            ["plugins.k8s.default-affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"],
            id="deep in an affinity",
        ),
        pytest.param({}, {"logsSidecar": {"image": "i"}}, ["plugins.ray.logsSidecar.name"], id="a sidecar's name"),
        pytest.param(
            {},
            {"logsSidecar": {"name": "l", "ports": [1]}},
            ["plugins.ray.logsSidecar.ports[0]"],
            id="a sidecar's port",
        ),
        pytest.param(
            {}, {"logsSidecar": {"$patch": "delete"}}, ["plugins.ray.logsSidecar.$patch"], id="nothing to patch there"
        ),
    ],
)
def test_platform_problems(k8s: Manifest, ray: Manifest, expected: list[str]) -> None:
    """What a task's build would fall over is a problem with the path of the setting."""
    assert [problem.path for problem in platform_problems(settings(k8s=k8s, ray=ray))] == expected
