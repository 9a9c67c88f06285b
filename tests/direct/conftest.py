"""A cluster for direct runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from flytekitplugins.kuberay.connector.results import ResultFiles
from flytekitplugins.kuberay.connector.service import RayJobService
from flytekitplugins.kuberay.direct.background import Background
from flytekitplugins.kuberay.direct.choice import Choice, Cluster
from flytekitplugins.kuberay.kube import ApiKubeClient
from flytekitplugins.kuberay.settings import Settings
from tests.api import ApiServer
from tests.connector.seam import Seam

from .cluster import Play, Pods, run_context


class Direct:
    """A place for direct runs: a kubeconfig of a user whose namespace is a fresh one."""

    def __init__(self, kubeconfig: str, namespace: str, stack: ExitStack) -> None:
        self.kubeconfig, self.namespace, self._stack = kubeconfig, namespace, stack

    def playing(self, play: Play) -> Pods:
        """The cluster's pods, which play so until the test's end."""
        return self._stack.enter_context(Pods(self.kubeconfig, self.namespace, play))


@pytest.fixture
def direct(api_server: ApiServer, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Direct]:
    """A direct run's surroundings: kubeconfig, object store, image and uploaded code."""
    config = yaml.safe_load(Path(api_server.kubeconfig).read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    own = tmp_path / "kubeconfig"
    own.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(own))
    monkeypatch.delenv("FLYTE_KUBERAY_CONFIG", raising=False)
    with ExitStack() as stack:
        stack.enter_context(run_context(tmp_path))
        yield Direct(str(own), namespace, stack)


def close(choice: Choice) -> None:
    """Ends the watches of a cluster that was found, which else go on until the process ends."""
    if choice._found is not None:
        choice._found.background.run(choice._found.service.close())


@contextmanager
def cluster_of(kind: type[Seam], direct: Direct, settings: Settings | None = None) -> Iterator[tuple[Seam, Cluster]]:
    """A cluster behind such a seam."""
    background = Background()

    async def connect() -> tuple[Seam, RayJobService]:
        seam = kind(await ApiKubeClient.open(direct.kubeconfig))
        service = RayJobService(seam, settings or Settings(), ResultFiles())
        service.watch()
        return seam, service

    seam, service = background.run(connect())
    try:
        yield seam, Cluster("", direct.namespace, service, background)
    finally:
        background.run(service.close())
