"""The task type: a user's Ray settings into the task template, Ray started where the function runs.

`import ray` happens only when a task runs: registering needs no Ray.
"""

from __future__ import annotations

import fnmatch
import importlib
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flytekit.configuration import SerializationSettings
from flytekit.core.context_manager import ExecutionParameters, FlyteContext, FlyteContextManager
from flytekit.core.python_function_task import PythonFunctionTask
from flytekit.core.python_auto_container import get_registerable_container_image
from flytekit.core.type_engine import TypeEngine
from flytekit.extend import TaskPlugins
from flytekit.models.dynamic_job import DynamicJobSpec
from flytekit.models.literals import LiteralMap
from flytekit.models.task import Container, K8sObjectMetadata, K8sPod, Resources

from .config import (
    AutoscalerOptionsConfig,
    HeadNodeConfig,
    RayJobConfig,
    SubmitterConfig,
    WorkerNodeConfig,
)
from .config.podtemplate import pod_spec_of, task_problems
from .errors import ConfigError, KubeRayError

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

DEFAULT_EXCLUDES = (
    # what Flyte's fast registration leaves behind
    "script_mode.tar.gz",
    "fast*.tar.gz",
    ".python_history",
    # version control
    ".git",
    ".hg",
    ".svn",
    # virtual environments: the workers' image has its own
    ".venv",
    "venv",
    ".conda",
    ".tox",
    ".nox",
    "node_modules",
    # caches
    "__pycache__",
    ".cache",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".ipynb_checkpoints",
    # large and never read by workers: core dumps, and the records of experiment trackers
    "core.[0-9]*",
    "mlruns",
    "wandb",
)
"""What workers do not get of the working directory, as .gitignore patterns; `excludes=["!wandb"]` takes one back.

Data files are not among them: workers may read them.
"""

_RESOURCE_NAMES = {
    Resources.ResourceName.CPU: "cpu",
    Resources.ResourceName.GPU: "gpu",
    Resources.ResourceName.MEMORY: "memory",
    Resources.ResourceName.EPHEMERAL_STORAGE: "ephemeral-storage",
}
_TOO_LARGE = ("exceeds the maximum size", "larger than max", "resource_exhausted")
_MIB = 2**20


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
            _ray().init(address=config.address, ignore_reinit_error=True)
        else:
            refuse_open_ray(_ray().__version__, os.environ.get("RAY_AUTH_MODE"))
            excludes = [*DEFAULT_EXCLUDES, *(config.excludes or ())]
            init_with_working_dir(_ray().init, Path.cwd(), excludes, address=config.address)
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
        if template is None or not isinstance(template.pod_spec, Mapping):
            return super().get_k8s_pod(settings)
        spec, primary = pod_spec_of(template), template.primary_container_name
        containers = list(spec.get("containers") or [])
        if primary not in [container.get("name") for container in containers]:
            containers.append({"name": primary})
        task = self._get_container(settings)
        written = [
            _with_task(container, task) if container.get("name") == primary else container
            for container in (_with_image(container, settings) for container in containers)
        ]
        metadata = K8sObjectMetadata(labels=template.labels, annotations=template.annotations)
        return K8sPod(metadata, {**spec, "containers": written}, primary_container_name=primary)

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


def _with_image(container: Mapping[str, Any], settings: SerializationSettings) -> dict[str, Any]:
    image = container.get("image")
    found = {"image": get_registerable_container_image(image, settings.image_config)} if image else {}
    return {**container, **found}


def _with_task(container: Mapping[str, Any], task: Container) -> dict[str, Any]:
    """The primary container with the task in it. Source: flytekit/core/utils.py _serialize_pod_spec."""
    resources = {"limits": _quantities(task.resources.limits), "requests": _quantities(task.resources.requests)}
    env = [{"name": name, "value": value} for name, value in (task.env or {}).items()]
    return {
        "image": task.image,
        **container,
        "command": task.command,
        "args": task.args,
        "env": [*env, *(container.get("env") or [])],
        **({"resources": resources} if any(resources.values()) else {}),
    }


def _quantities(entries: Sequence[Resources.ResourceEntry]) -> dict[str, str]:
    return {_RESOURCE_NAMES[entry.name]: entry.value for entry in entries}


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        remedy = "install flytekitplugins-kuberay[ray] here, or the Ray of the cluster's images"
        raise KubeRayError(f"Ray is not installed, and the task can't run without it; {remedy}") from error


def refuse_open_ray(version: str, auth_mode: str | None) -> None:
    """Nothing; Ray asks for a token, where KubeRay told it to.

    Args:
        version: Ray's, which nobody outside the image knows.
        auth_mode: RAY_AUTH_MODE, to which a Ray before 2.52 is deaf.

    Raises:
        KubeRayError: It does not, so that everybody in the cluster's network could run code here.
    """
    if auth_mode == "token" and tuple(map(int, version.split(".")[:2])) < (2, 52):
        raise KubeRayError(
            "the Ray cluster was to ask for a token (authOptions, plugins.kuberay.ray-auth), but the image's Ray"
            f" {version} can't; use an image with Ray 2.52 or newer"
        )


def init_with_working_dir(
    init: Callable[..., Any], directory: Path, excludes: Sequence[str], address: str | None = None
) -> None:
    """Starts Ray with the directory for its workers.

    Args:
        init: `ray.init`.
        directory: What the workers find as their working directory.
        excludes: Patterns, as in .gitignore, of what stays here.
        address: Of the cluster; None takes the one that the job runs on.

    Raises:
        KubeRayError: The directory is larger than Ray takes; the text says what is large and what helps.
    """
    runtime_env = {"working_dir": str(directory), "excludes": list(excludes)}
    # Where RayJobConfig.runtime_env has a working_dir, this directory is it, with the task's code added to it
    os.environ.setdefault("RAY_OVERRIDE_JOB_RUNTIME_ENV", "1")
    try:
        init(address=address, runtime_env=runtime_env)
    except Exception as error:  # noqa: BLE001  # Ray has no class for this; anything else goes on as it is
        if not any(words in str(error).lower() for words in _TOO_LARGE):
            raise
        raise KubeRayError(_too_large(directory, excludes)) from error


def _too_large(directory: Path, excludes: Sequence[str]) -> str:
    sizes: dict[str, int] = {}
    for path, size in _files(directory, excludes):
        top = path.relative_to(directory).parts[0]
        sizes[top] = sizes.get(top, 0) + size
    largest = sorted(sizes.items(), key=lambda item: item[1], reverse=True)[:5]
    listed = ", ".join(f"{name} ({size / _MIB:.1f} MiB)" for name, size in largest)
    return (
        f"The working directory {directory} is larger than Ray sends to its workers; the largest in it: {listed}. "
        'Leave out what workers do not read with RayJobConfig(excludes=["data", ...]) or a .rayignore file, '
        "or keep it in the image or in an object store."
    )


def _files(directory: Path, excludes: Sequence[str]) -> Iterator[tuple[Path, int]]:
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if not _is_excluded(name, excludes)]
        for name in names:
            path = Path(folder, name)
            if not _is_excluded(name, excludes) and path.is_file():
                yield path, path.stat().st_size


def _is_excluded(name: str, excludes: Sequence[str]) -> bool:
    """Whether a plain name pattern fits; enough to tell what is large, Ray alone knows what it sends."""
    return any(fnmatch.fnmatch(name, pattern.strip("/")) for pattern in excludes)


TaskPlugins.register_pythontask_plugin(RayJobConfig, RayFunctionTask)
