"""What a user of the plugin writes: the tasks of test_first_run.py, sent to their pods by fast registration."""

import os
import socket
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import ray
from flytekit import Resources, current_context, task
from flytekit.exceptions.user import FlyteRecoverableException
from flytekit.types.directory import FlyteDirectory
from flytekit.types.file import FlyteFile

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


@dataclass
class Point:
    """A place."""

    x: float
    names: list[str]


EVERYTHING: dict[str, Any] = {
    "number": -(2**53),
    "ratio": 0.1,
    "text": "größer\n🚀",
    "flag": True,
    "moment": datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc),
    "length": timedelta(seconds=90),
    "numbers": [3, 1, 2],
    "table": {"a b": 1.5},
    "point": Point(0.5, ["p", ""]),
    "points": [Point(1.0, [])],
    "nothing": None,
}


class Everything(NamedTuple):
    """A value of each kind that users return most."""

    number: int
    ratio: float
    text: str
    flag: bool
    moment: datetime
    length: timedelta
    numbers: list[int]
    table: dict[str, float]
    point: Point
    points: list[Point]
    nothing: int | None
    file: FlyteFile  # type: ignore[type-arg]  # as users write it
    folder: FlyteDirectory  # type: ignore[type-arg]


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


@task(task_config=HEAD_ALONE, requests=REQUESTS, limits=LIMITS)
def everything() -> Everything:
    """A value of each kind, and a file and a folder that it writes."""
    file, folder = Path("out.txt"), Path("out")
    file.write_text("a file of the task's")
    folder.mkdir()
    for index, name in enumerate("ab"):
        (folder / name).write_text(str(index))
    return Everything(**EVERYTHING, file=FlyteFile(str(file)), folder=FlyteDirectory(str(folder)))


@task(task_config=HEAD_ALONE, requests=REQUESTS, limits=LIMITS, retries=1)
def flaky() -> int:
    """The number of its attempt, the first of which does not find its data.

    Raises:
        FlyteRecoverableException: In the first attempt.
    """
    attempt = int(os.environ["FLYTE_ATTEMPT_NUMBER"])
    if attempt == 0:
        raise FlyteRecoverableException("the data is not there yet")
    return attempt


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
