"""get_logs: what the user's code printed, in every submission mode, and a sentence or the diagnosis where it is gone.

Pods' logs come from a kubelet, which an API server alone has not: the client's seam gives them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flyteidl.admin.agent_pb2 import GetTaskLogsRequest
from flytekit.extend.backend.connector_service import AsyncConnectorService

from flytekitplugins.kuberay.cluster.capsule import place_of
from flytekitplugins.kuberay.kube import ApiKubeClient, Call, Forbidden, Unavailable
from flytekitplugins.kuberay.wire import FlyteTask

from .pods import CLUSTER, UP, put_pod, ready
from .samples import flyte_task
from .seam import Seam
from .serving import CATEGORY, Caller, job_of, write_status

DONE = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "rayClusterName": CLUSTER}
DASHBOARD = {"dashboardURL": f"{CLUSTER}-head-svc.ns.svc.cluster.local:8265", "jobId": "j-1"}
Leave = Callable[[Path], list[str]]


async def logs_of(metadata: bytes) -> list[str]:
    """What flytekit's service gets of the connector, line by line."""
    request = GetTaskLogsRequest(task_category=CATEGORY, resource_meta=metadata)
    return list((await AsyncConnectorService().GetTaskLogs(request, None)).body.results)  # type: ignore[arg-type]


def task_in(namespace: str, mode: str = "K8sJobMode", **parts: Any) -> FlyteTask:
    """A task whose job is handed over so."""
    return flyte_task(namespace, config={"kuberay": json.dumps({"version": 1, "submissionMode": mode})}, **parts)


async def submitted(caller: Caller, client: ApiKubeClient, task: FlyteTask, group: str = "submitter") -> Any:
    """A task's metadata, and the pod of this group that it has."""
    metadata = await caller.create(task)
    return metadata, await put_pod(client, metadata, group, **ready())


async def test_the_submitters_log_is_the_drivers(
    caller: Caller, client: ApiKubeClient, seam: Seam, namespace: str
) -> None:
    """Line by line, and less what is secret, by its name or by its looks."""
    env = [{"key": "DB_PASSWORD", "value": "correct horse"}]
    task = task_in(namespace, container={"image": "i", "args": ["a"], "env": env})
    metadata, pod = await submitted(caller, client, task)
    seam.logs[pod] = "first\nopened with correct horse\nBearer abcdefgh12345678\n"
    assert await logs_of(metadata) == ["first", "opened with [redacted]", "[redacted]"]


async def test_a_long_log_keeps_its_end(caller: Caller, client: ApiKubeClient, seam: Seam, namespace: str) -> None:
    """Well below what gRPC takes, from the start of a line."""
    metadata, pod = await submitted(caller, client, task_in(namespace))
    seam.logs[pod] = "".join(f"{number} {'x' * 300}\n" for number in range(4000))
    lines = await logs_of(metadata)
    assert (lines[-1][:4], len(lines[0]), 700_000 < sum(map(len, lines)) < 800_000) == ("3999", 305, True)


async def test_by_http_the_dashboard_has_it(caller: Caller, client: ApiKubeClient, seam: Seam, namespace: str) -> None:
    """The whole file's end, asked for through the API server; nobody else keeps what the code prints."""
    metadata = await caller.create(task_in(namespace, "HTTPMode"))
    await write_status(client, metadata, **UP, **DASHBOARD)
    seam.logs[f"{CLUSTER}-head-svc:8265"] = "printed\n"
    assert await logs_of(metadata) == [
        "api/v0/logs/file?submission_id=j-1&lines=5000&format=text&node_ip=any",
        "printed",
    ]


