"""The name of a RayJob, and the labels and annotations by which it is found again.

Identity is the output prefix: it alone is unique. Two instances of one sub-workflow have the same execution, node,
attempt and labels.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping

from ..wire import FlyteTask, Manifest

PREFIX = "kuberay.flyte.org/"
MANAGED_BY = f"{PREFIX}managed-by"
ATTEMPT_KEY = f"{PREFIX}attempt-key"
NODE_KEY = f"{PREFIX}node-key"
ATTEMPT = f"{PREFIX}attempt"
LINKS = f"{PREFIX}links"
MANAGER = "flytekitplugins-kuberay"
OURS = f"{MANAGED_BY}={MANAGER}"
"""The label selector of all that this package makes."""

EXECUTION_LABEL = "execution-id"
"""Propeller's. A run without Flyte tells its execution in our annotation alone."""

MAX_NAME = 47
"""KubeRay never reconciles a RayJob with a longer name. Source: ray-operator utils/validation.go."""

_HASH = 8
_EXECUTION = 20
_KEY = 40
_LONGEST_NODE = 20
_FLYTE_BASE32 = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "abcdefghijklmnopqrstuvwxyz123456")


def job_name(task: FlyteTask) -> str:
    """`<execution>-<node>-<attempt>-<hash>`: a DNS-1035 label of at most 47 characters, by the output prefix."""
    tail = f"{attempt_of(task)}-{attempt_key(task.output_prefix)[:_HASH]}"
    execution = _label(
        task.execution.task_execution_id.node_execution_id.execution_id.name or task.template.id.name, _EXECUTION
    )
    node = _label(task.execution.task_execution_id.node_execution_id.node_id, MAX_NAME - len(execution) - len(tail) - 3)
    name = "-".join(part for part in (execution, node, tail) if part)
    return name if name[0].isalpha() else f"r{name}"


def attempt_of(task: FlyteTask) -> int:
    """Which attempt this is, from 0."""
    return int(task.execution.task_execution_id.retry_attempt)


def attempt_key(output_prefix: str) -> str:
    """What all objects of one attempt have in common, and no others."""
    return _digest(output_prefix.rstrip("/"))


def node_key(output_prefix: str) -> str:
    """What all attempts of one node have in common: the output prefix less its last segment, which is the attempt."""
    return _digest(output_prefix.rstrip("/").rpartition("/")[0])


def own_labels(task: FlyteTask) -> Mapping[str, str]:
    """The labels of every object that this package makes; no user's value beats them."""
    return {
        MANAGED_BY: MANAGER,
        ATTEMPT_KEY: attempt_key(task.output_prefix),
        NODE_KEY: node_key(task.output_prefix),
        ATTEMPT: str(attempt_of(task)),
    }


def own_annotations(task: FlyteTask) -> Mapping[str, str]:
    """What a person reads to find the task of an object."""
    node = task.execution.task_execution_id.node_execution_id
    values = {
        "execution": "/".join(
            part for part in (node.execution_id.project, node.execution_id.domain, node.execution_id.name) if part
        ),
        "node": node.node_id,
        "task": task.template.id.name,
        "output-prefix": task.output_prefix,
    }
    return {f"{PREFIX}{key}": value for key, value in values.items() if value}


def annotation_of(job: Manifest, key: str) -> str:
    """What `own_annotations` wrote onto a RayJob manifest under the key; "" where it does not stand there."""
    return str((job["metadata"].get("annotations") or {}).get(f"{PREFIX}{key}", ""))


def node_id_of(task: FlyteTask) -> str:
    """The node's id as flyteadmin and its console know it: within sub-workflows it begins with the parents' ids.

    The request has but the id within the workflow; the output prefix tells the way there, `n0/data/0/n1/0` for
    `n0-0-n1`. A conditional leaves no trace in it.
    Source: flytepropeller, nodes/common/utils.go GenerateUniqueID; apis v1alpha1/node_status.go.
    """
    node = task.execution.task_execution_id.node_execution_id
    execution = "-".join((node.execution_id.project, node.execution_id.domain, node.execution_id.name))
    parts = task.output_prefix.rstrip("/").rpartition(f"/{execution}/")[2].split("/")
    if len(parts) % 2 == 0 or parts[1:2] != ["data"]:
        return node.node_id
    unique = _fixed_length(parts[0])
    for attempt, child in zip(parts[2:-1:2], parts[3::2], strict=True):
        unique = _fixed_length(f"{unique}-{attempt}-{child}")
    return unique


def _fixed_length(node: str) -> str:
    """A node's id, hashed where it is long. Source: flyteplugins, encoding/encoder.go FixedLengthUniqueID."""
    if len(node) <= _LONGEST_NODE:
        return node
    digest = 0x811C9DC5
    for byte in node.encode():  # FNV-1a
        digest = (digest ^ byte) * 0x01000193 % 2**32
    return "f" + base64.b32encode(digest.to_bytes(4, "big")).decode().rstrip("=").translate(_FLYTE_BASE32)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY]


def _label(text: str, length: int) -> str:
    """The text as a part of a DNS label, cut to a length."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[: max(length, 0)].strip("-")
