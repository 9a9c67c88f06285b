"""Real proxies in front of a real API server: one that breaks connections, and one that spoils requests and answers."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import aiohttp
import yaml
from aiohttp import web
from typing_extensions import Self

_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "host", "content-length"})
_RESET = struct.pack("ii", 1, 0)  # with these for SO_LINGER a close is a reset


def reset(transport: asyncio.BaseTransport | None) -> None:
    """Resets the connection, where the other side has not gone (None)."""
    if not isinstance(transport, asyncio.Transport):
        return
    connection = transport.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()


class TcpProxy:
    """Passes bytes both ways between its clients and a port of this machine, until it is told otherwise."""

    def __init__(self, target: int) -> None:
        self._target, self.port = target, 0
        self._open: dict[asyncio.StreamWriter, asyncio.Event] = {}  # set: nothing goes through any more
        self._is_hole = False

    async def refuse(self) -> None:
        """Connections are refused, those that stand are reset."""
        self._server.close()
        for writer in list(self._open):
            reset(writer.transport)

    def freeze(self) -> None:
        """Connections that stand fall silent for ever, as behind a router that forgot them; new ones work."""
        for stuck in self._open.values():
            stuck.set()

    def swallow(self) -> None:
        """All connections are silent, new ones too."""
        self._is_hole = True
        self.freeze()

    async def heal(self) -> None:
        """New connections work; those that fell silent stay so."""
        self._is_hole = False
        if not self._server.is_serving():
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stuck = self._open[writer] = asyncio.Event()
        if self._is_hole:
            stuck.set()
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", self._target)
            self._open[forth] = stuck
            pumps = [self._pump(reader, forth, stuck), self._pump(back, writer, stuck)]
            await asyncio.gather(*pumps)
        except (OSError, asyncio.CancelledError):
            reset(writer.transport)
        finally:
            for each in (writer, forth) if "forth" in locals() else (writer,):
                each.close()
                self._open.pop(each, None)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, stuck: asyncio.Event) -> None:
        while data := await source.read(65536):
            if not stuck.is_set():
                sink.write(data)
                await sink.drain()
        if not stuck.is_set():
            sink.close()

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.refuse()


Forward = Callable[[], Awaitable[web.StreamResponse]]
Spoil = Callable[["HttpProxy", web.BaseRequest, Forward], Awaitable[web.StreamResponse]]


class HttpProxy:
    """Speaks TLS both ways with the API server's own certificate, and acts as its administrator.

    Args:
        kubeconfig: Of an API server of tests.api, whose keys lie beside it.
    """

    def __init__(self, kubeconfig: str) -> None:
        self._pki = Path(kubeconfig).with_name("pki")
        self._target = yaml.safe_load(Path(kubeconfig).read_text())["clusters"][0]["cluster"]["server"]
        self._under_way: list[web.BaseRequest] = []
        self.spoil: Spoil | None = None
        self.port = 0

    def drop(self) -> None:
        """Resets the requests under way, watches above all."""
        for request in list(self._under_way):
            reset(request.transport)

    async def ask(self, request: web.BaseRequest, query: dict[str, str] | None = None) -> aiohttp.ClientResponse:
        """The API server's answer, its body not read yet; with another query where one is given."""
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP}
        url = self._target + request.rel_url.raw_path
        params = dict(request.query) if query is None else query
        return await self._session.request(
            request.method, url, params=params, data=await request.read(), headers=headers
        )

    async def relay(self, request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        """The answer, passed on as it comes."""
        async with answer:
            response = web.StreamResponse(status=answer.status, headers=_headers(answer))
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._under_way.append(request)

        async def forward() -> web.StreamResponse:
            return await self.relay(request, await self.ask(request))

        try:
            return await (self.spoil(self, request, forward) if self.spoil else forward())
        except (aiohttp.ClientError, OSError):
            reset(request.transport)
            return web.Response()
        finally:
            self._under_way.remove(request)

    async def __aenter__(self) -> Self:
        authority = str(self._pki / "ca.crt")
        towards = ssl.create_default_context(cafile=authority)
        towards.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
        serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        serving.load_cert_chain(self._pki / "apiserver.crt", self._pki / "apiserver.key")
        connector = aiohttp.TCPConnector(ssl=towards, limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None), trust_env=False
        )
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=serving).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()
        await self._runner.cleanup()
        await self._session.close()


def _headers(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {key: value for key, value in answer.headers.items() if key.lower() not in _HOP}


def kubeconfig_at(port: int, kubeconfig: str, place: Path) -> str:
    """The path of a copy of a kubeconfig, for a proxy at another port of this machine."""
    content = yaml.safe_load(Path(kubeconfig).read_text())
    cluster = content["clusters"][0]["cluster"]
    cluster["server"] = urlsplit(cluster["server"])._replace(netloc=f"127.0.0.1:{port}").geturl()
    place.write_text(yaml.safe_dump(content))
    return str(place)


# How the HTTP proxy spoils requests and answers.


def status(code: int, reason: str, headers: dict[str, str] | None = None, *, only_watches: bool = False) -> Spoil:
    """Answers with a Status of this code and asks nobody."""

    async def spoil(proxy: HttpProxy, request: web.BaseRequest, forward: Forward) -> web.StreamResponse:
        if only_watches and "watch" not in request.query:
            return await forward()
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
        return web.json_response({**body, "message": f"the proxy says {code}"}, status=code, headers=headers)

    return spoil


async def cut(proxy: HttpProxy, request: web.BaseRequest, forward: Forward) -> web.StreamResponse:
    """Does what is asked, sends half of the answer's body, and resets the connection."""
    async with await proxy.ask(request) as answer:
        body = await (answer.content.readany() if "watch" in request.query else answer.read())
    response = web.StreamResponse(status=answer.status, headers=_headers(answer))
    if "watch" not in request.query:
        response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    await asyncio.sleep(0.05)  # a reset takes with it what the client has not read yet
    reset(request.transport)
    return response


def late(seconds: float) -> Spoil:
    """Does what is asked at once, and answers so many seconds later."""

    async def spoil(proxy: HttpProxy, request: web.BaseRequest, forward: Forward) -> web.StreamResponse:
        async with await proxy.ask(request) as answer:
            await asyncio.sleep(seconds)
            return await proxy.relay(request, answer)

    return spoil


def watching_from(version: str) -> Spoil:
    """Lets each watch begin at this version."""

    async def spoil(proxy: HttpProxy, request: web.BaseRequest, forward: Forward) -> web.StreamResponse:
        if "watch" not in request.query:
            return await forward()
        return await proxy.relay(request, await proxy.ask(request, {**request.query, "resourceVersion": version}))

    return spoil
