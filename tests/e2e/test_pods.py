"""Whether what users write about their pods reaches real ones: templates, environments, groups that scale."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from types import ModuleType

import pytest

from .conftest import Start
from .looking import pods_of, seen
from .node import NAMESPACE, Node

CORE, FULL = pytest.mark.e2e, pytest.mark.e2e_full


@CORE
def test_templates_arrive_in_the_pods(start: Start, node: Node, user: ModuleType) -> None:
    """Of head, two worker groups and the task itself, and the runtime environment in all of them.

    The head's template has a sidecar with a volume; `red` calls Ray's container by another name and has requests
    beside its template; `blue` has an init container, a ConfigMap and a Secret; the task has a sidecar, a service
    account and one of Flyte's secrets, for whose webhook pods are marked.
    """
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("code/packed.txt", "from the working directory")
    _apply(node, "ServiceAccount", "trainer")
    _apply(node, "ConfigMap", "e2e-code", binaryData={"code.zip": base64.b64encode(code.getvalue()).decode()})
    _apply(node, "ConfigMap", "e2e-settings", data={"rate": "from the ConfigMap"})
    _apply(node, "Secret", "e2e-token", stringData={"token": "from the Secret"})
    execution = start(user.templates)
    execution.until("RUNNING")
    pods = {group: pods_of(node, execution, group) for group in ("head", "red", "blue")}
    (submitter,) = seen(lambda: pods_of(node, execution, "submitter"))
    run = execution.end()

    everywhere = ["by the runtime environment", user.ODD]
    found = {
        "head": [*everywhere, "from the sidecar", "from the working directory"],
        "red": ["main", *everywhere],
        "blue": [
            "from the Secret",
            *everywhere,
            "from the init container",
            "from the ConfigMap",
            "from the working directory",
        ],
    }
    assert (run.phase, run.outputs) == ("SUCCEEDED", {"o0": {name: "\n".join(lines) for name, lines in found.items()}})
    (head,), (red,), (blue,) = pods["head"], pods["red"], pods["blue"]
    assert [c["name"] for c in head["spec"]["containers"]] == ["ray-head", "beside", "writer"]
    assert [c["name"] for c in red["spec"]["containers"]] == ["ray-worker", "beside"]
    assert [c["name"] for c in blue["spec"]["containers"]] == ["ray-worker", "beside"]
    assert [c["name"] for c in submitter["spec"]["containers"]] == ["ray-job-submitter"]
    assert "maker" in [c["name"] for c in blue["spec"]["initContainers"]]
    everyone = (head, red, blue, submitter)
    assert [pod["spec"]["serviceAccountName"] for pod in everyone] == ["trainer"] * 4
    assert [pod["metadata"]["labels"].get("team") for pod in everyone] == ["vision"] * 4
    marks = [pod["metadata"]["labels"].get("inject-flyte-secrets") for pod in everyone]
    assert marks == ["true", "true", "true", None]
    assert ["flyte.secrets/s0" in pod["metadata"]["annotations"] for pod in everyone] == [True, True, True, False]
    assert ["wget" in json.dumps(pod["spec"]) for pod in everyone] == [False] * 4  # by which KubeRay's own probes ask
    resources = red["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "120m", "memory": "310Mi"}
    assert resources["limits"] == {"cpu": "2", "memory": "2Gi"}


@FULL
def test_groups_scale_up_from_nothing_and_down(start: Start, node: Node, user: ModuleType) -> None:
    """The autoscaler adds a worker of each group for what waits for it, and takes them away when they idle.

    It takes long enough for the head's liveness probe to look, which finds it alive.
    """
    execution = start(user.scaled)
    run = execution.end()
    assert (run.phase, run.outputs) == ("SUCCEEDED", {"o0": {"first": 0, "most": 2, "last": 0}})
    dead = [event["message"] for event in node.objects("events", execution.stem) if event["reason"] == "Unhealthy"]
    assert [message for message in dead if message.startswith("Liveness")] == []


def _apply(node: Node, kind: str, name: str, **more: object) -> None:
    path = node.folder / f"{kind}-{name}.json"
    metadata = {"name": name, "namespace": NAMESPACE}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}))
    node.run("kubectl", "apply", f"--filename={path}")
