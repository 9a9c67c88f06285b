"""A connector over a way of its own to the cluster, and what a test does around it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from flyteidl.admin.agent_pb2 import DeleteTaskRequest, GetTaskRequest, Resource, TaskCategory
from flyteidl.core.execution_pb2 import TaskExecution
from flytekit.extend.backend import base_connector
from flytekit.extend.backend.base_connector import ConnectorRegistry
from typing_extensions import override

from flytekitplugins.kuberay.cluster.names import NODE_KEY, node_key
from flytekitplugins.kuberay.connector import RayConnector
from flytekitplugins.kuberay.connector.service import RayJobService
from flytekitplugins.kuberay.kube import RAYJOBS, ApiError, ApiKubeClient, Manifest, Resource as Kind, Selector
from flytekitplugins.kuberay.wire import FlyteTask
from tests.connector.samples import flyte_task
from tests.connector.seam import Seam
from tests.connector.serving import Caller, service_over, write_status

from .rows import Row, Way

DEADLINE = 10.0  # propeller's, for each call
UP = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
T = TypeVar("T")


class TypedConnector(RayConnector):
    """Ours for a task type of its own: flytekit's registry, and so its service, knows one connector for a type."""

    name = "KubeRay Connector in a fault"

    def __init__(self, service: RayJobService, task_type: str) -> None:
        super().__init__(service)
        self._task_category = base_connector.TaskCategory(task_type, 0)


class TypedCaller(Caller):
    """Calls the connector of a task type."""

    def __init__(self, channel: grpc.aio.Channel, task_type: str) -> None:
        super().__init__(channel, "")
        self._category = TaskCategory(name=task_type, version=0)

    @override
    async def get(self, metadata: bytes) -> Resource:
        request = GetTaskRequest(task_category=self._category, resource_meta=metadata)
        resource: Resource = (await self._stub.GetTask(request, timeout=DEADLINE)).resource
        return resource

    @override
    async def delete(self, metadata: bytes) -> None:
        request = DeleteTaskRequest(task_category=self._category, resource_meta=metadata)
        await self._stub.DeleteTask(request, timeout=DEADLINE)


class Reads(Seam):
    """Remembers which objects were read one by one."""

    def __init__(self, inner: ApiKubeClient) -> None:
        super().__init__(inner)
        self.read: list[str] = []

    @override
    async def get(self, resource: Kind, namespace: str | None, name: str, *, timeout: float = 5.0) -> Manifest:
        self.read.append(name)
        return await super().get(resource, namespace, name, timeout=timeout)


@asynccontextmanager
async def connector(
    channel: grpc.aio.Channel, kubeconfig: str, task_type: str
) -> AsyncIterator[tuple[TypedCaller, Reads]]:
    """A caller, of a new connector for a task type, and the connector's client; the channel leads to flytekit."""
    reads = Reads(await ApiKubeClient.open(kubeconfig))
    service = service_over(reads)
    typed = TypedConnector(service, task_type)
    ConnectorRegistry.register(typed, override=True)
    service.watch()
    try:
        yield TypedCaller(channel, task_type), reads
    finally:
        ConnectorRegistry._REGISTRY.pop(typed.task_category)
        await service.close()


@dataclass
class Scene:
    """A row of the matrix at work."""

    row: Row
    way: Way
    namespace: str
    channel: grpc.aio.Channel
    cluster: ApiKubeClient  # an administrator's, which no fault but a restart touches
    caller: TypedCaller
    reads: Reads

    def task(self, cell: str, attempt: int = 0) -> FlyteTask:
        """The cell's own."""
        return flyte_task(self.namespace, node=f"{self.row.name}-{cell}", attempt=attempt, type=self.row.name)

    async def running(self, cell: str) -> bytes:
        """The metadata of the cell's task, which runs."""
        metadata = await self.caller.create(self.task(cell))
        await self.writes(metadata, **UP)
        await self.until(lambda: self.is_of(metadata, TaskExecution.RUNNING), "it never ran", 10)
        return metadata

    async def is_of(self, metadata: bytes, phase: TaskExecution.Phase) -> bool:
        """Whether the connector says that the task is of that phase."""
        return (await self.caller.get(metadata)).phase == phase

    async def writes(self, metadata: bytes, **status: Any) -> None:
        """Writes that as the operator, as soon as the server lets it."""
        await insisting(lambda: write_status(self.cluster, metadata, **status))

    async def jobs(self, cell: str) -> list[str]:
        """The names of the RayJobs of the cell's node, all attempts."""
        selector = Selector(f"{NODE_KEY}={node_key(self.task(cell).output_prefix)}")
        found = await insisting(lambda: self.cluster.list(RAYJOBS, self.namespace, selector))
        return [job["metadata"]["name"] for job in found]

    async def until(self, holds: Callable[[], Awaitable[bool]], otherwise: str, seconds: float) -> float:
        """Seconds until it holds; longer than that many is an error."""
        start = time.monotonic()
        while not await holds():
            assert time.monotonic() - start < seconds, f"{otherwise}, not within {seconds:g} s"
            await asyncio.sleep(0.05)
        return time.monotonic() - start


async def insisting(call: Callable[[], Awaitable[T]]) -> T:
    """What the call gives, tried for 40 s: a restart of the server is the administrator's fault, too."""
    end = time.monotonic() + 40
    while True:
        try:
            return await call()
        except ApiError as error:
            if not error.transient or time.monotonic() > end:
                raise
        await asyncio.sleep(0.1)
