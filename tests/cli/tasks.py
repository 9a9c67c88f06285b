"""RayJobs of this package on a real API server, their pods, and the command beside them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from flytekitplugins.kuberay.cli import main
from flytekitplugins.kuberay.cluster.names import ATTEMPT, ATTEMPT_KEY, MANAGED_BY, MANAGER, PREFIX, attempt_key
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient, Manifest
from tests.connector.pods import put_pod
from tests.kube.admin import merge_patch
from tests.kube.samples import rayjob

from .running import Ended

Command = Callable[..., Awaitable[Ended]]


def our_job(name: str, prefix: str = "s3://bucket/x", execution: str = "f0", attempt: int = 0, **spec: Any) -> Manifest:
    """A RayJob of this package, for a task whose outputs go there."""
    labels = {MANAGED_BY: MANAGER, ATTEMPT_KEY: attempt_key(prefix), ATTEMPT: str(attempt), "execution-id": execution}
    told = {"execution": f"p/d/{execution}", "node": "n0", "task": "wf.train", "output-prefix": prefix}
    job = rayjob(name, labels=labels, **spec)
    job["metadata"]["annotations"] = {f"{PREFIX}{key}": value for key, value in told.items()}
    return job


class Tasks:
    """Plays Flyte and KubeRay in a namespace.

    Args:
        client: An administrator's.
        namespace: Fresh.
    """

    def __init__(self, client: ApiKubeClient, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def add(self, job: Manifest, **status: Any) -> bytes:
        """What identifies a new RayJob in this state, for tests.connector.pods."""
        name = job["metadata"]["name"]
        await self.client.create(RAYJOBS, self.namespace, job)
        if status:
            await merge_patch(self.client, RAYJOBS, self.namespace, name, {"status": status}, status=True)
        prefix = (job["metadata"].get("annotations") or {}).get(f"{PREFIX}output-prefix", "")
        return json.dumps({"namespace": self.namespace, "name": name, "output_prefix": prefix}).encode()

    async def add_pod(self, task: bytes, group: str, state: Manifest) -> str:
        """The name of a new pod of it."""
        return await put_pod(self.client, task, group, **state)

    async def names(self) -> list[str]:
        """Of the RayJobs that are there."""
        return [job["metadata"]["name"] for job in await self.client.list(RAYJOBS, self.namespace)]


async def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> Ended:
    """`flyte-kuberay` in this process."""
    status = await asyncio.to_thread(main, list(arguments))
    return Ended(status, *capsys.readouterr())
