"""What a user writes for a Ray task: frozen dataclasses, checked on creation."""

from .rayjob import (
    RAY_HEAD,
    RAY_WORKER,
    SUBMISSION_MODES,
    AutoscalerOptionsConfig,
    HeadNodeConfig,
    RayJobConfig,
    SubmitterConfig,
    WorkerNodeConfig,
)

__all__ = [
    "RAY_HEAD",
    "RAY_WORKER",
    "SUBMISSION_MODES",
    "AutoscalerOptionsConfig",
    "HeadNodeConfig",
    "RayJobConfig",
    "SubmitterConfig",
    "WorkerNodeConfig",
]
