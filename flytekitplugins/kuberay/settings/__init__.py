"""The platform's settings: Flyte's own YAML and this package's section, read once into a frozen `Settings`."""

from flytekitplugins.kuberay.settings.flyte import (
    ClusterAuth,
    CoPilotSettings,
    K8sSettings,
    LogSettings,
    NodeSettings,
    RayDefaults,
    RaySettings,
    RemoteCluster,
    TemplateLogPlugin,
)
from flytekitplugins.kuberay.settings.load import Settings, load_settings, parse_settings
from flytekitplugins.kuberay.settings.own import KuberaySettings

__all__ = [
    "ClusterAuth",
    "CoPilotSettings",
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
