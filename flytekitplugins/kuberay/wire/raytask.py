"""A Ray task's settings in plain values: the middle form between what a user wrote and what travels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flyteidl.admin.agent_pb2 import TaskExecutionMetadata
from flyteidl.core.literals_pb2 import LiteralMap
from flyteidl.core.tasks_pb2 import TaskTemplate

CONFIG_KEY = "kuberay"
"""The key of our extras in `TaskTemplate.config`."""

CONFIG_PATH = f'config["{CONFIG_KEY}"]'
"""Where they stand, for the reader of an error."""

EXTRAS_VERSION = 1

Manifest = dict[str, Any]
"""A Kubernetes object, or a part of one, as plain camelCase data."""


@dataclass(frozen=True)
class K8sPod:
    """flyteidl.core.K8sPod: a pod spec with labels, annotations and the name of its primary container ("": none)."""

    pod_spec: Manifest
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    primary_container_name: str = ""


@dataclass(frozen=True)
class HeadGroup:
    """The head group; None means that the task says nothing, which is not the same as an empty map."""

    ray_start_params: Mapping[str, str] | None = None
    k8s_pod: K8sPod | None = None


@dataclass(frozen=True)
class WorkerGroup:
    """One worker group, with the replica bounds as they came."""

    group_name: str
    replicas: int
    min_replicas: int
    max_replicas: int
    ray_start_params: Mapping[str, str] | None = None
    k8s_pod: K8sPod | None = None


@dataclass(frozen=True)
class AutoscalerOptions:
    """Options of Ray's autoscaler; None, "" and {} mean unset."""

    upscaling_mode: str | None = None  # KubeRay's word: Default, Conservative, Aggressive
    idle_timeout_seconds: int | None = None
    image: str = ""
    env: tuple[tuple[str, str], ...] = ()
    requests: Mapping[str, str] = field(default_factory=dict)  # Kubernetes resource name -> quantity
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Extras:
    """`config["kuberay"]`, version 1: what flyteidl has no field for. None means unset."""

    shutdown: bool | None = None
    ttl: int | None = None  # seconds
    submission_mode: str | None = None  # K8sJobMode, HTTPMode, SidecarMode
    submitter_resources: Manifest | None = None  # {"requests": {...}, "limits": {...}}
    submitter_template: K8sPod | None = None
    start_deadline: int | None = None  # seconds
    run_deadline: int | None = None  # seconds
    queue: str | None = None
    priority: str | None = None
    backoff_limit: int | None = None
    ray_job_patch: Manifest | None = None
    address: str | None = None  # of a cluster that is not ours: only local runs can use it


@dataclass(frozen=True)
class RayTask:
    """A Ray task's settings, whatever release of whichever plugin registered it."""

    workers: tuple[WorkerGroup, ...] = ()
    head: HeadGroup | None = None
    enable_autoscaling: bool = False
    autoscaler_options: AutoscalerOptions | None = None
    runtime_env_yaml: str = ""  # of the old base64 form, where only that is there, its YAML
    runtime_env_base64: str = ""  # the old form as it came, for Go plugins before runtime_env_yaml
    shutdown: bool | None = None  # extras before custom; a False in custom can't be told from unset, so it is None
    ttl: int | None = None  # seconds; custom's counts only with its shutdown
    extras: Extras = Extras()


@dataclass(frozen=True)
class FlyteTask:
    """All that a connector is given to create a task: flyteidl.admin.CreateTaskRequest."""

    template: TaskTemplate
    execution: TaskExecutionMetadata
    output_prefix: str
    inputs: LiteralMap | None = None


# Both in the order of flyteidl's numbers
UPSCALING_MODES = {
    "UPSCALING_MODE_UNSPECIFIED": None,
    "UPSCALING_MODE_DEFAULT": "Default",
    "UPSCALING_MODE_AGGRESSIVE": "Aggressive",
    "UPSCALING_MODE_CONSERVATIVE": "Conservative",
}
RESOURCE_NAMES = {
    "UNKNOWN": None,
    "CPU": "cpu",
    "GPU": "nvidia.com/gpu",  # as flytek8s' ToK8sResourceList, the one use being the autoscaler's container
    "MEMORY": "memory",
    "STORAGE": None,
    "EPHEMERAL_STORAGE": "ephemeral-storage",
}
