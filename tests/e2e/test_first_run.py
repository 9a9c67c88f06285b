"""Tasks run on a real node, from the user's function to what Flyte learns of it.

propeller's own code calls a connector served by `pyflyte serve connector`, which acts as the ServiceAccount of
deploy/rbac.yaml; KubeRay runs the RayJobs in pods whose image holds this package's wheel; the user's code comes by fast
registration; all of them meet in one S3 server. What stands in for production: propeller's object store is the folder
behind that server (node.py says why that is the same), and flyteadmin is a printer.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

from .node import Node
from .propeller import Propeller

pytestmark = pytest.mark.e2e


@pytest.fixture(autouse=True)
def _each_leaves_nothing(node: Node) -> Iterator[None]:
    """Once its RayJob is deleted, nothing of a task is left. The diagnosis is printed where the test fails."""
    yield
    print(node.diagnosis())
    node.delete_tasks()
    assert node.settled() == []


def test_outputs_arrive(propeller: Propeller, user: ModuleType) -> None:
    """The task succeeds with what Ray's worker computed, run by our task type though upstream's is installed too."""
    run = propeller.run(user.squares, {"n": 4})

    assert run.phase == "SUCCEEDED"
    assert run.phases[0] == "QUEUED" and run.phases[-2:] == ["RUNNING", "SUCCEEDED"]
    outputs = run.outputs
    assert ["-small-worker-" in pod for pod in outputs.pop("computed_on")] == [True]
    assert outputs == {"squares": [0, 1, 4, 9], "task_class": "flytekitplugins.kuberay.task.RayFunctionTask"}


def test_a_users_exception_arrives(propeller: Propeller, user: ModuleType) -> None:
    """Its type, its text untouched, and the traceback down to the user's line; and no attempt is wasted on it.

    The code is flytekit's for every exception of a user's.
    """
    run = propeller.run(user.training, {"rate": -0.5})

    assert (run.phase, run.attempts) == ("FAILED", 1)
    assert (run.error["code"], run.error["kind"]) == ("USER:RuntimeError", "USER")
    lines, first = inspect.getsourcelines(user.checked)
    raising = first + next(i for i, line in enumerate(lines) if line.lstrip().startswith("raise "))
    assert f'first_run.py", line {raising}, in checked' in run.error["message"]
    assert f"ValueError: {user.COMPLAINT.format(-0.5)}" in _unindented(run.error["message"])


def test_a_task_without_outputs_fails(propeller: Propeller, user: ModuleType) -> None:
    """Propeller does not look for an error where no outputs are declared: the connector does, and says the text."""
    run = propeller.run(user.report, {"rate": -0.5})

    assert (run.phase, run.attempts, run.error["kind"]) == ("FAILED", 1, "USER")
    assert "ValueError: no report for -0.5 in report" in run.error["message"]


def test_an_abort_leaves_nothing(propeller: Propeller, node: Node, user: ModuleType) -> None:
    """The connector deletes what propeller names by the metadata that it stored, and KubeRay all that belongs to it."""
    run = propeller.run(user.endless, {}, "--abort-after", "30s")

    assert (run.phase, run.phases[-1]) == ("ABORTED", "ABORTED")
    assert node.settled() == []


def _unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())
