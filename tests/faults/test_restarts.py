"""Connectors that die, end and work side by side: real processes of `pyflyte serve connector`."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc
import pytest
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.cluster.names import NODE_KEY
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient
from tests.api import ApiServer
from tests.connector.samples import flyte_task
from tests.connector.serving import Caller
from tests.connector.test_process import process
from tests.kube.admin import merge_patch

from .operator import Operator
from .proxies import HttpProxy, kubeconfig_at, late, status

pytestmark = pytest.mark.faults
RUNNING, SUCCEEDED = TaskExecution.RUNNING, TaskExecution.SUCCEEDED
TASKS, DEATHS = 50, 3


class Mortal:
    """A connector's process that is killed again and again; `caller` leads to the one that lives."""

    def __init__(self, kubeconfig: str, folder: Path) -> None:
        self._kubeconfig, self._folder = kubeconfig, folder
        self._stack = AsyncExitStack()
        self._lives = 0

    async def start(self) -> None:
        """Starts a new process."""
        log = self._folder / f"log-{self._lives}"
        self._process, self.caller = await self._stack.enter_async_context(process(self._kubeconfig, log))
        self._lives += 1

    def kill(self) -> None:
        """Ends the process, which has no time for anything."""
        self._process.kill()

    async def close(self) -> None:
        """Ends all processes."""
        await self._stack.aclose()


async def lives(mortal: Mortal, namespace: str, number: int) -> int:
    """Calls that failed until the task had succeeded; what fails to be created is tried as the next attempt."""
    failures = attempt = 0
    metadata = b""
    while True:
        await asyncio.sleep(0.3)
        try:
            if not metadata:
                metadata = await mortal.caller.create(flyte_task(namespace, node=f"n{number}", attempt=attempt))
            phase = (await mortal.caller.get(metadata)).phase
        except grpc.aio.AioRpcError:
            failures += 1
            attempt += not metadata
            continue
        assert phase not in (TaskExecution.FAILED, TaskExecution.RETRYABLE_FAILED)
        if phase == SUCCEEDED:
            return failures


async def test_a_killed_connector_loses_nothing_and_doubles_nothing(
    api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """SIGKILL at random points of 50 tasks, which come within seconds: each succeeds, and has one RayJob."""
    chance = random.Random(20261130)
    mortal = Mortal(api_server.kubeconfig, tmp_path)
    await mortal.start()

    async def later(number: int) -> int:
        await asyncio.sleep(number * 0.2)
        return await lives(mortal, namespace, number)

    try:
        async with Operator(client, namespace, step=2.0):
            tasks = asyncio.gather(*(later(number) for number in range(TASKS)))
            for _ in range(DEATHS):
                await asyncio.sleep(chance.uniform(0.5, 3))
                mortal.kill()
                await mortal.start()
            failures = await asyncio.wait_for(tasks, 120)
        assert sum(failures) > 0  # else nothing was under way
        jobs = await client.list(RAYJOBS, namespace)
        assert Counter(Counter(job["metadata"]["labels"][NODE_KEY] for job in jobs).values()) == {1: TASKS}
    finally:
        await mortal.close()


@asynccontextmanager
async def replicas(kubeconfig: str, folder: Path) -> AsyncIterator[list[tuple[subprocess.Popen[bytes], Caller]]]:
    """Two connectors of one cluster."""
    async with AsyncExitStack() as stack:
        both = [stack.enter_async_context(process(kubeconfig, folder / f"log-{number}")) for number in range(2)]
        yield list(await asyncio.gather(*both))


async def test_two_replicas_are_as_one(
    api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """The same creates to both at once make one RayJob each; both answer alike; one goes on alone."""
    nodes = [f"n{number}" for number in range(20)]
    async with replicas(api_server.kubeconfig, tmp_path) as ((first, one), (_, other)):
        creates = [caller.create(flyte_task(namespace, node=node)) for node in nodes for caller in (one, other)]
        answers = await asyncio.gather(*creates)
        assert answers[::2] == answers[1::2]
        jobs = await client.list(RAYJOBS, namespace)
        assert {job["metadata"]["uid"] for job in jobs} == {json.loads(answer)["uid"] for answer in answers}
        assert len(jobs) == len(nodes)
        for job in jobs:
            status = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "message": "on its way"}
            await merge_patch(client, RAYJOBS, namespace, job["metadata"]["name"], {"status": status}, status=True)
        for metadata in answers[::2]:
            ours, theirs = await one.becomes(metadata, RUNNING), await other.becomes(metadata, RUNNING)
            assert ours == theirs
        first.kill()
        await asyncio.gather(*(other.delete(metadata) for metadata in answers[::2]))
        assert await client.list(RAYJOBS, namespace) == []


@asynccontextmanager
async def behind_a_proxy(
    api_server: ApiServer, folder: Path
) -> AsyncIterator[tuple[HttpProxy, subprocess.Popen[bytes], Caller]]:
    """A way to the API server that can be spoilt, a connector's process that takes it, and a caller of that."""
    if not api_server.state:
        pytest.skip("KUBECONFIG is set: its server's keys are not here")
    async with HttpProxy(api_server.kubeconfig) as proxy:
        kubeconfig = kubeconfig_at(proxy.port, api_server.kubeconfig, folder / "kubeconfig")
        async with process(kubeconfig, folder / "log") as (started, caller):
            yield proxy, started, caller


async def has_ended(started: subprocess.Popen[bytes], within: float) -> bool:
    """Whether the process ended by SIGTERM; it has so many seconds for that."""
    await asyncio.wait_for(asyncio.to_thread(started.wait), within)
    return started.returncode == -signal.SIGTERM


async def test_sigterm_lets_running_calls_finish(
    api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """A create that is cut off would cost the user an attempt."""
    async with behind_a_proxy(api_server, tmp_path) as (proxy, started, caller):
        await caller.create(flyte_task(namespace, node="before"))
        proxy.spoil = late(3)
        creating = asyncio.create_task(caller.create(flyte_task(namespace)))
        await asyncio.sleep(1)
        assert not creating.done()
        started.send_signal(signal.SIGTERM)
        metadata = await creating
        assert await has_ended(started, 5)
    assert json.loads(metadata)["uid"] in {job["metadata"]["uid"] for job in await client.list(RAYJOBS, namespace)}


async def test_sigterm_lets_deletions_finish(
    api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """An abort that was answered while the cluster was away: no other process knows of it."""
    async with behind_a_proxy(api_server, tmp_path) as (proxy, started, caller):
        metadata = await caller.create(flyte_task(namespace))
        proxy.spoil = status(503, "ServiceUnavailable")
        await caller.delete(metadata)
        assert len(await client.list(RAYJOBS, namespace)) == 1
        started.send_signal(signal.SIGTERM)
        proxy.spoil = None
        assert await has_ended(started, 15)
    assert await client.list(RAYJOBS, namespace) == []
