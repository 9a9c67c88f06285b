"""Create, get and delete of a task's RayJob: decode, fetch, build, call, encode.

All state is in the cluster and in the resource metadata, so that a restarted or second connector loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from flyteidl.core.execution_pb2 import TaskLog
from flytekit.extend.backend.base_connector import Resource
from flytekit.models.literals import LiteralMap
from flytekit.models.task import TaskExecutionMetadata, TaskTemplate

from .. import kube
from ..cluster.fields import in_users_words
from ..cluster.job import build_ray_job, deadlines_of
from ..cluster.last_head import with_last_head
from ..cluster.links import Link
from ..cluster.names import ATTEMPT, ATTEMPT_KEY, MANAGER, NODE_KEY, attempt_of, node_key
from ..cluster.operator import Fitted, fitted
from ..cluster.readiness import with_probes_chosen
from ..errors import KubeRayError, Problem, TaskError
from ..pod.base import base_template_name, base_template_namespaces
from ..settings import Settings, load_settings
from ..wire import FlyteTask, Manifest, from_template
from .follower import Follower, Look
from .installed import InstalledOperator
from .logs import driver_tail
from .metadata import JobMetadata
from .results import ResultFiles

_log = logging.getLogger(__name__)
T = TypeVar("T")

_TRY_SECONDS = 5.0
"""For one try: a connection that died in silence must leave time for another one."""
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 2.0
_DELETE_SECONDS = 4.0
_LONGEST_DELETE_PAUSE = 60.0
_NOTES = 500


class RayJobService:
    """The connector's work on one cluster, in the event loop that runs when it is made.

    Args:
        client: The cluster.
        settings: The platform's settings.
        files: The result files.
        stalest: Seconds after which a view of the cluster is not trusted without a direct read.
    """

    def __init__(
        self, client: kube.KubeClient, settings: Settings, files: ResultFiles, *, stalest: float = 60.0
    ) -> None:
        self._client, self._settings, self._files = client, settings, files
        self._follower = Follower(client, settings, files, stalest=stalest)
        self._installed = InstalledOperator(client)
        self._deletions: dict[str, asyncio.Task[None]] = {}

    @classmethod
    async def start(cls) -> RayJobService:
        """A service on the cluster and with the settings of this process.

        Raises:
            KubeRayError: The settings or the way to the cluster are no good.
        """
        settings = load_settings()
        own = settings.kuberay
        client = await kube.ApiKubeClient.open(own.kubeconfig or "", own.context or "", user_agent=MANAGER)
        service = cls(client, settings, ResultFiles())
        service.watch()
        return service

    def watch(self) -> None:
        """Nothing; the view of the cluster begins to fill."""
        self._follower.start()
        self._installed.look()

    async def close(self) -> None:
        """Nothing; what runs in the background is ended."""
        tasks = list(self._deletions.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._follower.stop()
        await self._installed.stop()
        self._files.close()
        await self._client.close()

    async def create(
        self,
        template: TaskTemplate,
        output_prefix: str,
        inputs: LiteralMap | None,
        execution: TaskExecutionMetadata | None,
    ) -> JobMetadata:
        """What identifies the task's RayJob, which stands in the cluster now, made by this call or an earlier one.

        Raises:
            KubeRayError: It does not; the text says why, and what to do.
        """
        return await self.submit(_task_of(template, output_prefix, inputs, execution))

    async def submit(self, task: FlyteTask) -> JobMetadata:
        """The same for a request in flyteidl's own messages.

        Raises:
            KubeRayError: It does not stand; the text says why, and what to do.
        """
        deadline = time.monotonic() + self._settings.kuberay.api_timeout.total_seconds()
        fit = await self._built(task, deadline)
        start, run = deadlines_of(from_template(task.template), self._settings)
        if attempt_of(task):
            await self._remove_earlier(task, deadline)
        try:
            created = await self._created(fit.manifest, deadline)
        except kube.ApiError as error:
            raise _refusal(error, fit.manifest) from error
        notes = _notes(fit, created)
        if notes:
            self._installed.doubt()
        metadata = created.manifest["metadata"]
        return JobMetadata(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            output_prefix=task.output_prefix,
            has_outputs=bool(task.template.interface.outputs.variables),
            start_deadline=start,
            run_deadline=run,
            notes=notes,
        )

    async def get(self, metadata: JobMetadata) -> Resource:
        """The task's phase and its reason. Raises nothing for a fault that may pass."""
        return _answer(metadata, await self.look(metadata))

    async def look(self, metadata: JobMetadata) -> Look:
        """The same with the RayJob that it was read from.

        What we declare failed while KubeRay goes on, we clean up: no delete follows a failure.
        """
        look = await self._follower.look(metadata)
        if look.verdict.ours:
            self._delete_soon(metadata)
        return look

    async def delete(self, metadata: JobMetadata) -> None:
        """Nothing; the RayJob is going, or is gone, or its deletion is tried on in the background."""
        try:
            await self.remove(metadata)
        except kube.ApiError as error:
            _log.warning("%s; the deletion is tried on", error)
            self._delete_soon(metadata)
        self._follower.forget(metadata)

    async def remove(self, metadata: JobMetadata) -> None:
        """Nothing; the RayJob is going, or is gone.

        Raises:
            ApiError: That could not be brought about in time.
        """
        deadline = time.monotonic() + self._settings.kuberay.api_timeout.total_seconds()
        await self._retried(partial(self._delete, metadata.namespace, metadata.name, metadata.uid), deadline)

    async def _built(self, task: FlyteTask, deadline: float) -> Fitted:
        """The task's RayJob, as the KubeRay here knows it."""
        base = await self._base_template(task, deadline)
        operator = await self._installed.known()
        job = build_ray_job(task, with_probes_chosen(self._settings), base)
        return fitted(with_last_head(job), operator)

    async def logs(self, metadata: JobMetadata) -> str:
        """The end of what the task's code printed, or why there is none. Raises nothing for a fault that may pass."""
        seconds = self._settings.kuberay.api_timeout.total_seconds()
        return await driver_tail(self._client, self._files, metadata, seconds)

    async def _base_template(self, task: FlyteTask, deadline: float) -> Manifest | None:
        """The base PodTemplate, from the first namespace that has it."""
        name = base_template_name(task, self._settings)
        for namespace in base_template_namespaces(task, self._settings) if name else ():
            try:
                return await self._retried(
                    lambda seconds, where=namespace: self._client.get(  # type: ignore[misc]  # a default binds the loop's value
                        kube.POD_TEMPLATES, where, name, timeout=seconds
                    ),
                    deadline,
                )
            except kube.NotFound:
                continue
        return None

    async def _remove_earlier(self, task: FlyteTask, deadline: float) -> None:
        """Deletes what earlier attempts of the node left: a create that raised is followed by no delete."""
        selector = kube.Selector(labels=f"{NODE_KEY}={node_key(task.output_prefix)}")
        page = await self._retried(
            lambda seconds: self._client.list_page(kube.RAYJOBS, task.execution.namespace, selector, timeout=seconds),
            deadline,
        )
        for left in (item["metadata"] for item in page.items):
            if int(left["labels"][ATTEMPT]) < attempt_of(task):
                await self._retried(partial(self._delete, left["namespace"], left["name"], left["uid"]), deadline)

    async def _created(self, manifest: Manifest, deadline: float) -> kube.Created:
        """The RayJob as the cluster has it; one of the same attempt that is there already is it too."""
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        while True:
            try:
                return await self._retried(
                    lambda seconds: self._client.create(kube.RAYJOBS, namespace, manifest, timeout=seconds), deadline
                )
            except kube.Conflict:  # a quota changed meanwhile
                if time.monotonic() + _FIRST_PAUSE > deadline:
                    raise
                await asyncio.sleep(_FIRST_PAUSE)
                continue
            except kube.AlreadyExists:
                standing = await self._standing(namespace, name, deadline)
            if standing is not None and _attempt_key(standing) != _attempt_key(manifest):
                raise KubeRayError(f"RayJob {namespace}/{name} exists and is not of this task; delete or rename it")
            if standing is not None and "deletionTimestamp" not in standing["metadata"]:
                return kube.Created(standing)
            if time.monotonic() + _FIRST_PAUSE > deadline:
                raise KubeRayError(f"RayJob {namespace}/{name} of this attempt is still being deleted; try again")
            await asyncio.sleep(_FIRST_PAUSE)

    async def _standing(self, namespace: str, name: str, deadline: float) -> Manifest | None:
        try:
            return await self._retried(
                lambda seconds: self._client.get(kube.RAYJOBS, namespace, name, timeout=seconds), deadline
            )
        except kube.NotFound:
            return None

    async def _delete(self, namespace: str, name: str, uid: str, seconds: float) -> None:
        """Deletes a RayJob by its uid; one that is gone, or a namesake's, needs no deletion."""
        try:
            await self._client.delete(kube.RAYJOBS, namespace, name, uid=uid, timeout=seconds)
        except (kube.NotFound, kube.Conflict):
            return

    def _delete_soon(self, metadata: JobMetadata) -> None:
        """Deletes the RayJob in the background, tried until it is done."""
        if metadata.uid not in self._deletions:
            deletion = asyncio.create_task(self._deleted(metadata))
            self._deletions[metadata.uid] = deletion
            deletion.add_done_callback(lambda _: self._deletions.pop(metadata.uid))

    async def _deleted(self, metadata: JobMetadata) -> None:
        pause = _LONGEST_PAUSE
        while True:
            try:
                return await self._delete(metadata.namespace, metadata.name, metadata.uid, _DELETE_SECONDS)
            except kube.ApiError as error:
                _log.warning("%s", error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_DELETE_PAUSE)

    async def _retried(self, call: Callable[[float], Awaitable[T]], deadline: float) -> T:
        """What the call gives, tried again after a passing fault until the deadline.

        Raises:
            ApiError: One that will not pass, or the last one in time.
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                return await call(min(max(deadline - time.monotonic(), _FIRST_PAUSE), _TRY_SECONDS))
            except kube.ApiError as error:
                wait = max(error.retry_after or 0.0, pause)
                if not error.transient or time.monotonic() + wait >= deadline:
                    raise
            await asyncio.sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _task_of(
    template: TaskTemplate, output_prefix: str, inputs: LiteralMap | None, execution: TaskExecutionMetadata | None
) -> FlyteTask:
    """The request in flyteidl's own messages, as the builder takes it.

    Raises:
        KubeRayError: It says nothing of its execution.
    """
    if execution is None or not execution.namespace or not output_prefix:
        raise KubeRayError(
            "the request has no task_execution_metadata or no output_prefix; only propeller can start a task so"
        )
    return FlyteTask(
        template.to_flyte_idl(), execution.to_flyte_idl(), output_prefix, inputs.to_flyte_idl() if inputs else None
    )


def _attempt_key(job: Manifest) -> str:
    key: str = (job["metadata"].get("labels") or {}).get(ATTEMPT_KEY, "")
    return key


def _refusal(error: kube.ApiError, job: Manifest) -> KubeRayError:
    """Why a RayJob was not created, with its fields in the user's words."""
    if isinstance(error, kube.Invalid) and error.causes:
        problems = [
            Problem(in_users_words(field, job), in_users_words(what.replace(f"{field} in body ", ""), job))
            for field, what in error.causes
            if field != "<nil>"  # says only that there may be more
        ]
        return KubeRayError(f"{error.call}: the API server refuses it: {TaskError(problems)}")
    return KubeRayError(in_users_words(str(error), job))


