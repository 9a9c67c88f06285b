"""The quick health probes of a Ray container: a cluster counts as up half a second after it is.

KubeRay's own readiness probe looks for the first time after 10 s and then every 5 s, and a job waits for it twice: for
the head and for the slowest worker. Ours asks the same of the same ports, but waits within one look until all is well,
for up to 20 s. So a Ray that comes up is seen at once, while one that is up costs a short shell every 5 s, as often as
KubeRay's.

KubeRay's probes call `wget`. In an image without it none of its pods is ever ready; with our readiness probe alone they
would be, and its liveness probe would end each container after ten minutes. So ours are two: the liveness probe asks as
the readiness probe does, as often and as patiently as KubeRay's. KubeRay leaves probes that are there alone.

Source: KubeRay v1.6.2, ray-operator/controllers/ray/common/pod.go, initLivenessAndReadinessProbe; from 1.3 on it asks
the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..settings import Settings
from ..wire import Manifest

_Check = tuple[str, int, str]
"""The start parameter that sets a port, the port without it, and the path that answers `success`."""

_RAYLET: _Check = ("dashboard-agent-listen-port", 52365, "api/local_raylet_healthz")
_GCS: _Check = ("dashboard-port", 8265, "api/gcs_healthz")

_HEALTHY = """\
healthy() {
  local answer
  { printf 'GET /%s HTTP/1.0\\r\\n\\r\\n' "$2" >&3; read -rd '' -t 5 answer <&3; } 3<>"/dev/tcp/localhost/$1"
  [[ $answer == *success* ]]
}
"""
"""Bash alone, which KubeRay needs in the image anyway. Kubernetes would replace `$(NAME)`, so there is none."""

_AT_ONCE = "{ CHECKS; } 2>/dev/null\n"
_IN_TIME = """\
until CHECKS; do
  ((SECONDS < 20)) || exit 1
  sleep 0.5
done 2>/dev/null
"""

_PROBES: dict[str, tuple[str, Manifest]] = {
    # A look that fails has lasted 20 s: three of them are no less patient than KubeRay's ten of 5 s.
    "readinessProbe": (_IN_TIME, {"timeoutSeconds": 30, "periodSeconds": 5, "failureThreshold": 3}),
    # As KubeRay's, whose look at a worker may take 2 s alone.
    "livenessProbe": (
        _AT_ONCE,
        {"initialDelaySeconds": 30, "timeoutSeconds": 5, "periodSeconds": 5, "failureThreshold": 120},
    ),
}
"""By field of a container, how it asks and when."""


def with_probes_chosen(settings: Settings) -> Settings:
    """The settings with the quick probes where they leave the choice to the connector."""
    own = settings.kuberay
    return replace(settings, kuberay=replace(own, health_probes=own.health_probes or "quick"))


def with_quick_probes(job: Manifest) -> Manifest:
    """The RayJob with the probes on each Ray container, those that it has not.

    What a patch of the user's has made no group or container is left to the API server, which tells.
    """
    match job:
        case {"spec": {"rayClusterSpec": dict() as cluster}}:
            groups = {key: _with_probes(key, value) for key, value in cluster.items()}
            return {**job, "spec": {**job["spec"], "rayClusterSpec": groups}}
    return job


def _with_probes(key: str, value: Any) -> Any:
    """A field of the RayCluster's spec, with the probes where it is a group or the list of them."""
    if key == "headGroupSpec":
        return _with_group_probes(value, (_RAYLET, _GCS))
    if key == "workerGroupSpecs" and isinstance(value, list):
        return [_with_group_probes(group, (_RAYLET,)) for group in value]
    return value


def _with_group_probes(group: Any, checks: tuple[_Check, ...]) -> Any:
    """The group with the probes on container 0, which KubeRay takes for Ray's."""
    match group:
        case {"template": {"spec": {"containers": [dict() as ray, *others]} as spec} as template}:
            ray = {**_probes(group.get("rayStartParams"), checks), **ray}
            return {**group, "template": {**template, "spec": {**spec, "containers": [ray, *others]}}}
    return group


def _probes(params: Any, checks: tuple[_Check, ...]) -> Manifest:
    healthy = " && ".join(f"healthy {_port(params, name, default)} {path}" for name, default, path in checks)
    return {
        field: {"exec": {"command": ["bash", "-c", _HEALTHY + script.replace("CHECKS", healthy)]}, **times}
        for field, (script, times) in _PROBES.items()
    }


def _port(params: Any, name: str, default: int) -> int:
    """The port of a start parameter; as for KubeRay, what is no number says nothing."""
    text = str(params.get(name)) if isinstance(params, dict) else ""
    return int(text) if text.isascii() and text.isdecimal() else default
