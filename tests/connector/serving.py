"""flytekit's own connector service with our connector, over gRPC on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from flyteidl.admin.agent_pb2 import (
    CreateTaskRequest,
    DeleteTaskRequest,
    GetTaskLogsRequest,
    GetTaskRequest,
    ListAgentsRequest,
    ListAgentsResponse,
    Resource,
    TaskCategory,
)
from flyteidl.core.execution_pb2 import TaskExecution
from flyteidl.service.agent_pb2_grpc import (
    AgentMetadataServiceStub,
    AsyncAgentServiceStub,
    add_AsyncAgentServiceServicer_to_server,
)
from flytekit.extend.backend.base_connector import ConnectorRegistry
from flytekit.extend.backend.connector_service import AsyncConnectorService

from flytekitplugins.kuberay.connector import RayConnector, register
from flytekitplugins.kuberay.connector.results import ResultFiles
from flytekitplugins.kuberay.connector.service import RayJobService
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient, KubeClient, Manifest
from flytekitplugins.kuberay.settings import Settings, parse_settings
from flytekitplugins.kuberay.wire import FlyteTask
from tests.kube.admin import merge_patch

CATEGORY = TaskCategory(name="ray", version=0)
IMPATIENT = parse_settings({"plugins": {"kuberay": {"api-timeout": "2s"}}})


class Caller:
    """Calls the connector as propeller does.

    Args:
        channel: To it.
        endpoint: Its address.
    """

    def __init__(self, channel: grpc.aio.Channel, endpoint: str) -> None:
        self._stub = AsyncAgentServiceStub(channel)
        self._metadata_stub = AgentMetadataServiceStub(channel)
        self.endpoint = endpoint

    async def create(self, task: FlyteTask) -> bytes:
        """The resource metadata of a new task."""
        request = CreateTaskRequest(
            inputs=task.inputs,
            template=task.template,
            output_prefix=task.output_prefix,
            task_execution_metadata=task.execution,
        )
        return await self.send_create(request)

    async def send_create(self, request: CreateTaskRequest) -> bytes:
        """The resource metadata that answers a request, whatever it holds."""
        return bytes((await self._stub.CreateTask(request, timeout=10)).resource_meta)

    async def get(self, metadata: bytes) -> Resource:
        """What the connector says of a task."""
        request = GetTaskRequest(task_category=CATEGORY, resource_meta=metadata)
        resource: Resource = (await self._stub.GetTask(request, timeout=10)).resource
        return resource

    async def becomes(self, metadata: bytes, phase: TaskExecution.Phase) -> Resource:
        """What the connector says of a task as soon as it is of that phase, or after 20 s: the watch takes moments."""
        for _ in range(400):
            resource = await self.get(metadata)
            if resource.phase == phase:
                break
            await asyncio.sleep(0.05)
        return resource

    async def delete(self, metadata: bytes) -> None:
        """Deletes the task."""
        await self._stub.DeleteTask(DeleteTaskRequest(task_category=CATEGORY, resource_meta=metadata), timeout=10)

    async def logs(self, metadata: bytes) -> list[str]:
        """What the connector gives as a task's log, line by line."""
        request = GetTaskLogsRequest(task_category=CATEGORY, resource_meta=metadata)
        return [line async for answer in self._stub.GetTaskLogs(request, timeout=10) for line in answer.body.results]

    async def list_agents(self) -> ListAgentsResponse:
        """Which task types are served; only a real process answers this."""
        response: ListAgentsResponse = await self._metadata_stub.ListAgents(ListAgentsRequest(), timeout=10)
        return response


def service_over(
    client: KubeClient, settings: Settings | None = None, results: ResultFiles | None = None, **options: Any
) -> RayJobService:
    """The connector's work over a client; `options` are RayJobService's."""
    return RayJobService(client, settings or Settings(), results or ResultFiles(), **options)


@asynccontextmanager
async def calling(endpoint: str) -> AsyncIterator[Caller]:
    """A caller of whatever serves there."""
    async with grpc.aio.insecure_channel(endpoint) as channel:
        yield Caller(channel, endpoint)


@asynccontextmanager
async def serving(service: RayJobService) -> AsyncIterator[Caller]:
    """A caller of a connector over this service; both end with the block."""
    ConnectorRegistry.register(RayConnector(service), override=True)
    server = grpc.aio.server()
    add_AsyncAgentServiceServicer_to_server(AsyncConnectorService(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    service.watch()
    try:
        async with calling(f"127.0.0.1:{port}") as caller:
            yield caller
    finally:
        await server.stop(grace=None)
        await service.close()
        register()
        await asyncio.sleep(0.05)  # for the end of the watch's connection, for which aiohttp does not wait


async def job_of(client: ApiKubeClient, metadata: bytes) -> Manifest:
    """The RayJob of a task as the cluster has it."""
    found = json.loads(metadata)
    return await client.get(RAYJOBS, found["namespace"], found["name"])


async def write_status(client: ApiKubeClient, metadata: bytes, **status: Any) -> None:
    """Plays the operator: the RayJob's status has these fields now."""
    found = json.loads(metadata)
    await merge_patch(client, RAYJOBS, found["namespace"], found["name"], {"status": status}, status=True)


async def gone(client: ApiKubeClient, metadata: bytes) -> bool:
    """Whether the task's RayJob goes within moments."""
    found = json.loads(metadata)
    for _ in range(20):
        if all(job["metadata"]["uid"] != found["uid"] for job in await client.list(RAYJOBS, found["namespace"])):
            return True
        await asyncio.sleep(0.05)
    return False
