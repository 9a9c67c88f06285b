"""`status` on a real API server: the line, pods, events and links of a task, waiting or ended."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from flytekitplugins.kuberay.cluster.capsule import place_of
from flytekitplugins.kuberay.kube import Manifest
from tests.connector.pods import CLUSTER, COMING, UP, put_event, ready, unscheduled, waits
from tests.connector.results import put_error
from tests.kube.scripted import Reply, ScriptedServer, answer, failure

from .tasks import Command, Tasks, our_job

WORKERS = {"readyWorkerReplicas": 0, "desiredWorkerReplicas": 1}
NO_IMAGE = 'Back-off pulling image "none:1"'
FAILED = {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed", "rayClusterName": CLUSTER}
FACTS = [["task", "wf.train"], ["execution", "p/d/f0, node n0, attempt 0"]]
_TIMES = re.compile(r"\b\d+s\b|\b\d+:\d\d:?\d*\b")
_QUEUED = re.compile(r" \(queued \d+s\)")  # of an end that is seen a second after the creation


def cells_of(text: str) -> list[list[str]]:
    """The lines, each by its columns, and times as TIME."""
    lines = _TIMES.sub("TIME", _QUEUED.sub("", text)).splitlines()
    return [re.split(r"\s{2,}", line.strip()) for line in lines if line]


async def test_a_task_that_waits(command: Command, tasks: Tasks) -> None:
    """Why, in the live line; then each pod with its own state, and the events about all of it."""
    task = await tasks.add(our_job("train"), **COMING, rayClusterStatus=WORKERS)
    worker = await tasks.add_pod(task, "w", waits("ImagePullBackOff", NO_IMAGE))
    submitter = await tasks.add_pod(task, "submitter", unscheduled("no room"))
    head = await tasks.add_pod(task, "head", ready())
    await put_event(tasks.client, task, "Pod", worker, "Failed", "Error: ErrImagePull")
    await put_event(tasks.client, task, "RayCluster", CLUSTER, "Created", "Created service", warns=False)
    ended = await command("status", f"{tasks.namespace}/train")
    assert (ended.status, ended.err) == (0, "")
    why = f"container ray: ImagePullBackOff: {NO_IMAGE}"
    cells = cells_of(ended.out)
    assert [*cells[:-2], *sorted(cells[-2:])] == [  # they came within a second
        [f"RayJob {tasks.namespace}/train"],
        [f"WAITING_FOR_RESOURCES TIME · workers 0/1 · worker group w: {why} (TIME); submitter: no room (TIME)"],
        *FACTS,
        ["POD", "GROUP", "PHASE", "AGE", "RESTARTS", "WHY"],
        [head, "head", "Running", "TIME", "0"],
        [submitter, "submitter", "Pending", "TIME", "0", "no room"],
        [worker, "w", "Pending", "TIME", "0", why],
        ["EVENT", "ABOUT"],
        ["TIME ago", f"Pod/{worker}", "Warning: Failed: Error: ErrImagePull"],
        ["TIME ago", f"RayCluster/{CLUSTER}", "Created: Created service"],
    ]


async def test_a_task_that_failed(command: Command, tasks: Tasks, tmp_path: Path) -> None:
    """The user's own error decides, with all its lines, and the diagnosis is named."""
    prefix = str(tmp_path / "out")
    put_error(prefix, "USER:ValueError", "no luck\nat train.py:7")
    Path(place_of(prefix)).write_text("# USER_ERROR: no luck\n\n## Pods\n")
    await tasks.add(our_job("train", prefix), **FAILED)
    ended = await command("status", "train", "--namespace", tasks.namespace)
    assert cells_of(ended.out) == [
        [f"RayJob {tasks.namespace}/train"],
        ["FAILED TIME · USER:ValueError: no luck ..."],
        ["at train.py:7"],
        *FACTS,
        ["diagnosis", place_of(prefix)],
    ]


