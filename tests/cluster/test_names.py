"""Names and keys: always valid, the same for the same output prefix, different for any other (design D16)."""

from __future__ import annotations

import re

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.cluster import names
from flytekitplugins.kuberay.wire import FlyteTask
from tests.pod.samples import container_task

PREFIX = "s3://bucket/meta/p-d-f1/n0/data"


def named(
    execution: str = "f1", node: str = "n0", attempt: int = 0, prefix: str = f"{PREFIX}/0", task: str = "tasks.train"
) -> FlyteTask:
    """A task of these names."""
    made = container_task()
    identifier = made.execution.task_execution_id
    identifier.node_execution_id.execution_id.name = execution
    identifier.node_execution_id.node_id = node
    identifier.retry_attempt = attempt
    made.template.id.name = task
    return FlyteTask(made.template, made.execution, prefix)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param(named(), r"f1-n0-0-[0-9a-f]{8}", id="execution, node, attempt, hash"),
        pytest.param(named(attempt=2), r"f1-n0-2-[0-9a-f]{8}", id="a later attempt"),
        pytest.param(named(execution=""), r"tasks-train-n0-0-[0-9a-f]{8}", id="without an execution, the task's name"),
        pytest.param(named(execution="", task="", node=""), r"r0-[0-9a-f]{8}", id="without any name"),
        pytest.param(named(execution="0abc"), r"r0abc-n0-0-[0-9a-f]{8}", id="a digit first gets a letter"),
        pytest.param(
            named(execution="F_1", node="n0.dn-1"), r"f-1-n0-dn-1-0-[0-9a-f]{8}", id="other characters become dashes"
        ),
        pytest.param(
            named(execution="axq7m2kd9pl5h8rtc4bzlonger", node="n0-0-dn1-0-dn1-0-dn0-0"),
            r"axq7m2kd9pl5h8rtc4bz-n0-0-dn1-0-dn1-[0-9]-[0-9a-f]{8}",
            id="a nested dynamic node is cut",
        ),
    ],
)
def test_job_name(task: FlyteTask, expected: str) -> None:
    """D16 (design): a person reads execution, node and attempt in the name."""
    assert re.fullmatch(expected, names.job_name(task)) is not None


any_name = st.text(max_size=80) | st.text(st.sampled_from("aZ0-._"), max_size=80)
attempts = st.integers(0, 2**32 - 1)


@hypothesis.settings(deadline=None)
@given(any_name, any_name, attempts, any_name, any_name)
def test_job_name_is_always_valid(execution: str, node: str, attempt: int, prefix: str, task: str) -> None:
    """D16 (design): whatever the names, a DNS-1035 label of at most 47 characters, which KubeRay takes."""
    name = names.job_name(named(execution, node, attempt, prefix, task))
    assert re.fullmatch(r"[a-z]([-a-z0-9]{0,45}[a-z0-9])?", name) is not None


@hypothesis.settings(deadline=None)
@given(st.lists(any_name.map(lambda text: text.rstrip("/")), min_size=2, max_size=2, unique=True))
def test_job_name_follows_the_prefix(prefixes: list[str]) -> None:
    """D16 (design): all else equal, the name differs with the output prefix and with nothing else."""
    one, same, other = (names.job_name(named(prefix=prefix)) for prefix in (prefixes[0], prefixes[0], prefixes[1]))
    assert [one == same, one == other] == [True, False]


@pytest.mark.parametrize(
    ("one", "other", "same_attempt", "same_node"),
    [
        pytest.param(f"{PREFIX}/0", f"{PREFIX}/0", True, True, id="the same attempt"),
        pytest.param(f"{PREFIX}/0", f"{PREFIX}/0/", True, True, id="a slash at the end says nothing"),
        pytest.param(f"{PREFIX}/0", f"{PREFIX}/1", False, True, id="another attempt of the node"),
        pytest.param(f"{PREFIX}/0", "s3://bucket/meta/p-d-f1/n1/data/0", False, False, id="another node"),
    ],
)
def test_keys(one: str, other: str, same_attempt: bool, same_node: bool) -> None:
    """The attempt key is the attempt's alone, the node key that of all attempts of its node."""
    assert (names.attempt_key(one) == names.attempt_key(other)) is same_attempt
    assert (names.node_key(one) == names.node_key(other)) is same_node


def test_own_labels() -> None:
    """Our labels find an object again: by us, by attempt, by node; their values are ones that Kubernetes takes."""
    labels = names.own_labels(named(attempt=3))
    assert labels == {
        "kuberay.flyte.org/managed-by": "flytekitplugins-kuberay",
        "kuberay.flyte.org/attempt-key": names.attempt_key(f"{PREFIX}/0"),
        "kuberay.flyte.org/node-key": names.node_key(f"{PREFIX}/0"),
        "kuberay.flyte.org/attempt": "3",
    }
    assert [value for value in labels.values() if not re.fullmatch(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,62}", value)] == []


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param(
            named(),
            {"execution": "p/d/f1", "node": "n0", "task": "tasks.train", "output-prefix": f"{PREFIX}/0"},
            id="all that is known",
        ),
        pytest.param(
            named(execution="", node="", task=""),
            {"execution": "p/d", "output-prefix": f"{PREFIX}/0"},
            id="no empty ones",
        ),
    ],
)
def test_own_annotations(task: FlyteTask, expected: dict[str, str]) -> None:
    """A person finds the task of an object by its annotations."""
    assert names.own_annotations(task) == {f"kuberay.flyte.org/{key}": value for key, value in expected.items()}
    job = {"metadata": {"annotations": dict(names.own_annotations(task))}}
    assert {key: names.annotation_of(job, key) for key in expected} == expected


def test_an_annotation_that_is_not_there() -> None:
    """It is empty."""
    assert names.annotation_of({"metadata": {}}, "task") == ""


META = "s3://bucket/metadata/propeller/p-d-f1"


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        pytest.param(f"{META}/n0/data/0", "n0", id="a node of the workflow"),
        pytest.param(f"{META}/n0/data/2/n1/0/", "n0-2-n1", id="in the parent's third attempt"),
        pytest.param(f"{META}/n0/data/0/dn1/0/dn12/0/dn0/0/n3/1", "flhi1xbi-0-n3", id="deep within, hashed on the way"),
        pytest.param(f"{META}/first-training-step/data/0/n1/0", "fg6nyhua", id="hashed at the end"),
        pytest.param(f"{META}/long-node-name-of-a-user/data/0", "fo6q41eq", id="of a long name"),
        pytest.param("s3://bucket/of-a-direct-run/0", "n0", id="another kind of prefix"),
        pytest.param(f"{META}/n7/raw/0", "n0", id="another folder in the execution's"),
        pytest.param(f"{META}/n7/data", "n0", id="a prefix without attempt"),
    ],
)
def test_a_nodes_id_is_flyteadmins(prefix: str, expected: str) -> None:
    """Which holds the way through sub-workflows; the hashed ones were made by Flyte's own code."""
    assert names.node_id_of(named(prefix=prefix)) == expected
