"""deploy/network-policy.yaml: a real API server takes it, and it means the pods of our tasks.

What a cluster's network makes of it no test here shows: the node of ../shared/cluster enforces no policies.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.kube import ApiKubeClient, Manifest, Resource
from flytekitplugins.kuberay.settings import Settings
from tests.kube.admin import strict_dry_run

from .samples import flyte_task

POLICY: Manifest = yaml.safe_load((Path(__file__).parents[2] / "deploy" / "network-policy.yaml").read_text())
EACH_OTHER, OPERATOR = POLICY["spec"]["ingress"]
OURS = POLICY["spec"]["podSelector"]["matchLabels"]


async def test_an_api_server_takes_it(client: ApiKubeClient, namespace: str) -> None:
    """Without an unknown field, in any namespace."""
    resource = Resource("networking.k8s.io", "v1", "networkpolicies")
    created = await strict_dry_run(client, resource, namespace, POLICY)
    assert created.warnings == ()


def test_it_means_every_pod_of_a_task() -> None:
    """Head, workers and submitter, which reach each other on all ports."""
    spec = build_ray_job(flyte_task("p-d"), Settings())["spec"]
    groups = [spec["rayClusterSpec"]["headGroupSpec"], *spec["rayClusterSpec"]["workerGroupSpecs"]]
    pods = [*(group["template"] for group in groups), spec["submitterPodTemplate"]]
    assert [OURS.items() <= pod["metadata"]["labels"].items() for pod in pods] == [True] * 3
    assert EACH_OTHER == {"from": [{"podSelector": {"matchLabels": OURS}}]}


def test_the_operator_reaches_the_dashboard_alone() -> None:
    """By the port that a head has by default."""
    assert OPERATOR["ports"] == [{"protocol": "TCP", "port": 8265}]
    (source,) = OPERATOR["from"]
    assert set(source) == {"namespaceSelector", "podSelector"}
