"""What a person at a terminal sees of a task that runs on a real node: status, logs as they come, and its end."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from .conftest import Start
from .looking import pods_of, seen
from .node import CLUSTER, NAMESPACE, Node

CORE, FULL = pytest.mark.e2e, pytest.mark.e2e_full
COMMAND = str(Path(sys.executable).with_name("flyte-kuberay"))


class Following:
    """`flyte-kuberay logs --follow` while it runs.

    Args:
        process: It.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ends(self) -> bool:
        """Whether it ends by itself, as what it follows does."""
        self._reader.join(60)
        return not self._reader.is_alive()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))


@contextmanager
def following(node: Node, name: str) -> Iterator[Following]:
    """The command, which is ended with the block."""
    command = [str(CLUSTER / "enter"), COMMAND, "logs", name, "--follow"]
    with subprocess.Popen(command, env=node.environ(), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Following(process)
        finally:
            process.terminate()


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("", id="by default", marks=CORE),
        *(pytest.param(mode, marks=FULL) for mode in ("K8sJobMode", "SidecarMode", "HTTPMode")),
    ],
)
def test_a_person_looks_at_a_task_and_ends_it(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """What it prints is there as it prints it, from before it starts; each pod's log too; and nothing is left."""
    execution = start(user.talks, mode=mode)
    (job,) = seen(lambda: node.objects("rayjobs", execution.stem))
    name = f"{NAMESPACE}/{job['metadata']['name']}"
    with following(node, name) as log:
        seen(lambda: "printed 3" in log.lines, within=120)
        (head,), (worker,) = pods_of(node, execution, "head"), pods_of(node, execution, "w")

        status = node.run(COMMAND, "status", name)
        assert status.startswith(f"RayJob {name}\nRUNNING 0:")
        assert " · workers 1/1 · " in status.splitlines()[1]
        for pod in (head, worker):
            assert f"\n{pod['metadata']['name']} " in status
        (shown,) = json.loads(node.run(COMMAND, "status", "--execution", execution.name, "-o", "json"))
        assert (shown["name"], shown["phase"]) == (job["metadata"]["name"], "RUNNING")

        assert "Ray runtime started." in node.run(COMMAND, "logs", name, "--pod", "head")
        assert "Ray runtime started." in node.run(COMMAND, "logs", name, "--pod", "worker")
        assert f"on worker {worker['metadata']['name']}" in node.run(COMMAND, "logs", name)

        assert node.run(COMMAND, "delete", name).startswith(f"deleted RayJob {name} (task terminal.talks)")
        assert log.ends()
    assert node.run(COMMAND, "delete", name).startswith("nothing to delete: ")
    execution.stop()
    node.delete_tasks(execution.stem)
    assert node.settled(execution.stem) == []
