"""The model classes of flytekitplugins-ray, for code that builds or reads flyteidl.plugins.RayJob with them.

Nothing of this package needs them: `wire` goes without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flyteidl.core.literals_pb2 import KeyValuePair
from flyteidl.plugins import ray_pb2
from flytekit.models.common import FlyteIdlEntity
from flytekit.models.task import K8sPod, Resources

from .config import AutoscalerOptionsConfig


def _to_idl(entity: Any) -> Any:
    return None if entity is None else entity.to_flyte_idl()


def _from_idl(proto: Any, name: str, model: Any) -> Any:
    return model.from_flyte_idl(getattr(proto, name)) if proto.HasField(name) else None


def _pod_from_idl(proto: Any) -> K8sPod | None:
    """The group's K8sPod, with the primary container's name, which flytekit's from_flyte_idl drops."""
    pod = _from_idl(proto, "k8s_pod", K8sPod)
    name = proto.k8s_pod.primary_container_name or None
    return None if pod is None else K8sPod(pod.metadata, pod.pod_spec, pod.data_config, name)


@dataclass(eq=False, repr=False)
class WorkerGroupSpec(FlyteIdlEntity):
    """A worker group; the bounds give way to the replicas, and follow them where they are None."""

    group_name: str
    replicas: int
    min_replicas: int | None = None
    max_replicas: int | None = None
    ray_start_params: dict[str, str] | None = None
    k8s_pod: K8sPod | None = None

    def __post_init__(self) -> None:
        """Sets the bounds."""
        bounds = [self.replicas if bound is None else bound for bound in (self.min_replicas, self.max_replicas)]
        self.min_replicas, self.max_replicas = min(self.replicas, bounds[0]), max(self.replicas, bounds[1])

    def to_flyte_idl(self) -> ray_pb2.WorkerGroupSpec:
        """The message."""
        return ray_pb2.WorkerGroupSpec(
            group_name=self.group_name,
            replicas=self.replicas,
            min_replicas=self.min_replicas,
            max_replicas=self.max_replicas,
            ray_start_params=self.ray_start_params,
            k8s_pod=_to_idl(self.k8s_pod),
        )

    @classmethod
    def from_flyte_idl(cls, proto: ray_pb2.WorkerGroupSpec) -> WorkerGroupSpec:
        """The model of the message."""
        return cls(
            group_name=proto.group_name,
            replicas=proto.replicas,
            min_replicas=proto.min_replicas,
            max_replicas=proto.max_replicas,
            ray_start_params=dict(proto.ray_start_params),
            k8s_pod=_pod_from_idl(proto),
        )


@dataclass(eq=False, repr=False)
class HeadGroupSpec(FlyteIdlEntity):
    """The head group."""

    ray_start_params: dict[str, str] | None = None
    k8s_pod: K8sPod | None = None

    def to_flyte_idl(self) -> ray_pb2.HeadGroupSpec:
        """The message."""
        pod = _to_idl(self.k8s_pod)
        return ray_pb2.HeadGroupSpec(ray_start_params=self.ray_start_params, k8s_pod=pod)

    @classmethod
    def from_flyte_idl(cls, proto: ray_pb2.HeadGroupSpec) -> HeadGroupSpec:
        """The model of the message."""
        return cls(dict(proto.ray_start_params), _pod_from_idl(proto))


@dataclass(eq=False, repr=False)
class AutoscalerOptions(FlyteIdlEntity):
    """Options of Ray's autoscaler."""

    UpscalingMode = AutoscalerOptionsConfig.UpscalingMode

    upscaling_mode: AutoscalerOptionsConfig.UpscalingMode | int | None = None
    idle_timeout_seconds: int | None = None
    image: str | None = None
    env: dict[str, str] | None = None
    resources: Resources | None = None

    def to_flyte_idl(self) -> ray_pb2.AutoscalerOptions:
        """The message."""
        mode: Any = self.upscaling_mode  # protobuf takes the number, its types want the enum
        return ray_pb2.AutoscalerOptions(
            upscaling_mode=mode,
            idle_timeout_seconds=self.idle_timeout_seconds,
            image=self.image,
            env=[KeyValuePair(key=key, value=value) for key, value in (self.env or {}).items()],
            resources=_to_idl(self.resources),
        )

    @classmethod
    def from_flyte_idl(cls, proto: ray_pb2.AutoscalerOptions) -> AutoscalerOptions:
        """The model of the message."""
        return cls(
            upscaling_mode=proto.upscaling_mode,
            idle_timeout_seconds=proto.idle_timeout_seconds,
            image=proto.image,
            env={pair.key: pair.value for pair in proto.env} or None,
            resources=_from_idl(proto, "resources", Resources),
        )


@dataclass(eq=False, repr=False)
class RayCluster(FlyteIdlEntity):
    """A Ray cluster."""

    worker_group_spec: list[WorkerGroupSpec]
    head_group_spec: HeadGroupSpec | None = None
    enable_autoscaling: bool = False
    autoscaler_options: AutoscalerOptions | None = None

    def to_flyte_idl(self) -> ray_pb2.RayCluster:
        """The message."""
        return ray_pb2.RayCluster(
            head_group_spec=_to_idl(self.head_group_spec),
            worker_group_spec=[group.to_flyte_idl() for group in self.worker_group_spec],
            enable_autoscaling=self.enable_autoscaling,
            autoscaler_options=_to_idl(self.autoscaler_options),
        )

    @classmethod
    def from_flyte_idl(cls, proto: ray_pb2.RayCluster) -> RayCluster:
        """The model of the message."""
        return cls(
            worker_group_spec=[WorkerGroupSpec.from_flyte_idl(group) for group in proto.worker_group_spec],
            head_group_spec=_from_idl(proto, "head_group_spec", HeadGroupSpec),
            enable_autoscaling=proto.enable_autoscaling,
            autoscaler_options=_from_idl(proto, "autoscaler_options", AutoscalerOptions),
        )


@dataclass(eq=False, repr=False)
class RayJob(FlyteIdlEntity):
    """A Ray job: the message that is a Ray task's `custom`."""

    ray_cluster: RayCluster
    runtime_env: str | None = None
    runtime_env_yaml: str | None = None
    ttl_seconds_after_finished: int | None = None
    shutdown_after_job_finishes: bool = False

    def to_flyte_idl(self) -> ray_pb2.RayJob:
        """The message."""
        return ray_pb2.RayJob(
            ray_cluster=self.ray_cluster.to_flyte_idl(),
            runtime_env=self.runtime_env,
            runtime_env_yaml=self.runtime_env_yaml,
            ttl_seconds_after_finished=self.ttl_seconds_after_finished,
            shutdown_after_job_finishes=self.shutdown_after_job_finishes,
        )

    @classmethod
    def from_flyte_idl(cls, proto: ray_pb2.RayJob) -> RayJob:
        """The model of the message."""
        return cls(
            ray_cluster=RayCluster.from_flyte_idl(proto.ray_cluster),
            runtime_env=proto.runtime_env,
            runtime_env_yaml=proto.runtime_env_yaml,
            ttl_seconds_after_finished=proto.ttl_seconds_after_finished,
            shutdown_after_job_finishes=proto.shutdown_after_job_finishes,
        )
