"""`status`: how a task is now, with its links, pods and events."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

from .. import kube
from ..cluster.diagnosis import format_duration
from ..cluster.links import links_of
from ..cluster.pods import HEAD, SUBMITTER, PodView
from ..cluster.progress import Progress, line, plain, progress_of, state_of
from ..connector.events import Event, recent
from ..connector.results import ResultFiles
from ..connector.snapshot import Snapshot, findings, take
from ..settings import Settings
from .output import in_columns, print_text
from .target import NotThereError, Target, name_problems, named, of_execution, opened, settings_of

_MOST_PODS = 20
"""Whose events are looked for; each costs a call."""

_MOST_EVENTS = 10
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Status:
    """How one task is."""

    target: Target
    progress: Progress
    diagnosis: str  # where it lies; "" where there is none
    pods: Sequence[PodView]
    events: Sequence[Event]  # oldest first
    now: datetime


def status(arguments: argparse.Namespace) -> None:
    """Prints the status, of an execution that of all its RayJobs.

    Raises:
        ProblemsError: The arguments or the settings can't be used.
        KubeRayError: The cluster can't be asked, or there is no such RayJob.
    """
    settings = settings_of(arguments, name_problems(arguments))
    found = asyncio.run(_run(arguments, settings))
    if arguments.output == "json":
        print_text(json.dumps([_as_json(each) for each in found], indent=2, ensure_ascii=False) + "\n")
    else:
        print_text("\n".join("".join(f"{text}\n" for text in _lines(each)) for each in found))


async def _run(arguments: argparse.Namespace, settings: Settings) -> list[Status]:
    files = ResultFiles()
    try:
        async with await opened(arguments, settings, "status") as client:
            if arguments.name is not None:
                return [await _status_of(client, files, settings, await named(client, arguments, settings))]
            targets = await of_execution(client, arguments, settings)
            return await _statuses_of(client, files, settings, targets)
    finally:
        files.close()


async def _statuses_of(
    client: kube.KubeClient, files: ResultFiles, settings: Settings, targets: Sequence[Target]
) -> list[Status]:
    """The status of each RayJob that has not gone since they were listed.

    Raises:
        NotThereError: All have.
    """
    found = []
    for target in targets:
        with suppress(kube.NotFound):
            found.append(await _status_of(client, files, settings, target))
    if not found:
        raise NotThereError(f"{', '.join(map(str, targets))}: just deleted by somebody")
    return found


async def _status_of(client: kube.KubeClient, files: ResultFiles, settings: Settings, target: Target) -> Status:
    snapshot = await take(client, target.namespace, target.name, target.key)
    now = datetime.now(timezone.utc)
    found = await findings(client, files, snapshot, settings, now)
    links = links_of(snapshot.job, snapshot.pods, found.verdict.phase, settings, now)
    progress = progress_of(found.verdict, snapshot.job, links, now=now)
    return Status(target, progress, found.diagnosis, snapshot.pods, await _events_of(client, snapshot), now)


async def _events_of(client: kube.KubeClient, snapshot: Snapshot) -> list[Event]:
    """The last events about the RayJob, its cluster and its pods, those first that are not up."""
    job, pods = snapshot.job, sorted(snapshot.pods, key=lambda pod: pod.ready)
    names = [job.name, job.cluster, *(pod.name for pod in pods[:_MOST_PODS])]
    try:
        return (await recent(client, job.namespace, names))[-_MOST_EVENTS:]
    except kube.ApiError as error:
        _log.warning("the events can't be read: %s", error)
        return []


def _lines(status: Status) -> Iterator[str]:
    target, progress = status.target, status.progress
    where = f"node {target.node}, attempt {target.attempt}" if target.node else ""
    yield f"RayJob {target}"
    yield line(progress)
    yield from plain(progress.why).splitlines()[1:]
    facts = [
        ("task", target.task),
        ("execution", ", ".join(filter(None, (target.execution, where)))),
        *((link.name, link.uri) for link in progress.links),
        ("diagnosis", status.diagnosis),
    ]
    known = [(f"  {name}", value) for name, value in facts if value]
    if known:
        yield from in_columns(known)
    yield from _table(
        ("POD", "GROUP", "PHASE", "AGE", "RESTARTS", "WHY"), [_pod_cells(status, p) for p in _order(status)]
    )
    yield from _table(("EVENT", "ABOUT", ""), [_event_cells(status, event) for event in status.events])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield ""
        yield from in_columns([head, *rows])


def _order(status: Status) -> list[PodView]:
    """Head and submitter first, then the workers, group by group."""
    return sorted(status.pods, key=lambda pod: (pod.role != HEAD, pod.role != SUBMITTER, pod.group, pod.name))


def _pod_cells(status: Status, pod: PodView) -> Sequence[str]:
    restarts = str(sum(each.restarts for each in pod.containers))
    age = format_duration(status.now - pod.created)
    return pod.name, pod.group, pod.phase, age, restarts, plain(state_of(pod, ended=status.progress.ended))


def _event_cells(status: Status, event: Event) -> Sequence[str]:
    age = f"{format_duration(status.now - event.at)} ago" if event.at else ""
    return age, event.about, ("" if not event.warns else "Warning: ") + plain(event.text)


def _as_json(status: Status) -> dict[str, object]:
    target, progress = status.target, status.progress
    return {
        "namespace": target.namespace,
        "name": target.name,
        "task": target.task,
        "execution": target.execution,
        "node": target.node,
        "attempt": target.attempt,
        "phase": progress.phase,
        "reason": progress.why,
        "elapsed_seconds": int(progress.elapsed.total_seconds()),
        "workers": {"ready": progress.ready, "wanted": progress.wanted},
        "links": [{"name": link.name, "uri": link.uri} for link in progress.links],
        "diagnosis": status.diagnosis,
        "pods": [_pod_json(status, pod) for pod in _order(status)],
        "events": [{**asdict(event), "at": event.at.isoformat() if event.at else None} for event in status.events],
    }


def _pod_json(status: Status, pod: PodView) -> dict[str, object]:
    return {
        "name": pod.name,
        "group": pod.group,
        "phase": pod.phase,
        "age_seconds": int((status.now - pod.created).total_seconds()),
        "restarts": sum(each.restarts for each in pod.containers),
        "why": state_of(pod, ended=status.progress.ended),
    }
