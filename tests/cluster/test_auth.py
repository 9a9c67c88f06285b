"""Token authentication in a RayJob: what the platform and the task say, and the version that KubeRay asks for."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from flytekitplugins.kuberay.cluster.auth import has_token_auth, with_ray_version
from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.wire import Manifest
from tests.pod.samples import container_task, settings

TOKEN = {"authOptions": {"mode": "token"}}


def told(own: Manifest | None = None, patch: Manifest | None = None) -> Manifest:
    """What a RayCluster says of authentication, and of Ray's version."""
    extras: dict[str, Any] = {"version": 1, "rayJobPatch": {"spec": {"rayClusterSpec": patch or {}}}}
    task = container_task(config={"kuberay": json.dumps(extras)})
    cluster = build_ray_job(task, settings(kuberay=own))["spec"]["rayClusterSpec"]
    return {key: cluster[key] for key in ("authOptions", "rayVersion") if key in cluster}


@pytest.mark.parametrize(
    ("own", "patch", "expected"),
    [
        pytest.param({}, {}, {}, id="nobody says anything: Flyte's RayJob as it is"),
        pytest.param({"ray-auth": "token"}, {}, {**TOKEN, "rayVersion": "2.52.0"}, id="the platform asks for a token"),
        pytest.param({"ray-auth": "disabled"}, {}, {"authOptions": {"mode": "disabled"}}, id="it wants none"),
        pytest.param({}, TOKEN, {**TOKEN, "rayVersion": "2.52.0"}, id="the task asks for one"),
        pytest.param(
            {"ray-auth": "token"},
            {"authOptions": {"mode": "disabled"}},
            {"authOptions": {"mode": "disabled"}},
            id="the task has the last word",
        ),
        pytest.param({"ray-auth": "token"}, {"authOptions": None}, {}, id="the task takes it back"),
        pytest.param(
            {"ray-auth": "token"},
            {"rayVersion": "2.60.0"},
            {**TOKEN, "rayVersion": "2.60.0"},
            id="a version that the task names stays",
        ),
        pytest.param(
            {"ray-job-patch": {"spec": {"rayClusterSpec": {"rayVersion": "2.60.0"}}}, "ray-auth": "token"},
            {"authOptions": {"secretName": "mine"}},
            {"authOptions": {"mode": "token", "secretName": "mine"}, "rayVersion": "2.60.0"},
            id="the task adds to it, the platform names the version",
        ),
    ],
)
def test_what_a_ray_cluster_says(own: Manifest, patch: Manifest, expected: Manifest) -> None:
    """KubeRay takes `token` only with a Ray of 2.52.0 or newer, so a version stands beside it."""
    assert told(own, patch) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"rayClusterSpec": {"headGroupSpec": {}}}, "2.52.0", id="a cluster of its own"),
        pytest.param({"rayClusterSpec": {"rayVersion": "2.9.0"}}, "2.9.0", id="a version that the task names stays"),
        pytest.param({"clusterSelector": {"ray.io/cluster": "standing"}}, None, id="a cluster that stands already"),
    ],
)
def test_metadata_needs_a_version(spec: Manifest, expected: str | None) -> None:
    """Else KubeRay never makes the submitter of a job that has metadata."""
    job = with_ray_version({"spec": {**spec, "metadata": {"team": "a"}}})
    assert job["spec"].get("rayClusterSpec", {}).get("rayVersion") == expected


def test_the_argument_stays() -> None:
    """A new RayJob comes back, or the same one."""
    job = {"spec": {"rayClusterSpec": TOKEN}}
    before = deepcopy(job)
    assert has_token_auth(with_ray_version(job))
    assert job == before
    without: Manifest = {"spec": {}}
    assert with_ray_version(without) is without
