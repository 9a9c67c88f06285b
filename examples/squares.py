"""The sum of squares, computed by a task that runs on Ray: a head and two workers on a cluster, one process here.

Run it here:              pyflyte run examples/squares.py sum_of_squares --n 10
See what a cluster gets:  flyte-kuberay render examples/squares.py
"""

import ray
from flytekit import Resources, task

from flytekitplugins.kuberay import HeadNodeConfig, RayJobConfig, WorkerNodeConfig


@ray.remote
def square(x: int) -> int:
    """The square of x, computed wherever Ray finds room."""
    return x * x


@task(
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(requests=Resources(cpu="1", mem="2Gi")),
        worker_node_config=[WorkerNodeConfig(group_name="squares", replicas=2, requests=Resources(cpu="2", mem="4Gi"))],
    ),
    container_image="registry.example.com/team/ray-task:1.0",  # with ray, flytekit and this package in it
)
def sum_of_squares(n: int = 10) -> int:
    """The sum of the squares below n."""
    return sum(ray.get([square.remote(x) for x in range(n)]))
