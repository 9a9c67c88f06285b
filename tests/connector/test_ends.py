"""Ends that KubeRay does not tell of: declared after a second look, cleaned up, kept in a capsule, never from a lag."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flyteidl.core.execution_pb2 import TaskExecution
from typing_extensions import override

from flytekitplugins.kuberay.cluster.names import ATTEMPT_KEY
from flytekitplugins.kuberay.kube import PODS, RAYJOBS, ApiKubeClient, Page, Resource, Selector, WatchEvent
from flytekitplugins.kuberay.kube.client import ALL
from flytekitplugins.kuberay.settings import parse_settings
from tests.api import ApiServer

from .pods import COMING, UP, moment, provisioned, put_event, put_pod, ready, write_pod
from .results import Denied, put_error, put_outputs
from .samples import flyte_task
from .seam import Seam
from .serving import Caller, gone, job_of, service_over, serving, write_status

RUNNING, SUCCEEDED, FAILED, RETRYABLE = (
    TaskExecution.RUNNING,
    TaskExecution.SUCCEEDED,
    TaskExecution.FAILED,
    TaskExecution.RETRYABLE_FAILED,
)
LONG_AGO, TO_COME = provisioned(hours=-1), provisioned(hours=1)
"""When the cluster was up: a head made now is a new one, or the one that the job began with."""

SECRET = "hunter22-hunter22"


class Blind(Seam):
    """A cluster whose watches tell nothing of one kind after, or of, the first list; what is read directly is told.

    Args:
        inner: The client of a real API server.
        blind_for: The kind.
        lists: Whether the view's first list is told.
    """

    def __init__(self, inner: ApiKubeClient, blind_for: Resource, *, lists: bool) -> None:
        super().__init__(inner)
        self._blind_for, self._lists = blind_for, lists

    @override
    async def list_page(
        self, resource: Resource, namespace: str | None, selector: Selector = ALL, **options: Any
    ) -> Page:
        page = await super().list_page(resource, namespace, selector, **options)
        if resource == self._blind_for and not self._lists and ATTEMPT_KEY not in (selector.labels or ""):
            return replace(page, items=[])
        return page

    @override
    async def watch(
        self, resource: Resource, namespace: str | None, selector: Selector = ALL, **options: Any
    ) -> AsyncGenerator[WatchEvent, None]:
        if resource == self._blind_for:
            await asyncio.sleep(3600)
        async for event in super().watch(resource, namespace, selector, **options):
            yield event


class Loud(Seam):
    """A cluster whose containers all say this."""

    @override
    async def read_log(self, namespace: str, pod: str, **options: Any) -> str:
        return f"logging in\nwith {SECRET}\nno luck"


async def test_a_lost_head_ends_the_task(caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path) -> None:
    """At once: KubeRay would run the user's code again. The capsule is written, then the RayJob goes."""
    task = flyte_task(namespace, str(tmp_path))
    metadata = await caller.create(task)
    head = await put_pod(client, metadata, **ready())
    await put_event(client, metadata, "RayJob", json.loads(metadata)["name"], "Odd", "something odd")
    await write_status(client, metadata, **UP, **LONG_AGO, startTime=moment(hours=-1))
    resource = await caller.becomes(metadata, RETRYABLE)
    place = f"{task.output_prefix}/kuberay-diagnosis.txt"
    assert resource.phase == RETRYABLE
    assert f"the job can't go on: pod {head} is a new head, the one that ran the job is gone (" in resource.message
    assert resource.message.endswith(f"\nwhole diagnosis: {place}")
    assert resource.custom_info["diagnosis"] == place
    capsule = Path(place).read_text(encoding="utf-8")
    assert [
        part for part in ("is a new head", f"head: {head}: Running", "Odd: something odd") if part not in capsule
    ] == []
    assert await gone(client, metadata)
    assert (await caller.get(metadata)).message == resource.message


async def test_a_connector_that_was_started_anew_says_the_same(
    caller: Caller, api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """The RayJob is gone by then; the capsule tells, and stays as it is."""
    task = flyte_task(namespace, str(tmp_path))
    metadata = await caller.create(task)
    await put_pod(client, metadata, **ready())
    await write_status(client, metadata, **UP, **LONG_AGO)
    first = await caller.becomes(metadata, RETRYABLE)
    assert await gone(client, metadata)
    capsule = Path(first.custom_info["diagnosis"])
    before = capsule.read_text(encoding="utf-8")
    async with serving(service_over(Seam(await ApiKubeClient.open(api_server.kubeconfig)))) as second:
        again = await second.get(metadata)
    assert (again.phase, again.message) == (first.phase, first.message)
    assert again.custom_info["diagnosis"] == first.custom_info["diagnosis"]
    assert capsule.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("left", "phase"),
    [
        pytest.param("outputs", SUCCEEDED, id="it was done"),
        pytest.param("error", FAILED, id="it had failed for the user's own reason"),
    ],
)
async def test_the_result_files_decide_of_a_lost_head(
    caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path, left: str, phase: TaskExecution.Phase
) -> None:
    """And the RayJob goes: KubeRay would run the code again."""
    task = flyte_task(namespace, str(tmp_path))
    metadata = await caller.create(task)
    put_outputs(task.output_prefix) if left == "outputs" else put_error(
        task.output_prefix, "USER:ValueError", "no luck"
    )
    await put_pod(client, metadata, **ready())
    await write_status(client, metadata, **UP, **LONG_AGO)
    assert (await caller.becomes(metadata, phase)).phase == phase
    assert await gone(client, metadata)


