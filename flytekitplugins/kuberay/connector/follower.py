"""Follows RayJobs: what a task's phase is now, from a shared view of the cluster, and what is kept of it at a bad end.

A look costs no call while the views follow the cluster. A terminal phase never follows from missing knowledge: an end
that only we declare is looked at once more, directly.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from flyteidl.core.execution_pb2 import TaskExecution

from .. import kube
from ..cluster.capsule import place_of
from ..cluster.diagnosis import Trouble, trouble_of
from ..cluster.links import Link, links_of
from ..cluster.phase import ENDED_DEPLOYMENTS, FAILURES, Results, Verdict, needs_results, phase_of
from ..cluster.pods import PodView
from ..cluster.sidecar_mode import has_begun
from ..cluster.status import JobView
from ..cluster.verdict import Deadlines, Sight, verdict_of, waiting_of, was_initializing
from ..settings import Settings
from .events import WaitingEvents, pending_pods
from .metadata import JobMetadata
from .postmortem import PostMortem
from .results import ResultFiles
from .views import Views

_EVENT_SECONDS = 15.0
_UNREADABLE_SECONDS = 300.0
"""How long the store may fail to tell what became of a task of which KubeRay does not."""

_REMEMBERED_SECONDS = 3 * 3600.0
"""How long a task is remembered that nobody asks for: propeller asks every hour at least, of several replicas this one
now and then, or never again."""


@dataclass(frozen=True)
class Look:
    """One answer: the phase with its reason, and the RayJob that it was read from, if there is one."""

    verdict: Verdict
    job: JobView | None
    diagnosis: str = ""  # where the capsule lies, at a bad end
    links: tuple[Link, ...] = ()
    results: Results = Results()  # at a bad end


@dataclass(frozen=True)
class _Seen:
    """What one look is made of."""

    job: JobView | None
    pods: Sequence[PodView] | None
    results: Results
    verdict: Verdict


@dataclass
class _Wait:
    """What events say of one wait of a task."""

    of: tuple[str, bool, str]  # the RayJob's deployment status, whether it is suspended, and its cluster
    events: Sequence[str] = ()


@dataclass
class _Memory:
    """What is kept of one task from look to look."""

    looked: float = 0.0  # when it was asked for last, by the monotonic clock
    results: Results | None = None
    end: Look | None = None
    job: JobView | None = None  # as it was answered last
    phase: TaskExecution.Phase = TaskExecution.RUNNING  # that was answered last
    wait: _Wait | None = None
    events_read: float = float("-inf")  # when, by the same clock
    trouble: Trouble | None = None
    was_initializing: bool = False
    unreadable: float | None = None  # since when the result files could not be read, by the same clock


class Follower:
    """Looks at RayJobs of this package, in the event loop that runs when it is started.

    Args:
        client: The cluster.
        settings: The platform's settings.
        files: The result files.
        stalest: Seconds after which the view of the cluster is not trusted without a direct read.
        remembered: Seconds for which a task is remembered that nobody asks for.
    """

    def __init__(
        self,
        client: kube.KubeClient,
        settings: Settings,
        files: ResultFiles,
        *,
        stalest: float = 60.0,
        remembered: float = _REMEMBERED_SECONDS,
    ) -> None:
        self._settings, self._files, self._remembered = settings, files, remembered
        self._views = Views(client, settings.kuberay.namespaces, stalest=stalest)
        self._post_mortem = PostMortem(client, files, settings)
        self._events = WaitingEvents(client)
        self._memories: dict[str, _Memory] = {}  # by uid; those asked for last are last
        self._reading: set[asyncio.Task[None]] = set()
        self._looking: dict[str, asyncio.Task[Look]] = {}
        self._patience = settings.kuberay.api_timeout.total_seconds()

    def start(self) -> None:
        """Begins to fill the view of the cluster."""
        self._views.start()

    async def stop(self) -> None:
        """Ends what it does in the background."""
        tasks = [*self._reading, *self._looking.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._views.stop(), return_exceptions=True)

    async def look(self, metadata: JobMetadata) -> Look:
        """The task's phase now, within the caller's time. Raises nothing for a fault that may pass.

        Six answers in a task's whole life that raise or come late freeze it. What takes longer goes on, and a look that
        comes before it is done waits for the same; an end that it finds is remembered.
        """
        memory = self._memory_of(metadata)
        if memory.end is not None:
            return memory.end
        known = self._glance(metadata)
        if known is not None:
            memory.unreadable, memory.phase = None, known.verdict.phase
            return known
        looking = self._looking.get(metadata.uid)
        if looking is None:
            looking = self._looking[metadata.uid] = asyncio.create_task(self._look(metadata))
            looking.add_done_callback(lambda _: self._looking.pop(metadata.uid, None))
        await asyncio.wait([looking], timeout=self._patience)
        if not looking.done():
            return Look(Verdict(memory.phase, "it takes long to find out how the task is, it may go on"), None)
        memory.phase = looking.result().verdict.phase
        return looking.result()

    def forget(self, metadata: JobMetadata) -> None:
        """Forgets a task that was deleted and will not be asked for again."""
        self._memories.pop(metadata.uid, None)

    def _memory_of(self, metadata: JobMetadata) -> _Memory:
        """What is kept of a task that is asked for now; those that nobody asked for any more are forgotten."""
        now = time.monotonic()
        memory = self._memories[metadata.uid] = self._memories.pop(metadata.uid, _Memory())
        memory.looked = now
        while now - next(iter(self._memories.values())).looked > self._remembered:
            del self._memories[next(iter(self._memories))]
        return memory

    def _glance(self, metadata: JobMetadata) -> Look | None:
        """The answer from the views alone, without a call; None where it takes more."""
        memory = self._memory_of(metadata)
        job = self._views.followed_job(metadata, memory.job)
        if job is None or needs_results(job):
            return None
        memory.job = job
        pods = self._views.pods(metadata)
        verdict = self._verdict(metadata, job, pods, Results())
        return None if verdict.ours else self._shown(verdict, job, pods)

    async def _look(self, metadata: JobMetadata) -> Look:
        try:
            job = await self._views.job(metadata, self._memory_of(metadata).job)
        except kube.ApiError as error:
            unknown = f"the cluster can't be reached, the task may go on: {error}"
            return Look(Verdict(TaskExecution.RUNNING, unknown), None)
        self._memory_of(metadata).job = job
        pods = await self._views.pods_at_end(metadata) if needs_results(job) else self._views.pods(metadata)
        seen = await self._seen(metadata, job, pods)
        if seen.verdict.ours and not needs_results(job):  # what KubeRay says itself needs no second look
            try:
                seen = await self._seen_itself(metadata)
            except kube.ApiError:
                verdict = phase_of(job, Results(), has_outputs=metadata.has_outputs)
                return self._shown(verdict, job, seen.pods)
        if self._waits_for_files(metadata, seen):
            what = "the RayJob is gone" if seen.job is None else seen.verdict.message
            text = f"{what}, what became of the task is not known yet: {seen.results.unreadable}"
            return self._shown(Verdict(TaskExecution.RUNNING, text), seen.job, seen.pods)
        if seen.verdict.phase in FAILURES or seen.results.error is not None:
            look = await self._end(metadata, seen)
        else:
            look = self._shown(seen.verdict, seen.job, seen.pods)
            if not seen.verdict.ours:
                return look
        self._memory_of(metadata).end = look  # the RayJob of an end of ours is deleted, and tells it no more
        return look

    async def _end(self, metadata: JobMetadata, seen: _Seen) -> Look:
        """A bad end, which leaves its capsule; one that an earlier look left may hold more than there is now."""
        if seen.job is None and seen.results.declared is not None:
            return Look(seen.results.declared, None, place_of(metadata.output_prefix))
        if seen.job is None and seen.results.error is not None:
            return Look(seen.verdict, None, results=seen.results)
        verdict, stands = await self._post_mortem.hold(metadata, seen.verdict, seen.job, seen.pods or ())
        diagnosis = place_of(metadata.output_prefix) if stands else ""
        return replace(self._shown(verdict, seen.job, seen.pods), diagnosis=diagnosis, results=seen.results)

    def _shown(self, verdict: Verdict, job: JobView | None, pods: Sequence[PodView] | None) -> Look:
        """The answer with all links that are known: propeller takes them from the first answer of a phase alone."""
        links = links_of(job, pods or (), verdict.phase, self._settings, datetime.now(timezone.utc))
        return Look(verdict, job, links=tuple(links))

    async def _seen(
        self, metadata: JobMetadata, job: JobView | None, pods: Sequence[PodView] | None, *, decides: bool = False
    ) -> _Seen:
        """What follows from a RayJob and its pods; with the result files where they decide."""
        results = await self._results_of(metadata, job) if decides or needs_results(job) else Results()
        return _Seen(job, pods, results, self._verdict(metadata, job, pods, results))

    async def _seen_itself(self, metadata: JobMetadata) -> _Seen:
        """The same by direct reads: one view may be behind the other, a head that it does not know yet is not lost.

        Raises:
            ApiError: That isn't known now.
        """
        pods = await self._views.pods_themselves(metadata)  # first: what took them away stands in the RayJob read then
        return await self._seen(metadata, await self._views.job_itself(metadata), pods, decides=True)

    def _waits_for_files(self, metadata: JobMetadata, seen: _Seen) -> bool:
        """Whether only result files that can't be read now can tell the end; for a while."""
        memory, now = self._memory_of(metadata), time.monotonic()
        if not (seen.results.unreadable and _files_decide(seen)):
            memory.unreadable = None
            return False
        memory.unreadable = now if memory.unreadable is None else memory.unreadable
        return now - memory.unreadable < _UNREADABLE_SECONDS

    def _verdict(
        self, metadata: JobMetadata, job: JobView | None, pods: Sequence[PodView] | None, results: Results
    ) -> Verdict:
        now, memory = datetime.now(timezone.utc), self._memory_of(metadata)
        waiting = waiting_of(job, pods) if job is not None else []
        memory.trouble = trouble_of(waiting, memory.trouble, now)
        verdict = verdict_of(
            Sight(job, pods, results, self._events_of(metadata, job, pods), memory.trouble, memory.was_initializing),
            has_outputs=metadata.has_outputs,
            deadlines=_deadlines_of(metadata),
            settings=self._settings,
            now=now,
        )
        memory.was_initializing = was_initializing(verdict, waiting, memory.was_initializing)
        return verdict

    async def _results_of(self, metadata: JobMetadata, job: JobView | None) -> Results:
        """The result files; read again while they may still come or could not be read."""
        known = self._memory_of(metadata).results
        if known is not None:
            return known
        results = await self._files.read(metadata.output_prefix, diagnosis=job is None)
        ended = job is None or job.deployment in ENDED_DEPLOYMENTS
        if (results.error is not None or results.outputs or ended) and not results.unreadable:
            self._memory_of(metadata).results = results
        return results

    def _events_of(self, metadata: JobMetadata, job: JobView | None, pods: Sequence[PodView] | None) -> Sequence[str]:
        """What events say of a job that waits while no pod tells why; read beside the answers, for the next one."""
        memory, now, pending = self._memory_of(metadata), time.monotonic(), pending_pods(job, pods or ())
        if job is None or pending is None:
            memory.wait = None
            return ()
        this = (job.deployment, job.suspended, job.cluster)
        if memory.wait is None or memory.wait.of != this:  # what held it back before does no more
            memory.wait = _Wait(this)
        if now - memory.events_read >= _EVENT_SECONDS:
            memory.events_read = now
            task = asyncio.create_task(self._read_events(memory.wait, job, pending))
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)
        return memory.wait.events

    async def _read_events(self, wait: _Wait, job: JobView, pending: Sequence[str]) -> None:
        wait.events = await self._events.of(job, pending)


def _deadlines_of(metadata: JobMetadata) -> Deadlines:
    start, run = metadata.start_deadline, metadata.run_deadline
    return Deadlines(
        start=None if start is None else timedelta(seconds=start), run=None if run is None else timedelta(seconds=run)
    )


def _files_decide(seen: _Seen) -> bool:
    """Whether only the result files can tell the end: the RayJob is gone, or we declare a failure of code that began.

    A failure that KubeRay declares itself is told with what was not read.
    """
    if seen.job is None:
        return True
    declared = seen.verdict.ours and seen.verdict.phase in FAILURES and not needs_results(seen.job)
    return declared and has_begun(seen.job, seen.pods or ())
