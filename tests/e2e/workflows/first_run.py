"""What a user of the plugin writes: the tasks of test_first_run.py, sent to their pods by fast registration."""

import socket
import time
from typing import NamedTuple

import ray
from flytekit import Resources, current_context, task

from flytekitplugins.kuberay import HeadNodeConfig, RayJobConfig, WorkerNodeConfig

# The node has two cores, which all pods share: small requests, and limits that do not slow the start of Ray.
REQUESTS = Resources(cpu="150m", mem="300Mi")
LIMITS = Resources(cpu="2", mem="2Gi")

WITH_WORKER = RayJobConfig(
    head_node_config=HeadNodeConfig(ray_start_params={"num-cpus": "0"}),  # so that remote functions run on the worker
    worker_node_config=[WorkerNodeConfig(group_name="small", replicas=1, ray_start_params={"num-cpus": "1"})],
)
HEAD_ALONE = RayJobConfig(head_node_config=HeadNodeConfig(ray_start_params={"num-cpus": "1"}), worker_node_config=[])
COMPLAINT = "learning rate {} is not \"positive\";\n$HOME and 'größer' stay as they are"


class Squares(NamedTuple):
    """Squares, and where they came from."""

    squares: list[int]
    computed_on: list[str]
    task_class: str


@ray.remote
def square(x: int) -> tuple[int, str]:
    """The square of x, and the name of the pod that computed it."""
    return x * x, socket.gethostname()


@task(task_config=WITH_WORKER, requests=REQUESTS, limits=LIMITS)
def squares(n: int) -> Squares:
    """The squares below n, computed by a worker."""
    found = ray.get([square.remote(x) for x in range(n)])
    kind = type(squares)
    return Squares([x for x, _ in found], sorted({pod for _, pod in found}), f"{kind.__module__}.{kind.__qualname__}")


@task(task_config=HEAD_ALONE, requests=REQUESTS, limits=LIMITS, retries=2)
def training(rate: float) -> float:
    """Nothing ever: no rate is good enough."""
    return checked(rate)


def checked(rate: float) -> float:
    """Raises what a user's own check would.

    Raises:
        ValueError: Always; two lines, with characters that a shell would read.
    """
    raise ValueError(COMPLAINT.format(rate))


@task(task_config=HEAD_ALONE, requests=REQUESTS, limits=LIMITS, retries=2)
def report(rate: float) -> None:
    """Raises, in a task without outputs."""
    raise ValueError(f"no report for {rate} in {current_context().execution_id.name}")


@task(task_config=HEAD_ALONE, requests=REQUESTS, limits=LIMITS)
def endless() -> None:
    """Runs until somebody ends it."""
    while True:
        time.sleep(1)
