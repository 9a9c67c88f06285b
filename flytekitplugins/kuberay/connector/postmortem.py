"""At a task's bad end: reads the ends of logs and the events, keeps them beside the outputs, and says where.

Whatever fails here is told by our log alone: the verdict stands without it. It has a time of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from .. import kube
from ..cluster.capsule import LogSource, LogTail, format_capsule, logs_to_read, place_of
from ..cluster.phase import FAILURES, Verdict
from ..cluster.pods import PodView
from ..cluster.progress import plain
from ..cluster.redaction import redacted, secrets_of
from ..cluster.status import JobView
from ..errors import shortened
from ..settings import Settings
from ..wire import Manifest
from .events import warnings
from .logs import read_tail
from .metadata import JobMetadata
from .results import ResultFiles

_log = logging.getLogger(__name__)
_SECONDS = 6.0
_CALL_SECONDS = 2.0
_SHORT_LINES = 8
_SHORT_CHARACTERS = 700
_MOST_NAMES = 6


class PostMortem:
    """Keeps what tells why a task failed.

    Args:
        client: The cluster.
        files: Where the text goes.
        settings: How much of a log is read.
    """

    def __init__(self, client: kube.KubeClient, files: ResultFiles, settings: Settings) -> None:
        self._client, self._files, self._own = client, files, settings.kuberay

    async def hold(
        self, metadata: JobMetadata, verdict: Verdict, job: JobView | None, pods: Sequence[PodView]
    ) -> tuple[Verdict, bool]:
        """The verdict with the last lines of the most telling log and the place of the capsule; whether that stands."""
        try:
            return await asyncio.wait_for(self._held(metadata, verdict, job, pods), _SECONDS)
        except Exception as error:  # noqa: BLE001  # whatever fails here, the verdict stands
            if isinstance(error, asyncio.TimeoutError):
                late = f"it takes more than {_SECONDS:g} s"
                _log.warning("No diagnosis is kept of %s/%s: %s", metadata.namespace, metadata.name, late)
            else:
                _log.exception("No diagnosis is kept of %s/%s", metadata.namespace, metadata.name)
            return replace(verdict, message=redacted(verdict.message)), False

    async def _held(
        self, metadata: JobMetadata, verdict: Verdict, job: JobView | None, pods: Sequence[PodView]
    ) -> tuple[Verdict, bool]:
        sources = logs_to_read(pods)
        names = dict.fromkeys([metadata.name, job.cluster if job else "", *(each.pod for each in sources)])
        manifest, events, read = await asyncio.gather(
            self._manifest(metadata),
            warnings(self._client, metadata.namespace, list(names)[:_MOST_NAMES]),
            asyncio.gather(*(self._log(metadata, source) for source in sources)),
        )
        secrets = secrets_of(manifest or {})
        logs = [replace(log, text=redacted(log.text, secrets)) if manifest else _left_out(log) for log in read]
        short = redacted(_short(verdict, logs if verdict.phase in FAILURES else []), secrets)
        told = shortened(f"{short}\nwhole diagnosis: {place_of(metadata.output_prefix)}")
        headline = f"{FAILURES.get(verdict.phase, 'USER_ERROR')}: {told}"
        text = format_capsule(headline, (manifest or {}).get("status") or {}, pods, events, logs, secrets=secrets)
        stands = await self._files.write(place_of(metadata.output_prefix), text)
        return replace(verdict, message=told if stands else shortened(short)), stands

    async def _manifest(self, metadata: JobMetadata) -> Manifest | None:
        """The RayJob, which tells what is secret; None where that is not known."""
        try:
            return await self._client.get(kube.RAYJOBS, metadata.namespace, metadata.name, timeout=_CALL_SECONDS)
        except kube.ApiError:
            return None

    async def _log(self, metadata: JobMetadata, source: LogSource) -> LogTail:
        try:
            text = await read_tail(
                self._client,
                metadata.namespace,
                source,
                lines=self._own.log_tail_lines,
                longest=self._own.log_tail_bytes,
                timeout=_CALL_SECONDS,
            )
        except kube.ApiError as error:
            return LogTail(source, f"[not read: {error}]", was_read=False)
        return LogTail(source, text)


def _left_out(log: LogTail) -> LogTail:
    """A log of a RayJob that can't be read any more: what is secret in it is not known."""
    return replace(log, text="[left out: the RayJob is gone, and with it the list of its secrets]", was_read=False)


def _short(verdict: Verdict, logs: Sequence[LogTail]) -> str:
    """The verdict with the last lines of the log that tells most, unless it ends with them, as Ray's own word does."""
    log = next((log for log in logs if log.was_read and log.text.strip()), None)
    if log is None:
        return verdict.message
    lines = [line for line in plain(log.text).splitlines() if line.strip()][-_SHORT_LINES:]
    if not lines or lines[-1].strip() in plain(verdict.message):
        return verdict.message
    end = "\n".join(lines)[-_SHORT_CHARACTERS:]
    return f"{verdict.message}\nlast lines of {log.source.pod}, container {log.source.container}:\n{end}"
