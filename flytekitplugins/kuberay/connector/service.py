"""Create, get and delete of a task's RayJob: decode, fetch, build, call, encode.

All state is in the cluster and in the resource metadata, so that a restarted or second connector loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from flytekit.extend.backend.base_connector import Resource
from flytekit.models.literals import LiteralMap
from flytekit.models.task import TaskExecutionMetadata, TaskTemplate

from .. import kube
from ..cluster.job import build_ray_job, deadlines_of
from ..cluster.last_head import with_last_head
from ..cluster.names import ATTEMPT, ATTEMPT_KEY, MANAGER, NODE_KEY, attempt_key, attempt_of, job_name, node_key
from ..cluster.operator import Fitted, fitted
from ..cluster.probes import with_probes_chosen
from ..errors import KubeRayError
from ..pod.base import base_template_name, base_template_namespaces
from ..settings import Settings, load_settings
from ..wire import FlyteTask, Manifest, from_template
from .deletions import Deletions
from .follower import Follower, Look
from .installed import InstalledOperator
from .logs import driver_tail
from .messages import UnansweredError, answer_of, notes_of, refusal_of, task_of
from .metadata import JobMetadata
from .results import ResultFiles
from .retry import FIRST_PAUSE, retried

_log = logging.getLogger(__name__)

_LATE_SECONDS = 2.0
"""How much later than its answer a create may be carried out: an API server says itself that it is still at it."""


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
        self._deletions = Deletions(client)

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
        """Begins to fill the view of the cluster."""
        self._follower.start()
        self._installed.look()

    async def close(self) -> None:
        """Ends what runs in the background."""
        await self._deletions.stop()
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
        return await self.submit(task_of(template, output_prefix, inputs, execution))

    async def submit(self, task: FlyteTask) -> JobMetadata:
        """The same for a request in flyteidl's own messages.

        Raises:
            UnansweredError: It may stand, for an answer was lost; `withdraw` is for who asks no more.
            KubeRayError: It does not stand; the text says why, and what to do.
        """
        self._refuse_unwatched(task.execution.namespace)
        deadline = self._deadline()
        fit = await self._built(task, deadline)
        start, run = deadlines_of(from_template(task.template), self._settings)
        if attempt_of(task):
            await self._remove_earlier(task, deadline)
        created = await self._created(fit.manifest, deadline)
        notes = notes_of(fit, created)
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
        return answer_of(metadata, await self.look(metadata))

    async def look(self, metadata: JobMetadata) -> Look:
        """The same with the RayJob that it was read from.

        What we declare failed while KubeRay goes on, we clean up: no delete follows a failure.
        """
        look = await self._follower.look(metadata)
        if look.verdict.ours:
            self._deletions.delete_soon(metadata)
        return look

    async def delete(self, metadata: JobMetadata) -> None:
        """Deletes the RayJob, in the background where that can't be done at once."""
        try:
            await self.remove(metadata)
        except kube.ApiError as error:
            _log.warning("%s; the deletion is tried on", error)
            self._deletions.delete_soon(metadata)
        self._follower.forget(metadata)

    def hurry_deletions(self) -> bool:
        """Whether a deletion that was answered is still tried on, which is done at short intervals from now on."""
        return self._deletions.hurry()

    async def remove(self, metadata: JobMetadata) -> None:
        """Deletes the RayJob, if it is not gone.

        Raises:
            ApiError: That could not be brought about in time.
        """
        await self._deletions.delete(metadata.namespace, metadata.name, metadata.uid, self._deadline())

    async def withdraw(self, task: FlyteTask) -> None:
        """Deletes the RayJob of a `submit` whose answer was lost, if there is one.

        Raises:
            ApiError: That could not be brought about in time.
        """
        namespace, name = task.execution.namespace, job_name(task)
        for pause in (0.0, _LATE_SECONDS):
            await asyncio.sleep(pause)
            standing = await self._found(kube.RAYJOBS, namespace, name, self._deadline())
            if standing is not None:
                if _attempt_key(standing) == attempt_key(task.output_prefix):
                    await self._deletions.delete(namespace, name, standing["metadata"]["uid"], self._deadline())
                return

    async def logs(self, metadata: JobMetadata) -> str:
        """The end of what the task's code printed, or why there is none. Raises nothing for a fault that may pass."""
        seconds = self._settings.kuberay.api_timeout.total_seconds()
        return await driver_tail(self._client, self._files, metadata, seconds)

    def _deadline(self) -> float:
        """When an answer that begins now has to be there."""
        return time.monotonic() + self._settings.kuberay.api_timeout.total_seconds()

    def _refuse_unwatched(self, namespace: str) -> None:
        """Refuses a namespace that is not watched: no task could be followed there."""
        watched = self._settings.kuberay.namespaces
        if watched and namespace not in watched:
            raise KubeRayError(
                f"the connector does not watch namespace {namespace}; whoever runs it has to add it to"
                f" plugins.kuberay.namespaces, and the rights of deploy/rbac.yaml there"
            )

    async def _built(self, task: FlyteTask, deadline: float) -> Fitted:
        """The task's RayJob, as the KubeRay here knows it."""
        base = await self._base_template(task, deadline)
        operator = await self._installed.known()
        job = build_ray_job(task, with_probes_chosen(self._settings), base)
        return fitted(with_last_head(job), operator)

    async def _base_template(self, task: FlyteTask, deadline: float) -> Manifest | None:
        """The base PodTemplate, from the first namespace that has it."""
        name = base_template_name(task, self._settings)
        for namespace in base_template_namespaces(task, self._settings) if name else ():
            if (found := await self._found(kube.POD_TEMPLATES, namespace, name, deadline)) is not None:
                return found
        return None

    async def _remove_earlier(self, task: FlyteTask, deadline: float) -> None:
        """Deletes what earlier attempts of the node left: a create that raised is followed by no delete."""
        selector = kube.Selector(labels=f"{NODE_KEY}={node_key(task.output_prefix)}")
        page = await retried(
            lambda seconds: self._client.list_page(kube.RAYJOBS, task.execution.namespace, selector, timeout=seconds),
            deadline,
        )
        for left in (item["metadata"] for item in page.items):
            if int(left["labels"][ATTEMPT]) < attempt_of(task):
                await self._deletions.delete(left["namespace"], left["name"], left["uid"], deadline)

    async def _created(self, manifest: Manifest, deadline: float) -> kube.Created:
        """The RayJob as the cluster has it.

        Raises:
            UnansweredError: It may stand, whatever the last answer was.
            KubeRayError: It does not.
        """
        is_unanswered = False

        async def create(seconds: float) -> kube.Created:
            nonlocal is_unanswered
            try:
                return await self._client.create(
                    kube.RAYJOBS, manifest["metadata"]["namespace"], manifest, timeout=seconds
                )
            except (kube.DeadlineExceeded, kube.Unavailable):
                is_unanswered = True
                raise

        try:
            return await self._created_or_standing(create, manifest, deadline)
        except kube.ApiError as error:
            refusal = refusal_of(error, manifest)
            raise (UnansweredError(str(refusal)) if is_unanswered else refusal) from error

    async def _created_or_standing(
        self, create: Callable[[float], Awaitable[kube.Created]], manifest: Manifest, deadline: float
    ) -> kube.Created:
        """What the call creates; one of the same attempt that is there already is it too."""
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        while True:
            try:
                return await retried(create, deadline)
            except kube.Conflict:  # a quota changed meanwhile
                if time.monotonic() + FIRST_PAUSE > deadline:
                    raise
                await asyncio.sleep(FIRST_PAUSE)
                continue
            except kube.AlreadyExists:
                standing = await self._found(kube.RAYJOBS, namespace, name, deadline)
            if standing is not None and _attempt_key(standing) != _attempt_key(manifest):
                raise KubeRayError(
                    f"RayJob {namespace}/{name} exists and is not of this task; whoever made it has to delete it"
                )
            if standing is not None and "deletionTimestamp" not in standing["metadata"]:
                return kube.Created(standing)
            if time.monotonic() + FIRST_PAUSE > deadline:
                raise KubeRayError(f"RayJob {namespace}/{name} of this attempt is still being deleted; try again")
            await asyncio.sleep(FIRST_PAUSE)

    async def _found(self, resource: kube.Resource, namespace: str, name: str, deadline: float) -> Manifest | None:
        """The object, None where there is none."""
        try:
            return await retried(lambda seconds: self._client.get(resource, namespace, name, timeout=seconds), deadline)
        except kube.NotFound:
            return None


def _attempt_key(job: Manifest) -> str:
    key: str = (job["metadata"].get("labels") or {}).get(ATTEMPT_KEY, "")
    return key