async def test_what_kuberay_ended_is_kept(
    caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """For its ttl: somebody may want to look."""
    metadata = await caller.create(flyte_task(namespace, str(tmp_path)))
    await write_status(client, metadata, jobDeploymentStatus="Failed", reason="SubmissionFailed", message="no")
    assert (await caller.becomes(metadata, RETRYABLE)).phase == RETRYABLE
    assert not await gone(client, metadata)


async def test_what_kuberay_refuses_in_mid_run_is_not(
    caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """It would never look at it again, and its cluster would stand for ever."""
    metadata = await caller.create(flyte_task(namespace, str(tmp_path)))
    await put_pod(client, metadata, **ready())
    await write_status(client, metadata, **UP, **TO_COME)
    assert (await caller.becomes(metadata, RUNNING)).phase == RUNNING
    await write_status(
        client, metadata, jobDeploymentStatus="ValidationFailed", reason="ValidationFailed", message="no"
    )
    resource = await caller.becomes(metadata, FAILED)
    assert "KubeRay refuses it [ValidationFailed] no" in resource.message
    assert await gone(client, metadata)


class TestViewsThatLag:
    """Pods and RayJobs are watched apart, so that one may be known long before the other."""

    async def test_a_head_that_is_not_known_yet_is_not_lost(
        self, api_server: ApiServer, client: ApiKubeClient, namespace: str
    ) -> None:
        """It is looked for directly, before the task ends."""
        seam = Blind(await ApiKubeClient.open(api_server.kubeconfig), PODS, lists=False)
        async with serving(service_over(seam)) as caller:
            metadata = await caller.create(flyte_task(namespace))
            await put_pod(client, metadata, **ready())
            await write_status(client, metadata, **UP, **TO_COME)
            assert (await caller.becomes(metadata, RUNNING)).phase == RUNNING
            await asyncio.sleep(0.2)
            assert (await caller.get(metadata)).phase == RUNNING
            assert not await gone(client, metadata)

    async def test_a_cluster_that_was_shut_down_after_the_end_lost_nothing(
        self, caller: Caller, api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
    ) -> None:
        """With ttl 0 the pods go at once, perhaps before the success is known."""
        task = flyte_task(namespace, str(tmp_path), outputs=True)
        metadata = await caller.create(task)
        await write_status(client, metadata, **UP, **LONG_AGO)
        seam = Blind(await ApiKubeClient.open(api_server.kubeconfig), RAYJOBS, lists=True)
        async with serving(service_over(seam)) as late:
            await asyncio.sleep(0.3)  # until its views are filled: the RayJob runs, no pod is there
            put_outputs(task.output_prefix)
            await write_status(client, metadata, jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
            resource = await late.get(metadata)
        assert resource.phase == SUCCEEDED
        assert not await gone(client, metadata)

    async def test_what_can_not_be_confirmed_is_not_declared(
        self, caller: Caller, seam: Seam, client: ApiKubeClient, namespace: str
    ) -> None:
        """While the API server is away, the task goes on as far as anybody knows."""
        metadata = await caller.create(flyte_task(namespace))
        await put_pod(client, metadata, **ready())
        await write_status(client, metadata, **UP, **TO_COME)
        assert (await caller.becomes(metadata, RUNNING)).phase == RUNNING
        await write_status(client, metadata, **LONG_AGO)
        seam.away = True
        await asyncio.sleep(0.3)
        assert (await caller.get(metadata)).phase == RUNNING
        assert await job_of(client, metadata)

    async def test_the_cluster_before_a_suspension_does_not_count(
        self, caller: Caller, client: ApiKubeClient, namespace: str
    ) -> None:
        """Its head may take long to go, on a node that is gone."""
        metadata = await caller.create(flyte_task(namespace))
        await put_pod(client, metadata, phase="Failed", reason="Evicted")
        await write_status(client, metadata, **{**UP, "rayClusterName": "train-c2"}, jobId="j")
        assert (await caller.becomes(metadata, RUNNING)).phase == RUNNING


async def test_a_success_that_we_declare_stays_one(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """Of a job that SidecarMode ended before its workers: its RayJob is deleted, so that no status tells it again."""
    metadata = await caller.create(flyte_task(namespace))
    await write_status(client, metadata, **COMING)
    done = {"name": "ray-job-submitter", "ready": False, "restartCount": 0, "image": "", "imageID": ""}
    terminated = {"exitCode": 0, "startedAt": moment(), "finishedAt": moment()}
    state: dict[str, Any] = {"phase": "Running", "containerStatuses": [{**done, "state": {"terminated": terminated}}]}
    await put_pod(client, metadata, beside=["ray-job-submitter"], **state)
    assert (await caller.becomes(metadata, SUCCEEDED)).phase == SUCCEEDED
    assert await gone(client, metadata)
    await asyncio.sleep(0.2)
    assert (await caller.get(metadata)).phase == SUCCEEDED


@pytest.fixture
async def denied(api_server: ApiServer) -> AsyncIterator[Caller]:
    """A caller of a connector that may not read the store."""
    seam = Seam(await ApiKubeClient.open(api_server.kubeconfig))
    async with serving(service_over(seam, results=Denied())) as caller:
        yield caller


async def test_a_gone_rayjob_waits_for_a_store_that_tells_nothing(
    denied: Caller, client: ApiKubeClient, namespace: str
) -> None:
    """For some minutes: it may have succeeded, and its ttl be over."""
    metadata = await denied.create(flyte_task(namespace))
    await client.delete(RAYJOBS, namespace, json.loads(metadata)["name"])
    await asyncio.sleep(0.2)
    resource = await denied.get(metadata)
    assert resource.phase == RUNNING
    assert "the RayJob is gone, what became of the task is not known yet: PermissionError: denied" in resource.message


async def test_a_lost_head_waits_for_a_store_that_tells_nothing(
    denied: Caller, client: ApiKubeClient, namespace: str
) -> None:
    """The job may have been done before; the RayJob stays meanwhile."""
    metadata = await denied.create(flyte_task(namespace))
    head = await put_pod(client, metadata, **ready())
    await write_status(client, metadata, **UP, **TO_COME)
    assert (await denied.becomes(metadata, RUNNING)).phase == RUNNING
    await write_pod(client, metadata, head, phase="Failed", reason="Evicted")
    await asyncio.sleep(0.3)
    resource = await denied.get(metadata)
    assert resource.phase == RUNNING
    assert "Evicted" in resource.message
    assert "what became of the task is not known yet: PermissionError: denied" in resource.message
    assert not await gone(client, metadata)


async def test_a_task_in_a_namespace_that_nobody_watches_is_looked_at_directly(
    caller: Caller, api_server: ApiServer, client: ApiKubeClient, namespace: str
) -> None:
    """As after the setting was narrowed: no pod is known, so none is taken for gone."""
    metadata = await caller.create(flyte_task(namespace))
    await write_status(client, metadata, **UP, **TO_COME)
    narrow = parse_settings({"plugins": {"kuberay": {"namespaces": ["default"]}}})
    seam = Seam(await ApiKubeClient.open(api_server.kubeconfig))
    async with serving(service_over(seam, narrow)) as other:
        assert (await other.becomes(metadata, RUNNING)).phase == RUNNING
        await write_status(client, metadata, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed")
        resource = await other.get(metadata)
    assert resource.phase == FAILED


async def test_no_secret_is_told(api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path) -> None:
    """In the message and the capsule: of the task's variables, in KubeRay's text and in logs."""
    container = {"image": "example/image:1", "args": ["a"], "env": [{"key": "DB_PASSWORD", "value": SECRET}]}
    async with serving(service_over(Loud(await ApiKubeClient.open(api_server.kubeconfig)))) as caller:
        task = flyte_task(namespace, str(tmp_path), container=container)
        metadata = await caller.create(task)
        await put_pod(client, metadata, **ready())
        ended = {
            "jobDeploymentStatus": "Failed",
            "jobStatus": "FAILED",
            "reason": "AppFailed",
            "rayClusterName": "train-c1",
        }
        await write_status(client, metadata, **ended, message=f"it ended: {SECRET}")
        resource = await caller.becomes(metadata, FAILED)
    capsule = Path(resource.custom_info["diagnosis"]).read_text(encoding="utf-8")
    assert "it ended: [redacted]" in resource.message
    assert resource.message.partition("container ray:\n")[2].startswith("logging in\nwith [redacted]\nno luck\n")
    assert "logging in\nwith [redacted]\nno luck\n" in capsule
    assert SECRET not in resource.message + capsule
