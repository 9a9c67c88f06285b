"""One node for all tests that need a cluster; made with the first of them, half an hour where nothing is built yet."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.command import output_of
from tests.test_packaging import BUILT_FROM, UV, copied

from .node import SHARED, Node, flyte, what_is_missing
from .propeller import Execution, Propeller

Announce = Callable[[str], None]
Start = Callable[..., Execution]


@pytest.fixture(scope="session")
def announce(pytestconfig: pytest.Config) -> Announce:
    """Prints, also where the test passes: CI's log tells what took how long."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    start = time.monotonic()

    def print_line(text: str) -> None:
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            print(f"\n{time.monotonic() - start:7.1f} s  {text}", end="", flush=True)

    return print_line


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This package, as it would be published."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    copied(BUILT_FROM, source)
    output_of(UV, "build", "--quiet", "--wheel", "--out-dir", target, source)
    return next(target.glob("*.whl"))


@pytest.fixture(scope="session")
def node(announce: Announce, request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node with an object store, and a connector that serves."""
    if missing := what_is_missing():
        pytest.skip(f"no node can run here: {missing} is missing; it needs Debian 12, root, Go and ../shared/cluster")
    wheel: Path = request.getfixturevalue("wheel")
    with tempfile.TemporaryDirectory(prefix="e2e-") as folder, flyte(Path(folder), wheel, announce) as node:
        yield node


@pytest.fixture(scope="session")
def propeller(node: Node, announce: Announce) -> Propeller:
    """Runs tasks as propeller does."""
    announce("propeller-client")
    return Propeller(node, Path(output_of(SHARED / "propeller-client" / "build").strip()), announce)


@pytest.fixture(scope="module")
def user(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The user's module for the tests' module, imported as `pyflyte register` does: by a name of its own."""
    name = request.module.__name__.rpartition(".test_")[2]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent / "workflows")
        yield import_module(name)
        del sys.modules[name]


class Runs:
    """Tasks that tests begin; they, and what they left, end with it."""

    def __init__(self, propeller: Propeller, node: Node) -> None:
        self._propeller, self._node = propeller, node
        self._begun: list[Execution] = []

    def start(
        self, task: Any, *options: str, args: Sequence[str] | None = None, mode: str = "", **inputs: Any
    ) -> Execution:
        """A task that begins to run. Source: `Propeller.start`."""
        self._begun.append(self._propeller.start(task, inputs, *options, args=args, mode=mode))
        return self._begun[-1]

    def end(self) -> None:
        """Ends the tasks, and deletes their RayJobs."""
        for execution in self._begun:
            execution.stop()
            self._node.delete_tasks(execution.stem)


@pytest.fixture(scope="module")
def tidy(node: Node) -> Iterator[None]:
    """After a module's tests, when the RayJobs of all its tasks are deleted, nothing of them is left."""
    yield
    assert node.settled() == []


@pytest.fixture
def start(propeller: Propeller, node: Node, tidy: None) -> Iterator[Start]:
    """Begins a task, which is ended with the test. The diagnosis is printed where it fails."""
    runs = Runs(propeller, node)
    yield runs.start
    print(node.diagnosis())
    runs.end()


@pytest.fixture(scope="module")
def start_for_all(propeller: Propeller, node: Node, tidy: None) -> Iterator[Start]:
    """Begins a task, which is ended after the module's last test."""
    runs = Runs(propeller, node)
    yield runs.start
    runs.end()
