"""Get: from the shared watch, by any replica, and never a failure for what may pass."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from flyteidl.core.execution_pb2 import TaskExecution
from typing_extensions import override

from flytekitplugins.kuberay.connector.metadata import JobMetadata
from flytekitplugins.kuberay.kube import (
    RAYJOBS,
    ApiKubeClient,
    Call,
    Forbidden,
    KubeClient,
    Manifest,
    Resource,
    Selector,
)
from flytekitplugins.kuberay.kube.client import ALL, WatchEvent
from tests.api import ApiServer

from .results import put_error, put_outputs
from .samples import flyte_task
from .seam import Seam
from .serving import IMPATIENT, Caller, job_of, service_over, serving, write_status

QUEUED, INITIALIZING, RUNNING = TaskExecution.QUEUED, TaskExecution.INITIALIZING, TaskExecution.RUNNING
SUCCEEDED, FAILED, RETRYABLE = TaskExecution.SUCCEEDED, TaskExecution.FAILED, TaskExecution.RETRYABLE_FAILED
UP = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "message": "Job is currently running."}


async def test_a_task_is_followed_to_its_end(
    caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """Each state as soon as the operator writes it; success before KubeRay says Complete."""
    task = flyte_task(namespace, str(tmp_path), outputs=True)
    metadata = await caller.create(task)
    assert (await caller.get(metadata)).phase == QUEUED
    for phase, status in [
        (INITIALIZING, {"jobDeploymentStatus": "Initializing"}),
        (RUNNING, {"jobDeploymentStatus": "Running"}),
        (QUEUED, {"jobDeploymentStatus": "Suspending"}),
        (RUNNING, UP),
    ]:
        await write_status(client, metadata, **status)
        assert (await caller.becomes(metadata, phase)).phase == phase
    await write_status(client, metadata, jobStatus="SUCCEEDED")
    await asyncio.sleep(0.1)
    assert (await caller.get(metadata)).phase == RUNNING
    put_outputs(task.output_prefix)
    assert (await caller.becomes(metadata, SUCCEEDED)).phase == SUCCEEDED


async def test_an_answer_says_where_to_look(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """The RayJob, its cluster and its dashboard, and where the outputs go."""
    task = flyte_task(namespace)
    metadata = await caller.create(task)
    await write_status(client, metadata, **UP, rayClusterName="c-x", dashboardURL="c-x-head-svc:8265", jobId="j-1")
    resource = await caller.becomes(metadata, RUNNING)
    name = json.loads(metadata)["name"]
    assert resource.message == f"RayJob {namespace}/{name}: Job is currently running."
    assert dict(resource.custom_info) == {
        "rayJob": f"{namespace}/{name}",
        "rayCluster": "c-x",
        "jobId": "j-1",
        "dashboardURL": "c-x-head-svc:8265",
        "output_prefix": task.output_prefix,
    }


async def test_following_costs_no_call(caller: Caller, seam: Seam, client: ApiKubeClient, namespace: str) -> None:
    """Hundreds of tasks are followed by one watch."""
    tasks = [await caller.create(flyte_task(namespace, node=f"n{number}")) for number in range(5)]
    for metadata in tasks:
        await write_status(client, metadata, **UP)
        await caller.becomes(metadata, RUNNING)
    seam.calls.clear()
    answers = await asyncio.gather(*(caller.get(metadata) for metadata in tasks * 20))
    assert {answer.phase for answer in answers} == {RUNNING}
    assert seam.calls == []


async def test_any_replica_answers(
    caller: Caller, api_server: ApiServer, client: ApiKubeClient, namespace: str
) -> None:
    """A second connector, or one that was started anew, knows all that the first did."""
    metadata = await caller.create(flyte_task(namespace))
    await write_status(client, metadata, **UP)
    async with serving(service_over(Seam(await ApiKubeClient.open(api_server.kubeconfig)))) as second:
        assert (await second.get(metadata)).phase == RUNNING
        await second.delete(metadata)
    assert await client.list(RAYJOBS, namespace) == []


async def test_a_namesake_is_not_ours(caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path) -> None:
    """A RayJob with another uid says nothing of the task: its own is gone."""
    task = flyte_task(namespace, str(tmp_path))
    metadata = await caller.create(task)
    await caller.delete(metadata)
    await write_status(client, await caller.create(task), **UP)
    resource = await caller.becomes(metadata, RETRYABLE)
    assert resource.phase == RETRYABLE
    assert "deleted by someone else before the task had ended" in resource.message


@pytest.mark.parametrize(
    ("left", "phase"),
    [
        pytest.param("outputs", SUCCEEDED, id="it had succeeded"),
        pytest.param("error", FAILED, id="it had failed"),
        pytest.param("", RETRYABLE, id="it had not ended"),
    ],
)
async def test_a_rayjob_that_is_gone_is_judged_by_its_result_files(
    caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path, left: str, phase: TaskExecution.Phase
) -> None:
    """As after a TTL, or kubectl delete."""
    task = flyte_task(namespace, str(tmp_path))
    metadata = await caller.create(task)
    await client.delete(RAYJOBS, namespace, json.loads(metadata)["name"])
    if left == "outputs":
        put_outputs(task.output_prefix)
    if left == "error":
        put_error(task.output_prefix, "USER:ValueError", "no luck")
    assert (await caller.becomes(metadata, phase)).phase == phase


class Held(Seam):
    """A seam whose direct reads of an object wait while it is held."""

    def __init__(self, inner: KubeClient) -> None:
        super().__init__(inner)
        self.free = asyncio.Event()

    @override
    async def get(self, resource: Resource, namespace: str | None, name: str, *, timeout: float = 5.0) -> Manifest:
        await self.free.wait()
        return await super().get(resource, namespace, name, timeout=timeout)


async def test_an_answer_that_takes_long_keeps_the_phase(
    api_server: ApiServer, client: ApiKubeClient, namespace: str
) -> None:
    """A late answer counts as a failed one."""
    held = Held(await ApiKubeClient.open(api_server.kubeconfig))
    async with serving(service_over(held, IMPATIENT)) as caller:
        metadata = await caller.create(flyte_task(namespace))
        await write_status(client, metadata, jobDeploymentStatus="Initializing")
        await caller.becomes(metadata, INITIALIZING)
        await client.delete(RAYJOBS, namespace, json.loads(metadata)["name"])
        for _ in range(400):  # until the watch knows, too
            resource = await caller.get(metadata)
            if "it takes long" in resource.message:
                break
            await asyncio.sleep(0.05)
        assert (resource.phase, "it takes long" in resource.message) == (INITIALIZING, True)
        held.free.set()
        assert (await caller.becomes(metadata, RETRYABLE)).phase == RETRYABLE


class Lagging(Seam):
    """A seam whose watches pass on, once they are let, that something was added, and then nothing."""

    def __init__(self, inner: KubeClient) -> None:
        super().__init__(inner)
        self.free, self.passed = asyncio.Event(), asyncio.Event()

    @override
    async def watch(
        self, resource: Resource, namespace: str | None, selector: Selector = ALL, **options: Any
    ) -> AsyncGenerator[WatchEvent, None]:
        async with aclosing(super().watch(resource, namespace, selector, **options)) as events:
            async for event in events:
                if event.type == "ADDED":
                    await self.free.wait()
                yield event
                if event.type == "ADDED":
                    self.passed.set()
                    await asyncio.Event().wait()


async def test_no_answer_is_older_than_the_one_before(
    api_server: ApiServer, client: ApiKubeClient, namespace: str
) -> None:
    """The watch may be behind a direct read, and the cluster go away then."""
    lagging = Lagging(await ApiKubeClient.open(api_server.kubeconfig))
    async with serving(service_over(lagging)) as caller:
        nowhere = JobMetadata(namespace, "j", "u", "/nowhere", has_outputs=True)
        await caller.becomes(nowhere.encode(), RETRYABLE)  # so the list is older than what comes
        metadata = await caller.create(flyte_task(namespace))
        await write_status(client, metadata, jobDeploymentStatus="Initializing")
        await caller.becomes(metadata, INITIALIZING)
        lagging.free.set()
        await lagging.passed.wait()
        lagging.away = True
        assert (await caller.get(metadata)).phase == INITIALIZING


class TestWhileTheClusterIsAway:
    """No answer raises, for six that do freeze a task, and none ends a task."""

    @pytest.fixture
    async def distrustful(self, seam: Seam) -> AsyncIterator[Caller]:
        """A caller of a connector to which every view is stale, so that it reads anew each time."""
        async with serving(service_over(seam, stalest=0.0)) as caller:
            yield caller

    async def test_the_last_state_holds(
        self, distrustful: Caller, seam: Seam, client: ApiKubeClient, namespace: str
    ) -> None:
        """Until it is back."""
        metadata = await distrustful.create(flyte_task(namespace))
        await write_status(client, metadata, jobDeploymentStatus="Initializing")
        await distrustful.becomes(metadata, INITIALIZING)
        await asyncio.sleep(0.2)  # until the watch knows, too
        seam.away = True
        assert (await distrustful.get(metadata)).phase == INITIALIZING
        await write_status(client, metadata, **UP)
        seam.away = False
        assert (await distrustful.becomes(metadata, RUNNING)).phase == RUNNING

    async def test_a_connector_that_knows_nothing_says_running(self, namespace: str) -> None:
        """It was started after the cluster had gone away."""
        metadata = JobMetadata(namespace, "j", "u", "/nowhere", has_outputs=True)
        async with serving(service_over(Seam(None))) as caller:
            resource = await caller.get(metadata.encode())
        assert resource.phase == RUNNING
        assert "the cluster can't be reached, the task may go on: get rayjobs.ray.io" in resource.message

    async def test_a_right_that_was_taken_away_ends_nothing(
        self, distrustful: Caller, seam: Seam, namespace: str
    ) -> None:
        """It can be given back."""
        metadata = await distrustful.create(flyte_task(namespace))
        seam.faults["get"] = [Forbidden(Call("get", "rayjobs.ray.io", namespace), "not you")]
        resource = await distrustful.get(metadata)
        assert resource.phase in (QUEUED, RUNNING)


async def test_a_failed_attempt_of_kuberays_own_is_no_end(
    caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """With backoff_limit KubeRay starts the job anew: what would be said of the task then, nobody takes back."""
    extras = json.dumps({"version": 1, "backoffLimit": 1})
    metadata = await caller.create(flyte_task(namespace, str(tmp_path), config={"kuberay": extras}))
    await write_status(client, metadata, jobDeploymentStatus="Running", jobStatus="FAILED", failed=0)
    assert (await caller.becomes(metadata, RUNNING)).phase == RUNNING
    await write_status(client, metadata, jobDeploymentStatus="Retrying", failed=1)
    assert (await caller.becomes(metadata, INITIALIZING)).phase == INITIALIZING
    await write_status(client, metadata, jobDeploymentStatus="Running")
    assert (await caller.becomes(metadata, FAILED)).phase == FAILED


async def test_the_messages_stay_short(caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path) -> None:
    """Ray puts up to 20,000 characters of log into a message; its first words and its end are what tells."""
    metadata = await caller.create(flyte_task(namespace, str(tmp_path)))
    ended: dict[str, Any] = {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed"}
    await write_status(client, metadata, **ended, message=f"Job failed:\n{'x' * 20000}\nValueError: no luck")
    message = (await caller.becomes(metadata, FAILED)).message
    assert len(message.encode()) < 2300
    assert "Job failed:" in message
    assert re.search(r"\nValueError: no luck( \(queued \d+s\))?\nwhole diagnosis: ", message)
    assert (await job_of(client, metadata))["status"]["message"].startswith("Job failed:")
