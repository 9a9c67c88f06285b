"""A task run against the connector by propeller's own code (../shared/propeller-client), and what came of it."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from flyteidl.core import literals_pb2
from flytekit.configuration import FastSerializationSettings, ImageConfig, SerializationSettings
from flytekit.core.context_manager import FlyteContextManager
from flytekit.core.python_function_task import PythonFunctionTask
from flytekit.core.type_engine import TypeEngine
from flytekit.models.literals import LiteralMap
from flytekit.tools.translator import get_serializable_task
from google.protobuf.json_format import MessageToDict, ParseDict

from .node import BUCKET, CLUSTER, IMAGE, NAMESPACE, Node

PROJECT, DOMAIN = NAMESPACE.rsplit("-", 1)
_VERSION = "e2e"
_CODE = "code/fast.tar.gz"


@dataclass(frozen=True)
class Run:
    """What flyteadmin would have been told of one execution.

    Args:
        task: The task that ran.
        events: propeller-client's lines, in their order; the last one is the end.
    """

    task: PythonFunctionTask[Any]
    events: tuple[Mapping[str, Any], ...]

    @property
    def phase(self) -> str:
        """The execution's last phase."""
        return str(self.events[-1]["phase"])

    @property
    def attempts(self) -> int:
        """How many attempts the task had."""
        return int(self.events[-1]["attempts"])

    @property
    def error(self) -> Mapping[str, Any]:
        """What it failed with: code, kind, message."""
        error: Mapping[str, Any] = self.events[-1]["error"]
        return error

    @property
    def outputs(self) -> dict[str, Any]:
        """The outputs by name, as another task would get them."""
        message = ParseDict(self.events[-1]["outputs"], literals_pb2.LiteralMap())
        types = self.task.python_interface.outputs
        context = FlyteContextManager.current_context()
        found: dict[str, Any] = TypeEngine.literal_map_to_kwargs(context, LiteralMap.from_flyte_idl(message), types)
        return found

    @property
    def phases(self) -> list[str]:
        """The task's phases in their order."""
        return [phase for phase, _ in groupby(event["phase"] for event in self._changes())]

    def timeline(self) -> str:
        """A line for each of the task's phases: seconds since the start, phase, reason."""
        return "".join(f"\n{e['t']:9.1f} s  {e['phase']:<21} {e['reason'].strip()[:160]}" for e in self._changes())

    def _changes(self) -> list[Mapping[str, Any]]:
        return [event for event in self.events if event["event"] == "task"]


class Propeller:
    """Runs tasks through a node's connector.

    Args:
        node: The node.
        client: The built propeller-client.
        announce: Takes the timeline of each run.
    """

    def __init__(self, node: Node, client: Path, announce: Callable[[str], object]) -> None:
        self._node, self._client, self._announce = node, client, announce

    def run(self, task: PythonFunctionTask[Any], inputs: Mapping[str, Any], *options: str) -> Run:
        """What came of a task, registered the fast way: its module goes to the pods through the object store.

        Args:
            task: One that was not run before: the execution gets its name.
            inputs: By name.
            options: More for propeller-client.
        """
        self._upload_module_of(task)
        execution = task.name.rpartition(".")[2]
        case = self._node.folder / f"{execution}.json"
        case.write_text(json.dumps(_case(execution, task, inputs)))
        where = ["--endpoint", self._node.connector, "--output-dir", str(self._node.store), "--case", str(case)]
        command: list[str | Path] = [CLUSTER / "enter", self._client, "run", *where]
        command += ["--resync", "1s", "--timeout", "240s", *options]
        done = subprocess.run(command, env=self._node.environ(), stdout=subprocess.PIPE, text=True)
        run = Run(task, tuple(json.loads(line) for line in done.stdout.splitlines()))
        self._announce(f"{execution}: {run.phase}{run.timeline()}")
        return run

    def _upload_module_of(self, task: PythonFunctionTask[Any]) -> None:
        module = Path(task.task_function.__code__.co_filename)
        target = self._node.store / BUCKET / _CODE
        target.parent.mkdir(exist_ok=True)
        with tarfile.open(target, "w:gz") as archive:
            archive.add(module, module.name)


def _case(execution: str, task: PythonFunctionTask[Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """A case as propeller-client reads it."""
    context = FlyteContextManager.current_context()
    literals = TypeEngine.dict_to_literal_map(context, dict(inputs), task.python_interface.inputs)
    template = _template(task)
    identity = {"project": PROJECT, "domain": DOMAIN, "name": execution}
    return {
        "task_template": template,
        "inputs": MessageToDict(literals.to_flyte_idl()),
        "task_execution_metadata": {
            "task_execution_id": {
                "task_id": template["id"],
                "node_execution_id": {"node_id": "n0", "execution_id": identity},
            },
            "namespace": NAMESPACE,
            "labels": {"execution-id": execution, "project": PROJECT, "domain": DOMAIN},
            "max_attempts": task.metadata.retries + 1,
        },
    }


def _template(task: PythonFunctionTask[Any]) -> dict[str, Any]:
    """The task template that `pyflyte register` would send."""
    fast = FastSerializationSettings(enabled=True, destination_dir=".", distribution_location=f"s3://{BUCKET}/{_CODE}")
    settings = SerializationSettings(
        project=PROJECT,
        domain=DOMAIN,
        version=_VERSION,
        image_config=ImageConfig.auto(img_name=IMAGE),
        fast_serialization_settings=fast,
    )
    registered = get_serializable_task(OrderedDict(), settings, task)
    written: dict[str, Any] = MessageToDict(registered.template.to_flyte_idl())
    return written
