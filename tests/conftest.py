"""Options and fixtures of all tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.api import ApiServer, NoApiServerError, fresh_namespace, running_api_server

if TYPE_CHECKING:
    from flytekitplugins.kuberay.kube import ApiKubeClient

settings.register_profile("default", deadline=None)  # a loaded machine is no fault of the code
settings.load_profile("default")


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
    from flytekitplugins.kuberay.kube import ApiKubeClient  # not for the user side's tests, see tests/api.py

    client = await ApiKubeClient.open(api_server.kubeconfig)
    yield client
    await client.close()


@pytest.fixture
async def namespace(client: ApiKubeClient) -> AsyncIterator[str]:
    """A fresh namespace there."""
    async with fresh_namespace(client) as name:
        yield name
