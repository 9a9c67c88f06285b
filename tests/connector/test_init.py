"""The connector as flytekit's service calls it: bad requests, and a connector that can't work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import grpc
import pytest
from flyteidl.admin.agent_pb2 import CreateTaskRequest
from flyteidl.core.execution_pb2 import TaskExecution
from flytekit.models.task import TaskTemplate

from flytekitplugins.kuberay.connector import RayConnector
from flytekitplugins.kuberay.connector.metadata import JobMetadata
from flytekitplugins.kuberay.connector.service import RayJobService
from flytekitplugins.kuberay.errors import KubeRayError

from .samples import GROUP, flyte_task
from .seam import Seam
from .serving import Caller, service_over, serving

FRAMES = 1500  # bytes that flytekit's own words, frames and file names take in an error
INSTALLED_IN_PART = """
import asyncio, sys
sys.modules["kubernetes.aio"] = None  # as where kubernetes is older than 37
from flytekitplugins.kuberay.connector import RayConnector
from flytekitplugins.kuberay.connector.metadata import JobMetadata
from flytekitplugins.kuberay.errors import KubeRayError
metadata = JobMetadata("p-d", "f0-n0-0-0a1b2c3d", "4f0c", "/nowhere/0", has_outputs=True)

async def main():
    connector = RayConnector()
    for call in connector.create(None, "/nowhere/0"), connector.delete(metadata):
        try:
            await call
        except KubeRayError as error:
            print(error)
    print((await connector.get(metadata)).message)
    print(*(await connector.get_logs(metadata)).body.results)

asyncio.run(main())
"""
METADATA = JobMetadata("p-d", "f0-n0-0-0a1b2c3d", "4f0c", "/nowhere/0", has_outputs=True)


def request() -> CreateTaskRequest:
    """One that would do."""
    task = flyte_task("p-d")
    return CreateTaskRequest(
        template=task.template, output_prefix=task.output_prefix, task_execution_metadata=task.execution
    )


def without(field: str) -> Callable[[CreateTaskRequest], None]:
    """Takes a field out of a request."""
    return lambda request: request.ClearField(field)


def without_custom(request: CreateTaskRequest) -> None:
    """As another plugin's task of the same type."""
    request.template.ClearField("custom")


def with_empty_metadata(request: CreateTaskRequest) -> None:
    """As a caller that has none to tell."""
    request.task_execution_metadata.Clear()


def with_nothing_of_its_execution(request: CreateTaskRequest) -> None:
    """As flytekit's own local runs of connector tasks."""
    request.ClearField("task_execution_metadata")
    request.ClearField("output_prefix")


def with_a_thousand_faults(request: CreateTaskRequest) -> None:
    """A thousand worker groups with a name that no group may have."""
    groups = [{**GROUP, "groupName": f"Not_{number}"} for number in range(1000)]
    request.template.custom.update({"rayCluster": {"workerGroupSpec": groups}})


def with_a_long_word(request: CreateTaskRequest) -> None:
    """A megabyte without a space, where a name should be."""
    request.template.custom.update({"rayCluster": {"workerGroupSpec": [{**GROUP, "groupName": "x" * 2**20}]}})


