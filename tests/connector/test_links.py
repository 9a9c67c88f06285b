"""Links over gRPC: with the first answer of each phase, and for no call to the cluster."""

from __future__ import annotations

import json
from typing import Any

from flyteidl.admin.agent_pb2 import Resource
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.kube import PODS, RAYJOBS, ApiKubeClient
from flytekitplugins.kuberay.settings import parse_settings

from .pods import CLUSTER, COMING, UP, put_pod, ready
from .propelling import DONE, Event, Propeller
from .propelling import UP as UP_AT_PROPELLER
from .samples import flyte_task
from .seam import Seam
from .serving import gone, job_of, service_over, serving, write_status

OWN = parse_settings(
    {
        "plugins": {
            "ray": {
                "dashboardURLTemplate": {"templateUris": "https://ray/{{ .rayClusterName }}"},
                "logs": {
                    "templates": [
                        {
                            "displayName": "Execution",
                            "templateUris": "https://flyte/{{ .executionName }}/{{ .nodeID }}",
                            "showWhilePending": True,
                        },
                        {"displayName": "Pod", "templateUris": "https://logs/{{ .podName }}", "messageFormat": 2},
                    ]
                },
            },
            "kuberay": {"history-server-url-template": "https://history/{{ .rayClusterName }}"},
        }
    }
)


def links(resource: Resource) -> dict[str, str]:
    """An answer's links, by their names."""
    return {log.name: log.uri for log in resource.log_links}


async def test_each_phase_has_its_links(seam: Seam, client: ApiKubeClient, namespace: str) -> None:
    """Queued: the execution's; starting with a head: Ray's dashboard; running: pods'; at the end: the history."""
    execution, dashboard = {"Execution": "https://flyte/f0/n0"}, {"Ray Dashboard": f"https://ray/{CLUSTER}"}
    async with serving(service_over(seam, OWN)) as caller:
        metadata = await caller.create(flyte_task(namespace))
        assert links(await caller.get(metadata)) == execution
        head = await put_pod(client, metadata, **ready())
        await write_status(client, metadata, **COMING)
        starting = await caller.becomes(metadata, TaskExecution.INITIALIZING)
        assert links(starting) == {**dashboard, **execution}
        await write_status(client, metadata, **UP)
        running = await caller.becomes(metadata, TaskExecution.RUNNING)
        logs = {"Pod (head)": f"https://logs/{head}"}
        assert links(running) == {**dashboard, **execution, **logs}
        await write_status(client, metadata, **DONE)
        done = await caller.becomes(metadata, TaskExecution.SUCCEEDED)
        assert links(done) == {"Ray History Server": f"https://history/{CLUSTER}", **execution, **logs}


async def test_a_failure_keeps_its_links(seam: Seam, client: ApiKubeClient, namespace: str) -> None:
    """Whoever asks once more hears the same, though RayJob and pods are gone."""
    async with serving(service_over(seam, OWN)) as caller:
        metadata = await caller.create(flyte_task(namespace))
        head = await put_pod(client, metadata, **ready())
        await write_status(client, metadata, **UP)
        await caller.becomes(metadata, TaskExecution.RUNNING)
        failed = {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed"}
        await write_status(client, metadata, **failed)
        first = await caller.becomes(metadata, TaskExecution.FAILED)
        await client.delete(PODS, namespace, head)
        await client.delete(RAYJOBS, namespace, json.loads(metadata)["name"])
        assert await gone(client, metadata)
        assert links(first)["Pod (head)"] == f"https://logs/{head}"
        assert links(await caller.get(metadata)) == links(first)


async def test_links_cost_no_call(seam: Seam, client: ApiKubeClient, namespace: str) -> None:
    """Views and settings hold all that they are made of."""
    async with serving(service_over(seam, OWN)) as caller:
        metadata = await caller.create(flyte_task(namespace))
        await put_pod(client, metadata, **ready())
        await write_status(client, metadata, **UP)
        await caller.becomes(metadata, TaskExecution.RUNNING)
        seam.calls.clear()
        answers = [await caller.get(metadata) for _ in range(10)]
    assert {len(answer.log_links) for answer in answers} == {3}
    assert seam.calls == []


async def test_without_templates_there_are_no_links(seam: Seam, client: ApiKubeClient, namespace: str) -> None:
    """And nothing is kept for them."""
    async with serving(service_over(seam)) as caller:
        metadata = await caller.create(flyte_task(namespace))
        await write_status(client, metadata, **UP)
        assert links(await caller.becomes(metadata, TaskExecution.RUNNING)) == {}
        annotations = (await job_of(client, metadata))["metadata"]["annotations"]
    assert "kuberay.flyte.org/links" not in annotations


def logs_of(event: Event) -> dict[str, Any]:
    """The links that flyteadmin gets with an event, by their names."""
    return {log["name"]: log for log in event.get("logs") or []}


async def test_propeller_passes_the_links_of_each_phase_on(propeller: Propeller) -> None:
    """With the marks by which flyteadmin hides the dashboard at the end; within a phase nothing is passed on."""
    async with propeller.runs(own=OWN) as run:
        job = await run.job()
        queued = await run.sees("QUEUED")
        head = await run.makes_pod(job, "head", **ready())
        await run.writes(job, **UP_AT_PROPELLER, dashboardURL="c-head-svc:8265")
        running = await run.sees("RUNNING")
        await run.succeeds(job)
        await run.ends()
        done = await run.sees("SUCCEEDED")
    assert logs_of(queued)["Execution"]["uri"] == f"https://flyte/{propeller.execution}/n0"
    assert logs_of(running)["Ray Dashboard"] == {
        "name": "Ray Dashboard", "uri": "https://ray/c", "HideOnceFinished": True
    }  # fmt: skip
    assert logs_of(running)["Pod (head)"]["uri"] == f"https://logs/{head}"
    assert sorted(logs_of(done)) == ["Execution", "Pod (head)", "Ray History Server"]


async def test_a_nodes_id_is_the_one_that_flyteadmin_has(propeller: Propeller) -> None:
    """Of a node within a sub-workflow, which the request does not tell."""
    async with propeller.runs("--nodes", "2", own=OWN) as run:
        jobs = await run.jobs(2)
        first, second = [
            await run.until(lambda event, node=node: event.get("node") == node and bool(logs_of(event)))  # type: ignore[misc]
            for node in ("n0-0-n0", "n1-0-n0")
        ]
        await run.succeeds(*jobs)
        await run.ends()
    uris = [logs_of(event)["Execution"]["uri"] for event in (first, second)]
    assert uris == [f"https://flyte/{propeller.execution}/{node}" for node in ("n0-0-n0", "n1-0-n0")]
