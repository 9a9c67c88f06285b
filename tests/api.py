"""A real kube-apiserver with KubeRay's CRDs: the one of KUBECONFIG, else one of our own from ../shared/cluster."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SHARED = Path(__file__).parents[2] / "shared"
CLUSTER = SHARED / "cluster"


class NoApiServerError(Exception):
    """There is none, and none can be started; the text says how to get one."""


@dataclass(frozen=True)
class ApiServer:
    """A kube-apiserver that tests may use; one of our own can be restarted."""

    kubeconfig: str
    state: str = ""

    def restart(self, *options: str) -> None:
        """Nothing; the server was ended and is healthy again.

        Raises:
            RuntimeError: It did not come back.
        """
        _cluster("restart", "apiserver", *options, state=self.state)


@contextmanager
def running_api_server() -> Iterator[ApiServer]:
    """A kube-apiserver; one of our own ends with the block.

    Raises:
        NoApiServerError: There is none.
        RuntimeError: It did not start.
    """
    if given := os.environ.get("KUBECONFIG"):
        yield ApiServer(given)
        return
    if not (CLUSTER / "up").exists():
        raise NoApiServerError(
            "no API server: set KUBECONFIG to a cluster with KubeRay's CRDs, where tests may make namespaces"
        )
    with tempfile.TemporaryDirectory(prefix="kuberay-api-") as folder:
        state = str(Path(folder) / "state")
        try:
            exported = _cluster("up", "--api-only", state=state)
            yield ApiServer(exported.strip().removeprefix("export KUBECONFIG="), state)
        finally:
            _cluster("down", state=state)


def _cluster(command: str, *arguments: str, state: str) -> str:
    environ = {**os.environ, "KUBERAY_TEST_STATE": state}
    done = subprocess.run([CLUSTER / command, *arguments], env=environ, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{CLUSTER / command} failed: {done.stderr[-2000:]}")
    return done.stdout
