"""A request and its answer: what becomes of every fault on the way, shown with a real HTTP server."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import pytest

from flytekitplugins.kuberay.kube import (
    PODS,
    RAYJOBS,
    ApiError,
    ApiKubeClient,
    DeadlineExceeded,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

from .certificates import Certificate, certificate, serving
from .conftest import KubeconfigOf
from .samples import rayjob
from .scripted import Reply, ScriptedServer, answer, drop, failure, hang, stream


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


async def test_a_call_waits_for_no_watch(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """However many watches are open, as with two for each of many namespaces."""
    server.replies += [*(stream(then="hang") for _ in range(120)), answer({"a": 1})]
    async with AsyncExitStack() as stack:
        for _ in range(120):
            watch = scripted.watch(RAYJOBS, "ns", resource_version="1", seconds=60, timeout=5)
            await anext(await stack.enter_async_context(aclosing(watch)))
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


class TestClientCertificates:
    """Presented to a server that refuses the first and is content with the second."""

    @pytest.fixture
    def first(self, tmp_path: Path) -> Certificate:
        """The one that there is when the client is made."""
        return certificate(tmp_path, "first")

    @pytest.fixture
    def second(self, tmp_path: Path) -> Certificate:
        """The one that comes after it."""
        return certificate(tmp_path, "second")

    @pytest.fixture
    async def server(self, tmp_path: Path, first: Certificate, second: Certificate) -> AsyncIterator[ScriptedServer]:
        """It knows both; its own certificate is server.crt."""
        async with ScriptedServer(serving(certificate(tmp_path, "server"), first, second)) as server:
            yield server

    @staticmethod
    async def refused(client: ApiKubeClient, server: ScriptedServer) -> None:
        """Has the server no longer know the client."""
        server.replies.append(failure(401, "Unauthorized", "Unauthorized"))
        with pytest.raises(Unauthorized):
            await client.get(PODS, "ns", "p")

    @staticmethod
    async def answered(client: ApiKubeClient, server: ScriptedServer) -> None:
        """Has the server answer."""
        server.replies.append(answer({}))
        await client.get(PODS, "ns", "p")

    async def test_a_plugins_new_one_is_presented(
        self,
        server: ScriptedServer,
        kubeconfig_of: KubeconfigOf,
        tmp_path: Path,
        first: Certificate,
        second: Certificate,
    ) -> None:
        """After a 401 the plugin is asked, and new connections present what it gives."""
        credential, plugin = tmp_path / "credential", tmp_path / "plugin"
        plugin.write_text(f"#!/bin/sh\ncat {credential}\n")
        plugin.chmod(0o755)
        user = {"exec": {"command": str(plugin), "apiVersion": "client.authentication.k8s.io/v1"}}
        credential.write_text(given(first))
        cluster = {"certificate-authority": str(tmp_path / "server.crt")}
        client = await ApiKubeClient.open(kubeconfig_of(server.url, cluster, user))
        await self.answered(client, server)
        credential.write_text(given(second))
        await self.refused(client, server)
        await self.answered(client, server)
        await client.close()
        assert [seen.client for seen in server.seen] == ["first", "first", "second"]

    async def test_replaced_files_are_presented(
        self,
        server: ScriptedServer,
        kubeconfig_of: KubeconfigOf,
        tmp_path: Path,
        first: Certificate,
        second: Certificate,
    ) -> None:
        """As soon as certificate and key belong together; while they don't, those before them."""
        user = {"client-certificate": str(tmp_path / "mine.crt"), "client-key": str(tmp_path / "mine.key")}
        shutil.copy(first.chain, tmp_path / "mine.crt")
        shutil.copy(first.key, tmp_path / "mine.key")
        cluster = {"certificate-authority": str(tmp_path / "server.crt")}
        client = await ApiKubeClient.open(kubeconfig_of(server.url, cluster, user))
        shutil.copy(second.chain, tmp_path / "mine.crt")
        await self.refused(client, server)
        await self.refused(client, server)
        shutil.copy(second.key, tmp_path / "mine.key")
        await self.answered(client, server)
        await client.close()
        assert [seen.client for seen in server.seen] == ["first", "first", "second"]


def given(certificate: Certificate) -> str:
    """What a plugin prints to give this certificate."""
    status = {"clientCertificateData": certificate.chain.read_text(), "clientKeyData": certificate.key.read_text()}
    head = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    return json.dumps({**head, "status": status})


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
