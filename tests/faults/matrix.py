"""Runs rows of the matrix, and prints what came of each cell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from flyteidl.service.agent_pb2_grpc import add_AsyncAgentServiceServicer_to_server
from flytekit.extend.backend.connector_service import AsyncConnectorService

from flytekitplugins.kuberay.kube import ApiKubeClient
from tests.api import ApiServer, fresh_namespace

from .cells import CELLS
from .rows import Row, way_to
from .scene import Scene, connector

WRONG = "WRONG: "
Outcomes = dict[tuple[str, str], str]  # (fault, call)


async def run(rows: Iterable[Row], server: ApiServer, folder: Path) -> Outcomes:
    """What each cell saw, or why it is wrong; the rows run side by side."""
    cluster = await ApiKubeClient.open(server.kubeconfig)
    async with cluster, fresh_namespace(cluster) as namespace, _service() as channel:
        found = await asyncio.gather(*(_row(row, server, folder, namespace, channel, cluster) for row in rows))
    return {cell: outcome for outcomes in found for cell, outcome in outcomes.items()}


def format_matrix(outcomes: Mapping[tuple[str, str], str]) -> str:
    """A line for each cell: its fault, its call, what came of it."""
    width = max(len(fault) for fault, _ in outcomes)
    lines = [f"{fault:{width}}  x {call:6}  {outcome}" for (fault, call), outcome in outcomes.items()]
    wrong = sum(outcome.startswith(WRONG) for outcome in outcomes.values())
    return "\n".join([*lines, f"{len(outcomes)} cells, {len(outcomes) - wrong} right, {wrong} wrong"])


@asynccontextmanager
async def _service() -> AsyncIterator[grpc.aio.Channel]:
    """A channel to flytekit's own service, which serves every connector that is registered."""
    server = grpc.aio.server()
    add_AsyncAgentServiceServicer_to_server(AsyncConnectorService(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.stop(grace=None)


async def _row(  # noqa: PLR0913, PLR0917  # what all rows share
    row: Row, server: ApiServer, folder: Path, namespace: str, channel: grpc.aio.Channel, cluster: ApiKubeClient
) -> Outcomes:
    async with way_to(server, folder / row.name) as way:
        async with connector(channel, way.kubeconfig, row.name) as (caller, reads):
            scene = Scene(row, way, namespace, channel, cluster, caller, reads)
            cells = {call: cell(scene) for call, cell in CELLS.items()}
            await _step(cells)
            async with row.block(way):
                await asyncio.gather(_step(cells), asyncio.sleep(row.seconds))
            outcomes = await _step(cells)
        await asyncio.sleep(0.05)  # for the end of the watches' connections, for which aiohttp does not wait
    return {(row.fault, call): outcome for call, outcome in outcomes.items()}


async def _step(cells: dict[str, AsyncGenerator[str, None]]) -> dict[str, str]:
    """Lets each cell go on to its next `yield`; one that is wrong says so from then on."""
    outcomes = await asyncio.gather(*(_next(cell) for cell in cells.values()))
    for (call, _), outcome in zip(list(cells.items()), outcomes, strict=True):
        if outcome.startswith(WRONG):
            cells[call] = _repeating(outcome)
    return dict(zip(cells, outcomes, strict=True))


async def _next(cell: AsyncGenerator[str, None]) -> str:
    try:
        return await anext(cell)
    except grpc.aio.AioRpcError as error:
        return f"{WRONG}{error.code().name}: {' '.join((error.details() or '').split())[-300:]}"
    except Exception as error:  # noqa: BLE001  # a wrong cell must not hide the others
        return f"{WRONG}{type(error).__name__}: {error}"


async def _repeating(outcome: str) -> AsyncGenerator[str, None]:
    while True:
        yield outcome
