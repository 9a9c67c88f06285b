"""What users of the plugin write: the tasks of test_ends.py, sent to their pods by fast registration."""

import os
from typing import Any

from flytekit import Resources, task

from flytekitplugins.kuberay import HeadNodeConfig, RayJobConfig, WorkerNodeConfig

# The node has two cores, which all pods share: small requests, and limits that do not slow the start of Ray.
REQUESTS = Resources(cpu="100m", mem="300Mi")
LIMITS = Resources(cpu="2", mem="2Gi")
ONE_CPU, NO_CPU = {"num-cpus": "1"}, {"num-cpus": "0"}  # with none at the head, remote functions run on workers
LONG_HEAD = HeadNodeConfig(ray_start_params=ONE_CPU)
NO_IMAGE = "registry.invalid/nobody/nothing:1"
TOKEN = "s3cr3t-of-nobody-else"


def head_alone(**more: Any) -> RayJobConfig:
    """A cluster that is a head only."""
    return RayJobConfig(head_node_config=LONG_HEAD, worker_node_config=[], **more)


def with_worker(worker: WorkerNodeConfig, **more: Any) -> RayJobConfig:
    """A cluster of a head that computes nothing, and one group."""
    return RayJobConfig(head_node_config=HeadNodeConfig(ray_start_params=NO_CPU), worker_node_config=[worker], **more)


@task(task_config=head_alone(), requests=REQUESTS, limits=LIMITS)
def odd() -> None:
    """Never runs: its container gets other arguments."""


@task(
    task_config=with_worker(
        WorkerNodeConfig(
            group_name="w", replicas=1, pod_template={"containers": [{"name": "ray-worker", "image": NO_IMAGE}]}
        )
    ),
    requests=REQUESTS,
    limits=LIMITS,
)
def no_image() -> None:
    """Never runs: its worker's image is nowhere."""


@task(
    task_config=with_worker(
        WorkerNodeConfig(group_name="big", replicas=1, requests=Resources(cpu="64")), start_deadline=15
    ),
    requests=REQUESTS,
    limits=LIMITS,
)
def no_room() -> None:
    """Never runs: no node has 64 cores."""


@task(
    task_config=with_worker(WorkerNodeConfig(group_name="big", replicas=1, requests=Resources(cpu="64"))),
    requests=REQUESTS,
    limits=LIMITS,
)
def aborted_early() -> None:
    """Never runs: somebody ends it while it waits."""


@task(
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(
            ray_start_params=ONE_CPU,
            pod_template={
                "containers": [
                    {
                        "name": "ray-head",
                        "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "nowhere", "key": "x"}}}],
                    }
                ]
            },
        ),
        worker_node_config=[],
    ),
    requests=REQUESTS,
    limits=LIMITS,
    retries=1,
)
def no_config_map() -> None:
    """Never runs: a ConfigMap that it needs is not there."""


@task(task_config=head_alone(shutdown_after_job_finishes=False), requests=REQUESTS, limits=LIMITS)
def kept() -> None:
    """Ends well."""


@task(task_config=head_alone(ttl_seconds_after_finished=0), requests=REQUESTS, limits=LIMITS)
def gone_at_once() -> None:
    """Ends well."""


@task(task_config=head_alone(ttl_seconds_after_finished=5), requests=REQUESTS, limits=LIMITS)
def gone_soon() -> None:
    """Ends well."""


@task(task_config=head_alone(), requests=REQUESTS, limits=LIMITS, environment={"API_TOKEN": TOKEN})
def talkative() -> int:
    """Prints its token, and fails with it."""
    print("the token is", os.environ["API_TOKEN"], "and this is the last line", flush=True)
    return refused(os.environ["API_TOKEN"])


def refused(token: str) -> int:
    """Raises what a service that refuses a token might.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"refused with {token}")
