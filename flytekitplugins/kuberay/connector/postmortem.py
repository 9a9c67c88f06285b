"""At a task's bad end: reads the ends of logs and the events, keeps them beside the outputs, and says where.

Whatever fails here fails in silence: the verdict stands without it. It has a time of its own within the caller's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .. import kube
from ..cluster.capsule import FILE, LogTail, format_capsule, pods_to_read, redacted, secrets_of
from ..cluster.phase import FAILURES, Verdict
from ..cluster.pods import PodView
from ..cluster.status import JobView, shortened
from ..settings import Settings
from ..wire import Manifest
from .metadata import JobMetadata
from .results import ResultFiles

_SECONDS = 5.0
_CALL_SECONDS = 2.0
_SHORT_LINES = 8
_SHORT_CHARACTERS = 700
_MOST_EVENTS = 50


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
    ) -> Verdict:
        """The verdict with the last lines of the most telling log, and the place of the whole capsule."""
        try:
            return await asyncio.wait_for(self._held(metadata, verdict, job, pods), _SECONDS)
        except (asyncio.TimeoutError, kube.ApiError):
            return verdict

    async def warnings(self, namespace: str, names: Iterable[str]) -> list[str]:
        """Warning events about the objects of these names, oldest first; none where they can't be read."""
        found: list[Manifest] = []
        for name in filter(None, names):
            selector = kube.Selector(fields=f"involvedObject.name={name},type=Warning")
            try:
                page = await self._client.list_page(
                    kube.EVENTS, namespace, selector, limit=_MOST_EVENTS, timeout=_CALL_SECONDS
                )
            except kube.ApiError:
                continue
            found += page.items
        found.sort(key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))
        return [f"{event.get('reason', '')}: {' '.join(event.get('message', '').split())}"[:500] for event in found]

    async def _held(
        self, metadata: JobMetadata, verdict: Verdict, job: JobView | None, pods: Sequence[PodView]
    ) -> Verdict:
        names = [metadata.name, job.cluster if job else "", *(pod.name for pod in pods)]
        manifest, events, logs = await asyncio.gather(
            self._manifest(metadata), self.warnings(metadata.namespace, names[:6]), self._logs(metadata, pods)
        )
        secrets = secrets_of(manifest)
        headline = f"{FAILURES.get(verdict.phase, 'USER_ERROR')}: {verdict.message}"
        text = redacted(format_capsule(headline, manifest.get("status") or {}, pods, events, logs), secrets)
        place = f"{metadata.output_prefix.rstrip('/')}/{FILE}"
        parts = [verdict.message]
        if verdict.phase in FAILURES:
            parts += [f"last lines of {log.pod}:\n{_last_lines(log.text)}" for log in logs[:1] if log.text.strip()]
        parts += [f"whole diagnosis: {place}"] if await self._files.write(place, text) else []
        return replace(verdict, message=shortened(redacted("\n".join(parts), secrets)))

    async def _manifest(self, metadata: JobMetadata) -> Manifest:
        try:
            return await self._client.get(kube.RAYJOBS, metadata.namespace, metadata.name, timeout=_CALL_SECONDS)
        except kube.ApiError:
            return {}

    async def _logs(self, metadata: JobMetadata, pods: Sequence[PodView]) -> list[LogTail]:
        wanted = pods_to_read(pods)
        return list(await asyncio.gather(*(self._log(metadata, pod.name, container) for pod, container in wanted)))

    async def _log(self, metadata: JobMetadata, pod: str, container: str) -> LogTail:
        try:
            text = await self._client.read_log(
                metadata.namespace,
                pod,
                container=container,
                tail_lines=self._own.log_tail_lines,
                limit_bytes=self._own.log_tail_bytes,
                timeout=_CALL_SECONDS,
            )
        except kube.ApiError as error:
            text = f"[not read: {error}]"
        return LogTail(pod, container, text)


def _last_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()][-_SHORT_LINES:]
    return "\n".join(lines)[-_SHORT_CHARACTERS:]
