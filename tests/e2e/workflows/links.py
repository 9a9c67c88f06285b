"""What a user of the plugin writes: the task of test_links.py."""

import time

from flytekit import Resources, task

from flytekitplugins.kuberay import RayJobConfig, WorkerNodeConfig

SAID = "said by the driver"


@task(
    task_config=RayJobConfig(worker_node_config=[WorkerNodeConfig(group_name="small", replicas=1)]),
    requests=Resources(cpu="150m", mem="300Mi"),
    limits=Resources(cpu="2", mem="2Gi"),
)
def waits() -> int:
    """A number, after a while in which somebody looks."""
    print(SAID, flush=True)
    time.sleep(15)
    return 1
