"""`sweep`: deletes RayJobs that nobody needs any more, or says which it would."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone

from .. import kube
from ..cluster.diagnosis import format_duration
from ..cluster.status import JobView, view_of
from ..cluster.sweep import Owner, execution_of, owner_of, sweepable
from ..errors import KubeRayError
from ..settings import Settings
from ..settings.durations import DURATION
from ..settings.kinds import Place
from ..wire import Manifest
from .output import in_columns, print_text
from .target import all_ours, opened, settings_of

_FLYTE_WORKFLOWS = kube.Resource("flyte.lyft.com", "v1alpha1", "flyteworkflows")
_NOT_SERVED = (
    "the cluster has no FlyteWorkflows, so it is not known which executions are gone:"
    " only what has ended goes, by its age (--older-than, else plugins.kuberay.keep-finished)"
)
_DELETED, _WAS_GONE, _NOT_DELETED = "deleted", "was gone", "not deleted"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Row:
    """A RayJob that goes."""

    namespace: str
    name: str
    state: str
    age_seconds: int  # since it was created
    why: str
    action: str


@dataclass(frozen=True)
class _Job:
    namespace: str
    name: str
    execution: str
    view: JobView


def sweep(arguments: argparse.Namespace) -> None:
    """Prints the RayJobs that go, deleted with --delete, also when not all could be looked at.

    Raises:
        ProblemsError: The arguments or the settings can't be used.
        KubeRayError: The cluster can't be asked, or a RayJob or its execution could not be dealt with.
    """
    settings, older_than = _settings_of(arguments)
    sweeper = _Sweeper(older_than, delete=arguments.delete)
    try:
        asyncio.run(_run(sweeper, settings, arguments))
    finally:
        print_text(_format(sweeper.rows, arguments.output))
    print(f"RayJobs: {_summary(sweeper, delete=arguments.delete)}", file=sys.stderr)
    if sweeper.failed:
        raise KubeRayError(f"{sweeper.failed} of {sweeper.seen} RayJobs could not be swept; the warnings tell why")


def _summary(sweeper: _Sweeper, *, delete: bool) -> str:
    """How many RayJobs go, by what came of it, and how many stay, since none of the reasons to go is theirs."""
    kept = f"{sweeper.seen - len(sweeper.rows)} stay"
    if not delete:
        return f"{len(sweeper.rows)} would go (--delete deletes them), {kept}"
    counts = Counter(row.action for row in sweeper.rows)
    others = {_WAS_GONE: "already gone", _NOT_DELETED: _NOT_DELETED}
    told = [f"{counts[action]} {word}" for action, word in others.items() if counts[action]]
    return ", ".join([f"{counts[_DELETED]} deleted", *told, kept])


class _Sweeper:
    """Goes through RayJobs one by one; each execution is asked for once, just before.

    Args:
        older_than: For how long an ended RayJob is kept; None for no limit.
        delete: Whether to delete.
    """

    def __init__(self, older_than: timedelta | None, *, delete: bool) -> None:
        self._older_than, self._delete = older_than, delete
        self._owners: dict[tuple[str, str], Owner] = {}
        self._served = True
        self.rows: list[Row] = []
        self.seen = self.failed = 0

    async def sweep(self, client: kube.KubeClient, job: _Job) -> None:
        """Adds the RayJob to `rows`, where it goes. One whose execution can't be asked for stays, and is told.

        Raises:
            Forbidden: Executions may not be asked for: then none is known to be gone.
        """
        self.seen += 1
        try:
            owner = await self._owner(client, job)
        except kube.Forbidden:
            raise
        except kube.ApiError as error:
            self._failed(error)
            return
        now = datetime.now(timezone.utc)
        why = sweepable(job.view, owner, older_than=self._older_than, now=now)
        if not why:
            return
        state = "/".join(filter(None, (job.view.deployment or "New", job.view.job)))
        age = int((now - (job.view.created or now)).total_seconds())
        action = await self._deleted(client, job) if self._delete else "would delete"
        self.rows.append(Row(job.namespace, job.name, state, age, why, action))

    async def _owner(self, client: kube.KubeClient, job: _Job) -> Owner:
        key = (job.namespace, job.execution)
        if not job.execution or not self._served:
            return Owner.UNKNOWN
        if key not in self._owners:
            try:
                self._owners[key] = owner_of(await client.get(_FLYTE_WORKFLOWS, *key))
            except kube.NotFound:
                self._owners[key] = Owner.GONE
            except kube.UnknownResource:
                self._served = False
                _log.warning(_NOT_SERVED)
                return Owner.UNKNOWN
        return self._owners[key]

    async def _deleted(self, client: kube.KubeClient, job: _Job) -> str:
        try:
            await client.delete(kube.RAYJOBS, job.namespace, job.name, uid=job.view.uid)
        except (kube.NotFound, kube.Conflict):
            return _WAS_GONE
        except kube.ApiError as error:
            self._failed(error)
            return _NOT_DELETED
        return _DELETED

    def _failed(self, error: kube.ApiError) -> None:
        self.failed += 1
        _log.warning("%s", error)


def _settings_of(arguments: argparse.Namespace) -> tuple[Settings, timedelta | None]:
    """The platform's settings, and for how long an ended RayJob is kept.

    Raises:
        ProblemsError: Something in files or arguments can't be used; all problems at once.
    """
    place = Place("--older-than")
    older_than = DURATION.read(arguments.older_than, place) if arguments.older_than is not None else None
    settings = settings_of(arguments, place.problems)
    return settings, settings.kuberay.keep_finished if older_than is None else older_than


async def _run(sweeper: _Sweeper, settings: Settings, arguments: argparse.Namespace) -> None:
    async with await opened(arguments, settings, "sweep") as client:
        ours = all_ours(client, arguments.namespace or settings.kuberay.namespaces)
        for job in [_job_of(manifest) async for manifest in ours]:
            await sweeper.sweep(client, job)


def _job_of(manifest: Manifest) -> _Job:
    metadata = manifest["metadata"]
    return _Job(metadata["namespace"], metadata["name"], execution_of(manifest), view_of(manifest))


def _format(rows: Sequence[Row], form: str) -> str:
    if form == "json":
        return json.dumps([asdict(row) for row in rows], indent=2) + "\n"
    age = [format_duration(timedelta(seconds=row.age_seconds)) for row in rows]
    cells = [
        (f"{row.namespace}/{row.name}", row.state, old, row.why, row.action) for row, old in zip(rows, age, strict=True)
    ]
    return "".join(f"{line}\n" for line in in_columns(cells))
