"""What users of the plugin write: the tasks of test_auth.py, sent to their pods by fast registration."""

import os
import time
import uuid

import fsspec
import ray
from flytekit import Resources, task

from flytekitplugins.kuberay import HeadNodeConfig, RayJobConfig, WorkerNodeConfig

# The node has two cores, which all pods share: small requests, and limits that do not slow the start of Ray.
REQUESTS = Resources(cpu="100m", mem="300Mi")
LIMITS = Resources(cpu="2", mem="2Gi")
WITH_TOKEN = {"spec": {"rayClusterSpec": {"authOptions": {"mode": "token"}}}}


@task(
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(ray_start_params={"num-cpus": "0"}),
        worker_node_config=[WorkerNodeConfig(group_name="w", replicas=1, ray_start_params={"num-cpus": "1"})],
        ray_job_patch=WITH_TOKEN,
    ),
    requests=REQUESTS,
    limits=LIMITS,
)
def guarded() -> str:
    """What a worker computed, in a cluster that is there long enough to be asked."""
    store = fsspec.filesystem(  # type: ignore[no-untyped-call]  # fsspec ships no types
        "s3",
        endpoint_url=os.environ["FLYTE_AWS_ENDPOINT"],
        key=os.environ["FLYTE_AWS_ACCESS_KEY_ID"],
        secret=os.environ["FLYTE_AWS_SECRET_ACCESS_KEY"],
    )
    store.pipe_file(f"bucket/left/{os.environ['FLYTE_INTERNAL_EXECUTION_ID']}/0/{uuid.uuid4().hex}", b"")
    computed = ray.get(ray.remote(lambda: "computed").remote())
    time.sleep(10)
    return str(computed)
