"""Each call as a request on the wire, and logs and watches that go on, shown with a real HTTP server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import pytest

from flytekitplugins.kuberay.kube import (
    PODS,
    RAYJOBS,
    ApiError,
    ApiKubeClient,
    DeadlineExceeded,
    Expired,
    Invalid,
    Unavailable,
    UnknownResource,
    WatchEvent,
)

from .conftest import KubeconfigOf
from .scripted import Reply, ScriptedServer, answer, failure, hang, status_of, stream

JOBS = "/apis/ray.io/v1/namespaces/ns/rayjobs"
Do = Callable[[ApiKubeClient], Awaitable[object]]


async def events_of(client: ApiKubeClient, *, seconds: int = 5, timeout: float = 5.0) -> list[WatchEvent]:
    """All events of one watch."""
    watch = client.watch(RAYJOBS, "ns", resource_version="7", seconds=seconds, timeout=timeout)
    async with aclosing(watch) as events:
        return [event async for event in events]


async def text_of(pieces: AsyncGenerator[bytes, None]) -> str:
    """All that comes."""
    async with aclosing(pieces) as opened:
        return b"".join([piece async for piece in opened]).decode()


@pytest.mark.parametrize(
    ("do", "expected"),
    [
        pytest.param(
            lambda c: c.create(RAYJOBS, "ns", {"a": 1}),
            ("POST", JOBS, {"fieldValidation": "Warn"}, {"a": 1}, "application/json"),
            id="create",
        ),
        pytest.param(lambda c: c.get(PODS, "ns", "p"), ("GET", "/api/v1/namespaces/ns/pods/p", {}, None, ""), id="get"),
        pytest.param(
            lambda c: c.get(PODS, "ns", "../x"),
            ("GET", "/api/v1/namespaces/ns/pods/..%2Fx", {}, None, ""),
            id="a name stays one segment of the path",
        ),
        pytest.param(
            lambda c: c.delete(RAYJOBS, "ns", "j", uid="u"),
            (
                "DELETE",
                f"{JOBS}/j",
                {},
                {
                    "apiVersion": "v1",
                    "kind": "DeleteOptions",
                    "propagationPolicy": "Background",
                    "preconditions": {"uid": "u"},
                },
                "application/json",
            ),
            id="delete",
        ),
        pytest.param(
            lambda c: c.list_page(PODS, None, limit=3),
            ("GET", "/api/v1/pods", {"limit": "3"}, None, ""),
            id="list of all namespaces",
        ),
        pytest.param(
            lambda c: c.read_log("ns", "p", container="ray-head", tail_lines=5, previous=True),
            (
                "GET",
                "/api/v1/namespaces/ns/pods/p/log",
                {"tailLines": "5", "container": "ray-head", "previous": "true"},
                None,
                "",
            ),
            id="log",
        ),
        pytest.param(
            lambda c: text_of(c.stream_log("ns", "p", container="ray-head", follow=True)),
            ("GET", "/api/v1/namespaces/ns/pods/p/log", {"container": "ray-head", "follow": "true"}, None, ""),
            id="log that is followed",
        ),
        pytest.param(
            lambda c: text_of(c.stream_service("ns", "head-svc:8265", "api/jobs/", (("a", "b c"),))),
            ("GET", "/api/v1/namespaces/ns/services/head-svc:8265/proxy/api/jobs/", {"a": "b c"}, None, ""),
            id="question to a Service",
        ),
        pytest.param(
            events_of,
            (
                "GET",
                JOBS,
                {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "7", "timeoutSeconds": "5"},
                None,
                "",
            ),
            id="watch",
        ),
    ],
)
async def test_each_call_is_one_request(
    scripted: ApiKubeClient, server: ScriptedServer, do: Do, expected: tuple[object, ...]
) -> None:
    """Method, path, query, body and content type are what the API's documentation asks for."""
    server.replies.append(answer({"metadata": {}} if do is not events_of else ""))
    await do(scripted)
    (seen,) = server.seen
    body = json.loads(seen.body) if seen.body else None
    content_type = seen.headers["Content-Type"] if body else ""
    assert (seen.method, seen.path, seen.query, body, content_type) == expected


