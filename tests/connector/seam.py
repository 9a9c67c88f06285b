"""A client of the cluster at the connector's own seam: it counts what is asked, and fails where a test says so."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import urlencode

from typing_extensions import override

from flytekitplugins.kuberay.kube import (
    ApiError,
    Call,
    Created,
    KubeClient,
    Manifest,
    Page,
    Resource,
    Selector,
    Unavailable,
    WatchEvent,
)
from flytekitplugins.kuberay.kube.client import ALL


class Seam(KubeClient):
    """Hands every call on to another client.

    Args:
        inner: The client of a real API server; None for a cluster that is away.
    """

    def __init__(self, inner: KubeClient | None) -> None:
        self._inner = inner
        self.calls: list[str] = []  # verbs; what is asked in the background (watches, their lists, schemas) left out
        self.faults: dict[str, list[ApiError]] = {}  # by verb, one for each of the next calls
        self.logs: dict[str, str] = {}  # by pod, and by Service with its port: a server without kubelet has none
        self.away = inner is None

    def reached(self, verb: str) -> KubeClient:
        """The other client, where the call is to go through.

        Raises:
            ApiError: The next fault of this verb, or Unavailable while the cluster is away.
        """
        if verb not in ("watch", "list", "schema"):
            self.calls.append(verb)
        if self.faults.get(verb):
            raise self.faults[verb].pop(0)
        if self.away or self._inner is None:
            raise Unavailable(Call(verb, "rayjobs.ray.io"), "can't talk to the API server: Connection refused")
        return self._inner

    @override
    async def create(self, resource: Resource, namespace: str | None, manifest: Manifest, **options: Any) -> Created:
        return await self.reached("create").create(resource, namespace, manifest, **options)

    @override
    async def get(self, resource: Resource, namespace: str | None, name: str, *, timeout: float = 5.0) -> Manifest:
        return await self.reached("get").get(resource, namespace, name, timeout=timeout)

    @override
    async def delete(self, resource: Resource, namespace: str | None, name: str, **options: Any) -> None:
        await self.reached("delete").delete(resource, namespace, name, **options)

    @override
    async def list_page(
        self, resource: Resource, namespace: str | None, selector: Selector = ALL, **options: Any
    ) -> Page:
        return await self.reached("list").list_page(resource, namespace, selector, **options)

    @override
    async def watch(
        self, resource: Resource, namespace: str | None, selector: Selector = ALL, **options: Any
    ) -> AsyncGenerator[WatchEvent, None]:
        async with aclosing(self.reached("watch").watch(resource, namespace, selector, **options)) as events:
            async for event in events:
                yield event

    @override
    async def read_log(self, namespace: str, pod: str, **options: Any) -> str:
        inner = self.reached("log")
        if pod in self.logs:
            lines = self.logs[pod].splitlines(keepends=True)[-options["tail_lines"] :]
            return "".join(lines)[-options["limit_bytes"] :]
        return await inner.read_log(namespace, pod, **options)

    @override
    async def schema(self, resource: Resource, kind: str, *, timeout: float = 10.0) -> Manifest:
        return await self.reached("schema").schema(resource, kind, timeout=timeout)

    @override
    async def stream_log(self, namespace: str, pod: str, **options: Any) -> AsyncGenerator[bytes, None]:
        async with aclosing(self.reached("log").stream_log(namespace, pod, **options)) as pieces:
            async for piece in pieces:
                yield piece

    @override
    async def stream_service(
        self, namespace: str, service: str, path: str, query: Sequence[tuple[str, str]] = (), **options: Any
    ) -> AsyncGenerator[bytes, None]:
        inner = self.reached("proxy")
        if service in self.logs:
            yield f"{path}?{urlencode(query)}\n{self.logs[service]}".encode()
            return
        async with aclosing(inner.stream_service(namespace, service, path, query, **options)) as pieces:
            async for piece in pieces:
                yield piece

    @override
    async def close(self) -> None:
        if self._inner is not None:
            await self._inner.close()
