"""flytekit's own connector service with our connector, over gRPC on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from flyteidl.admin.agent_pb2 import CreateTaskRequest, DeleteTaskRequest, GetTaskRequest, Resource, TaskCategory
from flyteidl.service.agent_pb2_grpc import AsyncAgentServiceStub, add_AsyncAgentServiceServicer_to_server
from flytekit.extend.backend.base_connector import ConnectorRegistry
from flytekit.extend.backend.connector_service import AsyncConnectorService

from flytekitplugins.kuberay.connector import RayConnector
from flytekitplugins.kuberay.connector.service import RayJobService
from flytekitplugins.kuberay.wire import FlyteTask


class Caller:
    """Calls the connector as propeller does."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = AsyncAgentServiceStub(channel)

    async def create(self, task: FlyteTask) -> bytes:
        """The resource metadata of a new task."""
        request = CreateTaskRequest(
            inputs=task.inputs,
            template=task.template,
            output_prefix=task.output_prefix,
            task_execution_metadata=task.execution,
        )
        response = await self._stub.CreateTask(request, timeout=10)
        return bytes(response.resource_meta)

    async def get(self, metadata: bytes) -> Resource:
        """What the connector says of a task."""
        category = TaskCategory(name="ray", version=0)
        request = GetTaskRequest(task_category=category, resource_meta=metadata)
        resource: Resource = (await self._stub.GetTask(request, timeout=10)).resource
        return resource

    async def delete(self, metadata: bytes) -> None:
        """Nothing; the task is being deleted."""
        category = TaskCategory(name="ray", version=0)
        await self._stub.DeleteTask(DeleteTaskRequest(task_category=category, resource_meta=metadata), timeout=10)


@asynccontextmanager
async def serving(service: RayJobService) -> AsyncIterator[Caller]:
    """A caller of a connector over this service; it ends with the block."""
    ConnectorRegistry.register(RayConnector(service), override=True)
    server = grpc.aio.server()
    add_AsyncAgentServiceServicer_to_server(AsyncConnectorService(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    service.watch()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield Caller(channel)
    finally:
        await server.stop(grace=None)
        await service.close()
