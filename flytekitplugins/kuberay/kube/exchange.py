"""One request to the API server and its answer, by `kubernetes.aio`; each fault on the way is an `ApiError`.

The library builds requests, signs them and holds the connections; its models, retries and exceptions are not used.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from kubernetes.aio.client import ApiClient

from .access import Access
from .client import Manifest
from .errors import Call, DeadlineExceeded, Unauthorized, Unavailable, error_of


@dataclass(frozen=True)
class Request:
    """What goes to the API server."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Manifest | None = None


class Exchange:
    """Requests over one way to a cluster.

    Args:
        access: The way there.
        api_client: The library's client over it.
    """

    def __init__(self, access: Access, api_client: ApiClient) -> None:
        self._access, self._api_client = access, api_client

    @asynccontextmanager
    async def answer(
        self, call: Call, request: Request, timeout: float, *, silence: float | None = None
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
            self._access.expire()
            raise
        except asyncio.TimeoutError as error:
            limit = timeout if silence is None or response is None else silence
            raise DeadlineExceeded(call, f"no answer from the API server within {limit:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(call, f"can't talk to the API server: {_reason(error)}") from error
        finally:
            if response is not None:
                response.close()

    async def _send(self, request: Request, timeout: float, silence: float | None) -> aiohttp.ClientResponse:
        started = time.monotonic()
        await self._access.renew(timeout)
        left = max(timeout - (time.monotonic() - started), 0.001)
        method, url, headers, body, _ = await self._api_client.param_serialize(
            request.method,
            request.path,
            query_params=list(request.query),
            header_params={
                "Accept": "application/json, */*",
                "Content-Type": "application/json",
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