async def test_what_the_connector_declared_stands(command: Command, tasks: Tasks, tmp_path: Path) -> None:
    """An end that the RayJob alone does not tell, as without outputs that are declared."""
    prefix = str(tmp_path)
    Path(place_of(prefix)).write_text("# RETRYABLE_FAILED: it wrote no outputs\n\n## Pods\n")
    await tasks.add(our_job("train", prefix), jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
    ended = await command("status", f"{tasks.namespace}/train", "-o", "json")
    (shown,) = json.loads(ended.out)
    assert (shown["phase"], shown["reason"]) == ("RETRYABLE_FAILED", "it wrote no outputs")
    assert shown["diagnosis"] == place_of(prefix)


async def test_all_of_an_execution(command: Command, tasks: Tasks) -> None:
    """By Flyte's id, or by project, domain and id; each with its links, for a program too."""
    template = {"displayName": "Ray", "templateUris": ["https://ray/{{ .namespace }}/{{ .rayClusterName }}"]}
    Path("config.json").write_text(json.dumps({"plugins": {"ray": {"dashboardURLTemplate": template}}}))
    await tasks.add(our_job("second", "s3://b/1", attempt=1), **UP, dashboardURL="head:8265")
    await tasks.add(our_job("first", "s3://b/0"), jobDeploymentStatus="Suspended")
    await tasks.add(our_job("other", "s3://b/2", execution="f1"))
    place = ("--namespace", tasks.namespace, "--config", "config.json")
    ended = await command("status", "--execution", "f0", *place, "-o", "json")
    shown = json.loads(ended.out)
    assert [(each["name"], each["attempt"], each["phase"], each["execution"]) for each in shown] == [
        ("first", "0", "QUEUED", "p/d/f0"),
        ("second", "1", "RUNNING", "p/d/f0"),
    ]
    assert shown[1]["links"] == [{"name": "Ray", "uri": f"https://ray/{tasks.namespace}/{CLUSTER}"}]
    as_table = (await command("status", "--execution", "p/d/f0", *place)).out
    assert [cells[1:] for cells in cells_of(as_table) if cells[0] == "Ray"] == [[shown[1]["links"][0]["uri"]]]


async def test_a_run_without_flyte_is_found_by_its_annotation(command: Command, tasks: Tasks) -> None:
    """It has no label of propeller's."""
    job = our_job("train")
    del job["metadata"]["labels"]["execution-id"]
    await tasks.add(job)
    ended = await command("status", "--execution", "f0", "--namespace", tasks.namespace)
    assert ended.out.startswith(f"RayJob {tasks.namespace}/train\nQUEUED 0:")


async def test_events_that_may_not_be_read(command: Command, server: ScriptedServer, scripted_cluster: str) -> None:
    """Are left out with a word, and the rest is told."""
    job = our_job("train")
    job["metadata"] |= {"namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    job["status"] = {**UP, "rayClusterName": ""}
    server.replies += [answer(job), answer({"items": []}), answer(job), failure(403, "Forbidden", "you cannot list")]
    ended = await command("status", "ns/train", "--kubeconfig", scripted_cluster)
    assert (ended.status, cells_of(ended.out)[0]) == (0, ["RayJob ns/train"])
    assert ended.err.startswith("warning: the events can't be read: list events in namespace ns: you cannot list")


def _listed(name: str, attempt: int) -> Manifest:
    """A RayJob as the scripted server has it."""
    job = our_job(name, attempt=attempt)
    job["metadata"] |= {"namespace": "ns", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return job


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param(
            [answer(_listed("second", 1)), answer({"items": []}), answer({"items": []})],
            (0, "RayJob ns/second\n", ""),
            id="others stay",
        ),
        pytest.param(
            [failure(404, "NotFound", "gone", name="second")],
            (1, "", "error: ns/first, ns/second: just deleted by somebody\n"),
            id="none stays",
        ),
    ],
)
async def test_a_task_that_goes_meanwhile(
    command: Command, server: ScriptedServer, scripted_cluster: str, second: list[Reply], expected: tuple[int, str, str]
) -> None:
    """Hides none of the execution's others: a direct run deletes each RayJob at its end."""
    server.replies += [answer({"items": [_listed("first", 0), _listed("second", 1)]})]
    server.replies += [answer({"items": []}), failure(404, "NotFound", "gone", name="first")]
    server.replies += [answer({"items": []}), *second]
    ended = await command("status", "--execution", "f0", "--namespace", "ns", "--kubeconfig", scripted_cluster)
    assert (ended.status, ended.out[: len(expected[1])], ended.err) == expected
