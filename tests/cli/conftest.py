"""The command, run in an empty folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from flytekitplugins.kuberay.cli import main
from tests.api import ApiServer
from tests.cli.running import Ended, Run

if TYPE_CHECKING:  # `render` is tested without a client of the cluster, too
    from flytekitplugins.kuberay.kube import ApiKubeClient
    from tests.cli.tasks import Command, Tasks
    from tests.kube.scripted import ScriptedServer


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `flyte-kuberay render` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLYTE_KUBERAY_CONFIG", raising=False)

    def run(*arguments: str) -> Ended:
        status = main(["render", *arguments])
        return Ended(status, *capsys.readouterr())

    return run


@pytest.fixture
def tasks(client: ApiKubeClient, namespace: str) -> Tasks:
    """RayJobs in a fresh namespace of a real API server."""
    from tests.cli.tasks import Tasks

    return Tasks(client, namespace)


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, api_server: ApiServer, tmp_path: Path
) -> Command:
    """Runs a command of `flyte-kuberay` on that API server, in an empty folder."""
    from tests.cli.tasks import run_command

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLYTE_KUBERAY_CONFIG", raising=False)
    return lambda name, *arguments: run_command(capsys, name, "--kubeconfig", api_server.kubeconfig, *arguments)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    """A server that answers as it is told."""
    from tests.kube.scripted import ScriptedServer

    async with ScriptedServer() as server:
        yield server


@pytest.fixture
def scripted_cluster(server: ScriptedServer, tmp_path: Path) -> str:
    """A kubeconfig of that server."""
    content = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path = tmp_path / "kubeconfig-of-the-scripted-server"
    path.write_text(yaml.safe_dump(content))
    return str(path)
