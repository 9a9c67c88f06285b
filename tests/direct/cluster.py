"""A cluster that tests stand in for: RayJobs on a real API server, whose pods a test plays, and an object store."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
from flyteidl.core.errors_pb2 import ContainerError, ErrorDocument
from flyteidl.core.literals_pb2 import LiteralMap
from flytekit.core.context_manager import FlyteContextManager
from flytekit.core.data_persistence import FileAccessProvider
from flytekit.configuration import FastSerializationSettings, Image, ImageConfig, SerializationSettings

from flytekitplugins.kuberay.cluster.names import PREFIX
from flytekitplugins.kuberay.direct.background import Background
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient, Manifest, NotFound
from tests.kube.admin import merge_patch

STORE = "memory://bucket"
IMAGE = "registry.example/ray:1"
_FILES: Any = fsspec.filesystem("memory")  # type: ignore[no-untyped-call]  # fsspec has no types
Play = Callable[[Manifest], Sequence[Manifest]]
"""What the pods of a RayJob do, by its manifest: the statuses that it goes through."""


def prefix_of(job: Manifest) -> str:
    """Where the outputs of a RayJob's attempt go."""
    prefix: str = job["metadata"]["annotations"][f"{PREFIX}output-prefix"]
    return prefix


def put_outputs(job: Manifest, outputs: LiteralMap) -> None:
    """Writes outputs.pb, as the task's code does."""
    _put(f"{prefix_of(job)}/outputs.pb", outputs.SerializeToString())


def put_error(job: Manifest, message: str, *, recoverable: bool = False) -> None:
    """Writes error.pb."""
    kind = ContainerError.RECOVERABLE if recoverable else ContainerError.NON_RECOVERABLE
    error = ContainerError(code="USER:RuntimeError", message=message, kind=kind)
    _put(f"{prefix_of(job)}/error.pb", ErrorDocument(error=error).SerializeToString())


def stored(path: str) -> bytes:
    """The content of a file of the object store."""
    content: bytes = _FILES.cat_file(path)
    return content


def _put(path: str, content: bytes) -> None:
    _FILES.pipe_file(path, content)


@contextmanager
def run_context(folder: Path, *, code: str = f"{STORE}/code.tar.gz", image: str = IMAGE) -> Iterator[None]:
    """A local run whose data go to the object store, as `pyflyte run --raw-output-data-prefix` makes it.

    Args:
        folder: For local files.
        code: Where the code was uploaded to; "" where nobody has.
        image: That of --image.
    """
    context = FlyteContextManager.current_context()
    name, _, tag = image.rpartition(":")
    fast = FastSerializationSettings(enabled=True, destination_dir=".", distribution_location=code) if code else None
    settings = SerializationSettings(
        image_config=ImageConfig(Image("default", name, tag)), fast_serialization_settings=fast
    )
    builder = context.with_file_access(FileAccessProvider(str(folder), STORE)).with_serialization_settings(settings)
    with FlyteContextManager.with_context(builder):
        yield


class Pods:
    """Plays KubeRay and the pods of each RayJob of a namespace, while its block lasts.

    Args:
        kubeconfig: An administrator's.
        namespace: Of the RayJobs.
        play: What each RayJob's pods do.
    """

    def __init__(self, kubeconfig: str, namespace: str, play: Play) -> None:
        self._kubeconfig, self._namespace, self._play = kubeconfig, namespace, play
        self._background = Background()
        self.jobs: list[Manifest] = []

    def __enter__(self) -> Pods:
        self._client = self._background.run(ApiKubeClient.open(self._kubeconfig))
        self._working = self._background.start(self._work())
        return self

    def __exit__(self, *failure: object) -> None:
        self._working.cancel()
        self._background.run(self._client.close())

    def left(self, within: float = 10.0) -> list[str]:
        """The names of the RayJobs that stand, once there are none, or at the end of the time."""
        deadline = time.monotonic() + within
        while True:
            jobs = self._background.run(self._client.list(RAYJOBS, self._namespace))
            if not jobs or time.monotonic() > deadline:
                return [job["metadata"]["name"] for job in jobs]
            time.sleep(0.1)

    async def _work(self) -> None:
        seen: set[str] = set()
        while True:
            for job in await self._client.list(RAYJOBS, self._namespace):
                if job["metadata"]["uid"] not in seen:
                    seen.add(job["metadata"]["uid"])
                    self.jobs.append(job)
                    for status in self._play(job):
                        await self._report(job["metadata"]["name"], status)
            await asyncio.sleep(0.1)

    async def _report(self, name: str, status: Manifest) -> None:
        try:
            await merge_patch(self._client, RAYJOBS, self._namespace, name, {"status": status}, status=True)
        except NotFound:  # the run has deleted it
            return


def interrupt_when(is_time: Callable[[], bool]) -> None:
    """Presses Ctrl-C a moment after it is time."""

    def interrupt() -> None:
        while not is_time():
            time.sleep(0.05)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
