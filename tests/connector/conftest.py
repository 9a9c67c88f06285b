"""A connector in this process, over a client that counts and fails as a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from flytekitplugins.kuberay.kube import ApiKubeClient
from tests.api import ApiServer

from .propelling import Propeller, built_propeller
from .seam import Seam
from .serving import IMPATIENT, Caller, service_over, serving


@pytest.fixture
async def seam(api_server: ApiServer, namespace: str) -> Seam:
    """The connector's client of the real API server, which the connector closes, before the namespace goes."""
    return Seam(await ApiKubeClient.open(api_server.kubeconfig))


@pytest.fixture
async def caller(seam: Seam) -> AsyncIterator[Caller]:
    """A caller of the connector."""
    async with serving(service_over(seam)) as caller:
        yield caller


@pytest.fixture
async def impatient(seam: Seam) -> AsyncIterator[Caller]:
    """A caller of a connector that gives its calls to the cluster two seconds."""
    async with serving(service_over(seam, IMPATIENT)) as caller:
        yield caller


@pytest.fixture(scope="session")
def propeller_client() -> str:
    """The path of the program that runs propeller's code."""
    return built_propeller()


@pytest.fixture
def propeller(
    propeller_client: str, api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> Propeller:
    """Propeller, for tasks of a fresh namespace."""
    return Propeller(propeller_client, api_server, client, namespace, tmp_path)
