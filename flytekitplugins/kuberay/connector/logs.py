"""What a task's user code printed, as far as an answer of the connector's API can hold it, without secrets."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from .. import kube
from ..cluster.capsule import LogSource
from ..cluster.logs import DRIVER, DashboardLog, mode_of, places_of
from ..cluster.names import attempt_key
from ..cluster.phase import needs_results
from ..cluster.redaction import redacted, secrets_of
from .metadata import JobMetadata
from .results import ResultFiles
from .snapshot import Snapshot, take

_LINES = 5000
_BYTES = 768 * 1024
"""An answer over 4 MiB is lost, and one that a person reads needs no more."""

_GONE = "the log is gone with its pod"


async def read_tail(
    client: kube.KubeClient, namespace: str, source: LogSource, *, lines: int, longest: int, timeout: float = 5.0
) -> str:
    """The end of a container's log; where it was cut it begins with a line: half of one may hold half of a secret.

    Args:
        client: The cluster.
        namespace: Where the pod is.
        source: The container.
        lines: How many at most.
        longest: How many bytes at most.
        timeout: Seconds.

    Raises:
        ApiError: It can't be read.
    """
    text = await client.read_log(
        namespace,
        source.pod,
        container=source.container,
        tail_lines=lines,
        limit_bytes=longest,
        previous=source.previous,
        timeout=timeout,
    )
    return _whole_lines(text, longest)


async def driver_tail(client: kube.KubeClient, files: ResultFiles, metadata: JobMetadata, seconds: float) -> str:
    """The end of what the user's code printed, or a sentence that says why there is none. Raises nothing that passes.

    Args:
        client: The cluster.
        files: Where the diagnosis lies, which stands in for a log that is gone.
        metadata: The task's.
        seconds: How long it may take.
    """
    try:
        return await asyncio.wait_for(_driver_tail(client, files, metadata), seconds)
    except asyncio.TimeoutError:
        return f"the log can't be read now: no answer within {seconds:g} s"
    except kube.ApiError as error:
        return f"the log can't be read now: {error}"


async def _driver_tail(client: kube.KubeClient, files: ResultFiles, metadata: JobMetadata) -> str:
    key = attempt_key(metadata.output_prefix)
    try:
        snapshot = await take(client, metadata.namespace, metadata.name, key)
    except kube.NotFound:
        snapshot = None
    if snapshot is None or snapshot.job.uid != metadata.uid:
        return await _kept(files, metadata)
    try:
        text = await _text_of(client, snapshot)
    except (kube.NotFound, kube.Unavailable):
        if not needs_results(snapshot.job):
            raise
        text = None
    if text is not None:
        return redacted(text, secrets_of(snapshot.manifest))
    return await _kept(files, metadata)


async def _kept(files: ResultFiles, metadata: JobMetadata) -> str:
    """The diagnosis, or a sentence that says why there is none."""
    text, unreadable = await files.diagnosis(metadata.output_prefix)
    if unreadable:
        return f"{_GONE}, and the diagnosis could not be read: {unreadable}"
    return text or f"{_GONE}, and no diagnosis was kept: that is done at a bad end alone"


async def _text_of(client: kube.KubeClient, snapshot: Snapshot) -> str | None:
    """The end of the driver's log; None where it is gone.

    Raises:
        ApiError: It can't be read.
    """
    job = snapshot.job
    places = places_of(DRIVER, mode_of(snapshot.manifest), job, snapshot.pods)
    if isinstance(places, DashboardLog):
        return await _dashboard_tail(client, snapshot, places)
    if places:
        return await read_tail(client, job.namespace, places[0], lines=_LINES, longest=_BYTES)
    return None if needs_results(job) else "nothing is printed yet: the job has not begun"


async def _dashboard_tail(client: kube.KubeClient, snapshot: Snapshot, log: DashboardLog) -> str:
    job, end = snapshot.job, b""
    answer = client.stream_service(job.namespace, log.service, log.path(follow=False), log.query(_LINES))
    try:
        async with aclosing(answer) as pieces:
            async for piece in pieces:
                end = (end + piece)[-_BYTES:]
    except kube.Forbidden as error:
        where = f"in HTTPMode the output is kept in the head, and `flyte-kuberay logs {job.namespace}/{job.name}`"
        return f"{where} reads it with your own rights; the connector has none for it: {error}"
    return _whole_lines(end.decode(errors="replace"), _BYTES)


def _whole_lines(text: str, longest: int) -> str:
    return text.partition("\n")[2] if len(text.encode()) >= longest else text
