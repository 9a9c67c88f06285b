"""The smallest valid tasks, settings and PodTemplates, plus what a row changes: in the form in which each travels."""

from __future__ import annotations

from typing import Any

from flyteidl.admin.agent_pb2 import TaskExecutionMetadata
from flyteidl.core.literals_pb2 import LiteralMap
from flyteidl.core.tasks_pb2 import TaskTemplate
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.pod.template import PodTemplate
from flytekitplugins.kuberay.settings import Settings, parse_settings
from flytekitplugins.kuberay.wire import FlyteTask, Manifest

PREFIX = "s3://bucket/meta/p-d-f1/n0/data/0"
IMAGE = "example.com/ray:2"
ARGS = ["pyflyte-execute", "train"]
GROUP: Manifest = {"groupName": "workers", "replicas": 1}

IDS = {
    "project": "p",
    "domain": "d",
    "name": "f1",
}
EXECUTION: Manifest = {
    "namespace": "p-d",
    "k8sServiceAccount": "runner",
    "taskExecutionId": {
        "taskId": {"project": "p", "domain": "d", "name": "tasks.train", "version": "v1"},
        "nodeExecutionId": {"nodeId": "n0", "executionId": IDS},
    },
}
"""What a connector is told of an execution."""


def container_task(
    *,
    execution: Manifest | None = None,
    inputs: Manifest | None = None,
    container: Manifest | None = None,
    **template: Any,
) -> FlyteTask:
    """A Ray task with a container target: one worker group, image and args.

    Args:
        execution: Fields of TaskExecutionMetadata that the row sets.
        inputs: A LiteralMap.
        container: Fields of the container that the row sets.
        template: Fields of the TaskTemplate that the row sets.
    """
    return _task({"container": {"image": IMAGE, "args": ARGS, **(container or {})}, **template}, execution, inputs)


def pod_task(
    spec: Manifest | None = None,
    *,
    pod_metadata: Manifest | None = None,
    execution: Manifest | None = None,
    **template: Any,
) -> FlyteTask:
    """A Ray task with a K8sPod target: a container `primary` with image and args, unless `spec` has containers."""
    pod = {"podSpec": {"containers": [primary()], **(spec or {})}, "metadata": pod_metadata or {}}
    return _task({"k8sPod": pod, "config": {"primary_container_name": "primary"}, **template}, execution)


def primary(**fields: Any) -> Manifest:
    """The primary container of a K8sPod target."""
    return {"name": "primary", "image": IMAGE, "args": ARGS, **fields}


def sidecar(**fields: Any) -> Manifest:
    """Another container of a pod."""
    return {"name": "sidecar", "image": "example.com/sidecar:1", **fields}


def custom(*groups: Manifest, head: Manifest | None = None, **ray_job: Any) -> Manifest:
    """The `custom` of a task: its worker groups, and the head's pod template where there is one."""
    cluster = {
        "workerGroupSpec": [{**GROUP, **group} for group in groups] or [GROUP],
        **({"headGroupSpec": {"k8sPod": head}} if head else {}),
    }
    return {"rayCluster": cluster, **ray_job}


def settings(*, k8s: Manifest | None = None, ray: Manifest | None = None, kuberay: Manifest | None = None) -> Settings:
    """The platform's settings: Flyte's defaults, plus these of each section."""
    sections = {"k8s": k8s, "ray": ray, "kuberay": kuberay}
    return parse_settings({"plugins": {name: values for name, values in sections.items() if values}})


def base_template(
    spec: Manifest, *, name: str = "base", namespace: str = "p-d", metadata: Manifest | None = None
) -> Manifest:
    """A PodTemplate object of the cluster; `metadata` is that of its pods."""
    template = {"metadata": metadata or {}, "spec": spec}
    return {"metadata": {"name": name, "namespace": namespace}, "template": template}


def task_pod(spec: Manifest, *, main: str = "primary") -> PodTemplate:
    """A built task pod."""
    return PodTemplate(spec, {}, {}, main)


def _task(template: Manifest, execution: Manifest | None, inputs: Manifest | None = None) -> FlyteTask:
    whole = {"id": {"name": "tasks.train"}, "type": "ray", "custom": custom(), **template}
    return FlyteTask(
        ParseDict(whole, TaskTemplate()),
        ParseDict({**EXECUTION, **(execution or {})}, TaskExecutionMetadata()),
        PREFIX,
        None if inputs is None else ParseDict({"literals": inputs}, LiteralMap()),
    )
