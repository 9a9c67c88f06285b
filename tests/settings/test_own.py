"""This package's own keys and their defaults."""

from __future__ import annotations

from datetime import timedelta


from flytekitplugins.kuberay.settings import parse_settings

from .documents import flat


def test_own_defaults() -> None:
    """The defaults of `plugins.kuberay`; the submitter's resources are KubeRay v1.6.2's own."""
    assert dict(flat(parse_settings({}).kuberay, "kuberay")) == {
        "kuberay.submission-mode": "K8sJobMode",
        "kuberay.health-probes": None,
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
