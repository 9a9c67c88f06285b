"""A connector in this process, over a client that counts and fails as a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from flytekitplugins.kuberay.kube import ApiKubeClient
from tests.api import ApiServer

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
