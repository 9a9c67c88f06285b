"""The platform's settings: Flyte's keys and defaults, files, merging, and every refusal."""

from __future__ import annotations

import dataclasses
import logging
import textwrap
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.errors import SettingsError
from flytekitplugins.kuberay.settings import Settings, TemplateLogPlugin, load_settings, parse_settings

# Printed by Flyte v1.16.8's own code (the k8s and ray config sections after loading an empty file), its null as the
# empty value of the kind.
FLYTE_DEFAULTS = {
    "k8s.inject-finalizer": False,
    "k8s.default-annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    "k8s.default-labels": {},
    "k8s.default-env-vars": {},
    "k8s.default-env-vars-from-env": {},
    "k8s.default-env-from-configmaps": (),
    "k8s.default-env-from-secrets": (),
    "k8s.default-cpus": "1000m",
    "k8s.default-memory": "1024Mi",
    "k8s.default-tolerations": (),
    "k8s.default-node-selector": {},
    "k8s.default-affinity": None,
    "k8s.scheduler-name": "",
    "k8s.interruptible-tolerations": (),
    "k8s.interruptible-node-selector": {},
    "k8s.interruptible-node-selector-requirement": None,
    "k8s.non-interruptible-node-selector-requirement": None,
    "k8s.resource-tolerations": {},
    "k8s.co-pilot.name": "flyte-copilot-",
    "k8s.co-pilot.image": "cr.flyte.org/flyteorg/flytecopilot:v0.0.15",
    "k8s.co-pilot.default-input-path": "/var/flyte/inputs",
    "k8s.co-pilot.default-output-path": "/var/flyte/outputs",
    "k8s.co-pilot.input-vol-name": "flyte-inputs",
    "k8s.co-pilot.output-vol-name": "flyte-outputs",
    "k8s.co-pilot.start-timeout": timedelta(0),
    "k8s.co-pilot.timeout": timedelta(hours=1),
    "k8s.co-pilot.cpu": "500m",
    "k8s.co-pilot.memory": "128Mi",
    "k8s.co-pilot.storage": "",
    "k8s.delete-resource-on-finalize": False,
    "k8s.create-container-error-grace-period": timedelta(minutes=3),
    "k8s.create-container-config-error-grace-period": timedelta(0),
    "k8s.image-pull-backoff-grace-period": timedelta(minutes=3),
    "k8s.image-pull-policy": "",
    "k8s.pod-pending-timeout": timedelta(0),
    "k8s.gpu-device-node-label": "k8s.amazonaws.com/accelerator",
    "k8s.gpu-partition-size-node-label": "k8s.amazonaws.com/gpu-partition-size",
    "k8s.gpu-unpartitioned-node-selector-requirement": None,
    "k8s.gpu-unpartitioned-toleration": None,
    "k8s.gpu-resource-name": "nvidia.com/gpu",
    "k8s.default-pod-security-context": None,
    "k8s.default-security-context": None,
    "k8s.enable-host-networking-pod": None,
    "k8s.default-pod-dns-config": None,
    "k8s.default-pod-template-name": "",
    "k8s.default-pod-template-resync": timedelta(seconds=30),
    "k8s.send-object-events": False,
    "k8s.update-base-backoff-duration": 10,
    "k8s.update-backoff-retries": 5,
    "k8s.add-tolerations-for-extended-resources": (),
    "k8s.enable-distributed-error-aggregation": False,
    "ray.shutdownAfterJobFinishes": True,
    "ray.ttlSecondsAfterFinished": 3600,
    "ray.serviceType": "NodePort",
    "ray.enableIngress": False,
    "ray.includeDashboard": True,
    "ray.dashboardHost": "0.0.0.0",
    "ray.nodeIPAddress": "",
    "ray.remoteClusterConfig.name": "",
    "ray.remoteClusterConfig.endpoint": "",
    "ray.remoteClusterConfig.auth.tokenPath": "",
    "ray.remoteClusterConfig.auth.caCertPath": "",
    "ray.remoteClusterConfig.enabled": False,
    "ray.logs.cloudwatch-enabled": False,
    "ray.logs.cloudwatch-region": "",
    "ray.logs.cloudwatch-log-group": "",
    "ray.logs.cloudwatch-template-uri": "",
    "ray.logs.kubernetes-enabled": False,
    "ray.logs.kubernetes-url": "",
    "ray.logs.kubernetes-template-uri": "",
    "ray.logs.stackdriver-enabled": False,
    "ray.logs.gcp-project": "",
    "ray.logs.stackdriver-logresourcename": "",
    "ray.logs.stackdriver-template-uri": "",
    "ray.logs.dynamic-log-links": {},
    "ray.logs.templates": (),
    "ray.logsSidecar": None,
    "ray.dashboardURLTemplate": None,
    "ray.defaults.headNode.startParameters": {"disable-usage-stats": "true"},
    "ray.defaults.headNode.ipAddress": "$MY_POD_IP",
    "ray.defaults.workerNode.startParameters": {"disable-usage-stats": "true"},
    "ray.defaults.workerNode.ipAddress": "$MY_POD_IP",
    "ray.enableUsageStats": False,
    "ray.serviceAccount": "",
}


