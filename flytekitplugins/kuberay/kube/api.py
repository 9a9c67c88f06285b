"""`KubeClient` over a real API server: what each call asks for, and what comes of its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from urllib.parse import quote

from kubernetes.aio.client import ApiClient
from typing_extensions import Self, override

from .access import Access
from .answers import event_of, parsed, schema_of, warnings_of
from .client import (
    ALL,
    PODS,
    SERVICES,
    Created,
    KubeClient,
    Manifest,
    Page,
    Resource,
    Selector,
    WatchEvent,
)
from .errors import AccessError, Call
from .exchange import Exchange, Request

_ENDLESS = 0.0  # aiohttp's word for a read without a time-out
_CLOSING_SECONDS = 0.05  # for the ends of TLS connections, for which aiohttp does not wait


class ApiKubeClient(KubeClient):
    """Calls to the API server that `access` leads to; made by `open`, within the running event loop.

    Args:
        access: The way there.
        api_client: The library's client over it.
    """

    def __init__(self, access: Access, api_client: ApiClient) -> None:
        self.access = access
        self._api_client = api_client
        self._exchange = Exchange(access, api_client)

    @classmethod
    async def open(cls, kubeconfig: str = "", context: str = "", *, user_agent: str = "kuberay-client") -> Self:
        """A client for the cluster that `Access.find` finds; nothing is sent yet.

        Raises:
            AccessError: There is no usable way to a cluster.
        """
        return cls.over(await Access.find(kubeconfig, context), user_agent=user_agent)

    @classmethod
    def over(cls, access: Access, *, user_agent: str = "kuberay-client") -> Self:
        """A client for that cluster.

        Args:
            access: The way there.
            user_agent: What the server's audit log shows.

        Raises:
            AccessError: Its certificates can't be read.
        """
        try:
            api_client = ApiClient(access.configuration)
        except OSError as error:  # ssl.SSLError is one
            raise AccessError(f"{access.source}: its certificates can't be read: {error}") from error
        api_client.user_agent = user_agent
        access.tls = api_client.rest_client.ssl_context
        return cls(access, api_client)

    @override
    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        manifest: Manifest,
        *,
        timeout: float = 5.0,
    ) -> Created:
        call = _call("create", resource, namespace, str(manifest.get("metadata", {}).get("name", "")))
        request = Request("POST", _path(resource, namespace), (("fieldValidation", "Warn"),), manifest)
        async with self._exchange.answer(call, request, timeout) as response:
            return Created(parsed(call, await response.read()), warnings_of(response.headers.getall("Warning", [])))

    @override
    async def get(self, resource: Resource, namespace: str | None, name: str, *, timeout: float = 5.0) -> Manifest:
        call = _call("get", resource, namespace, name)
        async with self._exchange.answer(call, Request("GET", _path(resource, namespace, name)), timeout) as response:
            return parsed(call, await response.read())

    @override
    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str = "",
        timeout: float = 5.0,
    ) -> None:
        call = _call("delete", resource, namespace, name)
        options: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        request = Request("DELETE", _path(resource, namespace, name), body=options)
        async with self._exchange.answer(call, request, timeout) as response:
            await response.read()

    @override
    async def list_page(
        self,
        resource: Resource,
        namespace: str | None,
        selector: Selector = ALL,
        *,
        limit: int = 500,
        continue_from: str = "",
        timeout: float = 10.0,
    ) -> Page:
        call = _call("list", resource, namespace)
        query = _query(selector, limit=str(limit), **{"continue": continue_from})
        async with self._exchange.answer(call, Request("GET", _path(resource, namespace), query), timeout) as response:
            answer = parsed(call, await response.read())
        metadata = answer.get("metadata", {})
        return Page(answer.get("items") or [], metadata.get("resourceVersion", ""), metadata.get("continue", ""))

    @override
    async def watch(
        self,
        resource: Resource,
        namespace: str | None,
        selector: Selector = ALL,
        *,
        resource_version: str,
        seconds: int = 30,
        timeout: float = 10.0,
    ) -> AsyncGenerator[WatchEvent, None]:
        call = _call("watch", resource, namespace)
        query = _query(
            selector,
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            timeoutSeconds=str(seconds),
        )
        request = Request("GET", _path(resource, namespace), query)
        async with self._exchange.answer(call, request, timeout, silence=seconds + timeout) as response:
            yield WatchEvent("OPENED", {})
            async for line in response.content:
                yield event_of(call, line)

    @override
    async def read_log(
        self,
        namespace: str,
        pod: str,
        *,
        container: str = "",
        tail_lines: int = 100,
        limit_bytes: int = 65536,
        previous: bool = False,
        timeout: float = 5.0,
    ) -> str:
        call = _call("get", PODS, namespace, pod, "log")
        query = [("tailLines", str(tail_lines))] + ([("container", container)] if container else [])
        query += [("previous", "true")] if previous else []
        request = Request("GET", _path(PODS, namespace, pod, "log"), tuple(query))
        end = b""
        async with self._exchange.answer(call, request, timeout) as response:
            # The API's own limitBytes would cut the newest lines, which are the ones that tell why.
            async for chunk in response.content.iter_any():
                end = (end + chunk)[-limit_bytes:]
        return end.decode(errors="replace")

    @override
    async def schema(self, resource: Resource, kind: str, *, timeout: float = 10.0) -> Manifest:
        path = f"/openapi/v3{_group_path(resource)}"
        call = Call("get", path)
        async with self._exchange.answer(call, Request("GET", path), timeout) as response:
            return schema_of(call, resource, kind, parsed(call, await response.read()))

    @override
    def stream_log(
        self, namespace: str, pod: str, *, container: str = "", follow: bool = False, timeout: float = 10.0
    ) -> AsyncGenerator[bytes, None]:
        query = [("container", container)] if container else []
        query += [("follow", "true")] if follow else []
        request = Request("GET", _path(PODS, namespace, pod, "log"), tuple(query))
        return self._pieces(_call("get", PODS, namespace, pod, "log"), request, timeout)

    @override
    def stream_service(
        self,
        namespace: str,
        service: str,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        *,
        timeout: float = 10.0,
    ) -> AsyncGenerator[bytes, None]:
        call = _call("get", SERVICES, namespace, service, "proxy")
        request = Request("GET", f"{_path(SERVICES, namespace, service, 'proxy')}/{path}", tuple(query))
        return self._pieces(call, request, timeout)

    @override
    async def close(self) -> None:
        await self.access.close()
        await self._api_client.close()
        await asyncio.sleep(_CLOSING_SECONDS)

    async def _pieces(self, call: Call, request: Request, timeout: float) -> AsyncGenerator[bytes, None]:
        """The answer as it comes, which may take for ever once it has begun."""
        async with self._exchange.answer(call, request, timeout, silence=_ENDLESS) as response:
            async for piece in response.content.iter_any():
                yield piece


def _call(verb: str, resource: Resource, namespace: str | None, name: str = "", subresource: str = "") -> Call:
    return Call(verb, f"{resource}/{subresource}" if subresource else str(resource), namespace or "", name)


def _path(resource: Resource, namespace: str | None, *rest: str) -> str:
    within = ("namespaces", namespace) if namespace else ()
    segments = (*within, resource.plural, *(part for part in rest if part))
    return "/".join((_group_path(resource), *(quote(segment, safe="") for segment in segments)))


def _group_path(resource: Resource) -> str:
    root = ("apis", resource.group) if resource.group else ("api",)
    return "/" + "/".join(quote(segment, safe="") for segment in (*root, resource.version))


def _query(selector: Selector, **others: str) -> tuple[tuple[str, str], ...]:
    named = {"labelSelector": selector.labels, "fieldSelector": selector.fields, **others}
    return tuple((name, value) for name, value in named.items() if value)
