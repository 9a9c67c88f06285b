"""Labels and annotations of a task's objects: design D15."""

from __future__ import annotations

import re

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.pod.metadata import task_annotations, task_labels, valid_label_values
from flytekitplugins.kuberay.wire import Manifest
from tests.pod.samples import base_template, container_task, pod_task, settings

LAYERS = ["settings", "base", "execution", "pod", "decorator"]


def values(layer: int) -> dict[str, str]:
    """What a layer says: a key for itself and one for each layer above it, which they say too."""
    return {f"up to {LAYERS[index]}".replace(" ", "-"): LAYERS[layer] for index in range(layer, len(LAYERS))}


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_order(field: str) -> None:
    """D15 (design): settings < base PodTemplate < execution < task pod < task decorator."""
    own = settings(k8s={f"default-{field}": [{key: value} for key, value in values(0).items()]})
    decorator = {"metadata": {field: values(4)}}
    task = pod_task(execution={field: values(2)}, pod_metadata={field: values(3)}, metadata=decorator)
    base = base_template({}, metadata={field: values(1)})
    of = {"labels": task_labels, "annotations": task_annotations}[field]
    assert of(task, own, base) == {f"up-to-{layer}": layer for layer in LAYERS}


@pytest.mark.parametrize(
    ("execution", "template", "expected"),
    [
        pytest.param(
            {"identity": {"executionIdentity": "Ann@x.org"}}, {}, "ann-x-org", id="the execution's, made valid"
        ),
        pytest.param({}, {"runAs": {"executionIdentity": "bob"}}, None, id="a task can't claim one"),
        pytest.param({}, {}, None, id="none"),
    ],
)
def test_identity_label(execution: Manifest, template: Manifest, expected: str | None) -> None:
    """Who the execution runs as is a label, as propeller writes it."""
    task = container_task(execution=execution, securityContext=template)
    assert task_labels(task, settings(), None).get("execution-identity") == expected


def test_default_annotation() -> None:
    """Flyte's own default keeps the cluster autoscaler from evicting pods."""
    expected = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    assert [task_annotations(container_task(), settings(), None), task_labels(container_task(), settings(), None)] == [
        expected,
        {},
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("train", "train", id="a valid value stays"),
        pytest.param("", "", id="an empty one too"),
        pytest.param("a b/c", "a-b-c", id="D15 characters that are not allowed"),
        pytest.param("größe", "gr--e", id="D15 letters that are no ASCII"),
        pytest.param("-a.b_", "a.b", id="D15 punctuation at the ends"),
        pytest.param("x" * 70, "x" * 63, id="D15 more than 63 characters"),
        pytest.param("x" * 62 + ".y", "x" * 62, id="D15 punctuation where it is cut"),
    ],
)
def test_valid_label_values(value: str, expected: str) -> None:
    """A label's value is made one that Kubernetes takes."""
    assert valid_label_values({"key": value}) == {"key": expected}


@hypothesis.settings(deadline=None)
@given(st.text())
def test_label_values_are_always_valid(value: str) -> None:
    """Whatever the value, Kubernetes takes what becomes of it."""
    made = valid_label_values({"key": value})["key"]
    assert re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?", made, re.ASCII) is not None
