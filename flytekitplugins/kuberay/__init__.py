"""Ray on Flyte through KubeRay: the names a user needs. Importing it registers the task type and its connector.

`import flytekit` loads this module for every user, unguarded: it loads neither `kubernetes` nor `ray` nor `grpc`.
"""

from flytekitplugins.kuberay.config import (
    AutoscalerOptionsConfig,
    HeadNodeConfig,
    RayJobConfig,
    SubmitterConfig,
    WorkerNodeConfig,
)
from flytekitplugins.kuberay.connector import register
from flytekitplugins.kuberay.errors import ConfigError, KubeRayError, TaskError
from flytekitplugins.kuberay.task import RayFunctionTask

__all__ = [
    "AutoscalerOptionsConfig",
    "ConfigError",
    "HeadNodeConfig",
    "KubeRayError",
    "RayFunctionTask",
    "RayJobConfig",
    "SubmitterConfig",
    "TaskError",
    "WorkerNodeConfig",
]

register()
