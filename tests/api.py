"""A real kube-apiserver with KubeRay's CRDs: the one of KUBECONFIG, else one of our own from ../shared/cluster."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from flytekitplugins.kuberay.kube import KubeClient

T = TypeVar("T")

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
        """Ends the server, and waits until it is healthy again.

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
    with own_api_server() as server:
        yield server


@contextmanager
def own_api_server() -> Iterator[ApiServer]:
    """A kube-apiserver that nobody else uses, which ends with the block.

    Raises:
        NoApiServerError: None can be started.
        RuntimeError: It did not start.
    """
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


@asynccontextmanager
async def fresh_namespace(client: KubeClient) -> AsyncIterator[str]:
    """The name of a new namespace, which goes with the block."""
    from flytekitplugins.kuberay.kube import Resource  # not for the user side's tests, which have no such version

    namespaces = Resource("", "v1", "namespaces")
    name = f"kuberay-{uuid.uuid4().hex[:8]}"
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create(namespaces, None, manifest, timeout=20)
    yield name
    await client.delete(namespaces, None, name, timeout=20)


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives, in an event loop of its own: for fixtures of a module, beside a test's loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _cluster(command: str, *arguments: str, state: str) -> str:
    environ = {**os.environ, "KUBERAY_TEST_STATE": state}
    done = subprocess.run([CLUSTER / command, *arguments], env=environ, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{CLUSTER / command} failed: {done.stderr[-2000:]}")
    return done.stdout
