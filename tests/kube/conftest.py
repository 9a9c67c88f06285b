"""A scripted server, and a real kube-apiserver with KubeRay's CRDs.

The real one is that of KUBECONFIG when it is set, else one of our own from ../shared/cluster, ended with the session.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from flytekitplugins.kuberay.kube import ApiKubeClient, Manifest, Resource

from .samples import core
from .scripted import ScriptedServer

CLUSTER = Path(__file__).parents[3] / "shared" / "cluster"
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
KubeconfigOf = Callable[..., str]


@dataclass(frozen=True)
class ApiServer:
    """A kube-apiserver that the tests may use; one of our own can be restarted."""

    kubeconfig: str
    state: str = ""

    def restart(self, *options: str) -> None:
        """Nothing; the server was ended and is healthy again."""
        _cluster("restart", "apiserver", *options, state=self.state)


def _cluster(command: str, *arguments: str, state: str) -> str:
    environ = {**os.environ, "KUBERAY_TEST_STATE": state}
    done = subprocess.run([CLUSTER / command, *arguments], env=environ, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"{CLUSTER / command} failed: {done.stderr[-2000:]}", pytrace=False)
    return done.stdout


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A real one."""
    if given := os.environ.get("KUBECONFIG"):
        yield ApiServer(given)
    elif not (CLUSTER / "up").exists():
        pytest.skip("no API server: set KUBECONFIG to a cluster with KubeRay's CRDs, where tests may make namespaces")
    else:
        state = str(tmp_path_factory.mktemp("cluster") / "state")
        try:
            exported = _cluster("up", "--api-only", state=state)
            yield ApiServer(exported.strip().removeprefix("export KUBECONFIG="), state)
        finally:
            _cluster("down", state=state)


@pytest.fixture
async def client(api_server: ApiServer) -> AsyncIterator[ApiKubeClient]:
    """An administrator's client of the real API server."""
    client = await ApiKubeClient.open(api_server.kubeconfig)
    yield client
    await client.close()


@pytest.fixture
async def namespace(client: ApiKubeClient) -> AsyncIterator[str]:
    """A fresh namespace there."""
    name = f"kuberay-{uuid.uuid4().hex[:8]}"
    await client.create(NAMESPACES, None, core("Namespace", name), timeout=20)
    yield name
    await client.delete(NAMESPACES, None, name, timeout=20)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    """A scripted one."""
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
def kubeconfig_of(tmp_path: Path) -> KubeconfigOf:
    """Writes a kubeconfig: address, more of the cluster's entry, the user's entry, the context's namespace."""

    def write(server: str, cluster: Manifest | None = None, user: Manifest | None = None, namespace: str = "") -> str:
        context = {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
            "users": [{"name": "u", "user": user or {}}],
            "contexts": [{"name": "test", "context": context}],
        }
        path = tmp_path / f"kubeconfig-{uuid.uuid4().hex[:8]}"
        path.write_text(yaml.safe_dump(content))
        return str(path)

    return write


@pytest.fixture
async def scripted(server: ScriptedServer, kubeconfig_of: KubeconfigOf) -> AsyncIterator[ApiKubeClient]:
    """A client of the scripted server."""
    client = await ApiKubeClient.open(kubeconfig_of(server.url))
    yield client
    await client.close()
