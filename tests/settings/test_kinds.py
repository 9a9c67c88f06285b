"""What a value may be, as Flyte reads it, and every refusal."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from flytekitplugins.kuberay.settings import TemplateLogPlugin, parse_settings

from .documents import k8s, kuberay, problems_of, ray, setting_of


@pytest.mark.parametrize(
    ("data", "attribute", "got"),
    [
        pytest.param(k8s(default_cpus=2), "k8s.default_cpus", "2", id="a quantity as a number"),
        pytest.param(k8s(default_memory="1.5Gi"), "k8s.default_memory", "1.5Gi", id="a quantity as text"),
        pytest.param(ray(includeDashboard="false"), "ray.include_dashboard", False, id="a switch as text"),
        pytest.param(ray(ttlSecondsAfterFinished="7"), "ray.ttl_seconds_after_finished", 7, id="a number as text"),
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
            ray(remoteClusterConfig={"enabled": True}),
            "ray.remote_cluster_config.enabled",
            True,
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
            kuberay(max_keep_seconds=None), "kuberay.max_keep_seconds", None, id="null keeps clusters for ever"
        ),
        pytest.param(kuberay(start_deadline="1h30m"), "kuberay.start_deadline", timedelta(minutes=90), id="a deadline"),
        pytest.param(
            kuberay(keep_finished=0), "kuberay.keep_finished", timedelta(0), id="a duration of 0 needs no unit"
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
    assert setting_of(data, attribute) == got
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
            ray(includeDashboard="yes"),
            "plugins.ray.includeDashboard",
            "must be true or false, got 'yes'",
            id="no switch",
        ),
        pytest.param(
            ray(ttlSecondsAfterFinished=1.5),
            "plugins.ray.ttlSecondsAfterFinished",
            "must be a whole number from 0 to 2147483647, got 1.5",
            id="a fraction",
        ),
        pytest.param(
            ray(ttlSecondsAfterFinished=True),
            "plugins.ray.ttlSecondsAfterFinished",
            "must be a whole number from 0 to 2147483647, got true",
            id="a switch for a number",
        ),
        pytest.param(
            ray(ttlSecondsAfterFinished="9" * 5000),
            "plugins.ray.ttlSecondsAfterFinished",
            f"must be a whole number from 0 to 2147483647, got '{'9' * 56}...",
            id="a number too long for Python",
        ),
        pytest.param(
            ray(logs={"templates": [{"messageFormat": 3}]}),
            "plugins.ray.logs.templates[0].messageFormat",
            "must be a whole number from 0 to 2, got 3",
            id="a format that there is not",
        ),
        pytest.param(
            kuberay(log_tail_bytes=0),
            "plugins.kuberay.log-tail-bytes",
            "must be a whole number from 1 to 2147483647, got 0",
            id="no bytes of a log",
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
            k8s(pod_pending_timeout="-+1s"),
            "plugins.k8s.pod-pending-timeout",
            "must be a duration, got '-+1s'; write it with units, as 90s, 3m or 1h30m",
            id="a duration with two signs",
        ),
        pytest.param(
            k8s(pod_pending_timeout="3000000h"),
            "plugins.k8s.pod-pending-timeout",
            "must be a duration, got '3000000h'; write it with units, as 90s, 3m or 1h30m",
            id="a duration too long for Go",
        ),
        pytest.param(
            kuberay(run_deadline=5),
            "plugins.kuberay.run-deadline",
            "must be a duration, got 5; write it with units, as 90s, 3m or 1h30m",
            id="a bare number for a duration of ours",
        ),
        pytest.param(
            kuberay(run_deadline="-5s"),
            "plugins.kuberay.run-deadline",
            "must be a duration, got '-5s'; write it with units, as 90s, 3m or 1h30m",
            id="a negative duration of ours",
        ),
        pytest.param(
            kuberay(api_timeout=0),
            "plugins.kuberay.api-timeout",
            "must be a duration of 1s or more, got 0; write it with units, as 90s, 3m or 1h30m",
            id="no time for a call",
        ),
        pytest.param(
            k8s(scheduler_name={"a": 1}), "plugins.k8s.scheduler-name", "must be a text, got a map", id="no text"
        ),
        pytest.param(
            k8s(default_env_from_secrets={"a": 1}),
            "plugins.k8s.default-env-from-secrets",
            "must be a list of names, got a map",
            id="no list of texts",
        ),
        pytest.param(
            k8s(default_env_from_secrets=0),
            "plugins.k8s.default-env-from-secrets",
            "must be a list of names, got 0",
            id="0 for a list of texts",
        ),
        pytest.param(
            k8s(default_env_from_secrets=["a", []]),
            "plugins.k8s.default-env-from-secrets[1]",
            "must be the name of an object, got a list; use lower-case letters, digits, '-' and '.', at most 253",
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
            ray(logs={"templates": [{"templateUris": [{}]}]}),
            "plugins.ray.logs.templates[0].templateUris[0]",
            "must be a text, got a map",
            id="within a log link",
        ),
        pytest.param(
            kuberay(ray_job_patch="x"), "plugins.kuberay.ray-job-patch", "must be a map, got 'x'", id="no patch"
        ),
        pytest.param(
            kuberay(ray_job_patch={"suspend": True}),
            "plugins.kuberay.ray-job-patch.suspend",
            'is no field of a RayJob; write it under "spec"',
            id="a patch of what no RayJob has",
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
