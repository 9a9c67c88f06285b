"""Events of the cluster, as lines: why nothing could be made, or why a queue holds a job back.

They cost a call each time, so they are read beside the answers. What can't be read is left out.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from .. import kube
from ..cluster.diagnosis import unexplained
from ..cluster.phase import needs_results
from ..cluster.pods import SUBMITTER, PodView
from ..cluster.status import JobView, read_time
from ..errors import shortened
from ..wire import Manifest

_SECONDS = 2.0
_LONGEST = 500
_FRESH_SECONDS = 10.0
"""How long Kueue's events of a namespace are taken for the newest."""
_MADE_ALREADY = "already exists"
"""KubeRay complains so of a RayCluster that it made a moment ago and does not see yet; nothing is wrong."""
_MOST_PENDING = 3
_QUEUE_REASONS = ("Pending", "Preempted", "Evicted", "Inadmissible")
"""Of Kueue's events about a Workload, those that tell why it waits; newer versions make them warnings."""


@dataclass(frozen=True)
class Event:
    """One event about an object of a task."""

    at: datetime | None
    about: str  # as Pod/train-head
    warns: bool
    text: str  # reason and message, on one line


def pending_pods(job: JobView | None, pods: Sequence[PodView]) -> list[str] | None:
    """The pods that only events explain, of a job that waits while no pod tells why; None of any other."""
    if job is None or needs_results(job):
        return None
    if job.deployment == "Running":  # a Job whose pod is refused has none
        return [] if job.is_unsubmitted and not any(pod.role == SUBMITTER for pod in pods) else None
    return unexplained(pods)


@dataclass
class _Queue:
    """Kueue's events of one namespace."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    events: dict[str, list[Manifest]] = field(default_factory=dict)  # by the Workload's name less its hash
    read: float = float("-inf")  # when, by the monotonic clock


class WaitingEvents:
    """What events say of jobs that wait.

    Kueue's events about a RayJob are about a Workload whose name ends with a hash, so those of a whole namespace are
    read, once for all jobs that wait there.

    Source: kueue pkg/controller/jobframework/workload_names.go.

    Args:
        client: The cluster.
    """

    def __init__(self, client: kube.KubeClient) -> None:
        self._client = client
        self._queues: dict[str, _Queue] = {}  # by namespace

    async def of(self, job: JobView, pending: Sequence[str]) -> list[str]:
        """The events that explain why a job waits, oldest first. Raises nothing.

        Args:
            job: The RayJob.
            pending: Its pods that only events explain.
        """
        if not job.suspended:
            return await warnings(self._client, job.namespace, (job.cluster, job.name, *pending[:_MOST_PENDING]))
        told = (await self._queue(job.namespace)).get(f"rayjob-{job.name}", [])
        return _lines(
            event
            for event in told
            if event.get("type") == "Warning" or event.get("reason", "").startswith(_QUEUE_REASONS)
        )

    async def _queue(self, namespace: str) -> dict[str, list[Manifest]]:
        queue = self._queues.setdefault(namespace, _Queue())
        async with queue.lock:
            if time.monotonic() - queue.read >= _FRESH_SECONDS:
                queue.events = defaultdict(list)
                for event in await _read(self._client, namespace, "involvedObject.kind=Workload"):
                    queue.events[event["involvedObject"].get("name", "").rpartition("-")[0]].append(event)
                queue.read = time.monotonic()
            return queue.events


async def recent(client: kube.KubeClient, namespace: str, names: Iterable[str]) -> list[Event]:
    """The events about the objects of these names, oldest first.

    Raises:
        ApiError: They can't be read.
    """
    selectors = [f"involvedObject.name={name}" for name in filter(None, names)]
    found = await asyncio.gather(*(_listed(client, namespace, selector) for selector in selectors))
    return [_event_of(event) for event in sorted((event for events in found for event in events), key=_time_of)]


async def warnings(client: kube.KubeClient, namespace: str, names: Iterable[str]) -> list[str]:
    """Warning events about the objects of these names, oldest first. Raises nothing."""
    selectors = [f"involvedObject.name={name},type=Warning" for name in filter(None, names)]
    found = await asyncio.gather(*(_read(client, namespace, selector) for selector in selectors))
    told = (event for events in found for event in events)
    return _lines(event for event in told if not event.get("message", "").endswith(_MADE_ALREADY))


async def _read(client: kube.KubeClient, namespace: str, fields: str) -> list[Manifest]:
    try:
        return await _listed(client, namespace, fields)
    except kube.ApiError:
        return []


async def _listed(client: kube.KubeClient, namespace: str, fields: str) -> list[Manifest]:
    return await client.list(kube.EVENTS, namespace, kube.Selector(fields=fields), timeout=_SECONDS)


def _lines(events: Iterable[Manifest]) -> list[str]:
    return [_text_of(event) for event in sorted(events, key=_time_of)]


def _event_of(event: Manifest) -> Event:
    about = event["involvedObject"]
    return Event(
        at=read_time(_time_of(event)),
        about=f"{about.get('kind', '')}/{about.get('name', '')}",
        warns=event.get("type") == "Warning",
        text=_text_of(event),
    )


def _time_of(event: Manifest) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _text_of(event: Manifest) -> str:
    text = f"{event.get('reason', '')}: {' '.join(event.get('message', '').split())}"
    return shortened(text, longest=_LONGEST, front=160, mark=" ... ")
