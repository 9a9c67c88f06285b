"""What a user of the plugin writes: the task of test_terminal.py, sent to its pods by fast registration."""

import socket
import time

import ray
from flytekit import Resources, task

from flytekitplugins.kuberay import HeadNodeConfig, RayJobConfig, WorkerNodeConfig

config = RayJobConfig(
    head_node_config=HeadNodeConfig(ray_start_params={"num-cpus": "0"}),
    worker_node_config=[WorkerNodeConfig(group_name="w", replicas=1, ray_start_params={"num-cpus": "1"})],
)


@ray.remote
def where() -> str:
    """The name of a worker's pod."""
    return socket.gethostname()


@task(
    task_config=config,
    container_image="local/ray:e2e",
    requests=Resources(cpu="100m", mem="300Mi"),
    limits=Resources(cpu="2", mem="2Gi"),
)
def talks() -> None:
    """Tells each second how far it is, for ever."""
    print(f"on worker {ray.get(where.remote())}", flush=True)
    for number in range(1000):
        print(f"printed {number}", flush=True)
        time.sleep(1)
