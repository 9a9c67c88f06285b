"""The options of Ray's autoscaler."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.cluster.autoscaler import autoscaler_problems, build_autoscaler_options
from flytekitplugins.kuberay.wire import AutoscalerOptions, Manifest


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(AutoscalerOptions(), {}, id="nothing is said"),
        pytest.param(
            AutoscalerOptions("Conservative", 0, "img", (("A", "1"),)),
            {
                "upscalingMode": "Conservative",
                "idleTimeoutSeconds": 0,
                "image": "img",
                "env": [{"name": "A", "value": "1"}],
            },
            id="all is said; an idle time-out of 0 too",
        ),
        pytest.param(
            AutoscalerOptions(requests={"cpu": "0", "memory": "1Gi"}, limits={"cpu": "0m"}),
            {"resources": {"requests": {"memory": "1Gi"}}},
            id="an amount of 0 says nothing",
        ),
    ],
)
def test_build_autoscaler_options(options: AutoscalerOptions, expected: Manifest) -> None:
    """KubeRay gets what the task says, without what says nothing in Flyte."""
    assert build_autoscaler_options(options) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(AutoscalerOptions(env=(("A", "1"), ("B", "2"))), [], id="nothing wrong"),
        pytest.param(AutoscalerOptions(limits={"cpu": "much"}), ["resources.limits[cpu]"], id="an amount that is none"),
        pytest.param(AutoscalerOptions(env=(("", "1"), ("A=", "2"))), ["env[0].name", "env[1].name"], id="env names"),
        pytest.param(AutoscalerOptions(env=(("A", "1"), ("A", "2"))), ["env[1]"], id="a variable twice"),
    ],
)
def test_autoscaler_problems(options: AutoscalerOptions, expected: list[str]) -> None:
    """What KubeRay's own container would be refused for is found before the create, all at once."""
    path = "custom.rayCluster.autoscalerOptions."
    assert [problem.path for problem in autoscaler_problems(options)] == [path + each for each in expected]
