"""Why a task waits: shown by GetTask from pods and events of a real API server, and what ends a wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from flyteidl.core.execution_pb2 import TaskExecution
from typing_extensions import override

from flytekitplugins.kuberay.connector.events import warnings
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient, Call, Forbidden, Page, Resource, Selector
from flytekitplugins.kuberay.kube.client import ALL
from flytekitplugins.kuberay.settings import parse_settings
from tests.api import ApiServer
from tests.kube.admin import merge_patch

from .pods import CLUSTER, COMING, UP, moment, provisioned, put_event, put_pod, ready, unscheduled, waits, write_pod
from .results import Denied
from .samples import flyte_task
from .seam import Seam
from .serving import Caller, gone, service_over, serving, write_status

QUEUED, WAITING, INITIALIZING = (
    TaskExecution.QUEUED,
    TaskExecution.WAITING_FOR_RESOURCES,
    TaskExecution.INITIALIZING,
)
RUNNING, FAILED, RETRYABLE = TaskExecution.RUNNING, TaskExecution.FAILED, TaskExecution.RETRYABLE_FAILED
NO_NODE = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
NOT_FOUND = 'Back-off pulling image "example/image:1": ErrImagePull: not found'
QUOTA = "pods is forbidden: exceeded quota: team, requested: limits.cpu=8, used: limits.cpu=90, limited: limits.cpu=96"


async def told(
    caller: Caller, metadata: bytes, phase: TaskExecution.Phase, text: str = ""
) -> tuple[TaskExecution.Phase, str]:
    """What is answered once phase and text are reached, less the RayJob's name and since when it waits."""
    for _ in range(50):
        resource = await caller.becomes(metadata, phase)
        said = resource.message.partition(": ")[2].removesuffix(")").rpartition(" (")
        if text in (said[0], ""):
            break
        await asyncio.sleep(0.1)
    return resource.phase, said[0] or said[2]


