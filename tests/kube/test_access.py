"""Which cluster is found, with which credentials and proxy, and what is said when there is none."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest

from flytekitplugins.kuberay.kube import Access, AccessError, ApiKubeClient
from flytekitplugins.kuberay.kube.access import proxy_of

from .conftest import KubeconfigOf

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    """What Kubernetes mounts into a pod."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    for name, text in {"token": "first", "ca.crt": "a certificate", "namespace": "flyte\n"}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home without a kubeconfig."""
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    return tmp_path / "home"


async def test_a_named_kubeconfig_comes_first(kubeconfig_of: KubeconfigOf, service_account: Path) -> None:
    """Whoever names one gets it, whatever else there is."""
    environ = {**IN_POD, "KUBECONFIG": kubeconfig_of("https://environment")}
    named = kubeconfig_of("https://named", namespace="team")
    access = await Access.find(named, environ=environ, service_account=service_account)
    assert (access.configuration.host, access.namespace) == ("https://named", "team")
    assert access.source == f"context test of {named}"


async def test_then_kubeconfig_of_the_environment(kubeconfig_of: KubeconfigOf, service_account: Path) -> None:
    """KUBECONFIG may hold several paths, and stands before the pod's own identity."""
    environ = {**IN_POD, "KUBECONFIG": f"/none:{kubeconfig_of('https://environment')}"}
    access = await Access.find(environ=environ, service_account=service_account)
    assert (access.configuration.host, access.namespace) == ("https://environment", "default")


async def test_then_the_pods_service_account(kubeconfig_of: KubeconfigOf, service_account: Path, home: Path) -> None:
    """A file that an image happens to hold does not turn a connector to another cluster."""
    Path(kubeconfig_of("https://image")).rename(home / ".kube" / "config")
    environ = {**IN_POD, "HOME": str(home)}
    access = await Access.find(environ=environ, service_account=service_account)
    assert (access.configuration.host, access.namespace) == ("https://10.96.0.1:443", "flyte")
    assert access.configuration.ssl_ca_cert == str(service_account / "ca.crt")


async def test_then_the_users_own(kubeconfig_of: KubeconfigOf, home: Path, tmp_path: Path) -> None:
    """~/.kube/config serves on a laptop."""
    Path(kubeconfig_of("https://home")).rename(home / ".kube" / "config")
    access = await Access.find(environ={"HOME": str(home)}, service_account=tmp_path)
    assert access.configuration.host == "https://home"


async def test_no_way_to_a_cluster_says_what_was_looked_for(home: Path, tmp_path: Path) -> None:
    """One sentence names every place."""
    with pytest.raises(AccessError) as caught:
        await Access.find(environ={"HOME": str(home)}, service_account=tmp_path)
    for place in ("kubeconfig", "KUBECONFIG", f"{home}/.kube/config", str(tmp_path)):
        assert place in str(caught.value)


async def test_a_context_needs_a_kubeconfig(home: Path, service_account: Path) -> None:
    """A pod's service account is no context, so it is not the token that is missing."""
    with pytest.raises(AccessError) as caught:
        await Access.find(context="prod", environ={**IN_POD, "HOME": str(home)}, service_account=service_account)
    assert str(caught.value) == (
        f"context prod needs a kubeconfig, but no kubeconfig is named, KUBECONFIG is not set and there is no"
        f" {home}/.kube/config; name a kubeconfig, or no context: a pod's own service account needs none"
    )


async def test_a_rotated_token_is_used_at_once(service_account: Path) -> None:
    """The kubelet replaces the file; while it is empty or away, the last token serves."""
    access = await Access.find(environ=IN_POD, service_account=service_account)

    async def token() -> str | None:
        return await access.configuration.get_api_key_with_prefix("BearerToken")

    seen = [await token()]
    for text in ("second\n", ""):
        (service_account / "token").write_text(text)
        seen.append(await token())
    (service_account / "token").unlink()
    assert [*seen, await token()] == ["Bearer first", "Bearer second", "Bearer second", "Bearer second"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("token", "Token file exists but empty", id="an empty token"),
        pytest.param("ca.crt", "Cert file exists but empty", id="an empty certificate"),
    ],
)
async def test_a_broken_service_account_is_told(service_account: Path, name: str, expected: str) -> None:
    """The folder and what is wrong in it."""
    (service_account / name).write_text("")
    with pytest.raises(AccessError, match=f"service account in {service_account} can't be used: {expected}"):
        await Access.find(environ=IN_POD, service_account=service_account)


async def test_a_certificate_that_is_none_is_told(service_account: Path) -> None:
    """It is read when the client is made, not by every later call."""
    access = await Access.find(environ=IN_POD, service_account=service_account)
    with pytest.raises(AccessError, match="its certificates can't be read"):
        ApiKubeClient.over(access)


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(f"a: [{SECRET}", "it is no YAML", id="no YAML"),
        pytest.param(f"- {SECRET}", "it is not shaped like a kubeconfig", id="a list"),
        pytest.param("", "it is not shaped like a kubeconfig", id="empty"),
        pytest.param(
            f"users: [{{name: u, user: {{token: {SECRET}}}}}]", "Expected key current-context", id="no context"
        ),
        pytest.param(
            f"current-context: x\ncontexts: [{{name: x, {SECRET}: 1}}]",
            "Expected key context",
            id="a context of nothing",
        ),
    ],
)
async def test_a_broken_kubeconfig_is_named_and_not_quoted(tmp_path: Path, content: str, expected: str) -> None:
    """The text says which file and what is wrong; what the file holds, tokens say, is in no text and no cause."""
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(AccessError) as caught:
        await Access.find(str(path))
    assert str(caught.value).startswith(f"the kubeconfig {path} can't be used: {expected}")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("cluster", "user", "context", "expected"),
    [
        pytest.param({}, {}, "other", "Expected object with name other", id="an unknown context"),
        pytest.param({"certificate-authority": "ca"}, {}, "", "File does not exists", id="a certificate that is away"),
        pytest.param(
            {}, {"exec": {"command": "/no/plugin", "apiVersion": "v1"}}, "", "/no/plugin gave no", id="plugin"
        ),
        pytest.param({"proxy-url": "socks5://p:1"}, {}, "", "socks5:// is not supported", id="a SOCKS proxy"),
    ],
)
async def test_an_unusable_entry_is_told(
    kubeconfig_of: KubeconfigOf, cluster: dict[str, object], user: dict[str, object], context: str, expected: str
) -> None:
    """A kubeconfig that can't serve is refused when it is read, not by every later call."""
    with pytest.raises(AccessError, match=expected):
        await Access.find(kubeconfig_of("https://c", cluster, user), context)


