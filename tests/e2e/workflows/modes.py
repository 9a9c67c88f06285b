"""What users of the plugin write: the tasks of test_modes.py, sent to their pods by fast registration."""

import os
import subprocess
import sys
import time
import uuid
from typing import Any

import fsspec
import ray
from flytekit import Resources, task

from flytekitplugins.kuberay import HeadNodeConfig, RayJobConfig, WorkerNodeConfig

# The node has two cores, which all pods share: small requests, and limits that do not slow the start of Ray.
REQUESTS = Resources(cpu="100m", mem="300Mi")
LIMITS = Resources(cpu="2", mem="2Gi")
ONE_CPU, NO_CPU = {"num-cpus": "1"}, {"num-cpus": "0"}  # with none at the head, remote functions run on workers
NO_IMAGE = "registry.invalid/nobody/nothing:1"
LATE = 60


def head_alone(**more: Any) -> RayJobConfig:
    """A cluster that is a head only."""
    return RayJobConfig(head_node_config=HeadNodeConfig(ray_start_params=ONE_CPU), worker_node_config=[], **more)


def with_worker(pod_template: Any = None, requests: Any = None, **more: Any) -> RayJobConfig:
    """A cluster of a head that computes nothing, and one worker."""
    worker = WorkerNodeConfig(
        group_name="w", replicas=1, ray_start_params=ONE_CPU, pod_template=pod_template, requests=requests
    )
    return RayJobConfig(head_node_config=HeadNodeConfig(ray_start_params=NO_CPU), worker_node_config=[worker], **more)


def late_worker(**more: Any) -> RayJobConfig:
    """The same with a worker that comes a minute after its head."""
    wait = {
        "name": "data",
        "image": "local/ray:e2e",
        "command": ["sleep", str(LATE)],
        "resources": {"requests": {"cpu": "10m"}},
    }
    return with_worker({"initContainers": [wait], "containers": [{"name": "ray-worker"}]}, **more)


def attempt() -> int:
    """The number of this attempt."""
    return int(os.environ["FLYTE_ATTEMPT_NUMBER"])


def leave(text: str = "") -> None:
    """Writes an object of its own for this attempt, which the test reads."""
    store = fsspec.filesystem(  # type: ignore[no-untyped-call]  # fsspec ships no types
        "s3",
        endpoint_url=os.environ["FLYTE_AWS_ENDPOINT"],
        key=os.environ["FLYTE_AWS_ACCESS_KEY_ID"],
        secret=os.environ["FLYTE_AWS_SECRET_ACCESS_KEY"],
    )
    execution = os.environ["FLYTE_INTERNAL_EXECUTION_ID"]
    store.pipe_file(f"bucket/left/{execution}/{attempt()}/{uuid.uuid4().hex}", text.encode())


def workers() -> int:
    """How many workers have joined the head."""
    return sum(node["Alive"] for node in ray.nodes()) - 1  # type: ignore[no-untyped-call]  # Ray's slip


def until_aborted() -> None:
    """Runs on."""
    while True:
        time.sleep(1)


@task(task_config=with_worker(), requests=REQUESTS, limits=LIMITS)
def steady() -> int:
    """How many workers there are."""
    leave()
    return workers()


@task(task_config=head_alone(), requests=REQUESTS, limits=LIMITS, retries=1)
def raising() -> int:
    """Raises."""
    leave()
    return refused("no luck today")


def refused(text: str) -> int:
    """Raises what a user's own check would.

    Raises:
        ValueError: Always.
    """
    raise ValueError(text)


@task(task_config=with_worker(), requests=REQUESTS, limits=LIMITS, retries=1)
def head_lost() -> int:
    """Its attempt's number; the first attempt needs longer than its head lives."""
    leave()
    time.sleep(0 if attempt() else 300)
    return attempt()


@task(task_config=with_worker(), requests=REQUESTS, limits=LIMITS, retries=1)
def unseen() -> int:
    """The same, called by who asks once a minute."""
    leave()
    time.sleep(0 if attempt() else 300)
    return attempt()


@task(task_config=with_worker(), requests=REQUESTS, limits=LIMITS)
def worker_lost() -> int:
    """How often its remote function began."""

    @ray.remote(num_cpus=1)
    def lasting() -> None:
        leave()
        time.sleep(15)

    ray.get(lasting.remote())
    return 1


@task(task_config=head_alone(), requests=REQUESTS, limits=LIMITS)
def submitter_lost() -> int:
    """Runs for a while."""
    leave()
    time.sleep(40)
    return 1


@task(task_config=head_alone(), requests=REQUESTS, limits=Resources(cpu="2", mem="1200Mi"), retries=1)
def hungry() -> int:
    """Needs more memory than its head has."""
    leave()
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


@task(
    task_config=with_worker({"containers": [{"name": "ray-worker", "image": NO_IMAGE}]}),
    requests=REQUESTS,
    limits=LIMITS,
)
def no_image() -> int:
    """Needs a worker, whose image is nowhere."""
    leave()
    return int(ray.get(ray.remote(lambda: 1).remote()))


@task(
    task_config=with_worker(requests=Resources(cpu="64"), start_deadline=30),
    requests=REQUESTS,
    limits=LIMITS,
)
def no_room() -> int:
    """Needs a worker, and no node has 64 cores."""
    leave()
    return int(ray.get(ray.remote(lambda: 1).remote()))


@task(
    task_config=head_alone(ray_job_patch={"spec": {"suspend": True}}),
    requests=REQUESTS,
    limits=LIMITS,
)
def aborted_queued() -> None:
    """Never runs: nobody admits it."""


@task(task_config=with_worker(requests=Resources(cpu="64")), requests=REQUESTS, limits=LIMITS)
def aborted_waiting() -> None:
    """Waits for a worker that does not come."""
    until_aborted()


@task(task_config=late_worker(), requests=REQUESTS, limits=LIMITS)
def aborted_coming() -> None:
    """Waits for a worker that comes late."""
    until_aborted()


@task(task_config=with_worker(), requests=REQUESTS, limits=LIMITS)
def aborted_running() -> None:
    """Runs until somebody ends it."""
    until_aborted()


@task(task_config=head_alone(), requests=REQUESTS, limits=LIMITS)
def suspended() -> int:
    """Runs for a while."""
    leave()
    time.sleep(20)
    return 1


@task(task_config=head_alone(), requests=REQUESTS, limits=LIMITS)
def unattended() -> int:
    """Runs for a while."""
    leave()
    time.sleep(20)
    return 1


@task(task_config=late_worker(), requests=REQUESTS, limits=LIMITS)
def late() -> int:
    """How many workers there are."""
    leave()
    return workers()


@task(task_config=late_worker(), requests=REQUESTS, limits=LIMITS, retries=1)
def early() -> int:
    """Its attempt's number; its head is lost before the worker is there."""
    leave()
    time.sleep(5)
    return attempt()


@task(task_config=head_alone(), requests=REQUESTS, limits=Resources(cpu="1", mem="2Gi"))
def busy() -> int:
    """Burns what its head has of CPU for most of a minute."""
    leave()
    burn = "import time; end = time.monotonic() + 45\nwhile time.monotonic() < end: pass"
    for each in [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(24)]:
        each.wait()
    return 1
