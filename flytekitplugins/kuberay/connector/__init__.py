"""The Flyte connector for task type `ray`: what `pyflyte serve connector` finds through the entry point.

`import flytekit` loads this module for every user, so it loads nothing that can wait: `service`, and with it
`kubernetes`, comes with the first call.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from flyteidl.admin.agent_pb2 import GetTaskLogsResponse, GetTaskLogsResponseBody
from flyteidl.core.execution_pb2 import TaskExecution
from flytekit.extend.backend.base_connector import AsyncConnectorBase, ConnectorRegistry, Resource
from flytekit.models.literals import LiteralMap
from flytekit.models.task import TaskExecutionMetadata, TaskTemplate

from ..errors import KubeRayError, shortened
from .drain import Calls
from .metadata import JobMetadata

if TYPE_CHECKING:
    from .service import RayJobService

TASK_TYPE = "ray"
_NOT_INSTALLED = "the connector lacks packages, install flytekitplugins-kuberay[connector] where it runs"
_log = logging.getLogger(__name__)


class RayConnector(AsyncConnectorBase):
    """Creates, follows and deletes the RayJob of a task, over gRPC. No rules of its own.

    Args:
        service: For tests; by default one with the settings of FLYTE_KUBERAY_CONFIG, made with the first call.
    """

    name = "KubeRay Connector"

    def __init__(self, service: RayJobService | None = None) -> None:
        super().__init__(  # flytekit's annotation means the class
            metadata_type=JobMetadata,  # type: ignore[arg-type]
            task_type_name=TASK_TYPE,
            task_type_version=0,
        )
        self._service = service
        self._starting = asyncio.Lock()
        self._calls = Calls()

    async def create(  # type: ignore[override]  # a coroutine, as flytekit's service accepts
        self,
        task_template: TaskTemplate,
        output_prefix: str,
        inputs: LiteralMap | None = None,
        task_execution_metadata: TaskExecutionMetadata | None = None,
        **kwargs: Any,
    ) -> JobMetadata:
        """What identifies the task's RayJob, which stands in the cluster now.

        Raises:
            KubeRayError: It does not; the text says why, and what to do.
        """
        # flytekit sends the user the whole chain of exceptions with its frames, and the text twice: so one, and short.
        try:
            with self._calls:
                service = await self._running()
                return await service.create(task_template, output_prefix, inputs, task_execution_metadata)
        except KubeRayError as error:
            raise KubeRayError(shortened(str(error))) from None
        except Exception as error:  # noqa: BLE001  # a fault of ours: its frames belong into our log
            _log.exception("A task could not be created")
            raise KubeRayError(shortened(_fault(error))) from None

    async def get(self, resource_meta: JobMetadata, **kwargs: Any) -> Resource:  # type: ignore[override]  # as create
        """The task's phase and its reason. Raises nothing for a fault that may pass."""
        try:  # six answers that raise, in all its life, freeze a task
            with self._calls:
                return await (await self._running()).get(resource_meta)
        except KubeRayError as error:
            text = f"the connector can't work, the task may go on: {error}"
        except Exception as error:  # noqa: BLE001  # a fault of ours: a release that mends it finds the task again
            _log.exception("A task could not be looked at")
            text = f"the task may go on; {_fault(error)}"
        return Resource(TaskExecution.RUNNING, shortened(text))

    async def delete(self, resource_meta: JobMetadata, **kwargs: Any) -> None:  # type: ignore[override]  # as create
        """Deletes the RayJob, if it is not gone.

        Raises:
            KubeRayError: The connector can't work at all; a deletion that nobody would ever do is not promised.
        """
        try:
            with self._calls:
                await (await self._running()).delete(resource_meta)
        except KubeRayError as error:
            raise KubeRayError(shortened(str(error))) from None
        except Exception as error:  # noqa: BLE001  # as in create
            _log.exception("A task could not be deleted")
            raise KubeRayError(shortened(_fault(error))) from None

    async def get_logs(  # type: ignore[override]  # as create
        self, resource_meta: JobMetadata, **kwargs: Any
    ) -> GetTaskLogsResponse:
        """The end of what the user's code printed, line by line, or why there is none. Raises nothing that may pass."""
        try:
            with self._calls:
                text = await (await self._running()).logs(resource_meta)
        except KubeRayError as error:
            text = shortened(f"the connector can't work: {error}")
        except Exception as error:  # noqa: BLE001  # as in get
            _log.exception("The logs of a task could not be looked at")
            text = shortened(_fault(error))
        return GetTaskLogsResponse(body=GetTaskLogsResponseBody(results=text.splitlines()))

    async def _running(self) -> RayJobService:
        """The service, which starts with the first call.

        Raises:
            KubeRayError: It can't: the installation, the settings or the way to the cluster are no good.
        """
        if self._service is not None:
            return self._service
        async with self._starting:
            if self._service is None:
                try:
                    from .service import RayJobService
                except ImportError as error:
                    raise KubeRayError(f"{_NOT_INSTALLED}: {error}") from error
                self._service = await RayJobService.start()
                self._calls.finish_at_sigterm(self._service.hurry_deletions)
            return self._service


def _fault(error: Exception) -> str:
    return f"flytekitplugins-kuberay has a fault, please report it: {type(error).__name__}: {error}"


def register() -> None:
    """Makes the connector known to flytekit. A second call replaces it."""
    ConnectorRegistry.register(RayConnector(), override=True)
