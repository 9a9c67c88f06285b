"""Events of the cluster, as lines: why nothing could be made, or why a queue holds a job back.

They cost a call each time, so they are read beside the answers. What can't be read is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from .. import kube
from ..cluster.diagnosis import unexplained
from ..cluster.phase import needs_results
from ..cluster.pods import PodView
from ..cluster.status import JobView, read_time
from ..wire import Manifest

_SECONDS = 2.0
_MOST = 50
_LONGEST = 500
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
    if job is None or job.deployment == "Running" or needs_results(job):
        return None
    return unexplained(pods)


async def waiting_events(
    client: kube.KubeClient, namespace: str, name: str, job: JobView, pending: Sequence[str]
) -> list[str]:
    """What events say of a job that waits, oldest first. Raises nothing.

    Args:
        client: The cluster.
        namespace: Where the RayJob is.
        name: Its name.
        job: The RayJob.
        pending: Its pods that only events explain.
    """
    if job.suspended:
        return await queue_events(client, namespace, name)
    return await warnings(client, namespace, (job.cluster, name, *pending[:_MOST_PENDING]))


async def recent(client: kube.KubeClient, namespace: str, names: Iterable[str]) -> list[Event]:
    """The events about the objects of these names, oldest first.

    Raises:
        ApiError: They can't be read.
    """
    selectors = [f"involvedObject.name={name}" for name in filter(None, names)]
    pages = await asyncio.gather(*(_page(client, namespace, selector) for selector in selectors))
    return [_event_of(event) for event in sorted((event for page in pages for event in page), key=_time_of)]


async def warnings(client: kube.KubeClient, namespace: str, names: Iterable[str]) -> list[str]:
    """Warning events about the objects of these names, oldest first. Raises nothing."""
    selectors = [f"involvedObject.name={name},type=Warning" for name in filter(None, names)]
    pages = await asyncio.gather(*(_read(client, namespace, selector) for selector in selectors))
    return _lines(event for page in pages for event in page if not event.get("message", "").endswith(_MADE_ALREADY))


async def queue_events(client: kube.KubeClient, namespace: str, job: str) -> list[str]:
    """What Kueue says of the Workload that it made of a RayJob, oldest first; its name ends with a hash.

    Source: kueue pkg/controller/jobframework/workload_names.go.
    """
    found = await _read(client, namespace, "involvedObject.kind=Workload")
    ours = [event for event in found if event["involvedObject"].get("name", "").startswith(f"rayjob-{job}-")]
    return _lines(
        event for event in ours if event.get("type") == "Warning" or event.get("reason", "").startswith(_QUEUE_REASONS)
    )


async def _read(client: kube.KubeClient, namespace: str, fields: str) -> list[Manifest]:
    try:
        return await _page(client, namespace, fields)
    except kube.ApiError:
        return []


async def _page(client: kube.KubeClient, namespace: str, fields: str) -> list[Manifest]:
    selector = kube.Selector(fields=fields)
    return list((await client.list_page(kube.EVENTS, namespace, selector, limit=_MOST, timeout=_SECONDS)).items)


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
    return f"{event.get('reason', '')}: {' '.join(event.get('message', '').split())}"[:_LONGEST]
