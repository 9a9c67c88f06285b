"""Flyte's own settings: `plugins.k8s` and `plugins.ray`, with Flyte's keys and, but for D25, its defaults.

Source: Flyte v1.16.8, flyteplugins: flytek8s/config/config.go, k8s/ray/config.go, logs/config.go, tasklog/plugin.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from . import kinds, objects, texts
from .durations import FLYTE_DURATION
from .kinds import ANYTHING, BOOL, INTEGER, QUANTITY, TEXT, TEXT_MAP, section, setting
from .templates import TEMPLATE, TEMPLATES

Object = Mapping[str, Any]
"""A Kubernetes object, or a part of one, as plain camelCase data."""


def unused(key: str, doc: str = "") -> Any:
    """A setting of Flyte's without a use for Ray tasks: any value of it is taken."""
    return setting(key, ANYTHING, None, f"{doc} Not used here.".lstrip())


@dataclass(frozen=True)
class K8sSettings:
    """`plugins.k8s`: defaults for every pod that Flyte starts."""

    inject_finalizer: Any = unused("inject-finalizer", "Puts Flyte's finalizer on Flyte's own objects.")
    default_annotations: Mapping[str, str] = setting(
        "default-annotations",
        texts.ANNOTATIONS,
        {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
        "Annotations of the RayJob and every pod.",
    )
    default_labels: Mapping[str, str] = setting(
        "default-labels", texts.LABELS, {}, "Labels of the RayJob and every pod."
    )
    default_env_vars: Mapping[str, str] = setting(
        "default-env-vars", texts.VARIABLES, {}, "Environment variables of every container; a task's own of a name win."
    )
    default_env_vars_from_env: Mapping[str, str] = setting(
        "default-env-vars-from-env",
        texts.VARIABLES,
        {},
        "The same, each with the value that the named variable has in the connector's environment at its start.",
    )
    default_env_from_configmaps: tuple[str, ...] = setting(
        "default-env-from-configmaps",
        texts.OBJECT_NAMES,
        (),
        "ConfigMaps whose entries every container gets as environment.",
    )
    default_env_from_secrets: tuple[str, ...] = setting(
        "default-env-from-secrets", texts.OBJECT_NAMES, (), "Secrets whose entries every container gets as environment."
    )
    default_cpus: str = setting("default-cpus", QUANTITY, "1000m", "CPUs of a task that says none.")
    default_memory: str = setting("default-memory", QUANTITY, "1024Mi", "Memory of a task that says none.")
    default_tolerations: tuple[Object, ...] = setting(
        "default-tolerations", objects.TOLERATIONS, (), "Tolerations of every pod."
    )
    default_node_selector: Mapping[str, str] = setting(
        "default-node-selector", texts.NODE_SELECTOR, {}, "Node selector of every pod."
    )
    default_affinity: Object | None = setting(
        "default-affinity", objects.AFFINITY, None, "Affinity of a pod whose task and base PodTemplate have none."
    )
    scheduler_name: str = setting("scheduler-name", TEXT, "", "Scheduler of every pod.")
    interruptible_tolerations: tuple[Object, ...] = setting(
        "interruptible-tolerations", objects.TOLERATIONS, (), "More tolerations of an interruptible task's pods."
    )
    interruptible_node_selector: Mapping[str, str] = setting(
        "interruptible-node-selector", texts.NODE_SELECTOR, {}, "Node selector of an interruptible task's pods."
    )
    interruptible_node_selector_requirement: Object | None = setting(
        "interruptible-node-selector-requirement",
        objects.NODE_SELECTOR_REQUIREMENT,
        None,
        "What an interruptible task's pods ask of their nodes.",
    )
    non_interruptible_node_selector_requirement: Object | None = setting(
        "non-interruptible-node-selector-requirement",
        objects.NODE_SELECTOR_REQUIREMENT,
        None,
        "What all other tasks' pods ask of their nodes.",
    )
    resource_tolerations: Mapping[str, tuple[Object, ...]] = setting(
        "resource-tolerations",
        kinds.map_of(objects.TOLERATIONS, "a map of lists of tolerations"),
        {},
        "Tolerations of pods that ask for the resource named by the key.",
    )
    co_pilot: Any = unused("co-pilot")
    delete_resource_on_finalize: Any = unused("delete-resource-on-finalize")
    create_container_error_grace_period: timedelta = setting(
        "create-container-error-grace-period",
        FLYTE_DURATION,
        timedelta(minutes=3),
        "How long a container may fail to be created before the task fails.",
    )
    create_container_config_error_grace_period: timedelta = setting(
        "create-container-config-error-grace-period",
        FLYTE_DURATION,
        timedelta(),
        "How long a container's ConfigMap or Secret may be missing before the task fails.",
    )
    image_pull_backoff_grace_period: timedelta = setting(
        "image-pull-backoff-grace-period",
        FLYTE_DURATION,
        timedelta(minutes=3),
        "How long an image may fail to be pulled before the task fails.",
    )
    image_pull_policy: str = setting(
        "image-pull-policy", kinds.choice("", "Always", "IfNotPresent", "Never"), "", "Pull policy of every container."
    )
    pod_pending_timeout: timedelta = setting(
        "pod-pending-timeout", FLYTE_DURATION, timedelta(), "How long a pod may be pending; 0 for any time."
    )
    gpu_device_node_label: str = setting(
        "gpu-device-node-label",
        texts.LABEL_KEY,
        "k8s.amazonaws.com/accelerator",
        "Node label that holds the GPU device.",
    )
    gpu_partition_size_node_label: str = setting(
        "gpu-partition-size-node-label",
        texts.LABEL_KEY,
        "k8s.amazonaws.com/gpu-partition-size",
        "Node label that holds the size of a GPU partition.",
    )
    gpu_unpartitioned_node_selector_requirement: Object | None = setting(
        "gpu-unpartitioned-node-selector-requirement",
        objects.NODE_SELECTOR_REQUIREMENT,
        None,
        "What pods for an unpartitioned GPU ask of their nodes, in place of the partition size label's absence.",
    )
    gpu_unpartitioned_toleration: Object | None = setting(
        "gpu-unpartitioned-toleration", objects.TOLERATION, None, "Toleration of pods for an unpartitioned GPU."
    )
    gpu_resource_name: str = setting(
        "gpu-resource-name",
        texts.RESOURCE_NAME,
        "nvidia.com/gpu",
        "Kubernetes' name of the `gpu` that `@task` asks for. In `requests` and `limits` of a head or worker group"
        " `gpu` is nvidia.com/gpu; for another write its name in the group's PodTemplate.",
    )
    default_pod_security_context: Object | None = setting(
        "default-pod-security-context", objects.POD_SECURITY_CONTEXT, None, "Security context of a pod that has none."
    )
    default_security_context: Object | None = setting(
        "default-security-context", objects.SECURITY_CONTEXT, None, "Security context of a container that has none."
    )
    enable_host_networking_pod: bool | None = setting(
        "enable-host-networking-pod", BOOL, None, "hostNetwork of every pod; unset, the task's own."
    )
    default_pod_dns_config: Object | None = setting(
        "default-pod-dns-config", objects.POD_DNS_CONFIG, None, "DNS config of a pod that has none."
    )
    default_pod_template_name: str = setting(
        "default-pod-template-name", texts.NAME_OR_NONE, "", "PodTemplate under every task that names none."
    )
    default_pod_template_resync: Any = unused("default-pod-template-resync")
    send_object_events: Any = unused("send-object-events")
    update_base_backoff_duration: Any = unused("update-base-backoff-duration")
    update_backoff_retries: Any = unused("update-backoff-retries")
    add_tolerations_for_extended_resources: tuple[str, ...] = setting(
        "add-tolerations-for-extended-resources",
        texts.RESOURCE_NAMES,
        (),
        "Extended resources; their pods tolerate taints of that key.",
    )
    enable_distributed_error_aggregation: Any = unused("enable-distributed-error-aggregation")


@dataclass(frozen=True)
class TemplateLogPlugin:
    """One log link, or more, made of templates with variables like `{{ .podName }}`."""

    name: str = setting("name", TEXT, "", "What `link_type` of a task's config calls the link.")
    display_name: str = setting("displayName", TEMPLATE, "", "Name of the link in Flyte's console.")
    template_uris: tuple[str, ...] = setting(
        "templateUris", TEMPLATES, (), "Addresses of the link, with variables: see connector.md, Links."
    )
    dynamic_template_uris: tuple[str, ...] = setting(
        "dynamicTemplateUris", TEMPLATES, (), "More, for a task whose config has `name` in `link_type`."
    )
    message_format: int = setting("messageFormat", kinds.whole_number(most=2), 0, "Format: 0 unknown, 1 CSV, 2 JSON.")
    scheme: str = setting("scheme", kinds.choice("Pod", "TaskExecution"), "Pod", "Deprecated by Flyte.")
    show_while_pending: bool = setting("showWhilePending", BOOL, False, "Shows the link before the task runs.")
    hide_once_finished: bool = setting("hideOnceFinished", BOOL, False, "Hides the link once the task has ended.")


_TEMPLATE = kinds.section_kind(TemplateLogPlugin)


@dataclass(frozen=True)
class LogSettings:
    """`plugins.ray.logs`: the links that stand next to a task in Flyte's console."""

    cloudwatch_enabled: bool = setting("cloudwatch-enabled", BOOL, False, "Links to CloudWatch.")
    cloudwatch_region: str = setting("cloudwatch-region", TEXT, "", "Region. Deprecated by Flyte.")
    cloudwatch_log_group: str = setting("cloudwatch-log-group", TEXT, "", "Log group. Deprecated by Flyte.")
    cloudwatch_template_uri: str = setting("cloudwatch-template-uri", TEMPLATE, "", "Template of the CloudWatch link.")
    kubernetes_enabled: bool = setting("kubernetes-enabled", BOOL, False, "Links to Kubernetes' dashboard.")
    kubernetes_url: str = setting("kubernetes-url", TEXT, "", "URL of the dashboard. Deprecated by Flyte.")
    kubernetes_template_uri: str = setting("kubernetes-template-uri", TEMPLATE, "", "Template of the dashboard's link.")
    stackdriver_enabled: bool = setting("stackdriver-enabled", BOOL, False, "Links to Google Cloud Logging.")
    gcp_project: str = setting("gcp-project", TEXT, "", "Google Cloud project. Deprecated by Flyte.")
    stackdriver_logresourcename: str = setting("stackdriver-logresourcename", TEXT, "", "Deprecated by Flyte.")
    stackdriver_template_uri: str = setting(
        "stackdriver-template-uri", TEMPLATE, "", "Template of the Google Cloud link."
    )
    dynamic_log_links: Mapping[str, TemplateLogPlugin] = setting(
        "dynamic-log-links",
        kinds.map_of(_TEMPLATE, "a map of log links"),
        {},
        "Links of a task whose config names the key in `link_type`.",
    )
    templates: tuple[TemplateLogPlugin, ...] = setting(
        "templates", kinds.list_of(_TEMPLATE, "a list of log links"), (), "Links of every task."
    )


@dataclass(frozen=True)
class RemoteCluster:
    """`plugins.ray.remoteClusterConfig`: `plugins.kuberay.kubeconfig` and `context` name the cluster here."""

    name: Any = unused("name")
    endpoint: Any = unused("endpoint")
    auth: Any = unused("auth")
    enabled: bool = setting(
        "enabled",
        BOOL,
        False,
        "Not used here, and told in the log: `plugins.kuberay.kubeconfig` and `context` name another cluster.",
    )


@dataclass(frozen=True)
class NodeSettings:
    """`plugins.ray.defaults.headNode` and `workerNode`."""

    start_parameters: Mapping[str, str] = setting(
        "startParameters",
        TEXT_MAP,
        {"disable-usage-stats": "true"},
        "Parameters of `ray start` for a task that gives none; a task's own take their place as a whole.",
    )
    ip_address: str = setting("ipAddress", TEXT, "$MY_POD_IP", "`node-ip-address` of `ray start`.")


@dataclass(frozen=True)
class RayDefaults:
    """`plugins.ray.defaults`."""

    head_node: NodeSettings = section("headNode", NodeSettings)
    worker_node: NodeSettings = section("workerNode", NodeSettings)


@dataclass(frozen=True)
class RaySettings:
    """`plugins.ray`: Flyte's settings of its Ray plugin."""

    shutdown_after_job_finishes: bool = setting(
        "shutdownAfterJobFinishes", BOOL, True, "Whether the cluster ends with a job that does not say."
    )
    ttl_seconds_after_finished: int = setting(
        "ttlSecondsAfterFinished", INTEGER, 3600, "Seconds for which the cluster outlives a job that does not say."
    )
    service_type: str = setting(
        "serviceType",
        kinds.choice("ClusterIP", "NodePort", "LoadBalancer"),
        "ClusterIP",  # D25 (design): Flyte's NodePort opens Ray's dashboard on every node
        "Type of the head's Service. Flyte's default, NodePort, opens Ray's dashboard on every node.",
    )
    enable_ingress: bool = setting("enableIngress", BOOL, False, "Whether KubeRay makes an Ingress for the head.")
    include_dashboard: bool = setting("includeDashboard", BOOL, True, "Whether Ray's dashboard is started.")
    dashboard_host: str = setting("dashboardHost", TEXT, "0.0.0.0", "Address to which Ray's dashboard binds.")
    node_ip_address: str = setting(
        "nodeIPAddress", TEXT, "", "Deprecated by Flyte: stands for an `ipAddress` of `defaults` that is empty text."
    )
    remote_cluster_config: RemoteCluster = section("remoteClusterConfig", RemoteCluster)
    logs: LogSettings = section("logs", LogSettings)
    logs_sidecar: Object | None = setting("logsSidecar", objects.CONTAINER, None, "Sidecar of the head for its logs.")
    dashboard_url_template: TemplateLogPlugin | None = setting(
        "dashboardURLTemplate", _TEMPLATE, None, "Link to Ray's dashboard, as a map with the keys of a log link."
    )
    defaults: RayDefaults = section("defaults", RayDefaults)
    enable_usage_stats: bool = setting("enableUsageStats", BOOL, False, "Whether Ray sends usage statistics.")
    service_account: str = setting(
        "serviceAccount", texts.NAME_OR_NONE, "", "Service account of the pods, over the execution's."
    )
