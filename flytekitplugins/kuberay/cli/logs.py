"""`logs`: what a task's code printed, or Ray in one of its pods, as it comes."""

from __future__ import annotations

import argparse
import asyncio
import codecs
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import datetime, timezone

from .. import kube
from ..cluster.capsule import LogSource, place_of
from ..cluster.logs import DashboardLog, mode_of, places_of
from ..cluster.phase import needs_results
from ..cluster.pods import HEAD, SUBMITTER
from ..cluster.progress import Progress, line, news_of, progress_of
from ..connector.results import ResultFiles
from ..connector.snapshot import Snapshot, findings, take
from ..errors import KubeRayError
from ..settings import Settings
from .output import print_text
from .target import Target, name_problems, named, opened, settings_of

_LOOK_SECONDS = 2.0
_LAST_SECONDS = 3.0  # for the rest of a stream that has no end of its own
_FAULTS_TO_TELL = 2  # in a row
_log = logging.getLogger(__name__)


def logs(arguments: argparse.Namespace) -> None:
    """Prints the log, and as it grows with --follow.

    Raises:
        ProblemsError: The arguments or the settings can't be used.
        KubeRayError: There is no log, or it can't be read.
    """
    settings = settings_of(arguments, name_problems(arguments))
    asyncio.run(_run(arguments, settings))


async def _run(arguments: argparse.Namespace, settings: Settings) -> None:
    files = ResultFiles()
    try:
        async with await opened(arguments, settings, "logs") as client:
            target = await named(client, arguments, settings)
            await _Reader(client, files, settings, target, arguments.pod, follow=arguments.follow).read()
    finally:
        files.close()


def _by_hand(snapshot: Snapshot) -> str:
    """How else the driver's log of HTTPMode can be read, which lies in a file of the head's."""
    head = next((pod.name for pod in snapshot.pods if pod.role == HEAD and not pod.terminating), "HEAD-POD")
    file = f"/tmp/ray/session_latest/logs/job-driver-{snapshot.job.job_id}.log"
    return f"; else: kubectl exec --namespace {snapshot.job.namespace} {head} -- cat {file}"