def flat(section: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """All settings of a section by the path of their keys."""
    for field in dataclasses.fields(section):
        key, value = f"{prefix}.{field.metadata['key']}", getattr(section, field.name)
        if dataclasses.is_dataclass(value):
            yield from flat(value, key)
        else:
            yield key, value


def k8s(**settings: Any) -> dict[str, Any]:
    """A document with settings of `plugins.k8s`, `_` in a key for `-`."""
    return {"plugins": {"k8s": {key.replace("_", "-"): value for key, value in settings.items()}}}


def kuberay(**settings: Any) -> dict[str, Any]:
    """A document with settings of `plugins.kuberay`, `_` in a key for `-`."""
    return {"plugins": {"kuberay": {key.replace("_", "-"): value for key, value in settings.items()}}}


def ray(**settings: Any) -> dict[str, Any]:
    """A document with settings of `plugins.ray`."""
    return {"plugins": {"ray": settings}}


def in_file(folder: Path, text: str, name: str = "flyte.yaml") -> Path:
    """A file with a text, its common indentation taken away."""
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def problems_of(data: Any) -> list[str]:
    """The texts of the problems for which a document is refused."""
    with pytest.raises(SettingsError) as refused:
        parse_settings(data)
    return [str(problem) for problem in refused.value.problems]


def test_defaults_are_those_of_flyte() -> None:
    """Every key of Flyte's two sections is there, with Flyte's default but for the head's Service (D25)."""
    settings = parse_settings({})
    assert {**dict(flat(settings.k8s, "k8s")), **dict(flat(settings.ray, "ray"))} == {
        **FLYTE_DEFAULTS,
        "ray.serviceType": "ClusterIP",
    }


def test_own_defaults() -> None:
    """The defaults of `plugins.kuberay`; the submitter's resources are KubeRay v1.6.2's own."""
    assert dict(flat(parse_settings({}).kuberay, "kuberay")) == {
        "kuberay.submission-mode": None,
        "kuberay.readiness-probes": None,
        "kuberay.ray-auth": None,
        "kuberay.platform-resources": {},
        "kuberay.platform-namespace": "flyte",
        "kuberay.max-keep-seconds": 86400,
        "kuberay.start-deadline": None,
        "kuberay.run-deadline": None,
        "kuberay.deadline-margin": timedelta(minutes=10),
        "kuberay.log-tail-lines": 200,
        "kuberay.log-tail-bytes": 65536,
        "kuberay.queue-label": "kueue.x-k8s.io/queue-name",
        "kuberay.priority-label": "kueue.x-k8s.io/priority-class",
        "kuberay.queue": None,
        "kuberay.submitter-resources": {
            "requests": {"cpu": "500m", "memory": "200Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
        "kuberay.ray-job-patch": {},
        "kuberay.kubeconfig": None,
        "kuberay.context": None,
        "kuberay.history-server-url-template": None,
        "kuberay.namespaces": (),
        "kuberay.keep-finished": None,
        "kuberay.api-timeout": timedelta(seconds=8),
    }


@pytest.mark.parametrize(
    "nothing",
    [
        pytest.param({}, id="an empty document"),
        pytest.param({"plugins": None}, id="plugins without a value"),
        pytest.param({"plugins": {"k8s": None, "ray": {}, "kuberay": None}}, id="sections without a value"),
        pytest.param({"plugins": {"spark": {"features": 1}}, "propeller": {"workers": 4}}, id="other parts of Flyte"),
        pytest.param(k8s(default_annotations={}, default_labels=None, default_cpus=None), id="an empty map, nulls"),
        pytest.param(ray(defaults={"headNode": {"startParameters": {}}}), id="an empty map in a section's section"),
        pytest.param([], id="no document"),
    ],
)
def test_what_says_nothing_leaves_the_defaults(nothing: Any) -> None:
    """Null, an empty map and the rest of Flyte's configuration change no setting."""
    assert parse_settings(nothing) == Settings()


@pytest.mark.parametrize(
    ("data", "attribute", "got"),
    [
        pytest.param(k8s(default_cpus=2), "k8s.default_cpus", "2", id="a quantity as a number"),
        pytest.param(k8s(default_memory="1.5Gi"), "k8s.default_memory", "1.5Gi", id="a quantity as text"),
        pytest.param(k8s(inject_finalizer="true"), "k8s.inject_finalizer", True, id="a switch as text"),
        pytest.param(k8s(update_backoff_retries="7"), "k8s.update_backoff_retries", 7, id="a number as text"),
        pytest.param(k8s(pod_pending_timeout=90), "k8s.pod_pending_timeout", timedelta(0), id="nanoseconds"),
        pytest.param(
            k8s(pod_pending_timeout=9e9), "k8s.pod_pending_timeout", timedelta(seconds=9), id="a float of them"
        ),
        pytest.param(
            k8s(image_pull_backoff_grace_period=""),
            "k8s.image_pull_backoff_grace_period",
            timedelta(0),
            id="an empty duration",
        ),
        pytest.param(
            k8s(pod_pending_timeout="-1s"),
            "k8s.pod_pending_timeout",
            timedelta(seconds=-1),
            id="a negative duration in Flyte's section",
        ),
        pytest.param(
            k8s(enable_host_networking_pod=False),
            "k8s.enable_host_networking_pod",
            False,
            id="false where unset is the default",
        ),
        pytest.param(
            k8s(default_labels={"Team": 1, "on": True, "v": 1.5, "none": None}),
            "k8s.default_labels",
            {"Team": "1", "on": "true", "v": "1.5", "none": ""},
            id="scalars in a map of texts",
        ),
        pytest.param(
            k8s(default_env_vars=[{"TZ": "UTC"}, {"HOME_Dir": "/x"}]),
            "k8s.default_env_vars",
            {"TZ": "UTC", "HOME_Dir": "/x"},
            id="a list of one-key maps",
        ),
        pytest.param(k8s(default_annotations=[]), "k8s.default_annotations", {}, id="an empty list empties a map"),
        pytest.param(
            k8s(default_annotations={"a": "b"}),
            "k8s.default_annotations",
            {"a": "b"},
            id="a map replaces the default map",
        ),
        pytest.param(
            k8s(default_env_from_secrets="a, b"),
            "k8s.default_env_from_secrets",
            ("a", "b"),
            id="a list of texts as one text",
        ),
        pytest.param(
            {"plugins": {"K8S": {"Default-CPUs": "3"}}}, "k8s.default_cpus", "3", id="keys in any letter case"
        ),
        pytest.param(
            k8s(default_tolerations={"key": "a", "value": 1, "tolerationSeconds": "5"}),
            "k8s.default_tolerations",
            ({"key": "a", "value": "1", "tolerationSeconds": 5},),
            id="one toleration without a list",
        ),
        pytest.param(
            k8s(resource_tolerations=[{"nvidia.com/gpu": [{"operator": "Exists"}]}]),
            "k8s.resource_tolerations",
            {"nvidia.com/gpu": ({"operator": "Exists"},)},
            id="tolerations by resource as a list",
        ),
        pytest.param(
            k8s(non_interruptible_node_selector_requirement={"key": "k", "operator": "In", "values": [1]}),
            "k8s.non_interruptible_node_selector_requirement",
            {"key": "k", "operator": "In", "values": ["1"]},
            id="a number as a requirement's value",
        ),
        pytest.param(
            k8s(default_security_context={"runAsUser": 1, "privileged": False, "capabilities": {"drop": ["A"]}}),
            "k8s.default_security_context",
            {"runAsUser": 1, "privileged": False, "capabilities": {"drop": ["A"]}},
            id="a security context",
        ),
        pytest.param(
            k8s(default_pod_dns_config={"nameservers": "10.0.0.53", "options": [{"name": "ndots", "value": "1"}]}),
            "k8s.default_pod_dns_config",
            {"nameservers": ["10.0.0.53"], "options": [{"name": "ndots", "value": "1"}]},
            id="a DNS config",
        ),
        pytest.param(
            {"plugins": {"k8s": {"co-pilot": {"timeout": "90m"}}}},
            "k8s.co_pilot.timeout",
            timedelta(minutes=90),
            id="a section's section",
        ),
        pytest.param(
            ray(defaults={"headNode": {"startParameters": {"num-cpus": 0}}}),
            "ray.defaults.head_node.start_parameters",
            {"num-cpus": "0"},
            id="start parameters",
        ),
        pytest.param(
            ray(defaults={"headNode": {"ipAddress": ""}}, nodeIPAddress="10.0.0.1"),
            "ray.defaults.head_node.ip_address",
            "10.0.0.1",
            id="Flyte's old nodeIPAddress for an empty one",
        ),
        pytest.param(
            ray(nodeIPAddress="10.0.0.1"),
            "ray.defaults.worker_node.ip_address",
            "$MY_POD_IP",
            id="but not for one that is there",
        ),
        pytest.param(
            ray(dashboardURLTemplate={"displayName": "Ray", "templateUris": ["https://x"]}),
            "ray.dashboard_url_template",
            TemplateLogPlugin(display_name="Ray", template_uris=("https://x",)),
            id="the dashboard's link",
        ),
        pytest.param(
            ray(logs={"templates": [{"name": "a", "messageFormat": 2, "scheme": "TaskExecution"}]}),
            "ray.logs.templates",
            (TemplateLogPlugin(name="a", message_format=2, scheme="TaskExecution"),),
            id="log links",
        ),
        pytest.param(
            ray(logs={"dynamic-log-links": [{"Wandb": {"templateUris": "a"}}]}),
            "ray.logs.dynamic_log_links",
            {"Wandb": TemplateLogPlugin(template_uris=("a",))},
            id="dynamic log links keep their name",
        ),
        pytest.param(
            ray(logsSidecar={"name": "fluent", "args": ["-c", 1]}),
            "ray.logs_sidecar",
            {"name": "fluent", "args": ["-c", "1"]},
            id="the sidecar for logs",
        ),
        pytest.param(
            kuberay(max_keep_seconds=None), "kuberay.max_keep_seconds", None, id="null keeps clusters for ever"
        ),
        pytest.param(kuberay(start_deadline="1h30m"), "kuberay.start_deadline", timedelta(minutes=90), id="a deadline"),
        pytest.param(
            kuberay(keep_finished=0), "kuberay.keep_finished", timedelta(0), id="a duration of 0 needs no unit"
        ),
        pytest.param(
            kuberay(platform_resources={"limits": {"cpu": 2, "nvidia.com/gpu": 1}}),
            "kuberay.platform_resources",
            {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}},
            id="resources",
        ),
        pytest.param(
            kuberay(ray_job_patch={"spec": {"suspend": None, "x": [1]}}),
            "kuberay.ray_job_patch",
            {"spec": {"suspend": None, "x": [1]}},
            id="a patch is kept as it is",
        ),
    ],
)
def test_values_are_read_as_flyte_reads_them(data: dict[str, Any], attribute: str, got: object) -> None:
    """A value arrives at its attribute in its type; what Flyte's loader takes in another form is taken too."""
    value: Any = parse_settings(data)
    for name in attribute.split("."):
        value = getattr(value, name)
    assert value == got
    assert parse_settings(data) == parse_settings(data)


@pytest.mark.parametrize(
    ("data", "path", "problem"),
    [
        pytest.param([1], "settings", "must be a map, got 1", id="a document that is a number"),
        pytest.param({"plugins": ["k8s"]}, "plugins", "must be a map, got a list", id="plugins that are a list"),
        pytest.param(
            {"plugins": {"k8s": "x"}}, "plugins.k8s", "must be a map of settings, got 'x'", id="a section as text"
        ),
        pytest.param(
            k8s(default_cpus="one"),
            "plugins.k8s.default-cpus",
            "must be a Kubernetes quantity, got 'one'; write it as 500m, 2 or 1Gi",
            id="no quantity",
        ),
        pytest.param(
            k8s(default_cpus=True),
            "plugins.k8s.default-cpus",
            "must be a Kubernetes quantity, got true; write it as 500m, 2 or 1Gi",
            id="a switch for a quantity",
        ),
        pytest.param(
            k8s(default_memory="-1Gi"),
            "plugins.k8s.default-memory",
            "must be a Kubernetes quantity, got '-1Gi'; write it as 500m, 2 or 1Gi",
            id="a negative quantity",
        ),
        pytest.param(
            k8s(default_cpus="1e300"),
            "plugins.k8s.default-cpus",
            "must be a Kubernetes quantity, got '1e300'; write it as 500m, 2 or 1Gi",
            id="more CPUs than there can be",
        ),
        pytest.param(
            k8s(inject_finalizer="yes"),
            "plugins.k8s.inject-finalizer",
            "must be true or false, got 'yes'",
            id="no switch",
        ),
        pytest.param(
            k8s(update_backoff_retries=1.5),
            "plugins.k8s.update-backoff-retries",
            "must be a whole number from 0 to 2147483647, got 1.5",
            id="a fraction",
        ),
        pytest.param(
            k8s(update_backoff_retries=True),
            "plugins.k8s.update-backoff-retries",
            "must be a whole number from 0 to 2147483647, got true",
            id="a switch for a number",
        ),
        pytest.param(
            ray(ttlSecondsAfterFinished=-1),
            "plugins.ray.ttlSecondsAfterFinished",
            "must be a whole number from 0 to 2147483647, got -1",
            id="a negative number",
        ),
        pytest.param(
            k8s(pod_pending_timeout="90"),
            "plugins.k8s.pod-pending-timeout",
            "must be a duration, got '90'; write it with units, as 90s, 3m or 1h30m",
            id="a duration as text without unit",
        ),
        pytest.param(
            k8s(pod_pending_timeout=[]),
            "plugins.k8s.pod-pending-timeout",
            "must be a duration, got a list; write it with units, as 90s, 3m or 1h30m",
            id="a list for a duration",
        ),
        pytest.param(
            k8s(pod_pending_timeout="3000000h"),
            "plugins.k8s.pod-pending-timeout",
            "must be a duration, got '3000000h'; write it with units, as 90s, 3m or 1h30m",
            id="a duration too long for Go",
        ),
        pytest.param(
            kuberay(api_timeout=5),
            "plugins.kuberay.api-timeout",
            "must be a duration, got 5; write it with units, as 90s, 3m or 1h30m",
            id="a bare number for a duration of ours",
        ),
        pytest.param(
            kuberay(api_timeout="-5s"),
            "plugins.kuberay.api-timeout",
            "must be a duration, got '-5s'; write it with units, as 90s, 3m or 1h30m",
            id="a negative duration of ours",
        ),
        pytest.param(
            k8s(scheduler_name={"a": 1}), "plugins.k8s.scheduler-name", "must be a text, got a map", id="no text"
        ),
        pytest.param(
            k8s(default_env_from_secrets={"a": 1}),
            "plugins.k8s.default-env-from-secrets",
            "must be a list of texts, got a map",
            id="no list of texts",
        ),
        pytest.param(
            k8s(default_env_from_secrets=0),
            "plugins.k8s.default-env-from-secrets",
            "must be a list of texts, got 0",
            id="0 for a list of texts",
        ),
        pytest.param(
            k8s(default_env_from_secrets=["a", []]),
            "plugins.k8s.default-env-from-secrets[1]",
            "must be a text, got a list",
            id="a list in a list",
        ),
        pytest.param(
            k8s(default_labels="a=b"),
            "plugins.k8s.default-labels",
            "must be a map of texts, or a list of one-key maps, got 'a=b'",
            id="a text for a map",
        ),
        pytest.param(
            k8s(default_labels=["a"]),
            "plugins.k8s.default-labels",
            "must be a map of texts, or a list of one-key maps, got a list",
            id="a list of texts for a map",
        ),
        pytest.param(
            k8s(default_env_vars={"A": {"secret": "x"}}),
            "plugins.k8s.default-env-vars.A",
            "must be a text, got a map",
            id="a map for a variable, its content not shown",
        ),
        pytest.param(
            k8s(image_pull_policy="always"),
            "plugins.k8s.image-pull-policy",
            "must be one of Always, IfNotPresent, Never, got 'always'; did you mean Always?",
            id="a word in another case",
        ),
        pytest.param(
            kuberay(submission_mode="k8sJob"),
            "plugins.kuberay.submission-mode",
            "must be one of K8sJobMode, HTTPMode, SidecarMode, got 'k8sJob'; did you mean K8sJobMode?",
            id="no submission mode",
        ),
        pytest.param(
            kuberay(ray_auth="tokens"),
            "plugins.kuberay.ray-auth",
            "must be one of token, disabled, got 'tokens'; did you mean token?",
            id="no way of authentication",
        ),
        pytest.param(
            k8s(image_pull_policy=[1]),
            "plugins.k8s.image-pull-policy",
            "must be one of Always, IfNotPresent, Never, got a list",
            id="a list for a word",
        ),
        pytest.param(
            k8s(default_tolerations="x"),
            "plugins.k8s.default-tolerations",
            "must be a list of tolerations, got 'x'",
            id="no list of tolerations",
        ),
        pytest.param(
            k8s(default_tolerations=["x"]),
            "plugins.k8s.default-tolerations[0]",
            "must be a map (a toleration), got 'x'",
            id="no toleration",
        ),
        pytest.param(
            k8s(default_tolerations=[{"key": []}]),
            "plugins.k8s.default-tolerations[0].key",
            "must be a text, got a list",
            id="a list for its key",
        ),
        pytest.param(
            k8s(resource_tolerations={"gpu": 1}),
            "plugins.k8s.resource-tolerations.gpu",
            "must be a list of tolerations, got 1",
            id="no tolerations of a resource",
        ),
        pytest.param(
            k8s(default_affinity=[]),
            "plugins.k8s.default-affinity",
            "must be a map (an affinity), got a list",
            id="no affinity",
        ),
        pytest.param(
            k8s(default_affinity={"nodeAffinity": []}),
            "plugins.k8s.default-affinity.nodeAffinity",
            "must be a map, got a list",
            id="a part of the wrong kind",
        ),
        pytest.param(
            k8s(default_pod_dns_config={"options": {"ndots": 1}}),
            "plugins.k8s.default-pod-dns-config.options",
            "must be a list, got a map",
            id="a map for a list",
        ),
        pytest.param(
            ray(logs={"templates": [{"templateUris": [{}]}]}),
            "plugins.ray.logs.templates[0].templateUris[0]",
            "must be a text, got a map",
            id="within a log link",
        ),
        pytest.param(
            kuberay(queue_label="a b"),
            "plugins.kuberay.queue-label",
            "must be a Kubernetes label key, got 'a b'; write it as example.com/name",
            id="no label key",
        ),
        pytest.param(
            kuberay(platform_resources={"limits": {"cpu": None}}),
            "plugins.kuberay.platform-resources.limits.cpu",
            "must be a Kubernetes quantity, got null; write it as 500m, 2 or 1Gi",
            id="no quantity in resources",
        ),
        pytest.param(
            kuberay(platform_resources={"limit": {}}),
            "plugins.kuberay.platform-resources.limit",
            "is not a setting; did you mean limits?",
            id="an unknown key in our section's objects",
        ),
        pytest.param(
            kuberay(ray_job_patch="x"), "plugins.kuberay.ray-job-patch", "must be a map, got 'x'", id="no patch"
        ),
        pytest.param(
            kuberay(start_dedline="1m"),
            "plugins.kuberay.start-dedline",
            "is not a setting; did you mean start-deadline?",
            id="an unknown key with a neighbour",
        ),
        pytest.param(
            kuberay(zzz=1),
            "plugins.kuberay.zzz",
            "is not a setting; remove it, or see docs/settings.md for the keys there are",
            id="an unknown key without one",
        ),
        pytest.param(
            k8s(scheduler_name=["x" * 99]),
            "plugins.k8s.scheduler-name",
            "must be a text, got a list",
            id="a long value, by its kind",
        ),
        pytest.param(
            k8s(default_cpus="x" * 99),
            "plugins.k8s.default-cpus",
            f"must be a Kubernetes quantity, got '{'x' * 56}...; write it as 500m, 2 or 1Gi",
            id="a long value, cut",
        ),
    ],
)
def test_wrong_values_are_refused(data: Any, path: str, problem: str) -> None:
    """A problem names the path, what is wanted, what is there, and what to do."""
    documents = [("", data[0])] if isinstance(data, list) else data
    assert problems_of(documents) == [f"{path}: {problem}"]


def test_all_problems_are_told_at_once() -> None:
    """One error holds the problems of all documents, each with its file."""
    assert problems_of([("a.yaml", k8s(default_cpus="x", scheduler_name=[])), ("b.yaml", kuberay(quue="q"))]) == [
        "a.yaml: plugins.k8s.default-cpus: must be a Kubernetes quantity, got 'x'; write it as 500m, 2 or 1Gi",
        "a.yaml: plugins.k8s.scheduler-name: must be a text, got a list",
        "b.yaml: plugins.kuberay.quue: is not a setting; did you mean queue?",
    ]


def test_unknown_keys_of_flyte_are_warnings(caplog: pytest.LogCaptureFixture) -> None:
    """A key that a newer Flyte or Kubernetes may know is told once in the log, and stops nothing."""
    data = k8s(default_cpu="3", default_tolerations=[{"key": "a", "new": 1}])
    with caplog.at_level(logging.WARNING, logger="flytekitplugins.kuberay.settings.load"):
        settings = parse_settings([("f.yaml", data)])
    assert settings.k8s.default_tolerations == ({"key": "a", "new": 1},)
    assert [record.getMessage() for record in caplog.records] == [
        "f.yaml: plugins.k8s.default-cpu: is not a setting; did you mean default-cpus?",
        "f.yaml: plugins.k8s.default-tolerations[0].new: is not a setting; "
        "remove it, or see docs/settings.md for the keys there are",
    ]


@pytest.mark.parametrize(
    ("documents", "attribute", "got"),
    [
        pytest.param([k8s(default_cpus=1), k8s(default_cpus=2)], "default_cpus", "2", id="the later value"),
        pytest.param(
            [k8s(default_cpus=1), k8s(default_memory=2)], "default_cpus", "1", id="what the later does not say"
        ),
        pytest.param(
            [k8s(default_labels={"a": 1, "b": 1}), k8s(default_labels={"b": 2})],
            "default_labels",
            {"a": "1", "b": "2"},
            id="maps key by key",
        ),
        pytest.param(
            [k8s(default_env_from_secrets=["a"]), k8s(default_env_from_secrets=["b"])],
            "default_env_from_secrets",
            ("b",),
            id="lists whole",
        ),
        pytest.param(
            [k8s(default_labels={"a": 1}), k8s(default_labels=None)],
            "default_labels",
            {"a": "1"},
            id="null over a map changes nothing",
        ),
        pytest.param(
            [k8s(default_labels={"a": 1}), {"plugins": {"k8s": None}}],
            "default_labels",
            {"a": "1"},
            id="nor over a section",
        ),
        pytest.param(
            [k8s(default_labels={"a": 1}), k8s(default_labels={})],
            "default_labels",
            {"a": "1"},
            id="nor does an empty map",
        ),
        pytest.param(
            [k8s(default_cpus=3), k8s(default_cpus=None)],
            "default_cpus",
            "1000m",
            id="null over a value brings the default back",
        ),
    ],
)
def test_later_documents_win(documents: list[dict[str, Any]], attribute: str, got: object) -> None:
    """Several documents are merged key by key, the later over the earlier."""
    settings = parse_settings([(f"{i}.yaml", document) for i, document in enumerate(documents)])
    assert getattr(settings.k8s, attribute) == got


def test_the_environment_gives_values() -> None:
    """POD_NAMESPACE stands below the files; variables named by default-env-vars-from-env arrive with their values."""
    environ = {"POD_NAMESPACE": "flyte-system", "REGION": "eu"}
    data = k8s(default_env_vars_from_env={"AWS_REGION": "REGION", "GONE": "NOT_THERE"})
    settings = parse_settings(data, environ)
    assert settings.k8s.default_env_vars_from_env == {"AWS_REGION": "eu", "GONE": ""}
    assert settings.kuberay.platform_namespace == "flyte-system"
    assert parse_settings(kuberay(platform_namespace="x"), environ).kuberay.platform_namespace == "x"


def test_arguments_are_left_alone() -> None:
    """Settings share nothing with the document of which they were made, nor with each other's defaults."""
    data = kuberay(ray_job_patch={"spec": {"list": [1]}})
    settings = parse_settings(data)
    data["plugins"]["kuberay"]["ray-job-patch"]["spec"]["list"].append(2)
    assert settings.kuberay.ray_job_patch == {"spec": {"list": [1]}}
    assert Settings().kuberay.submitter_resources["limits"] is not Settings().kuberay.submitter_resources["limits"]


@given(
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["h", "m", "s", "ms", "us"])), min_size=1, max_size=5),
)
def test_durations_are_sums_of_their_parts(parts: list[tuple[int, str]]) -> None:
    """A duration counts its parts as Go does, in any order and number."""
    unit = {
        "h": timedelta(hours=1),
        "m": timedelta(minutes=1),
        "s": timedelta(seconds=1),
        "ms": timedelta(milliseconds=1),
        "us": timedelta(microseconds=1),
    }
    text = "".join(f"{amount}{name}" for amount, name in parts)
    expected = sum((amount * unit[name] for amount, name in parts), timedelta())
    assert parse_settings(kuberay(run_deadline=text)).kuberay.run_deadline == expected


