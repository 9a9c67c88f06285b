"""The Kubernetes objects in the platform's settings, which are read as plain data: their shape."""

from __future__ import annotations

from typing import Any

from ..errors import Problem
from ..schema import type_problems
from ..settings import Settings
from .checks import container_problems


def platform_problems(settings: Settings) -> list[Problem]:
    """What in the settings' Kubernetes objects is not of Kubernetes' type, with its path."""
    problems = [
        problem
        for path, (value, kind) in _objects(settings).items()
        for problem in type_problems(value, f"plugins.{path}", kind)
    ]
    if settings.ray.logs_sidecar:
        problems += container_problems(settings.ray.logs_sidecar, "plugins.ray.logsSidecar", directives=())
    return problems


def _objects(settings: Settings) -> dict[str, tuple[Any, str]]:
    """Each object, or list of them, by its path, with its type in `schema`'s words."""
    k8s, own = settings.k8s, settings.kuberay
    requirement = "V1NodeSelectorRequirement"
    by_resource = {name: list(tolerations) for name, tolerations in k8s.resource_tolerations.items()}
    return {
        "k8s.default-tolerations": (list(k8s.default_tolerations), "[]V1Toleration"),
        "k8s.interruptible-tolerations": (list(k8s.interruptible_tolerations), "[]V1Toleration"),
        "k8s.resource-tolerations": (by_resource, "{}[]V1Toleration"),
        "k8s.gpu-unpartitioned-toleration": (k8s.gpu_unpartitioned_toleration, "V1Toleration"),
        "k8s.default-affinity": (k8s.default_affinity, "V1Affinity"),
        "k8s.interruptible-node-selector-requirement": (k8s.interruptible_node_selector_requirement, requirement),
        "k8s.non-interruptible-node-selector-requirement": (
            k8s.non_interruptible_node_selector_requirement,
            requirement,
        ),
        "k8s.gpu-unpartitioned-node-selector-requirement": (
            k8s.gpu_unpartitioned_node_selector_requirement,
            requirement,
        ),
        "k8s.default-pod-security-context": (k8s.default_pod_security_context, "V1PodSecurityContext"),
        "k8s.default-security-context": (k8s.default_security_context, "V1SecurityContext"),
        "k8s.default-pod-dns-config": (k8s.default_pod_dns_config, "V1PodDNSConfig"),
        "kuberay.platform-resources": (own.platform_resources, "V1ResourceRequirements"),
        "kuberay.submitter-resources": (own.submitter_resources, "V1ResourceRequirements"),
    }
