"""Tasks run on a real node, from the user's function to what Flyte learns of it.

propeller's own code calls a connector served by `pyflyte serve connector`, which acts as the ServiceAccount of
deploy/rbac.yaml; KubeRay runs the RayJobs in pods whose image holds this package's wheel; the user's code comes by fast
registration; all of them meet in one S3 server. What stands in for production: propeller's object store is the folder
behind that server (node.py says why that is the same), and flyteadmin is a printer.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import pytest

from .conftest import Start
from .node import BUCKET, Node
from .propeller import Execution

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def answers(start_for_all: Start, user: ModuleType) -> dict[str, Execution]:
    """Tasks that end well, begun together: more than two slow each other down."""
    return {"squares": start_for_all(user.squares, n=4), "everything": start_for_all(user.everything)}


@pytest.fixture(scope="module")
def errors(start_for_all: Start, user: ModuleType) -> dict[str, Execution]:
    """Tasks that raise, begun together."""
    return {name: start_for_all(getattr(user, name), rate=-0.5) for name in ("training", "report")}


@pytest.fixture(scope="module")
def others(start_for_all: Start, user: ModuleType) -> dict[str, Execution]:
    """One that is aborted while it runs, and one that needs two attempts."""
    return {"endless": start_for_all(user.endless, "--abort-after", "45s"), "flaky": start_for_all(user.flaky)}


def test_outputs_arrive(answers: dict[str, Execution]) -> None:
    """The task succeeds with what Ray's worker computed, run by our task type though upstream's is installed too."""
    run = answers["squares"].end()

    assert run.phase == "SUCCEEDED"
    assert run.phases[0] == "QUEUED" and run.phases[-2:] == ["RUNNING", "SUCCEEDED"]
    outputs = run.outputs
    assert ["-small-worker-" in pod for pod in outputs.pop("computed_on")] == [True]
    assert outputs == {"squares": [0, 1, 4, 9], "task_class": "flytekitplugins.kuberay.task.RayFunctionTask"}


def test_outputs_of_each_kind_arrive(answers: dict[str, Execution], node: Node, user: ModuleType) -> None:
    """Values as they are, files and folders by way of the object store."""
    run = answers["everything"].end()

    assert (run.phase, run.attempts) == ("SUCCEEDED", 1)
    outputs = run.outputs
    files = [Path(str(outputs.pop(name).remote_source)) for name in ("file", "folder")]
    assert outputs == {name: value for name, value in user.EVERYTHING.items()}
    file, folder = (node.store / BUCKET / each.relative_to(f"s3:/{BUCKET}") for each in files)
    assert file.read_text() == "a file of the task's"
    assert {each.name: each.read_text() for each in folder.iterdir()} == {"a": "0", "b": "1"}


def test_a_users_exception_arrives(errors: dict[str, Execution], user: ModuleType) -> None:
    """Its type, its text untouched, and the traceback down to the user's line; and no attempt is wasted on it.

    The code is flytekit's for every exception of a user's.
    """
    run = errors["training"].end()

    assert (run.phase, run.attempts) == ("FAILED", 1)
    assert (run.error["code"], run.error["kind"]) == ("USER:RuntimeError", "USER")
    lines, first = inspect.getsourcelines(user.checked)
    raising = first + next(i for i, line in enumerate(lines) if line.lstrip().startswith("raise "))
    assert f'first_run.py", line {raising}, in checked' in run.error["message"]
    assert f"ValueError: {user.COMPLAINT.format(-0.5)}" in _unindented(run.error["message"])


def test_a_task_without_outputs_fails(errors: dict[str, Execution]) -> None:
    """Propeller does not look for an error where no outputs are declared: the connector does, and says the text."""
    run = errors["report"].end()

    assert (run.phase, run.attempts, run.error["kind"]) == ("FAILED", 1, "USER")
    assert "ValueError: no report for -0.5 in report" in run.error["message"]


def test_an_abort_leaves_nothing(others: dict[str, Execution], node: Node) -> None:
    """The connector deletes what propeller names by the metadata that it stored, and KubeRay all that belongs to it."""
    run = others["endless"].end()

    assert (run.phase, run.phases[-2:]) == ("ABORTED", ["RUNNING", "ABORTED"])
    assert node.settled(others["endless"].stem) == []


def test_a_recoverable_exception_is_another_attempt(others: dict[str, Execution], node: Node) -> None:
    """With its text in the first one's error, and the first one's cluster gone when the second succeeds."""
    run = others["flaky"].end()

    assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 2, {"o0": 1})
    assert "the data is not there yet" in run.reasons
    assert ["-1-" in job["metadata"]["name"] for job in node.objects("rayjobs", others["flaky"].stem)] == [True]


def _unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())
