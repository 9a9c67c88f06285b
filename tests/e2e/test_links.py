"""Whether the links beside a task lead somewhere: here they are paths of the API server, which tests can follow."""

from __future__ import annotations

import json
from types import ModuleType

import pytest

from .conftest import Start
from .looking import seen
from .node import Node


@pytest.mark.e2e_full
@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode"])
def test_links_lead_to_logs_and_dashboard(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """While the task runs; after its end the history's is in the dashboard's place."""
    execution = start(user.waits, mode=mode)
    execution.until("RUNNING", within=120)
    links = execution.links("RUNNING")
    version = json.loads(node.run("kubectl", "get", "--raw", links.pop("Ray Dashboard")))
    assert "ray_version" in version
    groups = ["head", "submitter", "small"] if mode != "HTTPMode" else ["head", "small"]
    assert [name.removeprefix("Log (").rstrip(")").partition("-")[0] for name in links] == groups
    assert seen(lambda: all(_read(node, path) for path in links.values()), within=30)
    if mode != "HTTPMode":
        assert seen(lambda: user.SAID in _read(node, links["Log (submitter)"]), within=30)
    run = execution.end()
    assert run.phase == "SUCCEEDED"
    done = execution.links("SUCCEEDED")
    (job,) = node.objects("rayjobs", execution.stem)
    cluster, job_id = job["status"]["rayClusterName"], job["status"]["jobId"]
    assert done.pop("Ray History Server") == f"https://history/{cluster}/{job_id}/n0"
    assert done == links


def _read(node: Node, path: str) -> str:
    """What a link leads to; "" while its container starts."""
    return node.run("sh", "-c", f"kubectl get --raw '{path}' || true")