async def test_a_missing_kubeconfig_is_named() -> None:
    """The path that was given is in the text."""
    with pytest.raises(AccessError, match="the kubeconfig /no/config does not exist"):
        await Access.find("/no/config")


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A credential plugin that gives the token in the file `token` beside it, and counts its runs in `runs`."""
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    begin = json.dumps({**credential, "status": {"token": "@"}})
    script = tmp_path / "plugin"
    script.write_text(
        f"#!/bin/sh\ncd {tmp_path}\necho run >> runs\nsleep 0.2\nsed \"s/@/$(cat token)/\" <<'E'\n{begin}\nE\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "token").write_text("one")
    return script


async def test_a_plugins_token_is_renewed_once_for_all(kubeconfig_of: KubeconfigOf, plugin: Path) -> None:
    """However many calls find it refused, the plugin runs once; who does not wait goes on with the old one."""
    user = {"exec": {"command": str(plugin), "apiVersion": "client.authentication.k8s.io/v1"}}
    access = await Access.find(kubeconfig_of("https://c", user=user))
    (plugin.parent / "token").write_text("two")
    await access.renew(5)
    assert access.configuration.api_key == {"BearerToken": "Bearer one"}
    access.expire()
    await access.renew(0.01)
    assert access.configuration.api_key == {"BearerToken": "Bearer one"}
    await asyncio.gather(*(access.renew(5) for _ in range(3)))
    assert access.configuration.api_key == {"BearerToken": "Bearer two"}
    assert (plugin.parent / "runs").read_text().count("run") == 2
    await access.close()


async def test_closing_ends_a_renewal(kubeconfig_of: KubeconfigOf, plugin: Path) -> None:
    """No task outlives the client."""
    user = {"exec": {"command": str(plugin), "apiVersion": "client.authentication.k8s.io/v1"}}
    access = await Access.find(kubeconfig_of("https://c", user=user))
    access.expire()
    await access.renew(0.01)
    await access.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


BOTH = {"HTTPS_PROXY": "http://secure:1", "http_proxy": "plain:2"}


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        pytest.param("https://a.b", {}, None, id="none is set"),
        pytest.param("https://a.b", BOTH, "http://secure:1", id="by scheme"),
        pytest.param("http://a.b", BOTH, "http://plain:2", id="lower case, and without its scheme"),
        pytest.param("https://localhost:6443", BOTH, None, id="never for localhost"),
        pytest.param("https://127.1.2.3", BOTH, None, id="never for a loopback address"),
        pytest.param("https://[::1]:6443", BOTH, None, id="never for a loopback address of IPv6"),
        pytest.param("https://a.b", {**BOTH, "NO_PROXY": "*"}, None, id="a star bypasses all"),
        pytest.param("https://10.96.0.1", {**BOTH, "NO_PROXY": "x, 10.0.0.0/8"}, None, id="a range of addresses"),
        pytest.param(
            "https://11.96.0.1", {**BOTH, "NO_PROXY": "10.0.0.0/8"}, "http://secure:1", id="outside the range"
        ),
        pytest.param("https://[fd00::1]", {**BOTH, "no_proxy": "fd00::/16"}, None, id="a range of IPv6"),
        pytest.param("https://10.96.0.1", {**BOTH, "NO_PROXY": "10.96.0.1"}, None, id="an address"),
        pytest.param("https://10.96.0.1", {**BOTH, "NO_PROXY": "10.96.0.1:443"}, None, id="an address and its port"),
        pytest.param("https://a.b", {**BOTH, "NO_PROXY": "A.B"}, None, id="a name, in any case"),
        pytest.param("https://x.a.b", {**BOTH, "NO_PROXY": "a.b"}, None, id="a name and what is below it"),
        pytest.param("https://xa.b", {**BOTH, "NO_PROXY": "a.b"}, "http://secure:1", id="not what only ends alike"),
        pytest.param("https://x.a.b", {**BOTH, "NO_PROXY": ".a.b"}, None, id="what is below a dot"),
        pytest.param("https://a.b", {**BOTH, "NO_PROXY": ".a.b"}, "http://secure:1", id="a dot leaves the name itself"),
        pytest.param("https://x.a.b", {**BOTH, "NO_PROXY": "*.a.b"}, None, id="a star and a dot"),
        pytest.param("https://a.b:8443", {**BOTH, "NO_PROXY": "a.b:443"}, "http://secure:1", id="another port"),
        pytest.param(
            "https://a.b", {**BOTH, "NO_PROXY": "a.b:x,,:"}, "http://secure:1", id="nonsense bypasses nothing"
        ),
    ],
)
def test_the_proxy_is_the_one_go_would_take(server: str, environ: dict[str, str], expected: str | None) -> None:
    """HTTPS_PROXY and NO_PROXY mean to us what they mean to kubectl and to the operator."""
    assert proxy_of(server, environ) == expected
