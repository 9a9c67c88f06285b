"""Labels and annotations of a task's objects, by their order of precedence (design D15).

Low to high: the platform's defaults < base PodTemplate < execution < task pod < task decorator < group template.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from flyteidl.core.tasks_pb2 import K8sObjectMetadata

from ..settings import Settings
from ..wire import FlyteTask, Manifest

_INVALID = re.compile(r"[^A-Za-z0-9_.-]")
_IDENTITY_LABEL = "execution-identity"
_MAX_VALUE = 63


def task_labels(task: FlyteTask, settings: Settings, base: Manifest | None) -> dict[str, str]:
    """The labels of every object of the task."""
    return {
        **settings.k8s.default_labels,
        **_base_metadata(base, "labels"),
        **task.execution.labels,
        **_identity_label(task),
        **_own_metadata(task).labels,
        **task.template.metadata.metadata.labels,
    }


def task_annotations(task: FlyteTask, settings: Settings, base: Manifest | None) -> dict[str, str]:
    """The annotations of every object of the task."""
    return {
        **settings.k8s.default_annotations,
        **_base_metadata(base, "annotations"),
        **task.execution.annotations,
        **_own_metadata(task).annotations,
        **task.template.metadata.metadata.annotations,
    }


def valid_label_values(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels with values that Kubernetes takes: at most 63 of its characters, no punctuation at the ends."""
    return {key: _INVALID.sub("-", value)[:_MAX_VALUE].strip("-_.") for key, value in labels.items()}


def _own_metadata(task: FlyteTask) -> K8sObjectMetadata:
    return task.template.k8s_pod.metadata


def _base_metadata(base: Manifest | None, field: str) -> Mapping[str, str]:
    metadata = ((base or {}).get("template") or {}).get("metadata") or {}
    return {key: value for key, value in (metadata.get(field) or {}).items() if value is not None}


def _identity_label(task: FlyteTask) -> dict[str, str]:
    """Who the execution runs as. Source: flytepropeller task_exec_context.go, utils/k8s.go SanitizeLabelValue."""
    value = re.sub("[^-a-z0-9]+", "-", task.execution.identity.execution_identity.lower())[:_MAX_VALUE].strip("-")
    return {_IDENTITY_LABEL: value} if value else {}
