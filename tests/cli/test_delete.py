"""`delete` on a real API server: what goes, and that nothing there is no failure."""

from __future__ import annotations

import json

from tests.cli.running import Ended
from tests.kube.scripted import ScriptedServer, answer, failure

from .tasks import Command, Tasks, our_job

WENT = "deleted RayJob {}/train (task wf.train); its cluster and pods go with it"


async def test_it_deletes_one(command: Command, tasks: Tasks) -> None:
    """And says what, and what Flyte makes of it."""
    await tasks.add(our_job("train"))
    await tasks.add(our_job("other", "s3://b/other"))
    more = ". To Flyte this attempt is lost, and another may follow: to end execution p/d/f0, abort it\n"
    ended = await command("delete", f"{tasks.namespace}/train")
    assert ended == Ended(0, WENT.format(tasks.namespace) + more, "")
    assert await tasks.names() == ["other"]


async def test_of_a_run_without_flyte_no_attempt_follows(command: Command, tasks: Tasks) -> None:
    """It has no label of propeller's, and a second time there is nothing to do."""
    job = our_job("train")
    del job["metadata"]["labels"]["execution-id"]
    await tasks.add(job)
    assert await command("delete", f"{tasks.namespace}/train") == Ended(0, f"{WENT.format(tasks.namespace)}\n", "")
    again = await command("delete", f"{tasks.namespace}/train")
    assert (again.status, again.err) == (0, "")
    assert again.out.startswith(f"nothing to delete: there is no RayJob train in namespace {tasks.namespace};")


async def test_it_means_this_rayjob_alone(command: Command, server: ScriptedServer, scripted_cluster: str) -> None:
    """Its uid is sent along: a namesake that was made meanwhile stays."""
    job = our_job("train")
    job["metadata"] |= {"namespace": "ns", "uid": "u-1"}
    server.replies += [answer(job), failure(409, "Conflict", "the uid is another")]
    ended = await command("delete", "ns/train", "--kubeconfig", scripted_cluster)
    assert json.loads(server.seen[-1].body)["preconditions"] == {"uid": "u-1"}
    told = "nothing to delete: RayJob ns/train was just deleted by somebody else\n"
    assert ended == Ended(0, told, "")


async def test_a_right_that_is_missing(command: Command, server: ScriptedServer, scripted_cluster: str) -> None:
    """Is told, and by the status."""
    job = our_job("train")
    job["metadata"] |= {"namespace": "ns", "uid": "u-1"}
    server.replies += [answer(job), failure(403, "Forbidden", "you cannot delete it")]
    ended = await command("delete", "ns/train", "--kubeconfig", scripted_cluster)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith("error: delete rayjobs.ray.io train in namespace ns: you cannot delete it")
