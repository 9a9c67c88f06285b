"""A task run against the connector by propeller's own code (../shared/propeller-client), and what came of it."""

from __future__ import annotations

import json
import subprocess
import tarfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
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
CODE = "code/fast.tar.gz"
_NODE_ID = "n0"
_IN_NAME = {"": "", "K8sJobMode": "-job", "HTTPMode": "-http", "SidecarMode": "-side"}
_LONGEST = 20  # of an execution's name, as Flyte makes them: names in the cluster begin with it whole


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

    @property
    def reasons(self) -> str:
        """All that the task said while it waited, and the text of each attempt's error, a line each."""
        said = [(event["reason"], (event.get("error") or {}).get("message", "")) for event in self._changes()]
        return "\n".join(text for pair in said for text in pair if text)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return float(self.events[-1]["t"])

    def first(self, phase: str) -> float:
        """The second at which the task said a phase for the first time."""
        return float(next(event["t"] for event in self._changes() if event["phase"] == phase))

    def timeline(self) -> str:
        """A line for each of the task's phases: seconds since the start, phase, reason."""
        return "".join(f"\n{e['t']:9.1f} s  {e['phase']:<21} {e['reason'].strip()[:160]}" for e in self._changes())

    def _changes(self) -> list[Mapping[str, Any]]:
        return [event for event in self.events if event["event"] == "task"]


class Execution:
    """One that runs now.

    Args:
        name: Its own; names of what belongs to it in the cluster begin with `stem`.
        task: The task that runs.
        process: The propeller-client that runs it.
        announce: Takes the timeline, once.
    """

    def __init__(
        self,
        name: str,
        task: PythonFunctionTask[Any],
        process: subprocess.Popen[str],
        announce: Callable[[str], object],
    ) -> None:
        self.name, self.stem = name, f"{name}-{_NODE_ID}-"
        self._task, self._process, self._announce = task, process, announce
        self._events: list[Mapping[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def phase(self) -> str:
        """The task's phase now; "" before the first."""
        return next((str(event["phase"]) for event in reversed(self._events) if event["event"] == "task"), "")

    def until(self, phase: str, within: float = 90.0) -> None:
        """Waits until the task says the phase, if it has not said it before."""
        deadline = time.monotonic() + within
        while not any(event.get("phase") == phase for event in self._events if event["event"] == "task"):
            assert self._reader.is_alive(), f"{self.name} has ended before it was {phase}"
            assert time.monotonic() < deadline, f"{self.name} is not {phase} after {within:g} s"
            time.sleep(0.1)

    def links(self, phase: str) -> dict[str, str]:
        """The addresses of the links that came with a phase of the task's, by their names."""
        event = next(event for event in self._events if (event["event"], event.get("phase")) == ("task", phase))
        return {log["name"]: log["uri"] for log in event["logs"] or []}

    def end(self) -> Run:
        """What came of it."""
        self._reader.join()
        with self._process:
            pass  # it has closed its output
        run = Run(self._task, tuple(self._events))
        self._announce(f"{self.name}: {run.phase}, {run.seconds:.0f} s{run.timeline()}")
        return run

    def stop(self) -> None:
        """Ends its propeller-client, whatever that is at."""
        self._process.terminate()
        self._reader.join()
        with self._process:
            pass  # it has closed its output

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._events.append(json.loads(line))


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
        """What came of a task; arguments as those of `start`."""
        return self.start(task, inputs, *options).end()

    def start(
        self,
        task: PythonFunctionTask[Any],
        inputs: Mapping[str, Any],
        *options: str,
        args: Sequence[str] | None = None,
        mode: str = "",
    ) -> Execution:
        """A task that begins to run, registered the fast way: its module goes to the pods through the object store.

        Args:
            task: One that was not run before in this mode: the execution gets its name and the mode's, less what no
                name of Kubernetes may have.
            inputs: By name.
            options: More for propeller-client.
            args: In place of the arguments of the task's container.
            mode: The submission mode; "" for what the task says.
        """
        self._upload_module_of(task)
        execution = task.name.rpartition(".")[2].replace("_", "-") + _IN_NAME[mode]
        assert len(execution) <= _LONGEST, execution
        template = template_of(task)
        if args is not None:
            template["container"]["args"] = list(args)
        if mode:
            config = template.setdefault("config", {})
            extras = json.loads(config.get("kuberay", '{"version": 1}'))
            config["kuberay"] = json.dumps(extras | {"submissionMode": mode})
        case = self._node.folder / f"{execution}.json"
        case.write_text(json.dumps(case_of(execution, task, template, inputs), ensure_ascii=False))
        where = ["--endpoint", self._node.connector, "--output-dir", str(self._node.store), "--case", str(case)]
        command: list[str | Path] = [CLUSTER / "enter", self._client, "run", *where]
        command += ["--resync", "1s", "--timeout", "360s", *options]
        process = subprocess.Popen(command, env=self._node.environ(), stdout=subprocess.PIPE, text=True)
        return Execution(execution, task, process, self._announce)

    def _upload_module_of(self, task: PythonFunctionTask[Any]) -> None:
        module = Path(task.task_function.__code__.co_filename)
        target = self._node.store / BUCKET / CODE
        target.parent.mkdir(exist_ok=True)
        with tarfile.open(target, "w:gz") as archive:
            archive.add(module, module.name)


def case_of(
    execution: str, task: PythonFunctionTask[Any], template: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """A case as propeller-client reads it."""
    context = FlyteContextManager.current_context()
    literals = TypeEngine.dict_to_literal_map(context, dict(inputs), task.python_interface.inputs)
    identity = {"project": PROJECT, "domain": DOMAIN, "name": execution}
    return {
        "task_template": template,
        "inputs": MessageToDict(literals.to_flyte_idl()),
        "task_execution_metadata": {
            "task_execution_id": {
                "task_id": template["id"],
                "node_execution_id": {"node_id": _NODE_ID, "execution_id": identity},
            },
            "namespace": NAMESPACE,
            "labels": {"execution-id": execution, "project": PROJECT, "domain": DOMAIN},
            "max_attempts": task.metadata.retries + 1,
        },
    }


def template_of(task: PythonFunctionTask[Any]) -> dict[str, Any]:
    """The task template that `pyflyte register` would send."""
    fast = FastSerializationSettings(enabled=True, destination_dir=".", distribution_location=f"s3://{BUCKET}/{CODE}")
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
