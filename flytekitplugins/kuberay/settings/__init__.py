"""The platform's settings: Flyte's own YAML and this package's section, read once into a frozen `Settings`."""

from .flyte import (
    K8sSettings,
    LogSettings,
    NodeSettings,
    RayDefaults,
    RaySettings,
    RemoteCluster,
    TemplateLogPlugin,
)
from .load import Settings, load_settings, parse_settings
from .own import KuberaySettings

__all__ = [
    "K8sSettings",
    "KuberaySettings",
    "LogSettings",
    "NodeSettings",
    "RayDefaults",
    "RaySettings",
    "RemoteCluster",
    "Settings",
    "TemplateLogPlugin",
    "load_settings",
    "parse_settings",
]