def _notes(fit: Fitted, created: kube.Created) -> str:
    """What of the task has no effect, and what the API server warned of; cut, for propeller stores it."""
    warnings = (f"API server: {in_users_words(warning, fit.manifest)}" for warning in created.warnings)
    return "; ".join(filter(None, (fit.lost, *warnings)))[:_NOTES]


def _answer(metadata: JobMetadata, look: Look) -> Resource:
    name = f"{metadata.namespace}/{metadata.name}"
    notes = f" ({metadata.notes})" if metadata.notes else ""
    info = {"rayJob": name, "output_prefix": metadata.output_prefix}
    if look.job is not None:
        info |= {"rayCluster": look.job.cluster, "jobId": look.job.job_id, "dashboardURL": look.job.dashboard}
    info["diagnosis"] = look.diagnosis
    return Resource(
        phase=look.verdict.phase,
        message=f"RayJob {name}: {look.verdict.message}{notes}",
        custom_info={key: value for key, value in info.items() if value},
        log_links=[_task_log(link) for link in look.links],
    )


def _task_log(link: Link) -> TaskLog:
    return TaskLog(
        name=link.name,
        uri=link.uri,
        message_format=link.message_format,  # type: ignore[arg-type]  # the stub wants an enum, flyteidl its number
        ShowWhilePending=link.show_while_pending,
        HideOnceFinished=link.hide_once_finished,
    )
