"""Flyte's keys and their defaults."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from flytekitplugins.kuberay.settings import Settings, parse_settings

from .documents import flat, k8s, ray

UNUSED = (
    "k8s.inject-finalizer",
    "k8s.co-pilot",
    "k8s.delete-resource-on-finalize",
    "k8s.default-pod-template-resync",
    "k8s.send-object-events",
    "k8s.update-base-backoff-duration",
    "k8s.update-backoff-retries",
    "k8s.enable-distributed-error-aggregation",
    "ray.remoteClusterConfig.name",
    "ray.remoteClusterConfig.endpoint",
    "ray.remoteClusterConfig.auth",
)
# Printed by Flyte v1.16.8's own code (the k8s and ray config sections after loading an empty file), its null as the
# empty value of the kind.
FLYTE_DEFAULTS = {
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
    "k8s.add-tolerations-for-extended-resources": (),
    "ray.shutdownAfterJobFinishes": True,
    "ray.ttlSecondsAfterFinished": 3600,
    "ray.serviceType": "NodePort",
    "ray.enableIngress": False,
    "ray.includeDashboard": True,
    "ray.dashboardHost": "0.0.0.0",
    "ray.nodeIPAddress": "",
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


def test_defaults_are_those_of_flyte() -> None:
    """Every key of Flyte's two sections is there, with Flyte's default but for the head's Service (D25), or unused."""
    settings = parse_settings({})
    assert {**dict(flat(settings.k8s, "k8s")), **dict(flat(settings.ray, "ray"))} == {
        **dict.fromkeys(UNUSED),
        **FLYTE_DEFAULTS,
        "ray.serviceType": "ClusterIP",
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


@pytest.mark.parametrize("path", UNUSED)
def test_what_is_not_used_takes_any_value(path: str) -> None:
    """A setting without a use for Ray tasks stops no connector; its default is nobody's business."""
    section, *keys = path.split(".")
    value: Any = [{"any": 1}]
    for key in reversed(keys):
        value = {key: value}
    read = parse_settings({"plugins": {section: value}})
    assert {**dict(flat(read.k8s, "k8s")), **dict(flat(read.ray, "ray"))}[path] == [{"any": 1}]
