"""The task type: a user's Ray settings into the task template, and what a run of the task does where it runs.

How Ray starts there stands in `driver`, how a pod template that is a dict becomes the task's pod in `task_pod`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flytekit.configuration import SerializationSettings
from flytekit.core.context_manager import ExecutionParameters, FlyteContext, FlyteContextManager
from flytekit.core.python_function_task import PythonFunctionTask
from flytekit.core.type_engine import TypeEngine
from flytekit.extend import TaskPlugins
from flytekit.models.dynamic_job import DynamicJobSpec
from flytekit.models.literals import LiteralMap
from flytekit.models.task import K8sPod

from .config import (
    AutoscalerOptionsConfig,
    HeadNodeConfig,
    RayJobConfig,
    SubmitterConfig,
    WorkerNodeConfig,
)
from .config.podtemplate import task_problems
from .driver import DEFAULT_EXCLUDES, init_with_working_dir, installed_ray, refuse_open_ray
from .errors import ConfigError
from .task_pod import k8s_pod_of, with_each_variable_once

if TYPE_CHECKING:  # loaded when they are needed: importing flytekit loads this module for everybody
    from .direct.choice import Cluster
    from .wire import RayTask

__all__ = [
    "AutoscalerOptionsConfig",
    "HeadNodeConfig",
    "RayFunctionTask",
    "RayJobConfig",
    "SubmitterConfig",
    "WorkerNodeConfig",
]


class RayFunctionTask(PythonFunctionTask[RayJobConfig]):
    """A function that runs as the driver of a Ray job, on a Ray cluster of its own; in a local run, on local Ray.

    Raises:
        ConfigError: Its pod template holds a dict that is no pod spec.
        KubeRayError: In the run: Ray is not installed, or the working directory is too large for it.
    """

    _RAY_TASK_TYPE = "ray"

    def __init__(self, task_config: RayJobConfig, task_function: Callable[..., Any], **kwargs: Any) -> None:
        if problems := list(task_problems(kwargs.get("pod_template"))):
            raise ConfigError(problems)
        super().__init__(task_config=task_config, task_type=self._RAY_TASK_TYPE, task_function=task_function, **kwargs)

    def pre_execute(self, user_params: ExecutionParameters | None) -> ExecutionParameters:
        """The parameters as they are; Ray is ready afterwards.

        Raises:
            KubeRayError: Ray is not installed, it can't ask for a token where it should, or the working directory is
                too large for it.
        """
        config = self._ray_config()
        state = FlyteContextManager.current_context().execution_state
        if state is None or state.is_local_execution():
            installed_ray().init(address=config.address, ignore_reinit_error=True)
        else:
            refuse_open_ray(installed_ray().__version__, os.environ.get("RAY_AUTH_MODE"))
            excludes = [*DEFAULT_EXCLUDES, *(config.excludes or ())]
            init_with_working_dir(installed_ray().init, Path.cwd(), excludes, address=config.address)
        return user_params  # type: ignore[return-value]  # flytekit's Task and PythonTask disagree on None

    def dispatch_execute(  # type: ignore[override]  # flytekit's Task and PythonTask disagree on what comes back
        self, ctx: FlyteContext, input_literal_map: LiteralMap
    ) -> LiteralMap | DynamicJobSpec | Coroutine[Any, Any, Any]:
        """The outputs, by name; of a local run that goes straight to a cluster, of the pods there.

        Raises:
            KubeRayError: The task can't be run there, or its code raised: then the error is of the type that it raised.
        """
        if (cluster := self._cluster(ctx)) is None:
            return super().dispatch_execute(ctx, input_literal_map)
        from .direct.run import run_on

        return run_on(cluster, self, input_literal_map, ctx)

    def execute(self, **kwargs: Any) -> Any:
        """What the function returns; map_task calls this for each item, without what stands around it."""
        context = FlyteContextManager.current_context()
        if (cluster := self._cluster(context)) is None:
            return super().execute(**kwargs)
        from .direct.run import run_on

        inputs = TypeEngine.dict_to_literal_map(context, kwargs, self.get_input_types())
        types = self.python_interface.outputs
        outputs = TypeEngine.literal_map_to_kwargs(context, run_on(cluster, self, inputs, context), types)
        values = tuple(outputs[name] for name in types)
        return values if len(values) > 1 else next(iter(values), None)

    def get_custom(self, settings: SerializationSettings) -> dict[str, Any]:
        """flyteidl.plugins.RayJob in protobuf's JSON: what Flyte's own Ray plugin understands."""
        from .wire import to_custom

        return to_custom(self._ray_task())

    def get_config(self, settings: SerializationSettings) -> dict[str, str]:
        """The task's config, with what flyteidl has no field for."""
        from .wire import to_config_entry

        return {**(super().get_config(settings) or {}), **to_config_entry(self._ray_task())}

    def get_k8s_pod(self, settings: SerializationSettings) -> K8sPod:
        """The task's own pod, None without a pod template; its pod spec may be a dict, which flytekit can't read."""
        template = self.pod_template
        if template is None:
            return super().get_k8s_pod(settings)
        if isinstance(template.pod_spec, Mapping):
            pod = k8s_pod_of(template, self._get_container(settings), settings)
        else:
            pod = super().get_k8s_pod(settings)
        return with_each_variable_once(pod, template.primary_container_name)

    def _cluster(self, context: FlyteContext) -> Cluster | None:
        """The cluster that a local run goes to; None where it stays in this process."""
        if context.execution_state is None or not context.execution_state.is_local_execution():
            return None
        from .direct.choice import cluster_for

        return cluster_for(context.file_access, has_address=bool(self._ray_config().address))

    def _ray_task(self) -> RayTask:
        primary = self.pod_template.primary_container_name if self.pod_template else ""
        from .wire import from_config

        return from_config(self._ray_config(), primary)

    def _ray_config(self) -> RayJobConfig:
        # read anew each time: with_overrides(task_config=...) may have changed it
        config: RayJobConfig | None = self.task_config
        return RayJobConfig() if config is None else config


TaskPlugins.register_pythontask_plugin(RayJobConfig, RayFunctionTask)
