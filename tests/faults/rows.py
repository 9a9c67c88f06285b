"""The faults, each as a block during which the way to the cluster has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.api import ApiServer

from .proxies import HttpProxy, Spoil, TcpProxy, cut, kubeconfig_at, late, status, watching_from


@dataclass(frozen=True)
class Way:
    """From a connector to the API server: `kubeconfig` leads to `tcp`, that to `http`, and that to the server."""

    server: ApiServer
    tcp: TcpProxy
    http: HttpProxy
    kubeconfig: str


@asynccontextmanager
async def way_to(server: ApiServer, place: Path) -> AsyncIterator[Way]:
    """A way of its own, whole at first.

    Args:
        server: At its end.
        place: For the kubeconfig.
    """
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(HttpProxy(server.kubeconfig))
        tcp = await stack.enter_async_context(TcpProxy(http.port))
        yield Way(server, tcp, http, kubeconfig_at(tcp.port, server.kubeconfig, place))


Block = Callable[[Way], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class Row:
    """One fault; all times in seconds."""

    fault: str
    block: Block
    seconds: float = 5.0  # how long it lasts at least
    right: float = 6.0  # after its end, until an answer tells the right phase
    follows: float = 25.0  # after its end, until the view of the cluster follows again, and deletions are done

    @property
    def name(self) -> str:
        """For names of tasks and files."""
        return self.fault.replace(" ", "-").lower()


@asynccontextmanager
async def refused(way: Way) -> AsyncIterator[None]:
    """Nobody listens."""
    await way.tcp.refuse()
    yield
    await way.tcp.heal()


@asynccontextmanager
async def silent(way: Way) -> AsyncIterator[None]:
    """Connections open, and nothing comes."""
    way.tcp.swallow()
    yield
    await way.tcp.heal()


@asynccontextmanager
async def dead(way: Way) -> AsyncIterator[None]:
    """The connections that stand, watches and idle ones, are dead without a word; new ones work."""
    way.tcp.freeze()
    yield


@asynccontextmanager
async def restarted(way: Way) -> AsyncIterator[None]:
    """The API server is killed and comes back 3 s later."""
    restart = asyncio.create_task(asyncio.to_thread(way.server.restart, "--signal", "KILL", "--after", "3"))
    await asyncio.sleep(0.5)
    yield
    await restart


def spoilt(spoil: Spoil) -> Block:
    """The block during which requests and answers are spoilt; those under way are reset at its start."""

    @asynccontextmanager
    async def block(way: Way) -> AsyncIterator[None]:
        way.http.spoil = spoil
        way.http.drop()
        yield
        way.http.spoil = None

    return block


REFUSED = Row("refused", refused)
ERROR = Row("500", spoilt(status(500, "InternalError")))
DEAD = Row("watch dead", dead, right=25)
ROWS = [
    REFUSED,
    Row("reset in body", spoilt(cut)),
    Row("429 Retry-After", spoilt(status(429, "TooManyRequests", {"Retry-After": "1"}))),
    ERROR,
    Row("503", spoilt(status(503, "ServiceUnavailable"))),
    Row("slow 30 s", spoilt(late(30)), seconds=30),
    Row("silent", silent, right=25),  # its connections stay dead
    Row("410 on watch", spoilt(status(410, "Expired", only_watches=True))),
    DEAD,
    Row("stale version", spoilt(watching_from("1"))),
]
RESTARTED = Row("restarted", restarted)  # on its own: it is everybody's server
