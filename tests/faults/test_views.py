"""A view of the cluster that is behind the other one must not end a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from flyteidl.core.execution_pb2 import TaskExecution
from typing_extensions import override

from flytekitplugins.kuberay.cluster.names import ATTEMPT_KEY, MANAGED_BY, MANAGER
from flytekitplugins.kuberay.kube import PODS, ApiKubeClient, Manifest, Resource, Selector, WatchEvent
from flytekitplugins.kuberay.kube.client import ALL
from tests.api import ApiServer
from tests.connector.samples import flyte_task
from tests.connector.seam import Seam
from tests.connector.serving import Caller, job_of, service_over, serving, write_status
from tests.kube.samples import core, pod_spec

RUNNING, RETRYABLE = TaskExecution.RUNNING, TaskExecution.RETRYABLE_FAILED


class Blind(Seam):
    """Whose watch of pods is open, and tells nothing any more."""

    @override
    async def watch(
        self, resource: Resource, namespace: str | None, selector: Selector = ALL, **options: Any
    ) -> AsyncGenerator[WatchEvent, None]:
        async for event in super().watch(resource, namespace, selector, **options):
            if resource != PODS or event.type == "OPENED":
                yield event


@pytest.fixture
async def blind(api_server: ApiServer, namespace: str) -> AsyncIterator[Caller]:
    """A caller of a connector that sees RayJobs and no pods."""
    async with serving(service_over(Blind(await ApiKubeClient.open(api_server.kubeconfig)))) as caller:
        yield caller


def up() -> Manifest:
    """The status of a job whose pods are all up since a minute from now: the pods of a test come before."""
    moment = (datetime.now(timezone.utc) + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    provisioned = {"type": "RayClusterProvisioned", "status": "True", "lastTransitionTime": moment, "reason": "Up"}
    cluster = {"conditions": [{**provisioned, "message": ""}]}
    return {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayClusterStatus": cluster}


async def make_head(client: ApiKubeClient, namespace: str, metadata: bytes) -> None:
    """Makes the head pod of the task."""
    key = (await job_of(client, metadata))["metadata"]["labels"][ATTEMPT_KEY]
    labels = {MANAGED_BY: MANAGER, ATTEMPT_KEY: key, "ray.io/node-type": "head"}
    await client.create(
        PODS, namespace, core("Pod", "head", spec=pod_spec()) | {"metadata": {"name": "head", "labels": labels}}
    )


async def test_a_head_that_is_not_known_yet_is_not_lost(blind: Caller, client: ApiKubeClient, namespace: str) -> None:
    """The RayJob says that all pods were up, the view of pods holds none: they are looked up before a job is ended."""
    metadata = await blind.create(flyte_task(namespace))
    await make_head(client, namespace, metadata)
    await write_status(client, metadata, **up())
    await blind.becomes(metadata, RUNNING)
    await asyncio.sleep(0.3)
    assert (await blind.get(metadata)).phase == RUNNING


async def test_a_head_that_is_gone_is_lost(blind: Caller, client: ApiKubeClient, namespace: str) -> None:
    """The same, and nobody has a head."""
    metadata = await blind.create(flyte_task(namespace))
    await write_status(client, metadata, **up())
    resource = await blind.becomes(metadata, RETRYABLE)
    assert "the head pod is gone" in resource.message
