"""When a RayJob came to each stage, as a watch of it and of its pods sees it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import aclosing

from typing_extensions import Self

from flytekitplugins.kuberay.kube import PODS, RAYJOBS, KubeClient, Manifest, Resource

STATUSES = {"Initializing": "initializing", "Running": "cluster ready", "Complete": "Complete"}
"""The stages that jobDeploymentStatus tells of."""


class Timeline:
    """Seconds from its start to each stage of the only RayJob of a namespace.

    Args:
        client: The cluster.
        namespace: One that holds no RayJob and no pod at the start.
    """

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._watches: list[asyncio.Task[None]] = []
        self._news = asyncio.Event()
        self._start = 0.0
        self.seconds: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        for resource in (RAYJOBS, PODS):
            version = (await self._client.list_page(resource, self._namespace)).resource_version
            self._watches.append(asyncio.create_task(self._watch(resource, version)))
        self._start = time.monotonic()
        return self

    async def __aexit__(self, *failure: object) -> None:
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)

    def stamp(self, stage: str) -> None:
        """Nothing; the stage has come now, unless it came before."""
        if stage not in self.seconds:
            self.seconds[stage] = round(time.monotonic() - self._start, 2)
            self._news.set()

    async def until(self, stage: str, within: float) -> None:
        """Nothing; the stage has come, or does not come in time."""
        try:
            await asyncio.wait_for(self._come(stage), within)
        except asyncio.TimeoutError:
            return

    async def _come(self, stage: str) -> None:
        while stage not in self.seconds:
            self._news.clear()
            await self._news.wait()

    async def _watch(self, resource: Resource, version: str) -> None:
        events = self._client.watch(resource, self._namespace, resource_version=version, seconds=600)
        async with aclosing(events):
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    for stage in stages_of(event.manifest):
                        self.stamp(stage)


def stages_of(manifest: Manifest) -> Iterator[str]:
    """The stages that a RayJob, or a pod of one, has come to."""
    status = manifest.get("status") or {}
    if "entrypoint" in manifest["spec"]:
        yield "created"
        if (deployment := status.get("jobDeploymentStatus")) in STATUSES:
            yield STATUSES[deployment]
        if deployment in ("Running", "Complete") and status.get("jobStatus"):  # before, it is an older job's
            yield status["jobStatus"]
        return
    kind = (manifest["metadata"].get("labels") or {}).get("ray.io/node-type", "submitter")
    for condition in status.get("conditions") or []:
        if condition["type"] == "Ready" and condition["status"] == "True":
            yield f"{kind} ready"
