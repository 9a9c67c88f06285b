"""`KubeClient` over a real API server: requests, answers and broken connections, by `kubernetes.aio`.

The library builds requests, signs them and holds the connections; its models, retries and exceptions are not used.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

import aiohttp
from kubernetes.aio.client import ApiClient
from typing_extensions import Self, override

from .access import Access
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
from .errors import (
    AccessError,
    Call,
    DeadlineExceeded,
    Unauthorized,
    Unavailable,
    UnknownResource,
    error_of,
)

_WARNING = re.compile(r'\b299 \S+ "((?:[^"\\]|\\.)*)"')
_ENDLESS = 0.0  # aiohttp's word for a read without a time-out
_CLOSING_SECONDS = 0.05  # for the ends of TLS connections, for which aiohttp does not wait
_EVENT_TYPES = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}


@dataclass(frozen=True)
class _Request:
    """What `_send` puts on the wire."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Manifest | None = None
    content_type: str = "application/json"


class ApiKubeClient(KubeClient):
    """Calls to the API server that `access` leads to; made by `open`, within the running event loop.

    Args:
        access: The way there.
        api_client: The library's client over it.
    """

    def __init__(self, access: Access, api_client: ApiClient) -> None:
        self.access = access
        self._api_client = api_client

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
        return cls(access, api_client)

    @override
    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        manifest: Manifest,
        *,
        dry_run: bool = False,
        field_validation: Literal["Ignore", "Warn", "Strict"] = "Warn",
        timeout: float = 5.0,
    ) -> Created:
        call = _call("create", resource, namespace, str(manifest.get("metadata", {}).get("name", "")))
        query = [("fieldValidation", field_validation)] + ([("dryRun", "All")] if dry_run else [])
        request = _Request("POST", _path(resource, namespace), tuple(query), manifest)
        async with self._exchange(call, request, timeout) as response:
            return Created(await _json(call, response), _warnings(response.headers.getall("Warning", [])))

    @override
    async def get(self, resource: Resource, namespace: str | None, name: str, *, timeout: float = 5.0) -> Manifest:
        call = _call("get", resource, namespace, name)
        async with self._exchange(call, _Request("GET", _path(resource, namespace, name)), timeout) as response:
            return await _json(call, response)

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
        request = _Request("DELETE", _path(resource, namespace, name), body=options)
        async with self._exchange(call, request, timeout) as response:
            await response.read()

    @override
    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        patch: Manifest,
        *,
        subresource: str = "",
        timeout: float = 5.0,
    ) -> Manifest:
        call = _call("patch", resource, namespace, name, subresource)
        path = _path(resource, namespace, name, subresource)
        request = _Request("PATCH", path, body=patch, content_type="application/merge-patch+json")
        async with self._exchange(call, request, timeout) as response:
            return await _json(call, response)

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
        async with self._exchange(call, _Request("GET", _path(resource, namespace), query), timeout) as response:
            answer = await _json(call, response)
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
        request = _Request("GET", _path(resource, namespace), query)
        async with self._exchange(call, request, timeout, silence=seconds + timeout) as response:
            yield WatchEvent("OPENED", {})
            async for line in response.content:
                yield _event(call, line)

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
        request = _Request("GET", _path(PODS, namespace, pod, "log"), tuple(query))
        end = b""
        async with self._exchange(call, request, timeout) as response:
            # The API's own limitBytes would cut the newest lines, which are the ones that tell why.
            async for chunk in response.content.iter_any():
                end = (end + chunk)[-limit_bytes:]
        return end.decode(errors="replace")

    @override
    async def schema(self, resource: Resource, kind: str, *, timeout: float = 10.0) -> Manifest:
        path = f"/openapi/v3{_group_path(resource)}"
        call = Call("get", path)
        async with self._exchange(call, _Request("GET", path), timeout) as response:
            return _schema_of(call, resource, kind, await _json(call, response))

    @override
    def stream_log(
        self, namespace: str, pod: str, *, container: str = "", follow: bool = False, timeout: float = 10.0
    ) -> AsyncGenerator[bytes, None]:
        query = [("container", container)] if container else []
        query += [("follow", "true")] if follow else []
        request = _Request("GET", _path(PODS, namespace, pod, "log"), tuple(query))
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
        request = _Request("GET", f"{_path(SERVICES, namespace, service, 'proxy')}/{path}", tuple(query))
        return self._pieces(call, request, timeout)

    @override
    async def close(self) -> None:
        await self.access.close()
        await self._api_client.close()
        await asyncio.sleep(_CLOSING_SECONDS)

    async def _pieces(self, call: Call, request: _Request, timeout: float) -> AsyncGenerator[bytes, None]:
        """The answer as it comes, which may take for ever once it has begun."""
        async with self._exchange(call, request, timeout, silence=_ENDLESS) as response:
            async for piece in response.content.iter_any():
                yield piece

    @asynccontextmanager
    async def _exchange(
        self, call: Call, request: _Request, timeout: float, *, silence: float | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer, when it is 2xx; any fault until the end of the block becomes an `ApiError`.

        Args:
            call: For the error's text.
            request: What to send.
            timeout: Of the whole block; with `silence`, of the time until the answer begins.
            silence: How long an answer without an end may pause.

        Raises:
            ApiError: By what the answer says, or what befell it.
        """
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._send(request, timeout, silence)
            if response.status >= 300:
                body = (await response.read()).decode(errors="replace")
                raise error_of(call, response.status, body, response.headers.get("Retry-After", ""))
            yield response
        except Unauthorized:
            self.access.expire()
            raise
        except asyncio.TimeoutError as error:
            limit = timeout if silence is None or response is None else silence
            raise DeadlineExceeded(call, f"no answer from the API server within {limit:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(call, f"can't talk to the API server: {_reason(error)}") from error
        finally:
            if response is not None:
                response.close()

    async def _send(self, request: _Request, timeout: float, silence: float | None) -> aiohttp.ClientResponse:
        started = time.monotonic()
        await self.access.renew(timeout)
        left = max(timeout - (time.monotonic() - started), 0.001)
        method, url, headers, body, _ = await self._api_client.param_serialize(
            request.method,
            request.path,
            query_params=list(request.query),
            header_params={
                "Accept": "application/json, */*",
                "Content-Type": request.content_type,
                # Calls are rare, and a connection that is kept may be dead by the next one, without a word.
                "Connection": "close",
            },
            body=request.body,
            auth_settings=["BearerToken"],
        )
        limit = aiohttp.ClientTimeout(total=left) if silence is None else aiohttp.ClientTimeout(sock_read=silence)
        sending = self._api_client.call_api(method, url, headers, body, _request_timeout=limit)
        answer = await (sending if silence is None else asyncio.wait_for(sending, left))
        response: aiohttp.ClientResponse = answer.response
        return response


def _call(verb: str, resource: Resource, namespace: str | None, name: str = "", subresource: str = "") -> Call:
    return Call(verb, f"{resource}/{subresource}" if subresource else str(resource), namespace or "", name)


def _path(resource: Resource, namespace: str | None, *rest: str) -> str:
    within = ("namespaces", namespace) if namespace and resource.namespaced else ()
    segments = (*within, resource.plural, *(part for part in rest if part))
    return "/".join((_group_path(resource), *(quote(segment, safe="") for segment in segments)))


def _group_path(resource: Resource) -> str:
    root = ("apis", resource.group) if resource.group else ("api",)
    return "/" + "/".join(quote(segment, safe="") for segment in (*root, resource.version))


def _schema_of(call: Call, resource: Resource, kind: str, document: Manifest) -> Manifest:
    wanted = {"group": resource.group, "kind": kind, "version": resource.version}
    schemas: dict[str, Manifest] = (document.get("components") or {}).get("schemas") or {}
    for schema in schemas.values():
        if wanted in schema.get("x-kubernetes-group-version-kind", ()):
            return schema
    raise UnknownResource(call, f"the API server has no schema of a {kind}")


def _query(selector: Selector, **others: str) -> tuple[tuple[str, str], ...]:
    named = {"labelSelector": selector.labels, "fieldSelector": selector.fields, **others}
    return tuple((name, value) for name, value in named.items() if value)


async def _json(call: Call, response: aiohttp.ClientResponse) -> Manifest:
    return _parsed(call, await response.read())


def _parsed(call: Call, text: bytes) -> Manifest:
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise Unavailable(call, "the answer is no JSON, or only a part of it") from error
    if not isinstance(answer, dict):
        raise Unavailable(call, "the answer is no JSON object")
    return answer


def _event(call: Call, line: bytes) -> WatchEvent:
    event = _parsed(call, line)
    kind, manifest = event.get("type"), event.get("object")
    if kind == "ERROR" and isinstance(manifest, dict):
        raise error_of(call, int(manifest.get("code") or 500), json.dumps(manifest))
    if kind not in _EVENT_TYPES or not isinstance(manifest, dict) or not isinstance(manifest.get("metadata"), dict):
        raise Unavailable(call, "a line of the watch is not an event")
    return WatchEvent(kind, manifest)


def _warnings(headers: list[str]) -> tuple[str, ...]:
    return tuple(re.sub(r"\\(.)", r"\1", text) for header in headers for text in _WARNING.findall(header))


def _reason(error: Exception) -> str:
    """What went wrong below HTTP, in a few words; the exceptions' own texts can hold a proxy's password."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered HTTP {error.status}"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not accepted: {error.certificate_error}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection before it answered"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "its answer broke off"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    return getattr(error, "strerror", None) or type(error).__name__
