"""The smallest Ray task, as a connector gets it."""

from __future__ import annotations

from typing import Any

from flyteidl.admin.agent_pb2 import TaskExecutionMetadata
from flyteidl.core.tasks_pb2 import TaskTemplate
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.wire import FlyteTask

GROUP = {"groupName": "cpu", "replicas": 1, "minReplicas": 1, "maxReplicas": 1}


def template_json(*, outputs: bool = False, **parts: Any) -> dict[str, Any]:
    """A TaskTemplate in protobuf's JSON; `parts` replaces its fields.

    Args:
        outputs: Whether it declares one, `o0`.
        parts: By their JSON names.
    """
    declared = {"variables": {"o0": {"type": {"simple": "INTEGER"}}}} if outputs else {}
    return {
        "id": {"resourceType": "TASK", "project": "p", "domain": "d", "name": "wf.train", "version": "v1"},
        "type": "ray",
        "metadata": {"retries": {}},
        "interface": {"inputs": {}, "outputs": declared},
        "custom": {"rayCluster": {"headGroupSpec": {}, "workerGroupSpec": [GROUP]}},
        "container": {"image": "example/image:1", "args": ["pyflyte-execute", "--inputs", "{{.input}}"]},
        **parts,
    }


def execution_json(namespace: str, *, execution: str = "f0", node: str = "n0", attempt: int = 0) -> dict[str, Any]:
    """TaskExecutionMetadata in protobuf's JSON."""
    name = {"project": "p", "domain": "d", "name": execution}
    task_id = {"resourceType": "TASK", "project": "p", "domain": "d", "name": "wf.train", "version": "v1"}
    identity = {"nodeExecutionId": {"nodeId": node, "executionId": name}, "taskId": task_id, "retryAttempt": attempt}
    return {"taskExecutionId": identity, "namespace": namespace, "labels": {"execution-id": execution}}


def flyte_task(
    namespace: str, prefix: str = "", *, node: str = "n0", attempt: int = 0, outputs: bool = False, **parts: Any
) -> FlyteTask:
    """A task for the cluster.

    Args:
        namespace: Where its RayJob belongs.
        prefix: Below which the attempts' outputs go, one folder each; by default one of the node's own.
        node: Of the workflow.
        attempt: From 0.
        outputs: Whether it declares one.
        parts: Of its template.
    """
    template = ParseDict(template_json(outputs=outputs, **parts), TaskTemplate())
    execution = ParseDict(execution_json(namespace, node=node, attempt=attempt), TaskExecutionMetadata())
    return FlyteTask(template, execution, f"{prefix or f'/nowhere/{namespace}/{node}'}/{attempt}")
