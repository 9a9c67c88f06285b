"""A real `pyflyte serve connector`, which finds the connector through the entry point alone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from flyteidl.admin.agent_pb2 import TaskCategory
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient
from tests.api import ApiServer
from tests.ports import free_ports

from .samples import flyte_task
from .serving import Caller, calling, service_over, serving, write_status

PYFLYTE = Path(sys.executable).with_name("pyflyte")


@asynccontextmanager
async def process(kubeconfig: str, log: Path) -> AsyncIterator[tuple[subprocess.Popen[bytes], Caller]]:
    """A connector's process and a caller of it, as soon as it answers."""
    port, metrics = free_ports(2)
    ports = ["--port", str(port), "--prometheus_port", str(metrics)]
    logging = {"FLYTE_SDK_LOGGING_FORMAT": "json", "FLYTE_SDK_RICH_TRACEBACKS": "0"}
    with log.open("wb") as output:
        started = subprocess.Popen(
            [str(PYFLYTE), "serve", "connector", *ports],
            env={**os.environ, "KUBECONFIG": kubeconfig, **logging},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            async with calling(f"127.0.0.1:{port}") as caller:
                await _answers(caller, started)
                yield started, caller
        finally:
            started.kill()
            started.wait()


async def _answers(caller: Caller, started: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            await caller.list_agents()
            return
        except grpc.aio.AioRpcError:
            assert started.poll() is None, "the connector has ended"
            assert time.monotonic() < end, "the connector does not answer"
            await asyncio.sleep(0.2)


async def test_a_process_serves_tasks_and_ends(
    api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """ListAgents shows it; SIGTERM ends it quietly; the next connector goes on with its tasks."""
    log = tmp_path / "log"
    async with process(api_server.kubeconfig, log) as (started, caller):
        agents = (await caller.list_agents()).agents
        served = [category for agent in agents for category in agent.supported_task_categories]
        assert served.count(TaskCategory(name="ray", version=0)) == 1
        assert [agent.is_sync for agent in agents if "ray" in agent.supported_task_types] == [False]

        metadata = await caller.create(flyte_task(namespace))
        await write_status(client, metadata, jobDeploymentStatus="Running", jobStatus="RUNNING")
        assert (await caller.becomes(metadata, TaskExecution.RUNNING)).phase == TaskExecution.RUNNING

        started.send_signal(signal.SIGTERM)
        await asyncio.wait_for(asyncio.to_thread(started.wait), 5)
        assert started.returncode == -signal.SIGTERM
        assert "Traceback" not in log.read_text()

    async with serving(service_over(await ApiKubeClient.open(api_server.kubeconfig))) as caller:
        assert (await caller.get(metadata)).phase == TaskExecution.RUNNING
        await caller.delete(metadata)
        assert await client.list(RAYJOBS, namespace) == []
