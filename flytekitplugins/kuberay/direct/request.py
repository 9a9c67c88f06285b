"""What a direct run asks for: the task as Flyte would register it, its code and inputs in the object store."""

from __future__ import annotations

import sys
import tempfile
import uuid
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flyteidl.admin.agent_pb2 import TaskExecutionMetadata
from flyteidl.core.identifier_pb2 import NodeExecutionIdentifier, TaskExecutionIdentifier, WorkflowExecutionIdentifier
from flyteidl.core.tasks_pb2 import TaskTemplate
from flytekit.configuration import DefaultImages, FastSerializationSettings, ImageConfig, SerializationSettings
from flytekit.core.context_manager import FlyteContext
from flytekit.core.data_persistence import FileAccessProvider
from flytekit.core.python_auto_container import DefaultNotebookTaskResolver
from flytekit.core.python_function_task import PythonFunctionTask
from flytekit.core.utils import write_proto_to_file
from flytekit.models.literals import LiteralMap
from flytekit.tools.script_mode import _find_project_root, compress_scripts, get_all_modules
from flytekit.tools.translator import get_serializable_task

from ..errors import KubeRayError
from ..wire import FlyteTask
from .files import with_files_uploaded

EXECUTION = f"run-{uuid.uuid4().hex[:10]}"
"""Stands for an execution's name: all tasks of this process belong to one run."""

_IDENTITY = WorkflowExecutionIdentifier(project="local", domain="local", name=EXECUTION)
"""Project and domain as flytekit calls them in a local run."""


@dataclass(frozen=True)
class Request:
    """A task that is to run, without what is different with each attempt.

    Args:
        template: As Flyte registers it.
        inputs: By name.
        place: Its folder in the object store, where inputs.pb stands.
        node: Which task of the run it is.
        namespace: Where it runs.
    """

    template: TaskTemplate
    inputs: LiteralMap
    place: str
    node: str
    namespace: str

    def output_prefix(self, number: int) -> str:
        """Where the outputs of an attempt go."""
        return f"{self.place}/{number}"

    def attempt(self, number: int) -> FlyteTask:
        """What the connector is given for one attempt, from 0; Flyte's own label of an execution stays away.

        By that label `flyte-kuberay sweep` would take a run for one whose execution is gone.
        """
        identity = TaskExecutionIdentifier(
            task_id=self.template.id,
            node_execution_id=NodeExecutionIdentifier(node_id=self.node, execution_id=_IDENTITY),
            retry_attempt=number,
        )
        execution = TaskExecutionMetadata(task_execution_id=identity, namespace=self.namespace)
        return FlyteTask(self.template, execution, self.output_prefix(number), self.inputs.to_flyte_idl())


def request_of(
    task: PythonFunctionTask[Any], inputs: LiteralMap, context: FlyteContext, *, node: str, namespace: str
) -> Request:
    """The request for a task; its code and inputs lie in the object store now.

    Args:
        task: The user's.
        inputs: By name.
        context: Of the run: its object store, images, and code that `pyflyte run` has uploaded already.
        node: Which task of the run it is.
        namespace: Where it is to run.

    Raises:
        KubeRayError: The task can't be sent: no image that could run it is named, or no pod could load or finish it.
    """
    _refuse_what_pods_can_not_do(task)
    settings = _settings_of(task, context)
    if _image_of(task, settings) == DefaultImages.default_image():
        raise KubeRayError(
            f"{task.name}: no image is named, and flytekit's own has neither Ray nor this package;"
            " write container_image= in @task, or pass --image to pyflyte run"
        )
    place = context.file_access.get_random_remote_directory().rstrip("/")
    inputs = with_files_uploaded(inputs, context.file_access)
    _put_inputs(inputs, f"{place}/inputs.pb", context.file_access)
    template = get_serializable_task(OrderedDict(), settings, task).template.to_flyte_idl()
    return Request(template, inputs, place, node, namespace)


def _refuse_what_pods_can_not_do(task: PythonFunctionTask[Any]) -> None:
    if isinstance(task.task_resolver, DefaultNotebookTaskResolver):
        raise KubeRayError(
            f"{task.name}: pods can't load a task out of a notebook; write it into a module and import it"
        )
    if task.name.startswith("<"):  # Python's <stdin> and <string>
        raise KubeRayError(f"{task.name}: pods can't load a task that stands in no file; write it into a module")
    if task.execution_mode == PythonFunctionTask.ExecutionBehavior.DYNAMIC:
        raise KubeRayError(
            f"{task.name}: a @dynamic with a Ray cluster of its own needs a Flyte backend, which runs the tasks that"
            " it makes; leave out its task_config, those of its tasks count"
        )


def _image_of(task: PythonFunctionTask[Any], settings: SerializationSettings) -> str:
    template = task.pod_template
    if template is not None and (pod := task.get_k8s_pod(settings)) is not None:
        primary = template.primary_container_name
        named = [each.get("image") for each in pod.pod_spec["containers"] if each.get("name") == primary]
        return str(named[0]) if named else ""
    container = task.get_container(settings)
    return str(container.image) if container is not None else ""


def _put_inputs(inputs: LiteralMap, target: str, store: FileAccessProvider) -> None:
    with tempfile.TemporaryDirectory(prefix="flyte-kuberay-") as folder:
        written = str(Path(folder, "inputs.pb"))
        write_proto_to_file(inputs.to_flyte_idl(), written)
        store.put_data(written, target)


def _settings_of(task: PythonFunctionTask[Any], context: FlyteContext) -> SerializationSettings:
    """How the task is registered; with the code that `pyflyte run` uploaded, or that is uploaded here."""
    settings = context.serialization_settings or SerializationSettings(ImageConfig.auto_default_image())
    if settings.should_fast_serialize():
        return settings
    code = FastSerializationSettings(
        enabled=True, destination_dir=".", distribution_location=_uploaded_code(task, context.file_access)
    )
    return replace(settings, fast_serialization_settings=code)


def _uploaded_code(task: PythonFunctionTask[Any], store: FileAccessProvider) -> str:
    """Where the modules that this process has loaded from beside the task's lie in the object store."""
    module = sys.modules[task.task_function.__module__]  # not where its code stands: a decorator's is elsewhere
    root = _find_project_root(str(Path(str(module.__file__)).resolve()))
    with tempfile.TemporaryDirectory(prefix="flyte-kuberay-") as folder:
        archive = str(Path(folder, "script_mode.tar.gz"))
        compress_scripts(root, archive, get_all_modules(root, None))
        target = f"{store.get_random_remote_directory()}/script_mode.tar.gz"
        store.put_data(archive, target)
    return target
