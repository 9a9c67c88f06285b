"""Many tasks at once, and many questions during a long outage."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.connector.metadata import JobMetadata
from flytekitplugins.kuberay.connector.results import ResultFiles
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient
from tests.api import ApiServer
from tests.connector.propelling import Bucket, built_propeller
from tests.connector.samples import execution_json, flyte_task, template_json
from tests.connector.serving import Caller, service_over, serving, write_status

from .operator import Operator
from .rows import Block, refused, silent, way_to

pytestmark = pytest.mark.faults
TASKS = 300


async def test_three_hundred_tasks_at_once_succeed(
    api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """By propeller's own code: no failed call, no failed round, one RayJob each."""
    metadata = execution_json(namespace, execution="load")
    execution = {
        "task_execution_id": metadata["taskExecutionId"],
        "namespace": namespace,
        "labels": metadata["labels"],
        "max_attempts": 1,
    }
    (tmp_path / "case.json").write_text(
        json.dumps({"task_template": template_json(), "task_execution_metadata": execution})
    )
    service = service_over(await ApiKubeClient.open(api_server.kubeconfig), results=ResultFiles(Bucket(tmp_path)))
    async with Operator(client, namespace, step=2.0), serving(service) as caller:
        process = await asyncio.create_subprocess_exec(
            built_propeller(), "load", "--endpoint", caller.endpoint, "--case", f"{tmp_path}/case.json",
            "--output-dir", str(tmp_path), "--n", str(TASKS), "--read-qps", "500", "--resync", "3s", "--poll", "2s",
            "--timeout", "150s", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        output, _ = await process.communicate()
        report: dict[str, Any] = json.loads(output)
    assert report["phases"] == {"SUCCEEDED": TASKS}, report
    assert report["round_errors"] == 0
    assert [call for call in ("CreateTask", "GetTask") if "errors" in report["calls"][call]] == []
    assert len(await client.list(RAYJOBS, namespace)) == TASKS


async def ask(caller: Caller, metadata: bytes, count: int) -> set[TaskExecution.Phase]:
    """The phases of so many answers, 25 at a time, each within the caller's time."""
    phases = set()
    for _ in range(count // 25):
        phases |= {answer.phase for answer in await asyncio.gather(*(caller.get(metadata) for _ in range(25)))}
        await asyncio.sleep(1)
    return phases


@pytest.mark.parametrize(
    "outage", [pytest.param(refused, id="nobody listens"), pytest.param(silent, id="nothing comes")]
)
async def test_no_outage_freezes_a_task(
    api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path, outage: Block
) -> None:
    """A hundred answers while the cluster is away: six that raise or are late would freeze a task for ever."""
    if not api_server.state:
        pytest.skip("KUBECONFIG is set: its server's keys are not here")
    async with way_to(api_server, tmp_path / "kubeconfig") as way:
        async with serving(service_over(await ApiKubeClient.open(way.kubeconfig))) as caller:
            known = await caller.create(flyte_task(namespace))
            await write_status(client, known, jobDeploymentStatus="Initializing")
            await caller.becomes(known, TaskExecution.INITIALIZING)
            unknown = JobMetadata(namespace, "another", "another-uid", "/nowhere", has_outputs=True).encode()
            async with outage(way):
                answers = [*await asyncio.gather(ask(caller, known, 100), ask(caller, unknown, 100))]
            assert answers == [{TaskExecution.INITIALIZING}, {TaskExecution.RUNNING}]
            await write_status(client, known, jobDeploymentStatus="Running")
            assert (await caller.becomes(known, TaskExecution.RUNNING)).phase == TaskExecution.RUNNING