def with_a_version_to_come(request: CreateTaskRequest) -> None:
    """What only a newer release understands."""
    request.template.config["kuberay"] = '{"version": 99}'


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        pytest.param(
            without("task_execution_metadata"),
            "the request has no task_execution_metadata.namespace, which propeller always sends;",
            id="no metadata",
        ),
        pytest.param(with_empty_metadata, "has no task_execution_metadata.namespace, which", id="empty metadata"),
        pytest.param(without("output_prefix"), "the request has no output_prefix, which", id="no output prefix"),
        pytest.param(
            with_nothing_of_its_execution,
            "has no task_execution_metadata.namespace and no output_prefix, which propeller always sends;"
            " `pyflyte run` is for tasks without a Flyte backend",
            id="neither",
        ),
        pytest.param(without_custom, "custom: ", id="a template without custom"),
        pytest.param(with_a_thousand_faults, "1000 problems:", id="a thousand faults"),
        pytest.param(with_a_long_word, "custom.rayCluster.workerGroupSpec[0].groupName", id="a long word"),
        pytest.param(with_a_version_to_come, "99", id="extras of a newer release"),
        pytest.param(without("template"), "Cannot find connector for task type", id="no template"),
    ],
)
async def test_a_bad_request_gets_a_short_answer(
    seam: Seam, spoil: Callable[[CreateTaskRequest], None], expected: str
) -> None:
    """Long words in an error's text would hold up all other tasks, for flytekit formats it for its log."""
    spoilt = request()
    spoil(spoilt)
    async with serving(service_over(seam)) as caller:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await caller.send_create(spoilt)
    text = caught.value.details() or ""
    assert expected in text
    assert len(text.encode()) < 2 * 2000 + FRAMES
    assert seam.calls == []


async def test_garbage_for_metadata_is_refused(caller: Caller) -> None:
    """In one sentence, by get and by delete."""
    for call in (caller.get, caller.delete):
        with pytest.raises(grpc.aio.AioRpcError, match="was not made by flytekitplugins-kuberay"):
            await call(b"{]")


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RayConnector:
    """A connector whose settings can't be used."""
    (tmp_path / "settings.yaml").write_text("plugins: {kuberay: {submission-mode: Carrier pigeon}}")
    monkeypatch.setenv("FLYTE_KUBERAY_CONFIG", str(tmp_path / "settings.yaml"))
    return RayConnector()


async def test_a_connector_that_cannot_work_says_why(broken: RayConnector, tmp_path: Path) -> None:
    """File, key and value, to who wants to start a task."""
    task = flyte_task("p-d")
    with pytest.raises(KubeRayError, match=f"{tmp_path}/settings.yaml: plugins.kuberay.submission-mode"):
        await broken.create(TaskTemplate.from_flyte_idl(task.template), task.output_prefix)


async def test_a_connector_that_cannot_work_ends_no_task(broken: RayConnector) -> None:
    """Its settings will be mended, and six answers that raise would freeze the task by then."""
    resource = await broken.get(METADATA)
    assert resource.phase == TaskExecution.RUNNING
    assert "the connector can't work, the task may go on: " in (resource.message or "")


async def test_a_connector_that_cannot_work_promises_no_deletion(broken: RayConnector) -> None:
    """Nobody would ever do it: propeller is to ask again."""
    with pytest.raises(KubeRayError, match="submission-mode"):
        await broken.delete(METADATA)


async def test_a_fault_of_ours_is_told_as_one() -> None:
    """By each call, whatever it is: here a service that can nothing."""
    connector = RayConnector(cast(RayJobService, object()))
    fault = "flytekitplugins-kuberay has a fault, please report it: AttributeError: 'object' object has no attribute "
    task = flyte_task("p-d")
    with pytest.raises(KubeRayError, match=f"^{fault}'create'$"):
        await connector.create(TaskTemplate.from_flyte_idl(task.template), task.output_prefix)
    with pytest.raises(KubeRayError, match=f"^{fault}'delete'$"):
        await connector.delete(METADATA)
    assert (await connector.get(METADATA)).message == f"the task may go on; {fault}'get'"
    assert list((await connector.get_logs(METADATA)).body.results) == [f"{fault}'logs'"]


def test_an_installation_in_part_is_no_fault_of_ours() -> None:
    """Each call says what to install."""
    done = subprocess.run([sys.executable, "-c", INSTALLED_IN_PART], capture_output=True, text=True, check=True)
    lacking = (
        "the connector lacks packages, install flytekitplugins-kuberay[connector] where it runs:"
        " flytekitplugins.kuberay.kube needs kubernetes>=37, the first version with kubernetes.aio;"
        " install flytekitplugins-kuberay[connector]"
    )
    assert done.stdout.splitlines() == [
        lacking,
        lacking,
        f"the connector can't work, the task may go on: {lacking}",
        f"the connector can't work: {lacking}",
    ]
