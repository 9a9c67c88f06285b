"""A scripted server, its client, and kubeconfigs; the real kube-apiserver is in tests/conftest.py."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import yaml

from flytekitplugins.kuberay.kube import ApiKubeClient, Manifest

from .scripted import ScriptedServer

KubeconfigOf = Callable[..., str]


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
