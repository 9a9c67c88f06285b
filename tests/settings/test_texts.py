"""Texts for which Kubernetes has rules: what no API server would take is told at start."""

from __future__ import annotations

from typing import Any

import pytest

from .documents import k8s, kuberay, problems_of, ray, setting_of

KEY = "write it as example.com/name"
LABEL = "use lower-case letters, digits and '-', begin and end with a letter or digit, at most 63"
NAME = "use lower-case letters, digits, '-' and '.', at most 253"
VALUE = "use letters, digits, '-', '_' and '.', begin and end with a letter or digit, at most 63"


@pytest.mark.parametrize(
    ("data", "path", "problem"),
    [
        pytest.param(
            k8s(default_labels={"bad key!": "x"}),
            "plugins.k8s.default-labels.bad key!",
            f"must be a Kubernetes label key, got 'bad key!'; {KEY}",
            id="a label's key",
        ),
        pytest.param(
            k8s(default_annotations=[{"a b": "x"}]),
            "plugins.k8s.default-annotations.a b",
            f"must be a Kubernetes annotation key, got 'a b'; {KEY}",
            id="an annotation's key",
        ),
        pytest.param(
            k8s(default_node_selector={"a": "b c"}),
            "plugins.k8s.default-node-selector.a",
            f"must be a Kubernetes label value, got 'b c'; {VALUE}",
            id="a node selector's value",
        ),
        pytest.param(
            k8s(interruptible_node_selector={"-": "b"}),
            "plugins.k8s.interruptible-node-selector.-",
            f"must be a Kubernetes label key, got '-'; {KEY}",
            id="a node selector's key",
        ),
        pytest.param(
            k8s(default_env_vars={"A=B": "x"}),
            "plugins.k8s.default-env-vars.A=B",
            "must be the name of an environment variable, got 'A=B'; use printable ASCII characters other than '='",
            id="a variable's name",
        ),
        pytest.param(
            k8s(default_env_vars_from_env={"": "x"}),
            "plugins.k8s.default-env-vars-from-env.",
            "must be the name of an environment variable, got ''; use printable ASCII characters other than '='",
            id="a variable without a name",
        ),
        pytest.param(
            k8s(default_env_from_configmaps=["My_Map"]),
            "plugins.k8s.default-env-from-configmaps[0]",
            f"must be the name of an object, got 'My_Map'; {NAME}",
            id="a ConfigMap's name",
        ),
        pytest.param(
            ray(serviceAccount="a b"),
            "plugins.ray.serviceAccount",
            f"must be the name of an object, got 'a b'; {NAME}",
            id="a service account's name",
        ),
        pytest.param(
            k8s(gpu_resource_name=""),
            "plugins.k8s.gpu-resource-name",
            f"must be a Kubernetes resource name, got ''; {KEY}",
            id="an empty resource",
        ),
        pytest.param(
            k8s(add_tolerations_for_extended_resources="nvidia.com/gpu, a b"),
            "plugins.k8s.add-tolerations-for-extended-resources[1]",
            f"must be a Kubernetes resource name, got 'a b'; {KEY}",
            id="one of several resources",
        ),
        pytest.param(
            k8s(gpu_device_node_label="a b"),
            "plugins.k8s.gpu-device-node-label",
            f"must be a Kubernetes label key, got 'a b'; {KEY}",
            id="a node's label",
        ),
        pytest.param(
            kuberay(queue_label="a b"),
            "plugins.kuberay.queue-label",
            f"must be a Kubernetes label key, got 'a b'; {KEY}",
            id="the queue's label",
        ),
        pytest.param(
            kuberay(queue="bad value!"),
            "plugins.kuberay.queue",
            f"must be a Kubernetes label value, got 'bad value!'; {VALUE}",
            id="a queue",
        ),
        pytest.param(
            kuberay(namespaces=["a", "B"]),
            "plugins.kuberay.namespaces[1]",
            f"must be the name of a namespace, got 'B'; {LABEL}",
            id="a namespace",
        ),
        pytest.param(
            kuberay(platform_namespace=""),
            "plugins.kuberay.platform-namespace",
            f"must be the name of a namespace, got ''; {LABEL}",
            id="an empty namespace",
        ),
    ],
)
def test_what_kubernetes_refuses_is_refused_at_start(data: dict[str, Any], path: str, problem: str) -> None:
    """With its path and value: each task's RayJob would be refused for it."""
    assert problems_of(data) == [f"{path}: {problem}"]


@pytest.mark.parametrize(
    ("data", "attribute", "got"),
    [
        pytest.param(
            k8s(default_labels={"team": "A & B"}),
            "k8s.default_labels",
            {"team": "A & B"},
            id="D15 a label's value, which is made valid",
        ),
        pytest.param(
            k8s(default_annotations={"Example.com/a": "b c"}),
            "k8s.default_annotations",
            {"Example.com/a": "b c"},
            id="an annotation's prefix in capitals",
        ),
        pytest.param(
            k8s(default_env_vars={"a.b-c": "x=y", "1": None}),
            "k8s.default_env_vars",
            {"a.b-c": "x=y", "1": ""},
            id="a variable that a shell could not use",
        ),
        pytest.param(k8s(default_pod_template_name=""), "k8s.default_pod_template_name", "", id="no PodTemplate"),
        pytest.param(kuberay(queue=""), "kuberay.queue", "", id="no queue"),
    ],
)
def test_what_kubernetes_takes_is_taken(data: dict[str, Any], attribute: str, got: object) -> None:
    """A setting that works with Flyte stops no connector."""
    assert setting_of(data, attribute) == got