async def test_a_right_that_the_connector_lacks_is_told(
    caller: Caller, client: ApiKubeClient, seam: Seam, namespace: str
) -> None:
    """And who may have it: the command, with a person's own rights."""
    metadata = await caller.create(task_in(namespace, "HTTPMode"))
    await write_status(client, metadata, **UP, **DASHBOARD)
    seam.faults["proxy"] = [Forbidden(Call("get", "services/proxy"), "no")]
    name = (await job_of(client, metadata))["metadata"]["name"]
    assert await logs_of(metadata) == [
        f"in HTTPMode the output is kept in the head, and `flyte-kuberay logs {namespace}/{name}` reads it with your"
        " own rights; the connector has none for it: get services/proxy: no"
    ]


@pytest.mark.parametrize("mode", ["K8sJobMode", "SidecarMode", "HTTPMode"])
async def test_before_it_runs_there_is_none(caller: Caller, namespace: str, mode: str) -> None:
    """Which is said."""
    metadata = await caller.create(task_in(namespace, mode))
    assert await logs_of(metadata) == ["nothing is printed yet: the job has not begun"]


async def test_a_sidecar_beside_the_head_has_it(
    caller: Caller, client: ApiKubeClient, seam: Seam, namespace: str
) -> None:
    """And not the head itself."""
    metadata, pod = await submitted(caller, client, task_in(namespace, "SidecarMode"), "head")
    seam.logs[pod] = "of ray\n"
    assert await logs_of(metadata) == ["nothing is printed yet: the job has not begun"]


def nothing(diagnosis: Path) -> list[str]:
    """Leaves none."""
    return ["the log is gone with its pod, and no diagnosis was kept: that is done at a bad end alone"]


def a_diagnosis(diagnosis: Path) -> list[str]:
    """Leaves one."""
    diagnosis.write_text("# FAILED: it was so\n\n## Pods\n")
    return ["# FAILED: it was so", "", "## Pods"]


def what_can_not_be_read(diagnosis: Path) -> list[str]:
    """Leaves a folder in its place."""
    diagnosis.mkdir()
    reason = f"IsADirectoryError: [Errno 21] Is a directory: '{diagnosis}'"
    return [f"the log is gone with its pod, and the diagnosis could not be read: {reason}"]


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(a_diagnosis, id="diagnosis"),
        pytest.param(nothing, id="sentence"),
        pytest.param(what_can_not_be_read, id="unreadable is not absent"),
    ],
)
@pytest.mark.parametrize("deleted", [pytest.param(True, id="RayJob gone"), pytest.param(False, id="pods gone")])
async def test_after_the_pods_there_is_what_was_kept(
    caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path, *, leave: Leave, deleted: bool
) -> None:
    """The diagnosis of a bad end; else a sentence says that the log is gone, or that nobody knows."""
    task = task_in(namespace, prefix=str(tmp_path))
    metadata = await caller.create(task)
    await write_status(client, metadata, **DONE)
    diagnosis = Path(place_of(task.output_prefix))
    diagnosis.parent.mkdir(parents=True, exist_ok=True)
    expected = leave(diagnosis)
    if deleted:
        await caller.delete(metadata)
    assert await logs_of(metadata) == expected


async def test_a_passing_fault_is_a_sentence(caller: Caller, client: ApiKubeClient, seam: Seam, namespace: str) -> None:
    """No answer of the API server's raises."""
    metadata, _ = await submitted(caller, client, task_in(namespace))
    seam.faults["log"] = [Unavailable(Call("get", "pods/log"), "the kubelet is away")]
    assert await logs_of(metadata) == ["the log can't be read now: get pods/log: the kubelet is away"]
    seam.away = True
    (sentence,) = await logs_of(metadata)
    assert sentence.startswith("the log can't be read now: ")


@pytest.mark.xfail(reason="flytekit 1.16.31 returns one message where the RPC is a stream, and gRPC drops it")
async def test_it_arrives_over_grpc(caller: Caller, namespace: str) -> None:
    """As soon as flytekit yields its answer."""
    metadata = await caller.create(task_in(namespace))
    assert await caller.logs(metadata) == ["nothing is printed yet: the job has not begun"]
