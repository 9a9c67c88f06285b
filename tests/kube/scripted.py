"""A real HTTP server that answers requests one after the other as it was told to, faults included."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

from aiohttp import web

from flytekitplugins.kuberay.kube import Manifest

Reply = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Seen:
    """One request that came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]  # in any case
    body: str
    client: str = ""  # the name in the certificate that was presented


def answer(body: Manifest | str, status: int = 200, headers: list[tuple[str, str]] | None = None) -> Reply:
    """A whole answer."""

    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        text = body if isinstance(body, str) else json.dumps(body)
        response = web.Response(text=text, status=status)
        for name, value in headers or []:
            response.headers.add(name, value)
        return response

    return reply


def failure(code: int, reason: str, message: str, **details: object) -> Reply:
    """The Status that an API server answers when it refuses."""
    return answer(status_of(code, reason, message, **details), code)


def status_of(code: int, reason: str, message: str, **details: object) -> Manifest:
    """The Status object itself."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "details": details}
    return {**status, "message": message, "reason": reason, "code": code}


def stream(*lines: Manifest | str, then: str = "end") -> Reply:
    """A watch, or a part of an answer: the lines, and then `end`, `break` (the connection breaks) or `hang`."""

    async def reply(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write((line if isinstance(line, str) else json.dumps(line) + "\n").encode())
        if then == "hang":
            await asyncio.sleep(60)
        if then == "break" and request.transport is not None:
            await asyncio.sleep(0.05)  # a reset takes with it what the client has not read yet
            request.transport.abort()
        return response

    return reply


async def drop(request: web.BaseRequest) -> web.StreamResponse:
    """The connection ends without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def hang(request: web.BaseRequest) -> web.StreamResponse:
    """Answers nothing."""
    await asyncio.sleep(60)
    return web.Response()


def _client_of(request: web.BaseRequest) -> str:
    certificate = request.get_extra_info("peercert") or {}
    return str(dict(field for part in certificate.get("subject", ()) for field in part).get("commonName", ""))


class ScriptedServer:
    """Answers with the replies in their order; without any left, requests hang.

    Args:
        tls: To serve HTTPS with.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.replies: deque[Reply] = deque()
        self.seen: list[Seen] = []
        self.url = ""

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = (await request.read()).decode()
        path = request.rel_url.raw_path
        self.seen.append(Seen(request.method, path, dict(request.query), request.headers, body, _client_of(request)))
        reply = self.replies.popleft() if self.replies else hang
        return await reply(request)

    async def __aenter__(self) -> ScriptedServer:
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"{'https' if self._tls else 'http'}://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
