"""Prints what the connector costs, as ratios measured in one run beside a connector that does nothing.

Both are flytekit's own service, each in a process of its own, and take turns. The cluster is a real kube-apiserver
with 1,000 RayJobs. Nothing is asserted.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import grpc
from flyteidl.core.execution_pb2 import TaskExecution
from flyteidl.service.agent_pb2_grpc import add_AsyncAgentServiceServicer_to_server
from flytekit.extend.backend.base_connector import AsyncConnectorBase, ConnectorRegistry, Resource
from flytekit.extend.backend.connector_service import AsyncConnectorService

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.connector.metadata import JobMetadata
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient
from flytekitplugins.kuberay.settings import parse_settings
from flytekitplugins.kuberay.wire import FlyteTask
from tests.api import NoApiServerError, fresh_namespace, running_api_server
from tests.connector.samples import flyte_task
from tests.connector.seam import Seam
from tests.connector.serving import Caller, calling, service_over, serving

TASKS, CREATES, TURNS, SECONDS = 1000, 60, 3, 2.0
CALLERS = (1, 32)
SUSPENDED = parse_settings({"plugins": {"kuberay": {"ray-job-patch": {"spec": {"suspend": True}}}}})
"""So that no operator, where there is one, makes clusters of them."""


class Idle(AsyncConnectorBase):
    """Answers without looking."""

    name = "Idle"

    def __init__(self) -> None:
        super().__init__(metadata_type=JobMetadata, task_type_name="ray")  # type: ignore[arg-type]  # flytekit's hint

    def create(self, *args: object, **kwargs: object) -> JobMetadata:
        """Nothing that is used."""
        raise NotImplementedError

    async def get(self, *args: object, **kwargs: object) -> Resource:  # type: ignore[override]  # a coroutine may be
        """That it runs."""
        return Resource(TaskExecution.RUNNING, "running")

    def delete(self, *args: object, **kwargs: object) -> None:
        """Nothing."""


async def serve(side: str) -> None:
    """Serves until standard input ends, and prints the port first."""
    async with AsyncExitStack() as stack:
        if side == "ours":
            client = await ApiKubeClient.open(os.environ["KUBECONFIG"])
            endpoint = (await stack.enter_async_context(serving(service_over(client)))).endpoint
        else:
            ConnectorRegistry.register(Idle(), override=True)
            server = grpc.aio.server()
            add_AsyncAgentServiceServicer_to_server(AsyncConnectorService(), server)
            endpoint = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
            await server.start()
        print(endpoint, flush=True)
        await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def process(side: str, kubeconfig: str) -> AsyncIterator[Caller]:
    """A caller of a connector in a process of its own."""
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.connector", side,
        env={**os.environ, "KUBECONFIG": kubeconfig, "FLYTE_SDK_RICH_TRACEBACKS": "0"},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert started.stdin is not None and started.stdout is not None
    try:
        async with calling((await started.stdout.readline()).decode().strip()) as caller:
            yield caller
    finally:
        started.stdin.close()
        await started.wait()


async def rate(caller: Caller, tasks: list[bytes], callers: int) -> float:
    """GetTasks a second, asked by so many at once, of one task after the other."""
    turn, count, end = itertools.cycle(tasks), 0, time.perf_counter() + SECONDS

    async def ask() -> None:
        nonlocal count
        while time.perf_counter() < end:
            await caller.get(next(turn))
            count += 1

    start = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(callers)))
    return count / (time.perf_counter() - start)


async def bench_get(sides: Mapping[str, Caller], tasks: list[bytes]) -> None:
    """Prints how many GetTasks a second we answer, beside a connector that does nothing."""
    for callers in CALLERS:
        got: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(TURNS + 1):
            for name, caller in sides.items():
                each = await rate(caller, tasks, callers)
                got[name] += [each] if turn else []  # the first turn warms up
        ours, idle = (statistics.median(got[name]) for name in ("ours", "idle"))
        print(
            f"GetTask a second, {callers} at once, this connector / one that does nothing: {ours / idle:.2f}"
            f" ({ours:.0f} / {idle:.0f})",
            flush=True,
        )


async def bench_calls(seam: Seam, caller: Caller, tasks: list[bytes]) -> None:
    """Prints how many calls to the API server a GetTask costs."""
    seam.calls.clear()
    for metadata in tasks:
        await caller.get(metadata)
    print(f"API calls per GetTask, {len(tasks)} RayJobs: {len(seam.calls) / len(tasks):.3f} (goal: 0)", flush=True)


async def seconds(call: Callable[[], Awaitable[object]]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    await call()
    return time.perf_counter() - start


async def bench_create(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """Prints what a CreateTask costs, beside a bare POST of the same RayJob."""
    taken: dict[str, list[float]] = {"ours": [], "bare": []}
    for number in range(CREATES):
        task = flyte_task(namespace, node=f"c{number}")
        bare = build_ray_job(flyte_task(namespace, node=f"b{number}"), SUSPENDED)
        taken["ours"].append(await seconds(lambda task=task: caller.create(task)))  # type: ignore[misc]  # binds task
        taken["bare"].append(await seconds(lambda job=bare: client.create(RAYJOBS, namespace, job)))  # type: ignore[misc]
    mine, least = (statistics.median(taken[name]) * 1000 for name in ("ours", "bare"))
    print(f"CreateTask / bare POST of the same RayJob: {mine / least:.2f} ({mine:.1f} / {least:.1f} ms)", flush=True)


async def created(caller: Caller, tasks: list[FlyteTask]) -> list[bytes]:
    """The metadata of so many new tasks, sixteen at once."""
    slots = asyncio.Semaphore(16)

    async def one(task: FlyteTask) -> bytes:
        async with slots:
            return await caller.create(task)

    return await asyncio.gather(*(one(task) for task in tasks))


async def measure(kubeconfig: str) -> None:
    """Prints all."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(await ApiKubeClient.open(kubeconfig))
        namespace = await stack.enter_async_context(fresh_namespace(client))
        seam = Seam(await ApiKubeClient.open(kubeconfig))
        caller = await stack.enter_async_context(serving(service_over(seam, SUSPENDED)))
        tasks = await created(caller, [flyte_task(namespace, node=f"n{number}") for number in range(TASKS)])
        await asyncio.sleep(1)  # until the watch has heard of the last
        await bench_calls(seam, caller, tasks)
        await bench_create(caller, client, namespace)
        sides = {name: await stack.enter_async_context(process(name, kubeconfig)) for name in ("ours", "idle")}
        await bench_get(sides, tasks)


def main() -> None:
    """Serves one side where an argument names it, else measures both."""
    if sys.argv[1:]:
        asyncio.run(serve(sys.argv[1]))
        return
    try:
        with running_api_server() as api_server:
            asyncio.run(measure(api_server.kubeconfig))
    except NoApiServerError as error:
        print(f"the connector was not measured: {error}")


if __name__ == "__main__":
    main()
