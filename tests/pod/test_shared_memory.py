"""The task's shared memory: flytekit's volume in the primary container, and what must not stand beside it."""

from __future__ import annotations

from typing import Any

import pytest

from flytekitplugins.kuberay.pod.shared_memory import (
    shared_memory_conflicts,
    shared_memory_of,
    shared_memory_problems,
    with_shared_memory,
)
from flytekitplugins.kuberay.wire import FlyteTask, Manifest
from tests.pod.samples import container_task

MOUNT = {"name": "shm", "mountPath": "/dev/shm"}
VOLUME = {"name": "shm", "emptyDir": {"medium": "Memory"}}
PLAIN = {"containers": [{"name": "primary"}, {"name": "sidecar"}]}
DONE = {"containers": [{"name": "primary", "volumeMounts": [MOUNT]}, {"name": "sidecar"}], "volumes": [VOLUME]}


def sharing(**fields: Any) -> FlyteTask:
    """A task that asks for shared memory as flytekit's `shared_memory=True` does."""
    memory = {"mountName": "shm", "mountPath": "/dev/shm", **fields}
    return container_task(extendedResources={"sharedMemory": memory})


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param(container_task(), None, id="none asked for"),
        pytest.param(sharing(), (VOLUME, MOUNT), id="without a limit"),
        pytest.param(
            sharing(sizeLimit="2Gi"),
            ({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}, MOUNT),
            id="with a limit",
        ),
    ],
)
def test_shared_memory_of(task: FlyteTask, expected: Any) -> None:
    """A volume in memory and its mount."""
    assert shared_memory_of(task) == expected


@pytest.mark.parametrize(
    ("task", "spec", "expected"),
    [
        pytest.param(container_task(), PLAIN, PLAIN, id="none asked for, nothing changes"),
        pytest.param(sharing(), PLAIN, DONE, id="the primary container mounts it, sidecars don't"),
        pytest.param(sharing(), DONE, DONE, id="a pod that has it gets it once"),
    ],
)
def test_with_shared_memory(task: FlyteTask, spec: Manifest, expected: Manifest) -> None:
    """The pod gets the volume, its primary container the mount."""
    assert with_shared_memory(spec, task, "primary") == expected


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param(container_task(), [], id="none asked for"),
        pytest.param(sharing(sizeLimit="1.5Gi"), [], id="a valid one"),
        pytest.param(
            sharing(mountName="", mountPath="", sizeLimit="lots"),
            [
                "extendedResources.sharedMemory.mountName: is not set; use flytekit's shared_memory=",
                "extendedResources.sharedMemory.mountPath: is not set; use flytekit's shared_memory=",
                "extendedResources.sharedMemory.sizeLimit: 'lots' is no Kubernetes quantity; write 2Gi, for instance",
            ],
            id="all that is wrong at once",
        ),
    ],
)
def test_shared_memory_problems(task: FlyteTask, expected: list[str]) -> None:
    """What is wrong with the shared memory that a task asks for."""
    assert [str(problem) for problem in shared_memory_problems(task)] == expected


SOURCE = "as the task's shared memory (extendedResources.sharedMemory, /dev/shm) does"


def pod(*mounts: Manifest, volumes: list[Manifest]) -> Manifest:
    """A pod whose primary container has these mounts."""
    return {"containers": [{"name": "primary", "volumeMounts": list(mounts)}], "volumes": volumes}


@pytest.mark.parametrize(
    ("task", "spec", "expected"),
    [
        pytest.param(sharing(), DONE, [], id="the same volume and mount are no conflict"),
        pytest.param(
            sharing(),
            pod(MOUNT, volumes=[{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "0"}}]),
            [],
            id="a size limit of 0 is none, as Flyte's Go code writes it",
        ),
        pytest.param(
            container_task(), pod({"name": "x", "mountPath": "/dev/shm"}, volumes=[]), [], id="none asked for"
        ),
        pytest.param(
            sharing(),
            pod({"name": "other", "mountPath": "/dev/shm"}, volumes=[]),
            [
                "head: container 'primary' mounts 'other' at '/dev/shm': uses the path or the volume "
                f"{SOURCE}; drop that mount, or shared_memory="
            ],
            id="D13 the path is mounted otherwise",
        ),
        pytest.param(
            sharing(),
            pod({"name": "shm", "mountPath": "/mem"}, volumes=[]),
            [
                "head: container 'primary' mounts 'shm' at '/mem': uses the path or the volume "
                f"{SOURCE}; drop that mount, or shared_memory="
            ],
            id="D13 the volume is mounted elsewhere",
        ),
        pytest.param(
            sharing(),
            pod(MOUNT, volumes=[{"name": "shm", "hostPath": {"path": "/x"}}]),
            [f"head: volume 'shm': has the name of shared memory's volume, {SOURCE}; rename it"],
            id="D13 the volume's name is another one's",
        ),
        pytest.param(
            sharing(sizeLimit="1Gi"),
            pod(MOUNT, volumes=[{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}]),
            [f"head: volume 'shm': has the name of shared memory's volume, {SOURCE}; rename it"],
            id="D13 the volume has another size",
        ),
    ],
)
def test_shared_memory_conflicts(task: FlyteTask, spec: Manifest, expected: list[str]) -> None:
    """A conflict names both sources and the field."""
    assert [str(problem) for problem in shared_memory_conflicts(spec, task, "primary", "head")] == expected