class _Reader:
    """Prints the logs of one task's pods.

    Args:
        client: The cluster.
        files: Where a diagnosis lies.
        settings: The platform's.
        target: The RayJob.
        which: Whose log, one of `cluster.logs.WHICH`.
        follow: Whether to wait for it, and go on as it grows.
    """

    def __init__(
        self,
        client: kube.KubeClient,
        files: ResultFiles,
        settings: Settings,
        target: Target,
        which: str,
        *,
        follow: bool,
    ) -> None:
        self._client, self._files, self._settings, self._target = client, files, settings, target
        self._which, self._follow, self._printed = which, follow, False

    async def read(self) -> None:
        """Prints the log.

        Raises:
            KubeRayError: There is none, or it can't be read.
        """
        snapshot = await self._begun()
        places = self._places(snapshot)
        try:
            if isinstance(places, DashboardLog):
                await self._print_dashboard(places)
            elif places:
                await self._print_pods(places)
            else:
                await self._print_kept(snapshot)
        except kube.ApiError as error:
            by_dashboard = isinstance(places, DashboardLog)
            by_hand = _by_hand(snapshot) if by_dashboard else ""
            if self._printed and not (self._follow and by_dashboard):  # that one goes with the cluster at the end
                raise KubeRayError(f"{self._its_log} broke off: {error}{by_hand}") from error
            if isinstance(error, kube.Forbidden) or not await self._has_ended():
                raise KubeRayError(f"{error}{by_hand}") from error
            if not self._printed:
                await self._print_kept(snapshot)

    @property
    def _its_log(self) -> str:
        return f"the log of the {self._which} of {self._target}"

    async def _has_ended(self) -> bool:
        try:
            return needs_results((await self._look()).job)
        except kube.NotFound:
            return True

    async def _look(self) -> Snapshot:
        """The task now. Who follows it for hours is not ended by a fault that passes, but told of one that lasts.

        Raises:
            ApiError: It can't be read; NotFound where the RayJob is gone.
        """
        faults = 0
        while True:
            try:
                return await take(self._client, self._target.namespace, self._target.name, self._target.key)
            except kube.ApiError as error:
                if not (self._follow and error.transient):
                    raise
                faults += 1
                if faults == _FAULTS_TO_TELL:
                    _log.warning("%s; looking goes on", error)
            await asyncio.sleep(_LOOK_SECONDS)

    def _places(self, snapshot: Snapshot) -> list[LogSource] | DashboardLog:
        return places_of(self._which, mode_of(snapshot.manifest), snapshot.job, snapshot.pods)

    async def _begun(self) -> Snapshot:
        """The task as soon as there is a log, or as it has ended. While it waits, the live line tells why.

        Raises:
            KubeRayError: There is none yet, and nobody waits for it.
        """
        shown = ""
        while True:
            snapshot = await self._look()
            if self._which == SUBMITTER and mode_of(snapshot.manifest) == "HTTPMode":
                raise KubeRayError(f"{self._target} has no submitter, its mode is HTTPMode; --pod driver is there")
            if self._places(snapshot) or needs_results(snapshot.job):
                return snapshot
            progress = await self._progress(snapshot)
            if not self._follow:
                text = f"the {self._which} of {self._target} has no log yet: {line(progress)}"
                raise KubeRayError(f"{text}; --follow waits for it")
            if news_of(progress) != shown:
                print(line(progress), file=sys.stderr, flush=True)
            shown = news_of(progress)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _progress(self, snapshot: Snapshot) -> Progress:
        now = datetime.now(timezone.utc)
        found = await findings(self._client, self._files, snapshot, self._settings, now)
        return progress_of(found.verdict, snapshot.job, now=now)

    async def _print_pods(self, sources: list[LogSource]) -> None:
        """Prints the logs; of several at once each line begins with its pod, and one that breaks off ends no other.

        Raises:
            ApiError: The only one, or the last that was left, broke off.
        """
        left = len(sources)

        async def print_one(source: LogSource) -> None:
            nonlocal left
            try:
                await self._print(self._of_pod(source), f"[{source.pod}] " if len(sources) > 1 else "")
            except kube.ApiError as error:
                left -= 1
                if not left:
                    raise
                _log.warning("%s; the logs of the other pods go on", error)

        await asyncio.gather(*map(print_one, sources))

    def _of_pod(self, source: LogSource) -> AsyncGenerator[bytes, None]:
        return self._client.stream_log(
            self._target.namespace, source.pod, container=source.container, follow=self._follow
        )

    async def _print_dashboard(self, log: DashboardLog) -> None:
        """Prints a log that Ray's dashboard shows; when it is followed, it has no end of its own."""
        path, query = log.path(follow=self._follow), log.query()
        printing = asyncio.create_task(
            self._print(self._client.stream_service(self._target.namespace, log.service, path, query))
        )
        while not printing.done():
            await asyncio.wait([printing], timeout=_LOOK_SECONDS)
            if self._follow and not printing.done() and await self._has_ended():
                await asyncio.wait([printing], timeout=_LAST_SECONDS)
                printing.cancel()
        with suppress(asyncio.CancelledError):
            await printing

    async def _print(self, pieces: AsyncGenerator[bytes, None], prefix: str = "") -> None:
        """Prints the pieces as they come; with a prefix line by line."""
        decoder, rest = codecs.getincrementaldecoder("utf-8")("replace"), ""
        async with aclosing(pieces) as opened_pieces:
            async for piece in opened_pieces:
                text = rest + decoder.decode(piece)
                if prefix:
                    *lines, rest = text.split("\n")
                    text = "".join(f"{prefix}{each}\n" for each in lines)
                print_text(text)
                self._printed = True
        if rest:
            print_text(f"{prefix}{rest}\n")

    async def _print_kept(self, snapshot: Snapshot) -> None:
        """Prints what was kept of a log that is gone with its pod.

        Raises:
            KubeRayError: Nothing was, or it can't be read.
        """
        gone, prefix = f"{self._its_log} is gone with its pod", snapshot.output_prefix
        if not prefix:
            raise KubeRayError(f"{gone}, and no diagnosis was kept: it has no output prefix")
        kept, unreadable = await self._files.diagnosis(prefix)
        if unreadable:
            raise KubeRayError(f"{gone}, and the diagnosis could not be read, {place_of(prefix)}: {unreadable}")
        if not kept:
            raise KubeRayError(f"{gone}, and no diagnosis was kept: there is no {place_of(prefix)}")
        print(f"{gone}; this was kept of it, in {place_of(prefix)}:", file=sys.stderr, flush=True)
        print_text(kept)
