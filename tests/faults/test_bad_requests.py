"""What no caller should send: each gets a short, clear answer, and the service goes on."""

from __future__ import annotations

import json
from collections.abc import Callable

import grpc
import pytest
from flyteidl.admin.agent_pb2 import CreateTaskRequest, GetTaskRequest, TaskCategory
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient
from tests.connector.samples import flyte_task
from tests.connector.serving import Caller, write_status

SERVICE = "/flyteidl.service.AsyncAgentService/"
UP = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
FIRST_RELEASE = ("namespace", "name", "uid", "output_prefix", "has_outputs", "notes", "v")


def create_request(namespace: str) -> CreateTaskRequest:
    """One that would do."""
    task = flyte_task(namespace)
    return CreateTaskRequest(
        template=task.template, output_prefix=task.output_prefix, task_execution_metadata=task.execution
    )


def truncated(namespace: str) -> bytes:
    """Half of a request."""
    whole = create_request(namespace).SerializeToString()
    return bytes(whole[: len(whole) // 2])


def of_another_version(namespace: str) -> bytes:
    """A task of a type version to come, as an array node's."""
    request = create_request(namespace)
    request.template.task_type_version = 7
    return bytes(request.SerializeToString())


def of_ten_megabytes(namespace: str) -> bytes:
    """Inputs over gRPC's limit."""
    request = create_request(namespace)
    request.inputs.literals["x"].scalar.primitive.string_value = "x" * 10_000_000
    return bytes(request.SerializeToString())


def of_extras_to_come(namespace: str) -> bytes:
    """A task that a newer release has registered."""
    request = create_request(namespace)
    request.template.config["kuberay"] = json.dumps({"version": 2, "shutdown": True})
    return bytes(request.SerializeToString())


def metadata_of_nobody(namespace: str) -> bytes:
    """Another connector's resource metadata."""
    return bytes(
        GetTaskRequest(task_category=TaskCategory(name="ray"), resource_meta=b'{"job_id":"j"}').SerializeToString()
    )


@pytest.mark.parametrize(
    ("method", "make", "code", "expected"),
    [
        pytest.param("CreateTask", truncated, "UNKNOWN", "DecodeError", id="half a request"),
        pytest.param("GetTask", lambda _: b"\xff\xff", "UNKNOWN", "DecodeError", id="no request at all"),
        pytest.param("CreateTask", lambda _: b"", "NOT_FOUND", "Cannot find connector", id="an empty request"),
        pytest.param("DeleteTask", lambda _: b"", "NOT_FOUND", "Cannot find connector", id="a delete of nothing"),
        pytest.param("CreateTask", of_another_version, "NOT_FOUND", "task type: ray.", id="an unknown type version"),
        pytest.param("CreateTask", of_ten_megabytes, "RESOURCE_EXHAUSTED", "4194304", id="inputs of 10 MB"),
        pytest.param(
            "CreateTask",
            of_extras_to_come,
            "INTERNAL",
            "version: is 2, newer than this connector",
            id="extras of a newer release",
        ),
        pytest.param("GetTask", metadata_of_nobody, "INTERNAL", "not made by flytekitplugins", id="nobody's metadata"),
        pytest.param("DeleteTask", metadata_of_nobody, "INTERNAL", "not made by flytekitplugins", id="and its delete"),
    ],
)
async def test_a_bad_request_gets_a_short_answer(  # noqa: PLR0913, PLR0917  # a row and two fixtures
    caller: Caller, namespace: str, method: str, make: Callable[[str], bytes], code: str, expected: str
) -> None:
    """And the next good one is served."""
    async with grpc.aio.insecure_channel(caller.endpoint) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            send: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(SERVICE + method)
            await send(make(namespace), timeout=10)
    assert caught.value.code().name == code
    assert expected in (caught.value.details() or "")
    assert len((caught.value.details() or "").encode()) < 3000
    assert (await caller.get(await caller.create(flyte_task(namespace)))).phase == TaskExecution.QUEUED


class TestReleases:
    """A connector meets what another release left, older or newer."""

    async def test_a_task_of_the_first_release_is_followed(
        self, caller: Caller, client: ApiKubeClient, namespace: str
    ) -> None:
        """Its metadata lacks what came later."""
        found = json.loads(await caller.create(flyte_task(namespace)))
        metadata = json.dumps({key: found[key] for key in FIRST_RELEASE}).encode()
        await self._lives_and_goes(caller, client, metadata)

    async def test_a_task_of_a_newer_release_is_followed(
        self, caller: Caller, client: ApiKubeClient, namespace: str
    ) -> None:
        """After a roll-back: keys that are not known are left aside, whatever they hold."""
        found = json.loads(await caller.create(flyte_task(namespace)))
        newer = {**found, "v": 9, "start_deadline": None, "cluster": {"id": ["x"]}, "notes": ""}
        await self._lives_and_goes(caller, client, json.dumps(newer).encode())

    async def _lives_and_goes(self, caller: Caller, client: ApiKubeClient, metadata: bytes) -> None:
        await write_status(client, metadata, **UP)
        assert (await caller.becomes(metadata, TaskExecution.RUNNING)).phase == TaskExecution.RUNNING
        await caller.delete(metadata)
        assert await client.list(RAYJOBS, json.loads(metadata)["namespace"]) == []
