"""Delete: the RayJob goes, or is gone; nothing raises, for eleven failures end the user's workflow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from flytekitplugins.kuberay.connector.deletions import Deletions
from flytekitplugins.kuberay.connector.metadata import JobMetadata
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient, Call, KubeClient, NotFound, TooManyRequests
from tests.kube.admin import merge_patch
from tests.kube.samples import rayjob

from .samples import flyte_task
from .seam import Seam
from .serving import Caller, write_status


async def is_gone(client: KubeClient, metadata: bytes) -> bool:
    """Whether the cluster has no RayJob of this name."""
    found = json.loads(metadata)
    try:
        await client.get(RAYJOBS, found["namespace"], found["name"])
    except NotFound:
        return True
    return False


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="new"),
        pytest.param({"jobDeploymentStatus": "Initializing"}, id="its cluster starts"),
        pytest.param({"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}, id="running"),
        pytest.param({"jobDeploymentStatus": "Suspended"}, id="suspended"),
        pytest.param({"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed"}, id="failed"),
        pytest.param({"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}, id="complete"),
    ],
)
async def test_a_rayjob_goes_in_any_state(
    caller: Caller, client: ApiKubeClient, namespace: str, status: dict[str, Any]
) -> None:
    """And a second delete is a success, too."""
    metadata = await caller.create(flyte_task(namespace))
    if status:
        await write_status(client, metadata, **status)
    await caller.delete(metadata)
    assert await is_gone(client, metadata)
    await caller.delete(metadata)


async def test_a_rayjob_that_waits_for_its_finalizer_is_deleted(
    caller: Caller, client: ApiKubeClient, namespace: str
) -> None:
    """KubeRay's finalizer takes its time: the request is accepted, nobody waits for it."""
    metadata = await caller.create(flyte_task(namespace))
    name = json.loads(metadata)["name"]
    await merge_patch(client, RAYJOBS, namespace, name, {"metadata": {"finalizers": ["test/held"]}})
    for _ in range(2):
        await caller.delete(metadata)
    assert "deletionTimestamp" in (await client.get(RAYJOBS, namespace, name))["metadata"]
    await merge_patch(client, RAYJOBS, namespace, name, {"metadata": {"finalizers": None}})


async def test_a_namesake_with_another_uid_stays(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """It belongs to somebody else."""
    first = await caller.create(flyte_task(namespace))
    await caller.delete(first)
    second = await caller.create(flyte_task(namespace))
    await caller.delete(first)
    assert not await is_gone(client, second)


async def test_a_passing_fault_is_got_over(caller: Caller, seam: Seam, client: ApiKubeClient, namespace: str) -> None:
    """Within the request's time."""
    metadata = await caller.create(flyte_task(namespace))
    seam.faults["delete"] = [TooManyRequests(Call("delete", "rayjobs.ray.io"), "busy", retry_after=0.1)]
    await caller.delete(metadata)
    assert await is_gone(client, metadata)


async def test_a_delete_while_the_cluster_is_away_is_done_later(
    impatient: Caller, seam: Seam, client: ApiKubeClient, namespace: str
) -> None:
    """The caller is told that all is well, and gets the same when it asks again; the RayJob goes as soon as it can."""
    metadata = await impatient.create(flyte_task(namespace))
    seam.away = True
    await asyncio.gather(*(impatient.delete(metadata) for _ in range(3)))
    assert not await is_gone(client, metadata)
    seam.away = False
    seam.calls.clear()
    await eventually(lambda: "delete" in seam.calls)
    await asyncio.sleep(0.1)
    assert await is_gone(client, metadata)
    await asyncio.sleep(0.5)
    assert seam.calls == ["delete"]


async def test_a_deletion_that_pauses_can_be_hurried(seam: Seam, client: ApiKubeClient, namespace: str) -> None:
    """As at SIGTERM, where there is no time for long pauses."""
    deletions = Deletions(seam)
    job = await client.create(RAYJOBS, namespace, rayjob("j"))
    seam.away = True
    deletions.delete_soon(JobMetadata(namespace, "j", job.manifest["metadata"]["uid"], "", has_outputs=False))
    await eventually(lambda: "delete" in seam.calls)
    seam.away = False
    assert deletions.hurry()
    await asyncio.wait_for(drained(deletions), 1.5)  # it would pause for 2 s
    assert await client.list(RAYJOBS, namespace) == []
    assert not deletions.hurry()
    await seam.close()


async def drained(deletions: Deletions) -> None:
    """Waits until none is under way."""
    while deletions.hurry():
        await asyncio.sleep(0.05)


async def eventually(holds: Callable[[], bool]) -> None:
    """Waits until it holds, 10 s at most."""
    for _ in range(200):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it never held")
