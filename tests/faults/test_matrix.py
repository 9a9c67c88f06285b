"""Each fault of the way to the cluster, and of the cluster, against each call: `make test-faults` prints the matrix."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api import ApiServer

from .cells import CELLS
from .matrix import WRONG, Outcomes, format_matrix, run
from .rows import DEAD, ERROR, REFUSED, RESTARTED, ROWS


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> ApiServer:
    """One of our own, for its keys, and to be restarted."""
    if not api_server.state:
        pytest.skip("KUBECONFIG is set: its server's keys are not here, and it must not be restarted")
    return api_server


@pytest.fixture(scope="module")
def outcomes(
    server: ApiServer, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Outcomes]:
    """What came of each cell, printed once."""
    folder = tmp_path_factory.mktemp("ways")
    found = asyncio.run(run(ROWS, server, folder)) | asyncio.run(run([RESTARTED], server, folder))
    with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{format_matrix(found)}")
    yield found


@pytest.mark.faults
@pytest.mark.parametrize("call", CELLS)
@pytest.mark.parametrize("fault", [row.fault for row in (*ROWS, RESTARTED)])
def test_a_fault_is_got_over(outcomes: Outcomes, fault: str, call: str) -> None:
    """No call of propeller's is late or fails where it must not, nothing is made twice, and all is well afterwards."""
    assert not outcomes[fault, call].startswith(WRONG), outcomes[fault, call]


def test_the_usual_faults_are_got_over(server: ApiServer, tmp_path: Path) -> None:
    """A few rows of the matrix, quick enough for each change: nobody listens, 500, dead connections."""
    found = asyncio.run(run([REFUSED, ERROR, DEAD], server, tmp_path))
    assert len(found) == 12
    assert [cell for cell, outcome in found.items() if outcome.startswith(WRONG)] == [], format_matrix(found)
