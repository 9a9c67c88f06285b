"""Deletes RayJobs by their uid: within an answer, or in the background until it is done."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial

from .. import kube
from .metadata import JobMetadata
from .retry import retried

_log = logging.getLogger(__name__)

_SECONDS = 4.0
_FIRST_PAUSE = 2.0
_LONGEST_PAUSE = 60.0
_HURRIED_PAUSE = 0.5


class Deletions:
    """The deletions of one service.

    Args:
        client: The cluster.
    """

    def __init__(self, client: kube.KubeClient) -> None:
        self._client = client
        self._tried: dict[str, asyncio.Task[None]] = {}
        self._hurried = asyncio.Event()

    async def delete(self, namespace: str, name: str, uid: str, deadline: float) -> None:
        """Deletes the RayJob, if it is not gone.

        Raises:
            ApiError: That could not be brought about in time.
        """
        await retried(partial(self._delete, namespace, name, uid), deadline)

    def delete_soon(self, metadata: JobMetadata) -> None:
        """Deletes the RayJob in the background, and tries until it is done."""
        if metadata.uid not in self._tried:
            deletion = asyncio.create_task(self._try_on(metadata))
            self._tried[metadata.uid] = deletion
            deletion.add_done_callback(lambda _: self._tried.pop(metadata.uid))

    def hurry(self) -> bool:
        """Whether any is tried on in the background; from now on it waits no longer than a moment between two tries."""
        self._hurried.set()
        return bool(self._tried)

    async def stop(self) -> None:
        """Gives up the deletions that are still tried."""
        tasks = list(self._tried.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _try_on(self, metadata: JobMetadata) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._delete(metadata.namespace, metadata.name, metadata.uid, _SECONDS)
            except kube.ApiError as error:
                _log.warning("%s", error)
            await self._wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _wait(self, seconds: float) -> None:
        if self._hurried.is_set():
            return await asyncio.sleep(_HURRIED_PAUSE)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._hurried.wait(), seconds)

    async def _delete(self, namespace: str, name: str, uid: str, seconds: float) -> None:
        """Deletes it; one that is gone, or a namesake's, needs no deletion."""
        try:
            await self._client.delete(kube.RAYJOBS, namespace, name, uid=uid, timeout=seconds)
        except (kube.NotFound, kube.Conflict):
            return
