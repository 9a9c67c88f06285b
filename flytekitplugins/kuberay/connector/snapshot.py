"""A task at one moment by direct reads, without a watch: for a person at a terminal, and for its logs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from .. import kube
from ..cluster.capsule import declared_in, place_of
from ..cluster.names import ATTEMPT_KEY, annotation_of
from ..cluster.phase import Results, Verdict, needs_results
from ..cluster.pods import PodView, pod_view_of
from ..cluster.status import JobView, view_of
from ..cluster.verdict import Deadlines, Sight, verdict_of
from ..settings import Settings
from ..wire import Manifest
from .events import WaitingEvents, pending_pods
from .results import ResultFiles


@dataclass(frozen=True)
class Snapshot:
    """A task's RayJob and its pods."""

    manifest: Manifest
    job: JobView
    pods: Sequence[PodView]

    @property
    def output_prefix(self) -> str:
        """Where its results go; "" where the RayJob does not tell."""
        return annotation_of(self.manifest, "output-prefix")


@dataclass(frozen=True)
class Findings:
    """What a snapshot comes to."""

    verdict: Verdict
    diagnosis: str = ""  # where the capsule lies, at a bad end that left one


async def take(client: kube.KubeClient, namespace: str, name: str, key: str) -> Snapshot:
    """The task now. Pods first: what took them away stands in the RayJob that is read after them.

    Args:
        client: The cluster.
        namespace: Where the RayJob is.
        name: Its name.
        key: Its attempt key.

    Raises:
        ApiError: NotFound where the RayJob is gone.
    """
    pods = await read_pods(client, namespace, key)
    manifest = await client.get(kube.RAYJOBS, namespace, name)
    return Snapshot(manifest, view_of(manifest), pods)


async def read_pods(client: kube.KubeClient, namespace: str, key: str, *, timeout: float = 10.0) -> list[PodView]:
    """The pods of an attempt, by its key.

    Raises:
        ApiError: They can't be read now.
    """
    found = await client.list(kube.PODS, namespace, kube.Selector(labels=f"{ATTEMPT_KEY}={key}"), timeout=timeout)
    return [pod_view_of(item) for item in found]


async def findings(
    client: kube.KubeClient, files: ResultFiles, snapshot: Snapshot, settings: Settings, now: datetime
) -> Findings:
    """What the connector would say of the task now, as far as the RayJob tells; and where the diagnosis lies.

    The RayJob does not tell whether outputs are declared, nor the task's own deadlines: a user's error is told as the
    failure that it is, and an end that the connector declared stands in its diagnosis.
    """
    job, prefix, results, kept = snapshot.job, snapshot.output_prefix, Results(), ""
    if needs_results(job) and prefix:
        results, (kept, _) = await asyncio.gather(files.read(prefix), files.diagnosis(prefix))
    pending = pending_pods(job, snapshot.pods)
    events = [] if pending is None else await WaitingEvents(client).of(job, pending)
    sight = Sight(job, snapshot.pods, results, events)
    computed = verdict_of(sight, has_outputs=False, deadlines=Deadlines(), settings=settings, now=now)
    declared = None if results.error or results.outputs else declared_in(kept)
    return Findings(declared or computed, place_of(prefix) if kept else "")
