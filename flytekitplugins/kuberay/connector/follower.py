"""Follows RayJobs: what a task's phase is now, from a shared view of the cluster, and what is kept of it at a bad end.

A look costs no call while the views follow the cluster. A terminal phase never follows from missing knowledge: an end
that only we declare is looked at once more, directly.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

from flyteidl.core.execution_pb2 import TaskExecution

from .. import kube
from ..cluster.capsule import place_of
from ..cluster.diagnosis import Trouble, Waiting, trouble_of
from ..cluster.links import Link, links_of
from ..cluster.phase import ENDED_DEPLOYMENTS, FAILURES, Results, Verdict, needs_results, phase_of
from ..cluster.pods import PodView
from ..cluster.status import JobView
from ..cluster.verdict import Deadlines, Sight, verdict_of, waiting_of, was_fine
from ..settings import Settings
from .events import pending_pods, waiting_events
from .metadata import JobMetadata
from .postmortem import PostMortem
from .results import ResultFiles
from .views import Views

_EVENT_SECONDS = 15.0
_GONE_SECONDS = 300.0
"""How long the store may fail to tell what became of a task whose RayJob is gone."""

_REMEMBERED = 1000
"""Ended tasks that are remembered: they are asked for again within a minute, or never."""


T = TypeVar("T")


@dataclass(frozen=True)
class Look:
    """One answer: the phase with its reason, and the RayJob that it was read from, if there is one."""

    verdict: Verdict
    job: JobView | None
    diagnosis: str = ""  # where the capsule lies, at a bad end
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class _Seen:
    """What one look is made of."""

    job: JobView | None
    pods: Sequence[PodView] | None
    results: Results
    verdict: Verdict


class Follower:
    """Looks at RayJobs of this package, in the event loop that runs when it is started.

    Args:
        client: The cluster.
        settings: The platform's settings.
        files: The result files.
        stalest: Seconds after which the view of the cluster is not trusted without a direct read.
    """

    def __init__(
        self, client: kube.KubeClient, settings: Settings, files: ResultFiles, *, stalest: float = 60.0
    ) -> None:
        self._client, self._settings, self._files = client, settings, files
        self._views = Views(client, settings.kuberay.namespaces, stalest=stalest)
        self._post_mortem = PostMortem(client, files, settings)
        self._results: dict[str, Results] = {}
        self._ends: dict[str, Look] = {}
        self._events: dict[str, tuple[float, Sequence[str]]] = {}
        self._troubles: dict[str, Trouble] = {}
        self._fine: dict[str, bool] = {}
        self._gone: dict[str, float] = {}
        self._reading: set[asyncio.Task[None]] = set()
        self._looking: dict[str, asyncio.Task[Look]] = {}
        self._patience = settings.kuberay.api_timeout.total_seconds()

    def start(self) -> None:
        """Nothing; the view of the cluster begins to fill."""
        self._views.start()

    async def stop(self) -> None:
        """Nothing; no task of its own runs any more."""
        tasks = [*self._reading, *self._looking.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._views.stop(), return_exceptions=True)

    async def look(self, metadata: JobMetadata) -> Look:
        """The task's phase now, within the caller's time. Raises nothing for a fault that may pass.

        Six answers in a task's whole life that raise or come late freeze it. What takes longer goes on, and the next
        look finds it done.
        """
        known = self._ends.get(metadata.uid) or self._glance(metadata)
        if known is not None:
            return known
        looking = self._looking.get(metadata.uid)
        if looking is None:
            looking = self._looking[metadata.uid] = asyncio.create_task(self._look(metadata))
            looking.add_done_callback(lambda _: self._looking.pop(metadata.uid, None))
        await asyncio.wait([looking], timeout=self._patience)
        if looking.done():
            return looking.result()
        return Look(Verdict(TaskExecution.RUNNING, "it takes long to find out how the task is, it may go on"), None)

    def forget(self, metadata: JobMetadata) -> None:
        """Nothing; the task has been deleted and will not be asked for again."""
        for memory in (self._results, self._ends, self._events, self._troubles, self._fine, self._gone):
            memory.pop(metadata.uid, None)

    def _glance(self, metadata: JobMetadata) -> Look | None:
        """The answer from the views alone, without a call; None where it takes more."""
        job = self._views.followed_job(metadata)
        if job is None or needs_results(job):
            return None
        pods = self._views.pods(metadata)
        verdict = self._verdict(metadata, job, pods, Results())
        return None if verdict.ours else self._shown(verdict, job, pods)

    async def _look(self, metadata: JobMetadata) -> Look:
        try:
            job = await self._views.job(metadata)
        except kube.ApiError as error:
            unknown = f"the cluster can't be reached, the task may go on: {error}"
            return Look(Verdict(TaskExecution.RUNNING, unknown), None)
        seen = await self._seen(metadata, job, await self._views.pods_at_end(metadata) if needs_results(job) else None)
        if seen.verdict.ours and not needs_results(job):  # what KubeRay says itself needs no second look
            try:
                seen = await self._seen_itself(metadata)
            except kube.ApiError:
                verdict = phase_of(job, Results(), has_outputs=metadata.has_outputs)
                return self._shown(verdict, job, seen.pods)
        if seen.job is None and seen.results.unreadable and not self._is_given_up(metadata):
            text = f"the RayJob is gone, what became of the task is not known yet: {seen.results.unreadable}"
            return Look(Verdict(TaskExecution.RUNNING, text), None)
        if seen.verdict.phase not in FAILURES and seen.results.error is None:
            return self._shown(seen.verdict, seen.job, seen.pods)
        return _remember(self._ends, metadata.uid, await self._end(metadata, seen))

    async def _end(self, metadata: JobMetadata, seen: _Seen) -> Look:
        """A bad end, which leaves its capsule; one that an earlier look left may hold more than there is now."""
        if seen.job is None and seen.results.declared is not None:
            return Look(seen.results.declared, None, place_of(metadata.output_prefix))
        if seen.job is None and seen.results.error is not None:
            return Look(seen.verdict, None)
        verdict, stands = await self._post_mortem.hold(metadata, seen.verdict, seen.job, seen.pods or ())
        return self._shown(verdict, seen.job, seen.pods, place_of(metadata.output_prefix) if stands else "")

    def _shown(
        self, verdict: Verdict, job: JobView | None, pods: Sequence[PodView] | None, diagnosis: str = ""
    ) -> Look:
        """The answer with all links that are known: propeller takes them from the first answer of a phase alone."""
        links = links_of(job, pods or (), verdict.phase, self._settings, datetime.now(timezone.utc))
        return Look(verdict, job, diagnosis, tuple(links))

    async def _seen(
        self, metadata: JobMetadata, job: JobView | None, pods: Sequence[PodView] | None, *, decides: bool = False
    ) -> _Seen:
        """What follows from a RayJob and its pods; with the result files where they decide."""
        pods = self._views.pods(metadata) if pods is None else pods
        results = await self._results_of(metadata, job) if decides or needs_results(job) else Results()
        return _Seen(job, pods, results, self._verdict(metadata, job, pods, results))

    async def _seen_itself(self, metadata: JobMetadata) -> _Seen:
        """The same by direct reads: one view may be behind the other, a head that it does not know yet is not lost.

        Raises:
            ApiError: That isn't known now.
        """
        pods = await self._views.pods_themselves(metadata)  # first: what took them away stands in the RayJob read then
        return await self._seen(metadata, await self._views.job_itself(metadata), pods, decides=True)

    def _is_given_up(self, metadata: JobMetadata) -> bool:
        """Whether the result files could not be read for too long."""
        first = self._gone.get(metadata.uid) or _remember(self._gone, metadata.uid, time.monotonic())
        return time.monotonic() - first >= _GONE_SECONDS

    def _verdict(
        self, metadata: JobMetadata, job: JobView | None, pods: Sequence[PodView] | None, results: Results
    ) -> Verdict:
        now, fine = datetime.now(timezone.utc), self._fine.pop(metadata.uid, False)
        waiting = waiting_of(job, pods) if job is not None else []
        trouble = self._trouble_of(metadata, waiting, now)
        verdict = verdict_of(
            Sight(job, pods, results, self._events_of(metadata, job, pods), trouble, fine),
            has_outputs=metadata.has_outputs,
            deadlines=_deadlines_of(metadata),
            settings=self._settings,
            now=now,
        )
        if was_fine(verdict, waiting, fine):
            _remember(self._fine, metadata.uid, True)
        return verdict

    def _trouble_of(self, metadata: JobMetadata, waiting: Sequence[Waiting], now: datetime) -> Trouble | None:
        trouble = trouble_of(waiting, self._troubles.pop(metadata.uid, None), now)
        return trouble and _remember(self._troubles, metadata.uid, trouble)

    async def _results_of(self, metadata: JobMetadata, job: JobView | None) -> Results:
        """The result files; read again while they may still come or could not be read."""
        if metadata.uid in self._results:
            return self._results[metadata.uid]
        results = await self._files.read(metadata.output_prefix, diagnosis=job is None)
        ended = job is None or job.deployment in ENDED_DEPLOYMENTS
        if (results.error is not None or results.outputs or ended) and not results.unreadable:
            _remember(self._results, metadata.uid, results)
        return results

    def _events_of(self, metadata: JobMetadata, job: JobView | None, pods: Sequence[PodView] | None) -> Sequence[str]:
        """What events say of a job that waits while no pod tells why; read beside the answers, for the next one."""
        pending = pending_pods(job, pods or ())
        if job is None or pending is None:
            return ()
        read_at, events = self._events.get(metadata.uid, (float("-inf"), ()))
        if time.monotonic() - read_at >= _EVENT_SECONDS:
            _remember(self._events, metadata.uid, (time.monotonic(), events))
            self._spawn(self._read_events(metadata, job, pending))
        return events

    async def _read_events(self, metadata: JobMetadata, job: JobView, pending: Sequence[str]) -> None:
        lines = await waiting_events(self._client, metadata.namespace, metadata.name, job, pending)
        _remember(self._events, metadata.uid, (time.monotonic(), lines))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)


def _deadlines_of(metadata: JobMetadata) -> Deadlines:
    start, run = metadata.start_deadline, metadata.run_deadline
    return Deadlines(
        start=None if start is None else timedelta(seconds=start), run=None if run is None else timedelta(seconds=run)
    )


def _remember(memory: dict[str, T], key: str, value: T) -> T:
    """The value, kept under the key; the oldest goes when there are too many."""
    memory[key] = value
    if len(memory) > _REMEMBERED:
        del memory[next(iter(memory))]
    return value
