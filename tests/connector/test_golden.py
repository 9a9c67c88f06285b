"""Every golden case once through gRPC: the cluster gets what `render` prints, and what the connector adds."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from flyteidl.admin.agent_pb2 import TaskExecutionMetadata

from flytekitplugins.kuberay.cluster.last_head import ANNOTATION, with_last_head
from flytekitplugins.kuberay.errors import TaskError
from flytekitplugins.kuberay.kube import POD_TEMPLATES, RAYJOBS, ApiKubeClient, Manifest
from flytekitplugins.kuberay.pod.base import find_base_template
from tests.api import ApiServer, fresh_namespace
from tests.golden.case import FILES, Case, read_case
from tests.golden.compare import differences
from tests.kube.admin import strict_dry_run

from .serving import job_of, service_over, serving

ARRAY_NODE = "map-task-array-node"
"""Of task type version 1, which flytekit's service refuses: propeller can't map a connector's task."""

CASES = [pytest.param(path, id=path.stem) for path in FILES if path.stem != ARRAY_NODE]


async def moved(case: Case, client: ApiKubeClient, stack: AsyncExitStack) -> Case:
    """The case in fresh namespaces, where its PodTemplates stand as the API server completes them."""
    templates, task, settings = case.raw["pod_templates"], case.task, case.settings
    named = {template["metadata"]["namespace"] for template in templates} | {task.execution.namespace}
    names = {name: await stack.enter_async_context(fresh_namespace(client)) for name in sorted(named - {""})}

    def new(name: str) -> str:
        return names.get(name, name)

    stored = [await _stored(template, new(template["metadata"]["namespace"]), client) for template in templates]
    execution = TaskExecutionMetadata()
    execution.CopyFrom(task.execution)
    execution.namespace = new(execution.namespace)
    task = replace(task, execution=execution)
    own = replace(
        settings.kuberay,
        platform_namespace=new(settings.kuberay.platform_namespace),
        health_probes=settings.kuberay.health_probes or "operator",  # what `render` takes
    )
    settings = replace(settings, kuberay=own)
    return replace(case, task=task, settings=settings, base=find_base_template(stored, task, settings))


async def _stored(template: Manifest, namespace: str, client: ApiKubeClient) -> Manifest:
    placed = {**template, "metadata": {**template["metadata"], "namespace": namespace}}
    return (await client.create(POD_TEMPLATES, namespace, placed)).manifest


@pytest.mark.parametrize("path", CASES)
async def test_golden_case_over_grpc(path: Path, api_server: ApiServer, client: ApiKubeClient) -> None:
    """The same RayJob, or the same refusal, as from the pure build; a strict dry run takes it whole."""
    original = read_case(path)
    async with AsyncExitStack() as stack:
        case = await moved(original, client, stack)
        service = service_over(await ApiKubeClient.open(api_server.kubeconfig), case.settings)
        caller = await stack.enter_async_context(serving(service))
        try:
            expected = with_last_head(case.build())
        except TaskError as error:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await caller.create(case.task)
            assert _words(str(error)) in _words(caught.value.details() or "")
            return
        namespace = case.task.execution.namespace
        dry = await strict_dry_run(client, RAYJOBS, namespace, expected)
        metadata = await caller.create(case.task)
        got = await job_of(client, metadata)
        assert _essence(got) == _essence(dry.manifest)
        assert _differences(original, got) == []
        await caller.delete(metadata)


async def test_a_task_of_version_1_is_refused(api_server: ApiServer) -> None:
    """By flytekit's service: it is an array node's, and propeller 1.16.8 can't run one with a connector."""
    (path,) = [path for path in FILES if path.stem == ARRAY_NODE]
    case = read_case(path)
    async with serving(service_over(await ApiKubeClient.open(api_server.kubeconfig), case.settings)) as caller:
        with pytest.raises(grpc.aio.AioRpcError, match="Cannot find connector for task type: ray") as caught:
            await caller.create(case.task)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def _words(text: str) -> str:
    """The text on one line: flytekit indents what it hands on."""
    return " ".join(text.split())


def _essence(job: Manifest) -> dict[str, Any]:
    """What was asked for, with the API server's defaults."""
    metadata = job["metadata"]
    named = {key: metadata.get(key) for key in ("name", "namespace", "labels", "annotations")}
    return {**named, "spec": job["spec"]}


def _differences(case: Case, got: Manifest) -> list[str]:
    """Where the RayJob differs from what the case expects, but for the namespace and what is added to the build."""
    annotations = {key: value for key, value in got["metadata"]["annotations"].items() if key != ANNOTATION}
    metadata = {**got["metadata"], "annotations": annotations, "namespace": case.task.execution.namespace}
    placed = {**got, "metadata": metadata}
    return [line for line in differences(case.raw["expected"], placed) if ": expected null, got " not in line]