async def test_a_log_keeps_its_newest_bytes(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """A cut log still ends with what was written last; bytes that are no text do no harm."""
    server.replies += [answer("x" * 100_000 + "the cause\n"), answer("ä")]
    assert await scripted.read_log("ns", "p", limit_bytes=12) == "xxthe cause\n"
    assert await scripted.read_log("ns", "p", limit_bytes=1) == "\N{REPLACEMENT CHARACTER}"


async def test_a_log_comes_as_it_is_written(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """The first lines are there while the others are not, however long these take."""
    server.replies.append(stream("first\n", then="hang"))
    async with aclosing(scripted.stream_log("ns", "p", follow=True, timeout=0.3)) as pieces:
        assert await anext(pieces) == b"first\n"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(pieces), 0.6)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(stream("half a li", then="break"), Unavailable, id="a connection that breaks"),
        pytest.param(hang, DeadlineExceeded, id="silence at its beginning"),
        pytest.param(failure(400, "BadRequest", "it is waiting to start"), Invalid, id="no log yet"),
        pytest.param(answer("no such job", 404), UnknownResource, id="404 of who stands behind a Service"),
        pytest.param(failure(503, "ServiceUnavailable", "no endpoints"), Unavailable, id="nobody behind a Service"),
    ],
)
async def test_each_end_of_a_log_has_its_error(
    scripted: ApiKubeClient, server: ScriptedServer, reply: Reply, expected: type[ApiError]
) -> None:
    """Only its proper end ends it without an error."""
    server.replies.append(reply)
    with pytest.raises(ApiError) as caught:
        await text_of(scripted.stream_log("ns", "p", timeout=0.3))
    assert type(caught.value) is expected


ADDED = {"type": "ADDED", "object": {"metadata": {"name": "j", "resourceVersion": "8"}}}


async def test_a_watch_gives_its_events_until_the_server_ends_it(
    scripted: ApiKubeClient, server: ScriptedServer
) -> None:
    """It opens, tells each line, and ends when the server does."""
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}
    server.replies.append(stream(ADDED, bookmark))
    assert await events_of(scripted) == [
        WatchEvent("OPENED", {}),
        WatchEvent("ADDED", {"metadata": {"name": "j", "resourceVersion": "8"}}),
        WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "9"}}),
    ]


async def test_a_line_of_a_watch_may_be_megabytes_long(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """An object as large as etcd takes passes."""
    manifest = {"metadata": {"name": "j", "annotations": {"a": "x" * 3_000_000}}}
    server.replies.append(stream({"type": "ADDED", "object": manifest}))
    assert (await events_of(scripted))[1] == WatchEvent("ADDED", manifest)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        pytest.param(failure(410, "Expired", "too old"), Expired, id="410 at its opening"),
        pytest.param(
            stream({"type": "ERROR", "object": status_of(410, "Expired", "too old")}), Expired, id="410 later"
        ),
        pytest.param(stream({"type": "ERROR", "object": status_of(500, "x", "y")}), Unavailable, id="another error"),
        pytest.param(stream(ADDED, then="break"), Unavailable, id="a connection that breaks"),
        pytest.param(stream(ADDED, '{"type": "ADD', then="end"), Unavailable, id="half a line"),
        pytest.param(stream({"type": "ADDED", "object": {}}), Unavailable, id="an event without metadata"),
        pytest.param(stream({"type": "NEW", "object": {"metadata": {}}}), Unavailable, id="an event of no known type"),
        pytest.param(stream(ADDED, then="hang"), DeadlineExceeded, id="silence beyond its end"),
        pytest.param(hang, DeadlineExceeded, id="silence at its opening"),
    ],
)
async def test_each_end_of_a_watch_has_its_error(
    scripted: ApiKubeClient, server: ScriptedServer, reply: Reply, expected: type[ApiError]
) -> None:
    """Only the server's proper end ends it without an error."""
    server.replies.append(reply)
    with pytest.raises(ApiError) as caught:
        await events_of(scripted, seconds=0, timeout=0.3)
    assert type(caught.value) is expected
    assert str(caught.value).startswith("watch rayjobs.ray.io in namespace ns: ")


async def test_the_audit_log_shows_who_asks(server: ScriptedServer, kubeconfig_of: KubeconfigOf) -> None:
    """The user agent is the caller's."""
    client = await ApiKubeClient.open(kubeconfig_of(server.url), user_agent="flytekitplugins-kuberay/1")
    server.replies.append(answer({}))
    await client.get(PODS, "ns", "p")
    await client.close()
    assert server.seen[0].headers["User-Agent"] == "flytekitplugins-kuberay/1"


async def test_a_bad_request_holds_its_text(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """What a container without a log answers is Invalid, with the kubelet's words."""
    server.replies.append(failure(400, "BadRequest", 'container "ray-head" in pod "p" is waiting to start'))
    with pytest.raises(Invalid, match="is waiting to start"):
        await scripted.read_log("ns", "p")
