"""What is known of a task's RayJob and pods: from a watch each over all of them, read directly where that is behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from .. import kube
from ..cluster.names import OURS, attempt_key
from ..cluster.pods import PodView, pod_view_of
from ..cluster.status import JobView, view_of
from .metadata import JobMetadata
from .snapshot import read_pods

_SYNC_SECONDS = 3.0
_READ_SECONDS = 4.0


class Views:
    """The RayJobs of this package and their pods, in the event loop that runs when it is started.

    Args:
        client: The cluster.
        namespaces: Where to look; empty for everywhere.
        stalest: Seconds after which a view is not trusted without a direct read.
    """

    def __init__(self, client: kube.KubeClient, namespaces: Sequence[str], *, stalest: float) -> None:
        self._client, self._stalest = client, stalest
        ours = kube.Selector(labels=OURS)
        self._jobs = kube.Watch(client, kube.RAYJOBS, view_of, selector=ours, namespaces=namespaces)
        self._pods = kube.Watch(
            client, kube.PODS, pod_view_of, selector=ours, namespaces=namespaces, index=lambda pod: pod.attempt_key
        )

    def start(self) -> None:
        """Begins to fill the views."""
        self._jobs.start()
        self._pods.start()

    async def stop(self) -> None:
        """Ends the watches."""
        await asyncio.gather(self._jobs.stop(), self._pods.stop())

    def followed_job(self, metadata: JobMetadata, last: JobView | None) -> JobView | None:
        """The RayJob of the task where the view of it is up to date, as far as can be known without a call.

        Args:
            metadata: The task.
            last: As of `job`.
        """
        known = self._known(metadata)
        is_behind = known is None or _is_older(known, last) or not self._is_followed(self._jobs, metadata)
        return None if is_behind else known

    async def job(self, metadata: JobMetadata, last: JobView | None) -> JobView | None:
        """The RayJob of the task; None when it is gone for certain.

        Args:
            metadata: The task.
            last: The RayJob as it was answered last: the view may be behind a direct read.

        Raises:
            ApiError: That isn't known now.
        """
        if not self._jobs.synced(metadata.namespace):
            await self._jobs.wait_synced(metadata.namespace, _SYNC_SECONDS)
        known = self.followed_job(metadata, last)
        if known is not None:
            return known
        try:
            return await self.job_itself(metadata)
        except kube.ApiError:
            known = self._known(metadata)
            if known is None or _is_older(known, last):
                known = last
            if known is None:
                raise
            return known

    async def job_itself(self, metadata: JobMetadata) -> JobView | None:
        """The same by a direct read.

        Raises:
            ApiError: That isn't known now.
        """
        try:
            found = await self._client.get(kube.RAYJOBS, metadata.namespace, metadata.name, timeout=_READ_SECONDS)
        except kube.NotFound:
            return None
        job = view_of(found)
        return job if job.uid == metadata.uid else None

    def pods(self, metadata: JobMetadata) -> Sequence[PodView] | None:
        """The attempt's pods as they were known last; None before they were, and where nobody watches."""
        if not self._pods.synced(metadata.namespace):
            return None
        return self._pods.indexed(attempt_key(metadata.output_prefix))

    async def pods_at_end(self, metadata: JobMetadata) -> Sequence[PodView] | None:
        """The same, read directly where the view of them is behind, or there is none."""
        if not self._is_followed(self._pods, metadata):
            try:
                return await self.pods_themselves(metadata)
            except kube.ApiError:
                pass
        return self.pods(metadata)

    async def pods_themselves(self, metadata: JobMetadata) -> Sequence[PodView]:
        """The same by a direct read.

        Raises:
            ApiError: That isn't known now.
        """
        key = attempt_key(metadata.output_prefix)
        return await read_pods(self._client, metadata.namespace, key, timeout=_READ_SECONDS)

    def _is_followed(self, view: kube.Watch[Any], metadata: JobMetadata) -> bool:
        namespace = metadata.namespace
        return view.synced(namespace) and view.error(namespace) is None and view.age(namespace) < self._stalest

    def _known(self, metadata: JobMetadata) -> JobView | None:
        view = self._jobs.get(metadata.namespace, metadata.name)
        return view if view is not None and view.uid == metadata.uid else None


def _is_older(job: JobView, last: JobView | None) -> bool:
    return last is not None and job.version < last.version
