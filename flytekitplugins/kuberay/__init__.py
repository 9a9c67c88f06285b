"""Ray on Flyte through KubeRay: the names a user needs. Importing it registers the task type and its connector.

`import flytekit` loads this module for every user, unguarded: it loads neither `kubernetes` nor `ray` nor `grpc`.
"""

from .config import (
    AutoscalerOptionsConfig,
    HeadNodeConfig,
    RayJobConfig,
    SubmitterConfig,
    WorkerNodeConfig,
)
from .connector import register
from .errors import ConfigError, KubeRayError, TaskError
from .task import RayFunctionTask

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
