"""What tests see of an execution on the node: its pods, and what its code and we left in the object store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from flytekitplugins.kuberay.wire import Manifest

from .node import BUCKET, NAMESPACE, Node
from .propeller import Execution

T = TypeVar("T")


def seen(look: Callable[[], T | None], within: float = 60.0) -> T:
    """What the look finds, once it finds something."""
    deadline = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not seen within {within:g} s"
        time.sleep(0.3)


def pods_of(node: Node, execution: Execution, group: str) -> list[Manifest]:
    """The live pods of a group of an execution: head, submitter or the worker group's name."""
    kinds = {"head": "head", "submitter": None}
    pods = [pod for pod in node.objects("pods", execution.stem) if "deletionTimestamp" not in pod["metadata"]]
    labels = [(pod, pod["metadata"]["labels"]) for pod in pods]
    if group in kinds:
        return [pod for pod, found in labels if found.get("ray.io/node-type") == kinds[group]]
    return [pod for pod, found in labels if found.get("ray.io/group") == group]


def left_by_code(node: Node, execution: Execution | str, attempt: int = 0) -> list[str]:
    """What the user's code left in an attempt, one text for each time that it did."""
    name = execution if isinstance(execution, str) else execution.name
    place = node.store / BUCKET / "left" / name / str(attempt)
    return [path.read_text() for path in sorted(place.glob("*"))]


def diagnosis_of(node: Node, execution: Execution) -> str:
    """The diagnosis that stands beside the first attempt's outputs."""
    prefix = f"metadata/propeller/{NAMESPACE}-{execution.name}"
    found = [path for path in (node.store / BUCKET / prefix).rglob("kuberay-diagnosis.txt") if path.parent.name == "0"]
    return found[0].read_text() if found else ""
