"""Ray's token authentication: what a RayJob says so that Ray answers only who has the cluster's token.

KubeRay makes the token, a Secret of the RayCluster's name, and hands it to head, workers and submitter.

Source: KubeRay v1.6.2, controllers/ray/raycluster_controller.go reconcileAuthSecret, common/pod.go configureTokenAuth,
utils/validation.go ValidateRayClusterSpec.
"""

from __future__ import annotations

from ..settings import Settings
from ..wire import Manifest

_FIRST_RAY = "2.52.0"


def build_auth_options(settings: Settings) -> Manifest:
    """The field of a RayCluster's spec that says how the platform wants it; empty where it says nothing."""
    return {"authOptions": {"mode": settings.kuberay.ray_auth}} if settings.kuberay.ray_auth else {}


def has_token_auth(job: Manifest) -> bool:
    """Whether the RayJob's cluster is to ask for a token."""
    return bool((_cluster_of(job).get("authOptions") or {}).get("mode") == "token")


def with_ray_version(job: Manifest) -> Manifest:
    """The RayJob with a version of Ray, where it names none and KubeRay insists on one: for a token, and for metadata.

    Without it KubeRay refuses the one, and never submits the other. Which Ray the image holds is not known here; it is
    the first one that can do both, and KubeRay does not look further.
    """
    cluster = _cluster_of(job)
    is_wanted = has_token_auth(job) or (cluster and job["spec"].get("metadata"))
    if not is_wanted or cluster.get("rayVersion"):
        return job
    return {**job, "spec": {**job["spec"], "rayClusterSpec": {**cluster, "rayVersion": _FIRST_RAY}}}


def _cluster_of(job: Manifest) -> Manifest:
    cluster: Manifest = job["spec"].get("rayClusterSpec") or {}
    return cluster