async def test_a_wait_is_followed_from_cause_to_cause(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """It starts, has no image, starts, has no node for workers, runs: each by another phase, with the whole line."""
    metadata = await caller.create(flyte_task(namespace))
    await write_status(client, metadata, **COMING)
    head = await put_pod(client, metadata, **waits("ContainerCreating"))
    phase, text = await told(caller, metadata, INITIALIZING, "head: starting")
    assert (phase, text) == (INITIALIZING, "head: starting")
    await write_pod(client, metadata, head, **waits("ImagePullBackOff", NOT_FOUND))
    expected = f"head: container ray: ImagePullBackOff: {NOT_FOUND}"
    assert await told(caller, metadata, WAITING) == (WAITING, expected)
    await write_pod(client, metadata, head, **ready())
    assert (await told(caller, metadata, INITIALIZING))[0] == INITIALIZING
    for _ in range(2):
        await put_pod(client, metadata, "gpu", **unscheduled(NO_NODE))
    expected = f"worker group gpu (2 pods): {NO_NODE}"
    assert await told(caller, metadata, WAITING, expected) == (WAITING, expected)
    await write_status(client, metadata, **UP)
    assert (await told(caller, metadata, RUNNING))[0] == RUNNING


class Divided(Seam):
    """A cluster that lets one namespace be neither listed nor watched."""

    @override
    async def list_page(
        self, resource: Resource, namespace: str | None, selector: Selector = ALL, **options: Any
    ) -> Page:
        if namespace == "forgotten":
            raise Forbidden(Call("list", str(resource), namespace), "not you")
        return await super().list_page(resource, namespace, selector, **options)


async def test_a_namespace_that_may_not_be_watched_hides_no_other(
    api_server: ApiServer, client: ApiKubeClient, namespace: str
) -> None:
    """As where a RoleBinding was forgotten: why tasks elsewhere wait is told, and to follow them costs no call."""
    seam = Divided(await ApiKubeClient.open(api_server.kubeconfig))
    settings = parse_settings({"plugins": {"kuberay": {"namespaces": [namespace, "forgotten"]}}})
    async with serving(service_over(seam, settings)) as caller:
        metadata = await caller.create(flyte_task(namespace))
        await put_pod(client, metadata, **waits("ContainerCreating"))
        await write_status(client, metadata, **COMING)
        assert (await told(caller, metadata, INITIALIZING, "head: starting"))[1] == "head: starting"
        seam.calls.clear()
        await caller.get(metadata)
        assert seam.calls == []


async def test_a_quota_is_told(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """No pod can be made, so only KubeRay's event about its cluster tells why."""
    metadata = await caller.create(flyte_task(namespace))
    await write_status(client, metadata, **COMING)
    await put_event(client, metadata, "RayCluster", CLUSTER, "FailedToCreateHeadPod", QUOTA)
    assert await told(caller, metadata, WAITING) == (WAITING, f"FailedToCreateHeadPod: {QUOTA}")


async def test_a_quota_for_the_submitter_is_told(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """KubeRay calls the RayJob Running, and only an event about the submitter's Job tells why nothing runs."""
    metadata = await caller.create(flyte_task(namespace))
    await put_pod(client, metadata, **ready())
    await put_event(client, metadata, "Job", json.loads(metadata)["name"], "FailedCreate", QUOTA)
    await write_status(client, metadata, jobDeploymentStatus="Running", rayClusterName=CLUSTER)
    assert await told(caller, metadata, WAITING) == (WAITING, f"FailedCreate: {QUOTA}")
    await put_pod(client, metadata, "submitter", **ready())
    assert (await told(caller, metadata, RUNNING))[0] == RUNNING


async def test_a_complaint_of_kuberay_about_itself_is_not_told(
    caller: Caller, client: ApiKubeClient, namespace: str
) -> None:
    """Under load it tries twice to make one RayCluster, and the second try fails."""
    metadata = await caller.create(flyte_task(namespace))
    name = json.loads(metadata)["name"]
    await put_event(client, metadata, "RayCluster", CLUSTER, "FailedToCreateHeadService", "no such type")
    await put_event(client, metadata, "RayJob", name, "FailedToCreateRayCluster", f'"{CLUSTER}" already exists')
    assert await warnings(client, namespace, [name, CLUSTER]) == ["FailedToCreateHeadService: no such type"]


async def test_kueues_reason_is_told(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """Kueue's event about the Workload that it made of the RayJob, which needs no right beyond events; till it goes."""
    metadata = await caller.create(flyte_task(namespace))
    name = json.loads(metadata)["name"]
    await merge_patch(client, RAYJOBS, namespace, name, {"spec": {"suspend": True}})
    await write_status(client, metadata, jobDeploymentStatus="Suspended")
    await put_event(client, metadata, "Workload", f"rayjob-{name}-1a2b3", "Pending", "no quota for cpu", warns=False)
    for number in range(60):  # the API server gives them by name, and the first page is not all
        await put_event(client, metadata, "Workload", f"rayjob-another-{number}", "Pending", "of another job")
    assert await told(caller, metadata, WAITING) == (
        WAITING,
        "it is suspended, waiting for its queue: Pending: no quota for cpu",
    )
    await merge_patch(client, RAYJOBS, namespace, name, {"spec": {"suspend": False}})
    await write_status(client, metadata, **COMING)
    assert await told(caller, metadata, INITIALIZING) == (INITIALIZING, "the Ray cluster is starting")


async def test_a_volume_that_is_not_there_is_told(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """Of which a pod's status says nothing: its container is being created for ever."""
    metadata = await caller.create(flyte_task(namespace))
    await write_status(client, metadata, **COMING)
    head = await put_pod(client, metadata, **waits("ContainerCreating"))
    await put_event(client, metadata, "Pod", head, "FailedMount", 'secret "token" not found')
    for _ in range(50):
        resource = await caller.becomes(metadata, INITIALIZING)
        if "FailedMount" in resource.message:
            break
        await asyncio.sleep(0.1)
    assert resource.message.endswith('; FailedMount: secret "token" not found')


class TestEndsOfAWait:
    """What the platform's graces and the deadlines end, is cleaned up."""

    @pytest.fixture
    async def hasty(self, seam: Seam) -> AsyncIterator[Caller]:
        """A caller of a connector without patience."""
        settings = parse_settings({"plugins": {"k8s": {"image-pull-backoff-grace-period": "0s"}}})
        async with serving(service_over(seam, settings)) as caller:
            yield caller

    async def test_past_its_grace_a_cause_ends_the_task(
        self, hasty: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path
    ) -> None:
        """With the registry's text, how long each wait was, where more stands; and the RayJob goes."""
        task = flyte_task(namespace, str(tmp_path))
        metadata = await hasty.create(task)
        await write_status(client, metadata, **COMING, startTime=moment(seconds=-30))
        await put_pod(client, metadata, **waits("ImagePullBackOff", NOT_FOUND))
        resource = await hasty.becomes(metadata, RETRYABLE)
        assert resource.phase == RETRYABLE
        assert f"the cluster did not come up: head: container ray: ImagePullBackOff: {NOT_FOUND} (" in resource.message
        assert "cluster starting 3" in resource.message
        place = f"{task.output_prefix}/kuberay-diagnosis.txt"
        assert resource.message.endswith(f"\nwhole diagnosis: {place}")
        assert resource.custom_info["diagnosis"] == place
        assert NOT_FOUND in Path(place).read_text(encoding="utf-8")
        assert await gone(client, metadata)

    async def test_it_waits_for_no_files_of_code_that_never_began(
        self, seam: Seam, client: ApiKubeClient, namespace: str
    ) -> None:
        """A store that tells nothing holds up no end of a cluster that did not come up."""
        settings = parse_settings({"plugins": {"k8s": {"image-pull-backoff-grace-period": "0s"}}})
        async with serving(service_over(seam, settings, Denied())) as caller:
            metadata = await caller.create(flyte_task(namespace))
            await write_status(client, metadata, **COMING)
            await put_pod(client, metadata, **waits("ImagePullBackOff", NOT_FOUND))
            assert (await caller.becomes(metadata, RETRYABLE)).phase == RETRYABLE

    async def test_a_config_error_is_for_good(
        self, caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path
    ) -> None:
        """At once, by flytek8s' default; another attempt would meet it again."""
        metadata = await caller.create(flyte_task(namespace, str(tmp_path)))
        await write_status(client, metadata, **COMING)
        await put_pod(client, metadata, "cpu", **waits("CreateContainerConfigError", 'secret "token" not found'))
        resource = await caller.becomes(metadata, FAILED)
        assert resource.phase == FAILED
        assert (
            'worker group cpu: container ray: CreateContainerConfigError: secret "token" not found' in resource.message
        )

    @pytest.mark.parametrize(
        ("status", "phase"),
        [
            pytest.param({**COMING, "startTime": moment(hours=-1)}, RETRYABLE, id="it did not start in time"),
            pytest.param({**COMING, "startTime": moment()}, INITIALIZING, id="an hour of suspension does not count"),
            pytest.param({"jobDeploymentStatus": "Suspended", "startTime": moment(hours=-1)}, QUEUED, id="suspended"),
            pytest.param({**UP, "rayJobInfo": {"startTime": moment(hours=-1)}}, FAILED, id="it ran too long"),
            pytest.param({**UP, "rayJobInfo": {"startTime": moment()}}, RUNNING, id="it runs"),
        ],
    )
    async def test_a_tasks_deadlines(
        self,
        caller: Caller,
        client: ApiKubeClient,
        namespace: str,
        tmp_path: Path,
        status: dict[str, Any],
        phase: TaskExecution.Phase,
    ) -> None:
        """Half an hour for each, of the task's own; KubeRay is told of both for when no connector looks."""
        extras = json.dumps({"version": 1, "deadlines": {"start": 1800, "run": 1800}})
        metadata = await caller.create(flyte_task(namespace, str(tmp_path), config={"kuberay": extras}))
        job = await client.get(RAYJOBS, namespace, json.loads(metadata)["name"])
        assert job["spec"]["activeDeadlineSeconds"] == 1800 + 1800 + 600
        if phase in (FAILED, RUNNING):
            await put_pod(client, metadata, **ready())
            status = {**status, **provisioned(minutes=1)}
        await write_status(client, metadata, **status)
        assert (await caller.becomes(metadata, phase)).phase == phase
        assert await gone(client, metadata) == (phase in (FAILED, RETRYABLE))
