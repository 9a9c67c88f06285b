"""The only I/O with the cluster: a client of the Kubernetes API and a shared watch; nothing of Flyte or Ray."""

try:
    import kubernetes.aio as _needed  # noqa: F401  # checked here, since the base package allows older versions
except ImportError as error:
    raise ImportError(
        "flytekitplugins.kuberay.kube needs kubernetes>=37, the first version with kubernetes.aio;"
        " install flytekitplugins-kuberay[connector]"
    ) from error

from .access import Access
from .api import ApiKubeClient
from .client import (
    EVENTS,
    POD_TEMPLATES,
    PODS,
    RAYJOBS,
    SERVICES,
    Created,
    KubeClient,
    Manifest,
    Page,
    Resource,
    Selector,
    WatchEvent,
)
from .errors import (
    AccessError,
    AlreadyExists,
    ApiError,
    Call,
    Conflict,
    DeadlineExceeded,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnknownResource,
)
from .watch import Watch

__all__ = [
    "EVENTS",
    "PODS",
    "POD_TEMPLATES",
    "RAYJOBS",
    "SERVICES",
    "Access",
    "AccessError",
    "AlreadyExists",
    "ApiError",
    "ApiKubeClient",
    "Call",
    "Conflict",
    "Created",
    "DeadlineExceeded",
    "Expired",
    "Forbidden",
    "Invalid",
    "KubeClient",
    "Manifest",
    "NotFound",
    "Page",
    "Resource",
    "Selector",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "UnknownResource",
    "Watch",
    "WatchEvent",
]
