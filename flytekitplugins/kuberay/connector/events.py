"""Events of the cluster, as lines: why nothing could be made, or why a queue holds a job back.

They cost a call each time, so they are read beside the answers. What can't be read is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from .. import kube
from ..wire import Manifest

_SECONDS = 2.0
_MOST = 50
_LONGEST = 500
_MADE_ALREADY = "already exists"
"""KubeRay complains so of a RayCluster that it made a moment ago and does not see yet; nothing is wrong."""
_QUEUE_REASONS = ("Pending", "Preempted", "Evicted", "Inadmissible")
"""Of Kueue's events about a Workload, those that tell why it waits; newer versions make them warnings."""


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
        page = await client.list_page(
            kube.EVENTS, namespace, kube.Selector(fields=fields), limit=_MOST, timeout=_SECONDS
        )
    except kube.ApiError:
        return []
    return list(page.items)


def _lines(events: Iterable[Manifest]) -> list[str]:
    ordered = sorted(events, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
    return [f"{event.get('reason', '')}: {' '.join(event.get('message', '').split())}"[:_LONGEST] for event in ordered]
