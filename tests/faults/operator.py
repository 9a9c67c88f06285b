"""An operator for many RayJobs: each goes through the states of a job that succeeds."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType

from typing_extensions import Self

from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient, Manifest, NotFound
from tests.kube.admin import merge_patch

_STATES = [
    {"jobDeploymentStatus": "Initializing"},
    {"jobDeploymentStatus": "Running"},
    {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"},
    {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"},
]


class Operator:
    """Writes statuses while its block lasts.

    Args:
        client: An administrator's.
        namespace: Of the RayJobs.
        step: Seconds that a RayJob stays in each state.
    """

    def __init__(self, client: ApiKubeClient, namespace: str, *, step: float) -> None:
        self._client, self._namespace, self._step = client, namespace, step
        self._seen: dict[str, tuple[float, int]] = {}  # uid -> when its state came, how many it had

    async def _work(self) -> None:
        while True:
            jobs = await self._client.list(RAYJOBS, self._namespace)
            await asyncio.gather(*(self._advance(job) for job in jobs))
            await asyncio.sleep(0.5)

    async def _advance(self, job: Manifest) -> None:
        uid, name = job["metadata"]["uid"], job["metadata"]["name"]
        since, states = self._seen.setdefault(uid, (time.monotonic(), 0))
        if states == len(_STATES) or time.monotonic() - since < self._step:
            return
        self._seen[uid] = (time.monotonic(), states + 1)
        try:
            await merge_patch(
                self._client, RAYJOBS, self._namespace, name, {"status": _STATES[states]}, status=True, timeout=30
            )
        except NotFound:  # an attempt that a later one has replaced
            return

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        (failure,) = await asyncio.gather(self._task, return_exceptions=True)
        assert isinstance(failure, asyncio.CancelledError), failure
