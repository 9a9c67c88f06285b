"""What create, get, delete and watch have to do, each with tasks of its own.

A cell is a generator: what it does before the fault, `yield`, during it, `yield`, after it; last it yields what it saw.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable

import grpc
from flyteidl.core.execution_pb2 import TaskExecution

from .scene import DEADLINE, Scene, connector

QUEUED, RUNNING, SUCCEEDED = TaskExecution.QUEUED, TaskExecution.RUNNING, TaskExecution.SUCCEEDED
SUSPENDED = {"jobDeploymentStatus": "Suspended", "jobStatus": ""}
DONE = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
_LONGEST_ERROR = 5000  # bytes: ours, which are under 2 kB, twice, with flytekit's words and frames

Cell = Callable[[Scene], AsyncGenerator[str, None]]


async def creating(scene: Scene) -> AsyncGenerator[str, None]:
    """One RayJob, made by this call, or by the next one after a short error; and the next attempt replaces it."""
    yield ""
    start, made = time.monotonic(), b""
    try:
        made = await scene.caller.create(scene.task("create"))
    except grpc.aio.AioRpcError as error:
        assert error.code() == grpc.StatusCode.INTERNAL, f"{error.code()}: {error.details()}"
        assert "rayjobs.ray.io" in (error.details() or "")
        assert len((error.details() or "").encode()) < _LONGEST_ERROR
    took = time.monotonic() - start
    assert took < DEADLINE
    yield ""
    again = await scene.caller.create(scene.task("create"))
    assert made in (b"", again)
    assert await scene.jobs("create") == [json.loads(again)["name"]]
    second = await scene.caller.create(scene.task("create", attempt=1))
    assert await scene.jobs("create") == [json.loads(second)["name"]]
    yield f"made in {took:.1f} s" if made else f"error after {took:.1f} s, then made once"


async def getting(scene: Scene) -> AsyncGenerator[str, None]:
    """No error, no end that is none; what happened meanwhile is told soon after, by a new connector too."""
    suspended, ended = await scene.running("get"), await scene.running("end")
    yield ""
    count, longest, start = 0, 0.0, time.monotonic()
    await scene.writes(suspended, **SUSPENDED)
    await scene.writes(ended, **DONE)
    async with connector(scene.channel, scene.way.kubeconfig, f"{scene.row.name}-new") as (newcomer, _):
        while count == 0 or time.monotonic() - start < scene.row.seconds:
            for caller in (scene.caller, newcomer):
                for metadata, phases in ((suspended, (RUNNING, QUEUED)), (ended, (RUNNING, SUCCEEDED))):
                    asked = time.monotonic()
                    phase = (await caller.get(metadata)).phase
                    assert phase in phases, f"phase {phase}"
                    count, longest = count + 1, max(longest, time.monotonic() - asked)
    yield ""
    right = await scene.until(lambda: scene.is_of(suspended, QUEUED), "its suspension is not told", scene.row.right)
    right += await scene.until(lambda: scene.is_of(ended, SUCCEEDED), "its end is not told", scene.row.right)
    yield f"{count} answers in {longest:.1f} s at most, right {right:.1f} s after"


async def deleting(scene: Scene) -> AsyncGenerator[str, None]:
    """No error; it is gone soon after the fault, and a second delete succeeds."""
    metadata = await scene.running("delete")
    yield ""
    start = time.monotonic()
    await scene.caller.delete(metadata)
    took = time.monotonic() - start
    yield ""

    async def is_gone() -> bool:
        return not await scene.jobs("delete")

    gone = await scene.until(is_gone, "it is not gone", scene.row.follows)
    await scene.caller.delete(metadata)
    yield f"answered in {took:.1f} s, gone {gone:.1f} s after"


async def watching(scene: Scene) -> AsyncGenerator[str, None]:
    """The view follows again: it tells what changes after the fault, without a read of the object."""
    metadata = await scene.running("watch")
    name = json.loads(metadata)["name"]
    yield ""
    yield ""
    await scene.writes(metadata, **SUSPENDED)

    async def is_seen() -> bool:
        before = scene.reads.read.count(name)
        return await scene.is_of(metadata, QUEUED) and scene.reads.read.count(name) == before

    yield f"follows {await scene.until(is_seen, 'it does not follow', scene.row.follows):.1f} s after"


CELLS: dict[str, Cell] = {"create": creating, "get": getting, "delete": deleting, "watch": watching}
