"""A lost head ends the job: KubeRay is told to make no other, on which the user's code would run again, unasked.

KubeRay 1.5 makes none for any RayJob whose cluster was up once. 1.6 and later make none where an annotation says so,
which they set themselves in SidecarMode alone. 1.4 and older make one always, until the connector looks and deletes
the RayJob.
"""

from __future__ import annotations

from ..wire import Manifest

ANNOTATION = "ray.io/disable-provisioned-head-restart"
"""Read at the RayCluster, which has its RayJob's annotations.

Source: ray-operator/controllers/ray/utils/constant.go DisableProvisionedHeadRestartAnnotationKey.
"""


def with_last_head(job: Manifest) -> Manifest:
    """The RayJob with the annotation, unless Ray's memory outlives the head or the annotation is there."""
    if job["spec"].get("rayClusterSpec", {}).get("gcsFaultToleranceOptions"):
        return job
    metadata = job["metadata"]
    annotations = {ANNOTATION: "true", **(metadata.get("annotations") or {})}
    return {**job, "metadata": {**metadata, "annotations": annotations}}
