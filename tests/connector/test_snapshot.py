"""A task by direct reads: what is found is what the connector says of it, as far as a RayJob tells."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.cluster.capsule import place_of
from flytekitplugins.kuberay.cluster.names import attempt_key
from flytekitplugins.kuberay.connector.results import ResultFiles
from flytekitplugins.kuberay.connector.snapshot import Findings, Snapshot, findings, take
from flytekitplugins.kuberay.kube import ApiKubeClient, NotFound
from flytekitplugins.kuberay.settings import Settings

from .pods import CLUSTER, COMING, put_event, put_pod, ready
from .results import put_error, put_outputs
from .samples import flyte_task
from .serving import Caller, write_status

DONE = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}


async def taken(client: ApiKubeClient, metadata: bytes) -> Snapshot:
    """A snapshot of the task."""
    task = json.loads(metadata)
    return await take(client, task["namespace"], task["name"], attempt_key(task["output_prefix"]))


async def found(client: ApiKubeClient, metadata: bytes) -> Findings:
    """What a snapshot of the task comes to."""
    snapshot = await taken(client, metadata)
    return await findings(client, ResultFiles(), snapshot, Settings(), datetime.now(timezone.utc))


async def test_it_has_the_pods_of_its_attempt(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """And no others."""
    first, second = [await caller.create(flyte_task(namespace, node=node)) for node in ("n0", "n1")]
    head = await put_pod(client, first, "head", **ready())
    await put_pod(client, second, "head", **ready())
    snapshot = await taken(client, first)
    assert [pod.name for pod in snapshot.pods] == [head]
    assert (snapshot.job.name, snapshot.output_prefix) == (json.loads(first)["name"], f"/nowhere/{namespace}/n0/0")


async def test_one_that_is_gone(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """Is not there, for certain."""
    metadata = await caller.create(flyte_task(namespace))
    await caller.delete(metadata)
    with pytest.raises(NotFound):
        await taken(client, metadata)


async def test_events_explain_what_no_pod_does(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """As that a quota lets none be made."""
    metadata = await caller.create(flyte_task(namespace))
    await write_status(client, metadata, **COMING)
    await put_event(client, metadata, "RayCluster", CLUSTER, "FailedToCreateHeadPod", "exceeded quota")
    assert (await found(client, metadata)).verdict.phase == TaskExecution.WAITING_FOR_RESOURCES
    assert (await found(client, metadata)).verdict.message == "FailedToCreateHeadPod: exceeded quota"


@pytest.mark.parametrize(
    ("left", "expected", "kept"),
    [
        pytest.param({"error": True}, (TaskExecution.FAILED, "USER:ValueError: no luck"), False, id="an error"),
        pytest.param({"outputs": True}, (TaskExecution.SUCCEEDED, "the Ray job has succeeded"), False, id="outputs"),
        pytest.param({}, (TaskExecution.SUCCEEDED, "the Ray job has succeeded"), False, id="nothing"),
        pytest.param(
            {"capsule": "# RETRYABLE_FAILED: no outputs\n\n## Pods\n"},
            (TaskExecution.RETRYABLE_FAILED, "no outputs"), True,
            id="a diagnosis, which tells what the connector declared",
        ),
        pytest.param(
            {"error": True, "capsule": "# USER_ERROR: it\n\n## Pods\n"},
            (TaskExecution.FAILED, "USER:ValueError: no luck"), True,
            id="an error with its diagnosis",
        ),
    ],
)  # fmt: skip
async def test_what_was_left_decides(
    caller: Caller,
    client: ApiKubeClient,
    namespace: str,
    tmp_path: Path,
    left: dict[str, Any],
    expected: tuple[TaskExecution.Phase, str],
    kept: bool,
) -> None:
    """At the end: whether outputs are declared is not known, so a user's error is a failure."""
    task = flyte_task(namespace, str(tmp_path))
    metadata = await caller.create(task)
    await write_status(client, metadata, **DONE)
    if "error" in left:
        put_error(task.output_prefix, "USER:ValueError", "no luck")
    if "outputs" in left:
        put_outputs(task.output_prefix)
    if "capsule" in left:
        Path(place_of(task.output_prefix)).parent.mkdir(exist_ok=True)
        Path(place_of(task.output_prefix)).write_text(left["capsule"])
    seen = await found(client, metadata)
    assert (seen.verdict.phase, re.sub(r" \(queued \d+s\)", "", seen.verdict.message)) == expected
    assert seen.diagnosis == (place_of(task.output_prefix) if kept else "")
