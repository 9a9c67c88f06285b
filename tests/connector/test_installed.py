"""Which KubeRay the cluster has: read once, and again when it may be another; nobody waits long for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from typing_extensions import override

from flytekitplugins.kuberay.cluster.operator import Operator
from flytekitplugins.kuberay.connector.installed import InstalledOperator
from flytekitplugins.kuberay.kube import Call, Forbidden, Manifest, Resource
from tests.cluster.test_operator import NEWER, schema

from .seam import Seam

NO_RIGHT = Forbidden(Call("get", "/openapi/v3/apis/ray.io/v1"), "no")


class Served(Seam):
    """A cluster whose RayJobs are of the first of these versions at first, and of the last one in the end."""

    def __init__(self, *versions: str) -> None:
        super().__init__(None)
        self.away, self.readings = False, 0
        self.answer = asyncio.Event()
        self.answer.set()
        self._versions = list(versions)

    @override
    async def schema(self, resource: Resource, kind: str, *, timeout: float = 10.0) -> Manifest:
        self.readings += 1
        if self.faults.get("schema"):
            raise self.faults["schema"].pop(0)
        await self.answer.wait()
        version = self._versions.pop(0) if len(self._versions) > 1 else self._versions[0]
        return schema(*NEWER[version])


@asynccontextmanager
async def looking(client: Seam, **options: Any) -> AsyncIterator[InstalledOperator]:
    """A view of the cluster's operator, which ends with the block."""
    installed = InstalledOperator(client, **options)
    yield installed
    await installed.stop()


async def test_it_is_read_once() -> None:
    """For as many creates as there are."""
    client = Served("1.5")
    async with looking(client) as installed:
        versions = [(await installed.known()).version for _ in range(3)]
    assert (versions, client.readings) == (["1.5"] * 3, 1)


async def test_creates_at_once_share_a_reading() -> None:
    """The first create brings others with it."""
    client = Served("1.5")
    async with looking(client) as installed:
        operators = await asyncio.gather(*(installed.known() for _ in range(5)))
    assert ([operator.version for operator in operators], client.readings) == (["1.5"] * 5, 1)


async def test_it_is_read_again_in_the_background() -> None:
    """What was seen counts until what is new is there."""
    client = Served("1.5", "1.6")
    async with looking(client, lasts=0.0, pause=0.0) as installed:
        versions = [(await installed.known()).version for _ in range(2)]
        await asyncio.sleep(0.01)
        versions.append((await installed.known()).version)
    assert versions == ["1.5", "1.5", "1.6"]


@pytest.mark.parametrize(
    ("pause", "readings"),
    [pytest.param(0.0, 2, id="at once"), pytest.param(60.0, 1, id="not more often than it may be")],
)
async def test_in_doubt_it_is_read_again(pause: float, readings: int) -> None:
    """A field was not known: KubeRay may have been upgraded since."""
    client = Served("1.5", "1.6")
    async with looking(client, pause=pause) as installed:
        await installed.known()
        installed.doubt()
        await installed.known()
        await asyncio.sleep(0.01)
    assert client.readings == readings


async def test_a_fault_is_no_fault_of_a_create() -> None:
    """Nothing is known then; what was known before a fault still counts."""
    client = Served("1.5")
    client.faults["schema"] = [NO_RIGHT]
    async with looking(client, lasts=0.0, pause=0.0) as installed:
        assert await installed.known() == Operator()
        assert (await installed.known()).version == "1.5"
        client.faults["schema"] = [NO_RIGHT]
        await installed.known()
        await asyncio.sleep(0.01)
        assert (await installed.known()).version == "1.5"


async def test_a_server_that_refuses_is_not_asked_at_each_create() -> None:
    """It answers the same for a while."""
    client = Served("1.5")
    client.faults["schema"] = [NO_RIGHT]
    async with looking(client) as installed:
        assert [await installed.known() for _ in range(3)] == [Operator()] * 3
    assert client.readings == 1


async def test_a_slow_server_is_not_waited_for() -> None:
    """A create goes without; the next one has it."""
    client = Served("1.5")
    client.answer.clear()
    async with looking(client, patience=0.05) as installed:
        assert await installed.known() == Operator()  # the reading itself would never end
        client.answer.set()
        assert (await installed.known()).version == "1.5"
    assert client.readings == 1


async def test_a_reading_ends_with_the_connector() -> None:
    """However long it would have taken."""
    client = Served("1.5")
    client.answer.clear()
    async with looking(client) as installed:
        installed.look()
        await asyncio.sleep(0)
    assert client.readings == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}