def test_files_are_read_in_order(tmp_path: Path) -> None:
    """Files named win over each other in their order, a pattern's in the order of their names."""
    in_file(tmp_path, "plugins: {k8s: {default-cpus: 1, default-memory: 1Gi}}", "1.yaml")
    in_file(tmp_path, "plugins: {k8s: {default-cpus: 2}}", "2.yaml")
    in_file(tmp_path, "# nothing", "3.yaml")
    last = in_file(tmp_path, "plugins: {kuberay: {queue: q}}", "own.yml")
    settings = load_settings([tmp_path / "*.yaml", last], environ={})
    assert (settings.k8s.default_cpus, settings.k8s.default_memory, settings.kuberay.queue) == ("2", "1Gi", "q")


def test_the_variable_names_files(tmp_path: Path) -> None:
    """Without files named, FLYTE_KUBERAY_CONFIG names them; without either there are defaults."""
    first, second = in_file(tmp_path, "plugins: {kuberay: {queue: a}}", "a"), in_file(tmp_path, "", "b")
    environ = {"FLYTE_KUBERAY_CONFIG": f"{first}:{second}"}
    assert load_settings(environ=environ).kuberay.queue == "a"
    assert load_settings([], environ=environ) == load_settings(environ={}) == Settings()


def test_yaml_is_read_as_flyte_reads_it(tmp_path: Path) -> None:
    """Only true, false, null and plain numbers are more than text; anchors and merge keys work."""
    path = in_file(
        tmp_path,
        """
        base: &base {a: no, b: 12:30, c: 2020-01-01, d: 007}
        plugins:
          k8s:
            default-labels: {<<: *base, d: 0x1f, e: true, f: 1e3, g: 1_000}
            default-pod-security-context: {runAsUser: 1000, runAsNonRoot: true}
        """,
    )
    settings = load_settings([path], environ={})
    assert settings.k8s.default_labels == {
        "a": "no", "b": "12:30", "c": "2020-01-01", "d": "0x1f", "e": "true", "f": "1e3", "g": "1_000",
    }  # fmt: skip
    assert settings.k8s.default_pod_security_context == {"runAsUser": 1000, "runAsNonRoot": True}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("[" * 9999 + "]" * 9999, ": is nested too deep", id="deep"),
        pytest.param(
            "a: [1", ", line 1, column 6: is not YAML: expected ',' or ']', but got '<stream end>'", id="open"
        ),
        pytest.param(
            "a: 1\nb:\n  c: 1\n  c: 3",
            ", line 4, column 3: is not YAML: the key c stands in line 3 already",
            id="a key twice",
        ),
        pytest.param("- a", ": must be a map, got a list", id="a list"),
        pytest.param(
            "a: !!python/name:os.system",
            ", line 1, column 4: is not YAML: could not determine a constructor "
            "for the tag 'tag:yaml.org,2002:python/name:os.system'",
            id="a tag that would run code",
        ),
        pytest.param(
            "a: \x01",
            ": is not YAML: unacceptable character #x0001: special characters are not allowed "
            'in "<unicode string>", position 3',
            id="a control character",
        ),
    ],
)
def test_bad_yaml_names_its_place(tmp_path: Path, text: str, problem: str) -> None:
    """What is no YAML, or no map, is refused with file, line and column."""
    path = in_file(tmp_path, text)
    with pytest.raises(SettingsError) as refused:
        load_settings([path], environ={})
    assert str(refused.value) == f"{path}{problem}"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["{k8s: {}}"], ["0.yaml"], id="a section that stands at the top"),
        pytest.param(["{kind: PodTemplate}", "", "{a: b}"], ["0.yaml, 2.yaml"], id="files of something else"),
        pytest.param(["{database: {}}", "{Plugins: {}}"], [], id="a section in one of the platform's files"),
        pytest.param(["# nothing"], [], id="an empty file"),
    ],
)
def test_files_without_plugins_are_told(
    texts: list[str], expected: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where no file says a setting, a warning tells so: else a wrong file would pass for a right one."""
    for index, text in enumerate(texts):
        (tmp_path / f"{index}.yaml").write_text(text)
    load_settings([tmp_path / "*.yaml"])
    end = ": no section is called plugins, so all settings are the defaults; see docs/settings.md"
    assert [message.replace(f"{tmp_path}/", "") for message in caplog.messages] == [text + end for text in expected]


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """A file that is missing, a folder, not UTF-8, or a pattern without a match: all told at once."""
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: \xe9")
    with pytest.raises(SettingsError) as refused:
        load_settings([tmp_path / "no.yaml", tmp_path, latin, tmp_path / "*.yml"], environ={})
    assert [str(problem).removeprefix(str(tmp_path)) for problem in refused.value.problems] == [
        "/*.yml: matches no file; correct the pattern or add a file",
        "/no.yaml: can't be read: No such file or directory; name a file that can be",
        ": can't be read: Is a directory; name a file that can be",
        "/latin.yaml: is not UTF-8 at byte 3; save it as UTF-8",
    ]
