"""What a user runs with `pyflyte run` straight on a cluster: the workflows of test_direct.py."""

import os
import socket
from dataclasses import dataclass
from typing import Any, NamedTuple

import ray
from flytekit import PodTemplate, Resources, map_task, task, workflow
from flytekit.types.file import FlyteFile
from kubernetes.client import V1Container, V1EnvVar, V1PodSpec

from flytekitplugins.kuberay import HeadNodeConfig, RayJobConfig

REQUESTS = Resources(cpu="150m", mem="300Mi")
LIMITS = Resources(cpu="2", mem="2Gi")
CLUSTER = RayJobConfig(head_node_config=HeadNodeConfig(ray_start_params={"num-cpus": "1"}), worker_node_config=[])
NOTE = V1EnvVar(name="NOTE", value="from the template")
TEMPLATE = PodTemplate(V1PodSpec(containers=[V1Container(name="main", env=[NOTE])]), primary_container_name="main")


class UnfitError(Exception):
    """A user's own exception, whose constructor wants more than a text."""

    def __init__(self, what: str, how_much: float) -> None:
        super().__init__(f"{what} is unfit by {how_much}")
        self.what = what


@dataclass
class Place:
    """Where something ran."""

    host: str
    note: str


class Result(NamedTuple):
    """What a Ray task gives, of several types."""

    total: int
    place: Place
    file: FlyteFile  # type: ignore[type-arg]  # of any extension


@ray.remote
def square(x: int) -> int:
    """The square of x."""
    return x * x


@task
def numbers(n: int) -> list[int]:
    """The numbers below n; no Ray task, so it runs in the user's process."""
    assert "RAY_ADDRESS" not in os.environ
    return list(range(n))


@task(task_config=CLUSTER, requests=REQUESTS, limits=LIMITS, pod_template=TEMPLATE)
def total(xs: list[int]) -> Result:
    """The sum of squares, where it was computed, and a file."""
    found = sum(ray.get([square.remote(x) for x in xs]))
    with open("left.txt", "w") as file:
        file.write("from the pod")
    return Result(found, Place(socket.gethostname(), os.environ.get("NOTE", "")), FlyteFile("left.txt"))


@task
def described(total: int, place: Place, file: FlyteFile) -> str:  # type: ignore[type-arg]  # of any extension
    """What the Ray task gave, read in the user's process."""
    with open(file) as content:
        return f"{total} {place.note}, {content.read()}, {'head' in place.host}"


@workflow
def through(n: int = 4) -> str:
    """A Ray task between two others."""
    result: Any = total(xs=numbers(n=n))
    return described(total=result.total, place=result.place, file=result.file)  # type: ignore[return-value]


@task(task_config=CLUSTER, requests=REQUESTS, limits=LIMITS, retries=1)
def unfit(size: float) -> float:
    """The size, where it fits, which it never does: no retry helps."""
    if size < 100:
        raise UnfitError("the size", size)
    return size


@task(task_config=CLUSTER, requests=REQUESTS, limits=LIMITS)
def doubled(x: int) -> int:
    """Twice x."""
    return int(ray.get(square.remote(x)) / x * 2) if x else 0


@workflow
def mapped(xs: list[int] = [3, 5]) -> list[int]:  # noqa: B006  # flytekit's way to a default
    """A Ray cluster for each item."""
    return map_task(doubled)(x=xs)  # type: ignore[no-any-return]
