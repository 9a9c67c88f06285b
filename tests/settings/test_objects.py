"""Kubernetes objects in settings: read by their types, all the way down."""

from __future__ import annotations

from typing import Any

import pytest

from .documents import k8s, kuberay, problems_of, ray, setting_of

LABEL = "use lower-case letters, digits and '-', begin and end with a letter or digit, at most 63"


@pytest.mark.parametrize(
    ("data", "attribute", "got"),
    [
        pytest.param(
            k8s(default_tolerations={"key": "a", "value": 1, "tolerationSeconds": "5"}),
            "k8s.default_tolerations",
            ({"key": "a", "value": "1", "tolerationSeconds": 5},),
            id="one toleration without a list",
        ),
        pytest.param(
            k8s(resource_tolerations=[{"nvidia.com/gpu": [{"operator": "Exists"}]}]),
            "k8s.resource_tolerations",
            {"nvidia.com/gpu": ({"operator": "Exists"},)},
            id="tolerations by resource as a list",
        ),
        pytest.param(
            k8s(non_interruptible_node_selector_requirement={"key": "k", "operator": "In", "values": [1]}),
            "k8s.non_interruptible_node_selector_requirement",
            {"key": "k", "operator": "In", "values": ["1"]},
            id="a number as a requirement's value",
        ),
        pytest.param(
            k8s(default_security_context={"runAsUser": 1, "privileged": False, "capabilities": {"drop": ["A"]}}),
            "k8s.default_security_context",
            {"runAsUser": 1, "privileged": False, "capabilities": {"drop": ["A"]}},
            id="a security context",
        ),
        pytest.param(
            k8s(default_pod_dns_config={"nameservers": "10.0.0.53", "options": [{"name": "ndots", "value": "1"}]}),
            "k8s.default_pod_dns_config",
            {"nameservers": ["10.0.0.53"], "options": [{"name": "ndots", "value": "1"}]},
            id="a DNS config",
        ),
        pytest.param(
            k8s(
                default_affinity={
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": {"matchExpressions": [{"key": "k", "operator": "In", "values": [1]}]}
                        }
                    },
                    "podAffinity": None,
                }
            ),
            "k8s.default_affinity",
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["1"]}]}]
                    }
                }
            },
            id="deep within, as at the top",
        ),
        pytest.param(
            ray(logsSidecar={"name": "l", "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": "5"}}),
            "ray.logs_sidecar",
            {"name": "l", "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 5}},
            id="a field of several types",
        ),
        pytest.param(
            ray(logsSidecar={"name": "fluent", "args": ["-c", 1]}),
            "ray.logs_sidecar",
            {"name": "fluent", "args": ["-c", "1"]},
            id="the sidecar for logs",
        ),
        pytest.param(
            kuberay(platform_resources={"limits": {"cpu": 2, "nvidia.com/gpu": 1}}),
            "kuberay.platform_resources",
            {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}},
            id="resources",
        ),
        pytest.param(
            k8s(resource_tolerations={"gpu": None}),
            "k8s.resource_tolerations",
            {"gpu": ()},
            id="a resource without tolerations",
        ),
    ],
)
def test_objects_are_plain_data(data: dict[str, Any], attribute: str, got: object) -> None:
    """As YAML has them, with what Flyte's loader takes in another form."""
    assert setting_of(data, attribute) == got


@pytest.mark.parametrize(
    ("data", "path", "problem"),
    [
        pytest.param(
            k8s(default_tolerations="x"),
            "plugins.k8s.default-tolerations",
            "must be a list of tolerations, got 'x'",
            id="no list of tolerations",
        ),
        pytest.param(
            k8s(default_tolerations=["x"]),
            "plugins.k8s.default-tolerations[0]",
            "must be a map (a toleration), got 'x'",
            id="no toleration",
        ),
        pytest.param(
            k8s(default_tolerations=[{"key": []}]),
            "plugins.k8s.default-tolerations[0].key",
            "must be a text, got a list",
            id="a list for its key",
        ),
        pytest.param(
            k8s(resource_tolerations={"gpu": 1}),
            "plugins.k8s.resource-tolerations.gpu",
            "must be a list of tolerations, got 1",
            id="no tolerations of a resource",
        ),
        pytest.param(
            k8s(default_affinity=[]),
            "plugins.k8s.default-affinity",
            "must be a map (an affinity), got a list",
            id="no affinity",
        ),
        pytest.param(
            k8s(default_affinity={"nodeAffinity": []}),
            "plugins.k8s.default-affinity.nodeAffinity",
            "must be a map, got a list",
            id="a part of the wrong kind",
        ),
        pytest.param(
            k8s(default_pod_dns_config={"options": "ndots"}),
            "plugins.k8s.default-pod-dns-config.options",
            "must be a list, got 'ndots'",
            id="a text for a list",
        ),
        pytest.param(
            k8s(default_affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [1]}}),
            "plugins.k8s.default-affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "must be a map, got a list",
            id="deep in an affinity",
        ),
        pytest.param(
            ray(logsSidecar={"name": "l", "ports": [1]}),
            "plugins.ray.logsSidecar.ports[0]",
            "must be a map, got 1",
            id="a sidecar's port",
        ),
        pytest.param(
            ray(logsSidecar={"image": "i"}),
            "plugins.ray.logsSidecar.name",
            f"must be a DNS label, got null; {LABEL}",
            id="a sidecar without a name",
        ),
        pytest.param(
            ray(logsSidecar={"name": "L"}),
            "plugins.ray.logsSidecar.name",
            f"must be a DNS label, got 'L'; {LABEL}",
            id="a sidecar's name",
        ),
        pytest.param(
            ray(logsSidecar={"name": "l", "env": [{"name": "A=B", "value": "x"}]}),
            "plugins.ray.logsSidecar.env[0].name",
            "must be the name of an environment variable, got 'A=B'; use printable ASCII characters other than '='",
            id="the name of a sidecar's variable",
        ),
        pytest.param(
            ray(logsSidecar={"name": "l", "$patch": "delete"}),
            "plugins.ray.logsSidecar.$patch",
            "is not a setting; remove it, or see docs/settings.md for the keys there are",
            id="nothing to patch there",
        ),
        pytest.param(
            kuberay(platform_resources={"limits": {"cpu": None}}),
            "plugins.kuberay.platform-resources.limits.cpu",
            "must be a Kubernetes quantity, got null; write it as 500m, 2 or 1Gi",
            id="no quantity in resources",
        ),
        pytest.param(
            kuberay(platform_resources={"limit": {}}),
            "plugins.kuberay.platform-resources.limit",
            "is not a setting; did you mean limits?",
            id="an unknown key in our section's objects",
        ),
    ],
)
def test_wrong_objects_are_refused(data: dict[str, Any], path: str, problem: str) -> None:
    """The path leads into the object."""
    assert problems_of(data) == [f"{path}: {problem}"]
