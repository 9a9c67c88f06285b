"""What users of the plugin write: the tasks of test_ends.py, sent to their pods by fast registration."""

import os
import time
import uuid
from typing import Any

import ray
import fsspec
from flytekit import PodTemplate, Resources, task
from kubernetes.client import V1Container, V1EnvVar, V1PodSpec

from flytekitplugins.kuberay import HeadNodeConfig, RayJobConfig, WorkerNodeConfig

# The node has two cores, which all pods share: small requests, and limits that do not slow the start of Ray.
REQUESTS = Resources(cpu="100m", mem="300Mi")
LIMITS = Resources(cpu="2", mem="2Gi")
ONE_CPU, NO_CPU = {"num-cpus": "1"}, {"num-cpus": "0"}  # with none at the head, remote functions run on workers
LONG_HEAD = HeadNodeConfig(ray_start_params=ONE_CPU)
RED, BLUE = ({**ONE_CPU, "resources": f'"{{\\"{colour}\\": 1}}"'} for colour in ("red", "blue"))
NO_IMAGE = "registry.invalid/nobody/nothing:1"
TOKEN = "s3cr3t-of-nobody-else"


def head_alone(**more: Any) -> RayJobConfig:
    """A cluster that is a head only."""
    return RayJobConfig(head_node_config=LONG_HEAD, worker_node_config=[], **more)


def with_worker(worker: WorkerNodeConfig, **more: Any) -> RayJobConfig:
    """A cluster of a head that computes nothing, and one group."""
    return RayJobConfig(head_node_config=HeadNodeConfig(ray_start_params=NO_CPU), worker_node_config=[worker], **more)


def leave(where: str, text: str = "") -> None:
    """Writes an object of its own below the place, which the test reads."""
    store = fsspec.filesystem(  # type: ignore[no-untyped-call]  # fsspec ships no types
        "s3",
        endpoint_url=os.environ["FLYTE_AWS_ENDPOINT"],
        key=os.environ["FLYTE_AWS_ACCESS_KEY_ID"],
        secret=os.environ["FLYTE_AWS_SECRET_ACCESS_KEY"],
    )
    store.pipe_file(f"bucket/left/{where}/{uuid.uuid4().hex}", text.encode())


@task(task_config=head_alone(submission_mode="K8sJobMode"), requests=REQUESTS, limits=LIMITS)
def odd_by_submitter() -> None:
    """Never runs: its container gets other arguments."""


@task(task_config=head_alone(submission_mode="HTTPMode"), requests=REQUESTS, limits=LIMITS)
def odd_by_http() -> None:
    """Never runs: its container gets other arguments."""


@task(task_config=head_alone(submission_mode="SidecarMode"), requests=REQUESTS, limits=LIMITS)
def odd_by_sidecar() -> None:
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


@task(task_config=head_alone(), requests=REQUESTS, limits=LIMITS, retries=1)
def head_lost() -> int:
    """Its attempt's number; the first attempt needs longer than its head lives."""
    attempt = int(os.environ["FLYTE_ATTEMPT_NUMBER"])
    leave(f"head_lost/{attempt}")
    time.sleep(0 if attempt else 300)
    return attempt


@task(task_config=head_alone(), requests=REQUESTS, limits=Resources(cpu="2", mem="1200Mi"), retries=1)
def hungry() -> int:
    """Needs more memory than its head has."""
    return len(bytearray(b"x") * 4 * 1024**3)


@task(task_config=head_alone(), requests=REQUESTS, limits=Resources(cpu="2", mem="1200Mi"), retries=1)
def hungry_function() -> int:
    """Needs more memory than its head has, in a remote function and little by little."""

    @ray.remote(max_retries=0)
    def allocate() -> int:
        held = []
        for _ in range(80):
            held.append(bytearray(b"x") * 50 * 1024**2)
            time.sleep(0.2)
        return len(held)

    return int(ray.get(allocate.remote()))


@task(task_config=head_alone(shutdown_after_job_finishes=False), requests=REQUESTS, limits=LIMITS)
def kept() -> None:
    """Ends well."""


@task(task_config=head_alone(ttl_seconds_after_finished=0), requests=REQUESTS, limits=LIMITS)
def gone_at_once() -> None:
    """Ends well."""


@task(task_config=head_alone(ttl_seconds_after_finished=5), requests=REQUESTS, limits=LIMITS)
def gone_soon() -> None:
    """Ends well."""


WRITER = {
    "name": "writer",
    "image": "local/ray:e2e",
    "command": ["bash", "-c", "echo from the sidecar > /shared/note; sleep infinity"],
    "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
    "resources": {"requests": {"cpu": "10m"}},
}


@task(
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(
            ray_start_params=NO_CPU,
            pod_template={
                "volumes": [{"name": "shared", "emptyDir": {}}],
                "containers": [
                    {"name": "ray-head", "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]},
                    WRITER,
                ],
            },
        ),
        worker_node_config=[
            WorkerNodeConfig(
                group_name="w",
                replicas=1,
                ray_start_params=ONE_CPU,
                requests=Resources(cpu="120m", mem="310Mi"),
                limits=Resources(cpu="2", mem="2Gi"),
                pod_template=PodTemplate(
                    pod_spec=V1PodSpec(
                        containers=[V1Container(name="main", env=[V1EnvVar(name="FROM", value="main")])]
                    ),
                    primary_container_name="main",
                ),
            )
        ],
    ),
    requests=REQUESTS,
    limits=LIMITS,
    pod_template=PodTemplate(
        pod_spec=V1PodSpec(service_account_name="trainer", containers=[]), labels={"team": "vision"}
    ),
)
def templates() -> list[str]:
    """What the head's sidecar wrote, and a variable of the worker."""
    deadline = time.monotonic() + 20
    while not os.path.exists("/shared/note") and time.monotonic() < deadline:
        time.sleep(0.5)
    with open("/shared/note") as note:
        found = note.read().strip()
    variable = ray.get(ray.remote(lambda: os.environ.get("FROM", "nothing")).remote())
    time.sleep(5)  # the test looks at the pods
    return [found, variable]


@task(
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(ray_start_params=NO_CPU),
        worker_node_config=[
            WorkerNodeConfig(
                group_name="red",
                replicas=0,
                max_replicas=1,
                ray_start_params=RED,
            ),
            WorkerNodeConfig(
                group_name="blue",
                replicas=0,
                max_replicas=1,
                ray_start_params=BLUE,
            ),
        ],
        enable_autoscaling=True,
    ),
    requests=REQUESTS,
    limits=LIMITS,
)
def scaled() -> list[str]:
    """The colours of the groups that came for it."""

    @ray.remote(num_cpus=1)
    def colour(name: str) -> str:
        return name

    return list(ray.get([colour.options(resources={each: 1}).remote(each) for each in ("red", "blue")]))


@task(
    task_config=with_worker(WorkerNodeConfig(group_name="w", replicas=1, ray_start_params=ONE_CPU)),
    requests=REQUESTS,
    limits=LIMITS,
)
def worker_lost() -> int:
    """How often its remote function began."""

    @ray.remote(num_cpus=1)
    def lasting() -> None:
        leave("worker_lost")
        time.sleep(15)

    ray.get(lasting.remote())
    return 1


@task(task_config=head_alone(), requests=REQUESTS, limits=LIMITS)
def submitter_lost() -> int:
    """Runs for a while."""
    leave("submitter_lost")
    time.sleep(25)
    return 1


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
