"""Requests on the wire, and what becomes of every fault on the way, shown with a real HTTP server."""

from __future__ import annotations

import asyncio
import json
import socket
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
    Forbidden,
    Invalid,
    NotFound,
    Resource,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnknownResource,
    WatchEvent,
)

from .conftest import KubeconfigOf
from .samples import rayjob
from .scripted import Reply, ScriptedServer, answer, drop, failure, hang, status_of, stream

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
            lambda c: c.create(RAYJOBS, "ns", {"a": 1}, dry_run=True, field_validation="Strict"),
            ("POST", JOBS, {"fieldValidation": "Strict", "dryRun": "All"}, {"a": 1}, "application/json"),
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
            lambda c: c.patch(RAYJOBS, "ns", "j", {"status": {}}, subresource="status"),
            ("PATCH", f"{JOBS}/j/status", {}, {"status": {}}, "application/merge-patch+json"),
            id="patch",
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


async def test_warnings_of_the_server_are_handed_on(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """Quotes and backslashes come as the server meant them, several headers in their order."""
    headers = [("Warning", r'299 - "unknown field \"spec.a\""'), ("Warning", '299 - "b", 299 k8s "c"')]
    server.replies.append(answer({"kind": "RayJob"}, 201, headers))
    created = await scripted.create(RAYJOBS, "ns", rayjob("j"))
    assert created.manifest == {"kind": "RayJob"}
    assert created.warnings == ('unknown field "spec.a"', "b", "c")


@pytest.mark.parametrize(
    ("reply", "expected", "text"),
    [
        pytest.param(failure(404, "NotFound", "gone", name="j"), NotFound, "gone", id="a Status"),
        pytest.param(answer("busy", 429, [("Retry-After", "4")]), TooManyRequests, "HTTP 429", id="too many requests"),
        pytest.param(answer("<html>", 502), Unavailable, "HTTP 502 without", id="a load balancer's page"),
        pytest.param(answer("<html>"), Unavailable, "no JSON", id="200 with a page"),
        pytest.param(answer("[]"), Unavailable, "no JSON object", id="200 with something else"),
        pytest.param(stream('{"a": ', then="end"), Unavailable, "only a part", id="half an object"),
        pytest.param(stream('{"a": ', then="break"), Unavailable, "broke off", id="a connection that breaks half-way"),
        pytest.param(drop, Unavailable, "closed the connection", id="a connection that ends before the answer"),
        pytest.param(hang, DeadlineExceeded, "within 0.3 s", id="silence"),
        pytest.param(stream('{"a": ', then="hang"), DeadlineExceeded, "within 0.3 s", id="silence half-way"),
    ],
)
async def test_each_fault_has_its_error(
    scripted: ApiKubeClient, server: ScriptedServer, reply: Reply, expected: type[ApiError], text: str
) -> None:
    """Every fault on the way comes out as one `ApiError` that names the call."""
    server.replies.append(reply)
    with pytest.raises(ApiError) as caught:
        await scripted.create(RAYJOBS, "ns", rayjob("j"), timeout=0.3)
    assert type(caught.value) is expected
    assert str(caught.value).startswith("create rayjobs.ray.io j in namespace ns: ")
    assert text in str(caught.value)


async def test_a_call_after_a_fault_works(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """A broken connection is not used again."""
    server.replies += [stream('{"a": ', then="break"), answer({"a": 1})]
    with pytest.raises(Unavailable):
        await scripted.create(RAYJOBS, "ns", rayjob("j"))
    assert await scripted.get(RAYJOBS, "ns", "j") == {"a": 1}


def closed_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("address", "text"),
    [
        pytest.param("http://127.0.0.1:{closed}", "127.0.0.1:", id="nobody listens"),
        pytest.param("http://no-such-host.invalid", "no-such-host.invalid", id="the name does not resolve"),
        pytest.param("https://127.0.0.1:{plain}", "127.0.0.1:", id="no TLS where TLS is due"),
    ],
)
async def test_a_server_that_cannot_be_reached_is_unavailable(
    server: ScriptedServer, kubeconfig_of: KubeconfigOf, address: str, text: str
) -> None:
    """The text names where it was looked for."""
    plain = int(server.url.rpartition(":")[2])
    client = await ApiKubeClient.open(kubeconfig_of(address.format(closed=closed_port(), plain=plain)))
    with pytest.raises(Unavailable) as caught:
        await client.get(PODS, "ns", "p")
    await client.close()
    assert text in str(caught.value)


async def test_a_cancelled_call_is_cancelled(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """Cancellation, Flyte's at its deadline say, passes through as it is."""
    task = asyncio.create_task(scripted.get(PODS, "ns", "p"))
    while not server.seen:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


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


async def test_a_refused_token_is_looked_up_anew(
    server: ScriptedServer, kubeconfig_of: KubeconfigOf, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """After a 401 the next call reads the kubeconfig's token file again."""
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text("old")
    client = await ApiKubeClient.open(kubeconfig_of(server.url, user={"tokenFile": str(token)}))
    token.write_text("new")
    server.replies += [failure(401, "Unauthorized", "Unauthorized"), answer({})]
    with pytest.raises(Unauthorized):
        await client.get(PODS, "ns", "p")
    await client.get(PODS, "ns", "p")
    await client.close()
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer old", "Bearer new"]


async def test_a_proxy_is_asked_and_its_password_never_shown(
    server: ScriptedServer, kubeconfig_of: KubeconfigOf
) -> None:
    """A kubeconfig's proxy-url is used; what it refuses is told without its credentials."""
    proxy = server.url.replace("http://", "http://user:pa55word@")
    server.replies += [answer({"a": 1})]
    plain = await ApiKubeClient.open(kubeconfig_of("http://cluster.invalid", cluster={"proxy-url": proxy}))
    assert await plain.get(PODS, "ns", "p") == {"a": 1}
    assert server.seen[0].headers["Host"] == "cluster.invalid"
    await plain.close()
    server.replies += [answer("", 407)]
    tunnel = await ApiKubeClient.open(kubeconfig_of("https://cluster.invalid", cluster={"proxy-url": proxy}))
    with pytest.raises(Unavailable) as caught:
        await tunnel.get(PODS, "ns", "p")
    await tunnel.close()
    assert str(caught.value) == "get pods p in namespace ns: can't talk to the API server: the proxy answered HTTP 407"


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


def _document(**kinds: list[dict[str, str]]) -> dict[str, object]:
    """An OpenAPI document whose schemas are of these kinds."""
    schemas = {name: {"title": name, "x-kubernetes-group-version-kind": kind} for name, kind in kinds.items()}
    return {"openapi": "3.0.0", "components": {"schemas": {**schemas, "of no kind": {"title": "?"}}}}


RAYJOB_KIND = {"group": "ray.io", "kind": "RayJob", "version": "v1"}


@pytest.mark.parametrize(
    ("resource", "kind", "path"),
    [
        pytest.param(RAYJOBS, RAYJOB_KIND, "/openapi/v3/apis/ray.io/v1", id="of a group"),
        pytest.param(PODS, {"group": "", "kind": "Pod", "version": "v1"}, "/openapi/v3/api/v1", id="of the core API"),
    ],
)
async def test_a_schema_is_found_by_its_kind(
    scripted: ApiKubeClient, server: ScriptedServer, resource: Resource, kind: dict[str, str], path: str
) -> None:
    """Among all of its group and version, whatever the server calls it."""
    other = {**kind, "kind": "Another"}
    server.replies.append(answer(_document(a=[other], b=[{**kind, "version": "v2"}, kind])))
    assert (await scripted.schema(resource, kind["kind"]))["title"] == "b"
    assert [(seen.method, seen.path) for seen in server.seen] == [("GET", path)]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param(answer("404 page not found", 404), UnknownResource, id="no such group"),
        pytest.param(answer(_document(a=[{**RAYJOB_KIND, "kind": "RayCluster"}])), UnknownResource, id="no such kind"),
        pytest.param(answer({"openapi": "3.0.0"}), UnknownResource, id="no schemas at all"),
        pytest.param(failure(403, "Forbidden", 'cannot get path "/openapi/v3"'), Forbidden, id="no right"),
        pytest.param(answer("<html>"), Unavailable, id="no JSON"),
    ],
)
async def test_a_schema_that_is_not_there(
    scripted: ApiKubeClient, server: ScriptedServer, reply: Reply, error: type[ApiError]
) -> None:
    """Each fault is an error of this package that names what was asked."""
    server.replies.append(reply)
    with pytest.raises(error, match="^get /openapi/v3/apis/ray.io/v1: "):
        await scripted.schema(RAYJOBS, "RayJob")
