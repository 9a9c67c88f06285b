"""`pyflyte run` straight on a cluster: a person with a kubeconfig and an object store, and no Flyte backend.

The person's rights are those of deploy/rbac.yaml in one namespace. What is run is workflows/direct.py, as they would.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from .node import BUCKET, IMAGE, NAMESPACE, STORE, Node, kubeconfig_of

CORE, FULL = pytest.mark.e2e, pytest.mark.e2e_full
WORKFLOWS = Path(__file__).parent / "workflows"
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="module")
def kubeconfig(node: Node) -> Path:
    """That of a person who may do what a connector may, in the tasks' namespace."""
    node.run("kubectl", "create", "serviceaccount", "person", f"--namespace={NAMESPACE}")
    bound = ["--clusterrole=flyte-kuberay", f"--serviceaccount={NAMESPACE}:person", f"--namespace={NAMESPACE}"]
    node.run("kubectl", "create", "rolebinding", "person", *bound)
    return kubeconfig_of(node, "person", NAMESPACE)


@pytest.fixture
def start(node: Node, kubeconfig: Path) -> Iterator[Start]:
    """Begins a `pyflyte run` of workflows/direct.py; nothing of it is left after the test."""
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        where = ["--raw-output-data-prefix", f"s3://{BUCKET}/direct", "--image", IMAGE]
        environ = {**STORE, "FLYTE_KUBERAY_CONFIG": str(node.folder / "settings.yaml")}
        pyflyte = str(Path(sys.executable).with_name("pyflyte"))
        run = subprocess.Popen(
            node.entered(pyflyte, "run", *where, "direct.py", *arguments, kubeconfig=str(kubeconfig)),
            cwd=WORKFLOWS,
            env=node.environ(environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that Ctrl-C reaches it and not the tests
        )
        begun.append(run)
        return run

    yield start
    print(node.diagnosis())
    for run in begun:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    node.delete_tasks()


def ended(run: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The exit status of a run, what it printed, and what it said meanwhile."""
    printed, said = run.communicate(timeout=180)
    return run.returncode, printed, said


@CORE
def test_a_workflow_prints_its_result_and_a_task_raises(start: Start, node: Node) -> None:
    """Its Ray task runs in pods, of a K8sPod target with a template; the others here. Nothing is left.

    Beside it a task raises: its exception ends the other run, with the traceback down to the line in the pod.
    """
    through, unfit = start("through", "--n", "3"), start("unfit", "--size", "3")

    status, printed, said = ended(through)
    assert (status, printed.splitlines()[-1]) == (0, "5 from the template, from the pod, True")
    assert said.startswith("Ray tasks run on the cluster: context ") and f", namespace {NAMESPACE} (" in said
    phases = re.findall(r"^direct\.total: ([A-Z]+) \d", said, re.MULTILINE)
    assert list(dict.fromkeys(phases)) == ["QUEUED", "INITIALIZING", "RUNNING", "SUCCEEDED"]
    assert "direct.total: Ray Dashboard: " in said

    status, printed, said = ended(unfit)
    assert status == 1
    assert "UnfitError: the size is unfit by 3.0" in printed + said
    assert 'raise UnfitError("the size", size)' in printed + said
    assert said.count("RayJob ") == 1  # no attempt is wasted on it

    assert node.settled() == []


@CORE
def test_ctrl_c_deletes_what_runs(start: Start, node: Node) -> None:
    """It says so, ends at once, and the cluster is clean."""
    run = start("doubled", "--x", "3")
    assert run.stderr is not None
    while "INITIALIZING" not in (line := run.stderr.readline()):
        assert line, "it ended before it began"
    os.killpg(run.pid, signal.SIGINT)
    assert "its RayJob is being deleted" in ended(run)[2]
    assert node.settled() == []


@FULL
def test_map_task_has_a_cluster_for_each_item(start: Start, node: Node) -> None:
    """In their order, of a container target."""
    status, printed, _ = ended(start("mapped", "--xs", "[3, 5]"))
    assert (status, printed.splitlines()[-1]) == (0, "[6, 10]")
    assert node.settled() == []
