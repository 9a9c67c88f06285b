"""Options and fixtures of all tests."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.api import ApiServer, NoApiServerError, running_api_server

if TYPE_CHECKING:
    from flytekitplugins.kuberay.kube import ApiKubeClient


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --golden, which writes golden files anew in place of comparing with them."""
    parser.addoption("--golden", action="store_true", help="write golden files anew; CI never does")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written anew."""
    return bool(request.config.getoption("--golden"))


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """A real kube-apiserver, one for the whole session."""
    try:
        with running_api_server() as server:
            yield server
    except NoApiServerError as error:
        pytest.skip(str(error))


@pytest.fixture
async def client(api_server: ApiServer) -> AsyncIterator[ApiKubeClient]:
    """An administrator's client of the real API server."""
    from flytekitplugins.kuberay.kube import ApiKubeClient  # not for the user side's tests, which have no such version

    client = await ApiKubeClient.open(api_server.kubeconfig)
    yield client
    await client.close()


@pytest.fixture
async def namespace(client: ApiKubeClient) -> AsyncIterator[str]:
    """A fresh namespace there."""
    from flytekitplugins.kuberay.kube import Resource

    namespaces = Resource("", "v1", "namespaces", namespaced=False)
    name = f"kuberay-{uuid.uuid4().hex[:8]}"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(namespaces, None, manifest, timeout=20)
    yield name
    await client.delete(namespaces, None, name, timeout=20)
