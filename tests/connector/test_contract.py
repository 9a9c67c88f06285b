"""What Flyte's own caller asks of a connector, row by row of ../shared/propeller-client/README.md.

Each test names its row. The caller is propeller's code; the test writes RayJob statuses, pods and result files.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

import pytest
from typing_extensions import override

from flytekitplugins.kuberay.cluster.names import ATTEMPT
from flytekitplugins.kuberay.kube import AlreadyExists, Call, Created, Manifest, Resource, Unavailable

from .propelling import DONE, UP, Event, Propeller, Run
from .results import put_error
from .samples import template_json
from .seam import Seam
from .serving import IMPATIENT

APP_FAILED = {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed", "message": "exit code 1"}
NOT_SUBMITTED = {"jobDeploymentStatus": "Failed", "reason": "SubmissionFailed", "message": "BackoffLimitExceeded"}
PROVISIONED = {
    "rayClusterStatus": {
        "conditions": [
            {"type": "RayClusterProvisioned", "status": "True", "lastTransitionTime": "2026-01-01T00:00:30Z"}
            | {"reason": "AllPodRunningAndReadyFirstTime", "message": ""}
        ]
    }
}
CONTAINER = {"name": "ray", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
STARTING = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "True"}],
    "containerStatuses": [{**CONTAINER, "state": {"waiting": {"reason": "ContainerCreating"}}}],
}
PULLING = {
    **STARTING,
    "containerStatuses": [{**CONTAINER, "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}],
}


class ForgetsFirstAttempt(Seam):
    """Creates the first attempt's RayJob, and never hears of it."""

    @override
    async def create(self, resource: Resource, namespace: str | None, manifest: Manifest, **options: Any) -> Created:
        if manifest["metadata"]["labels"][ATTEMPT] != "0":
            return await super().create(resource, namespace, manifest, **options)
        with suppress(AlreadyExists):
            await super().create(resource, namespace, manifest, **options)
        raise Unavailable(Call("create", "rayjobs.ray.io"), "the answer broke off")


async def ends_in_success(run: Run) -> None:
    """Runs the task to its end: it succeeds, and propeller has its output."""
    status, end = await run.ends()
    assert (status, end["phase"]) == (0, "SUCCEEDED")
    assert end["outputs"]["literals"]["o0"]["scalar"]["primitive"]["integer"] == "7"


def told(event: Event) -> str:
    """The reason less the RayJob's name, and without times."""
    return re.sub(r"\b\d+s\b", "TIME", event["reason"].partition(": ")[2])


class TestDeadlines:
    """Row "deadlines": 10 s for each call."""

    async def test_a_create_fails_with_our_text_before_propeller_gives_up(self, propeller: Propeller) -> None:
        """The cluster is away: the user reads that, and not that a deadline was exceeded."""
        async with propeller.runs("--attempts", "1", seam=Seam(None)) as run:
            status, end = await run.ends()
        (create,) = run.calls("CreateTask")
        assert status == 4
        assert (create["code"], create["deadline_s"]) == ("Internal", 10)
        assert "can't talk to the API server: Connection refused" in end["error"]["message"]


class TestFollowing:
    """Rows "first GetTask", "phases", "changes within a phase", "message"."""

    async def test_the_first_get_is_answered_at_once(self, propeller: Propeller) -> None:
        """Row "first GetTask": moments after the create, when the watch may not know the RayJob yet."""
        async with propeller.runs() as run:
            job = await run.job()
            first = await run.sees("QUEUED")
            await run.succeeds(job)
            await ends_in_success(run)
        name = f"{job['metadata']['namespace']}/{job['metadata']['name']}"
        assert first["reason"] == f"RayJob {name}: KubeRay has not looked at it yet"
        assert {call["code"] for call in run.calls("GetTask")} == {"OK"}

    async def test_a_suspended_task_goes_back_to_queued(self, propeller: Propeller) -> None:
        """Row "phases": all come through, backwards too; its waiting again is told with its reason."""
        async with propeller.runs() as run:
            job = await run.job()
            await run.sees("QUEUED")
            await run.writes(job, jobDeploymentStatus="Initializing")
            await run.sees("INITIALIZING")
            await run.writes(job, **UP)
            await run.sees("RUNNING")
            await run.writes(job, jobDeploymentStatus="Suspended", jobStatus="STOPPED")
            again = await run.until(lambda event: "suspended" in event.get("reason", ""))
            await run.succeeds(job)
            await ends_in_success(run)
        assert again["phase"] == "QUEUED"
        assert again["reason"].endswith(": it is suspended, waiting for its queue")
        phases = [phase for _, phase in run.phases]
        assert phases[:4] == ["QUEUED", "INITIALIZING", "RUNNING", "QUEUED"]
        assert phases[-1] == "SUCCEEDED"

    async def test_the_first_answer_of_a_waiting_phase_is_complete(self, propeller: Propeller) -> None:
        """Rows "changes within a phase" and "message": what is not said at once is never said."""
        async with propeller.runs() as run:
            job = await run.job()
            await run.sees("QUEUED")
            await run.makes_pod(job, "head", **STARTING)
            worker = await run.makes_pod(job, "cpu", **STARTING)
            await run.writes(job, jobDeploymentStatus="Initializing")
            starting = await run.sees("INITIALIZING")
            await run.changes_pod(worker, **PULLING)
            waiting = await run.sees("WAITING_FOR_RESOURCES")
            await run.succeeds(job)
            await ends_in_success(run)
        head, worker = "head: starting (TIME)", "worker group cpu: container ray: ErrImagePull: not found (TIME)"
        assert told(starting) == f"{head}; worker group cpu: starting (TIME)"
        assert told(waiting) == f"{head}; {worker}"

    async def test_the_first_answer_of_running_is_complete(self, propeller: Propeller) -> None:
        """Row "changes within a phase": cluster, job, dashboard and log links are those of its first observation."""
        async with propeller.runs() as run:
            job = await run.job()
            where = {"rayClusterName": "c-x", "dashboardURL": "c-x-head-svc:8265", "jobId": "j-1"}
            await run.writes(job, **UP, **where)
            running = await run.sees("RUNNING")
        assert running["logs"] == []  # none without a template for them, then or later
        assert running["custom_info"] == {
            "rayJob": f"{job['metadata']['namespace']}/{job['metadata']['name']}",
            "rayCluster": "c-x",
            "jobId": "j-1",
            "dashboardURL": "c-x-head-svc:8265",
            "output_prefix": f"{propeller.node_prefix}/0",
        }


class TestAttempts:
    """Rows "FAILED", "RETRYABLE_FAILED", "ABORTED", "CreateTask that raises", "paths"."""

    async def test_a_retryable_failure_is_followed_by_the_next_attempt(self, propeller: Propeller) -> None:
        """Rows "RETRYABLE_FAILED" and "paths": another name, another output prefix; the failed RayJob goes."""
        async with propeller.runs() as run:
            first = await run.job()
            await run.writes(first, **NOT_SUBMITTED)
            second = await run.job(attempt=1)
            assert run.prefix(first).endswith("/n0/data/0")
            assert run.prefix(second).endswith("/n0/data/1")
            assert first["metadata"]["name"].startswith(f"{propeller.execution}-n0-0-")
            assert second["metadata"]["name"].startswith(f"{propeller.execution}-n0-1-")
            await run.succeeds(second)
            await ends_in_success(run)
        assert len(run.calls("DeleteTask")) == 1

    async def test_the_last_failed_attempt_is_cleaned_up_by_us(self, propeller: Propeller) -> None:
        """Row "RETRYABLE_FAILED": no DeleteTask follows the last one, here for a lost head, while KubeRay goes on."""
        async with propeller.runs("--attempts", "1") as run:
            await run.writes(await run.job(), **UP, **PROVISIONED)
            status, end = await run.ends()
            assert await run.jobs(0) == []
        assert (status, end["error"]["code"]) == (4, "RetriesExhausted|TaskFailedWithError")
        assert "the job can't go on: the head pod is gone" in end["error"]["message"]
        assert run.calls("DeleteTask") == []

    async def test_what_we_declare_failed_for_good_is_cleaned_up_by_us(self, propeller: Propeller) -> None:
        """Row "FAILED": not retried and no DeleteTask, here past the run deadline, while KubeRay goes on."""
        extras = json.dumps({"version": 1, "deadlines": {"run": 1}})
        async with propeller.runs(config={"kuberay": extras}) as run:
            job = await run.job()
            await run.makes_pod(job, "head", phase="Running")
            started = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
            await run.writes(job, **UP, rayJobInfo={"startTime": started})
            status, end = await run.ends()
            assert await run.jobs(0) == []
        assert (status, end["attempts"], end["error"]["code"]) == (3, 1, "TaskFailedWithError")
        assert "failed to run the job: RayJob" in end["error"]["message"]
        assert "the job ran longer than its run deadline of 1s" in end["error"]["message"]
        assert run.calls("DeleteTask") == []

    @pytest.mark.parametrize(
        ("job_status", "text"),
        [
            pytest.param(APP_FAILED, "the task's process failed [AppFailed] exit code 1", id="the process failed"),
            pytest.param(
                {"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"},
                "the Ray job was stopped by someone",
                id="stopped by someone, for which ABORTED would lose the message",
            ),
            pytest.param(
                {"jobDeploymentStatus": "ValidationFailed", "reason": "ValidationFailed", "message": "a and b"},
                "KubeRay refuses it [ValidationFailed] a and b",
                id="KubeRay refuses it",
            ),
        ],
    )
    async def test_a_permanent_failure_is_not_retried(
        self, propeller: Propeller, job_status: dict[str, str], text: str
    ) -> None:
        """Rows "FAILED" and "ABORTED": one attempt, and its owner reads why."""
        async with propeller.runs() as run:
            await run.writes(await run.job(), **job_status)
            status, end = await run.ends()
        assert (status, end["attempts"], end["error"]["code"], end["error"]["kind"]) == (
            3, 1, "TaskFailedWithError", "USER",
        )  # fmt: skip
        assert text in end["error"]["message"]

    async def test_a_create_that_raised_leaves_nothing(self, propeller: Propeller, seam: Seam) -> None:
        """Row "CreateTask that raises": its RayJob is nobody's, no DeleteTask follows; the next attempt removes it."""
        seam = ForgetsFirstAttempt(seam)
        async with propeller.runs(seam=seam, own=IMPATIENT) as run:
            second = await run.job(attempt=1)
            await run.succeeds(second)
            await ends_in_success(run)
            assert [job["metadata"]["uid"] for job in await run.jobs(1)] == [second["metadata"]["uid"]]
        assert [call["code"] for call in run.calls("CreateTask")] == ["Internal", "OK"]
        assert run.calls("DeleteTask") == []

    async def test_a_create_that_did_not_arrive_is_the_next_attempts(self, propeller: Propeller) -> None:
        """Row "CreateTask that raises, or UNAVAILABLE": the connector was away."""
        async with propeller.runs("--fail", "CreateTask=1") as run:
            await run.succeeds(await run.job(attempt=1))
            await ends_in_success(run)

    async def test_another_version_of_the_task_type_is_refused(self, propeller: Propeller) -> None:
        """Row "task_type_version 1": nothing is made of a task that we don't know."""
        async with propeller.runs(taskTypeVersion=1) as run:
            status, end = await run.ends()
            assert await run.jobs(0) == []
        assert status == 4
        assert "Cannot find connector for task type: ray." in end["error"]["message"]


class TestResults:
    """Rows "SUCCEEDED, ..." and "FAILED with error.pb"."""

    async def test_a_users_error_that_is_final(self, propeller: Propeller) -> None:
        """Rows "SUCCEEDED, outputs declared, error.pb" and "FAILED with error.pb": the user's code, kind, text."""
        async with propeller.runs() as run:
            job = await run.job()
            put_error(run.prefix(job), "USER:ValueError", "no luck")
            await run.writes(job, **APP_FAILED)
            status, end = await run.ends()
        error = {key: end["error"][key] for key in ("code", "kind", "message")}
        assert (status, end["attempts"]) == (3, 1)
        assert error == {"code": "USER:ValueError", "kind": "USER", "message": "no luck"}

    async def test_a_users_error_that_may_be_tried_again(self, propeller: Propeller) -> None:
        """Row "SUCCEEDED, outputs declared, error.pb": the first RayJob goes, the second one's error stays."""
        async with propeller.runs() as run:
            for attempt in (0, 1):
                job = await run.job(attempt)
                put_error(run.prefix(job), "USER:Recoverable", "try again", recoverable=True)
                await run.writes(job, **APP_FAILED)
            status, end = await run.ends()
        assert (status, end["attempts"], end["error"]["kind"]) == (4, 2, "USER")
        assert end["error"]["code"] == "RetriesExhausted|USER:Recoverable"
        assert "try again" in end["error"]["message"]

    @pytest.mark.parametrize(
        ("recoverable", "expected"),
        [
            pytest.param(False, (3, 1, "TaskFailedWithError"), id="final"),
            pytest.param(True, (4, 2, "RetriesExhausted|TaskFailedWithError"), id="to be tried again"),
        ],
    )
    async def test_a_users_error_without_declared_outputs(
        self, propeller: Propeller, recoverable: bool, expected: tuple[int, int, str]
    ) -> None:
        """Row "SUCCEEDED, no outputs declared": propeller reads nothing, so the connector says what error.pb does."""
        async with propeller.runs(outputs=False) as run:
            for attempt in range(expected[1]):
                job = await run.job(attempt)
                put_error(run.prefix(job), "USER:ValueError", "no luck", recoverable=recoverable)
                await run.writes(job, **DONE)
            status, end = await run.ends()
        assert (status, end["attempts"], end["error"]["code"]) == expected
        assert "USER:ValueError: no luck" in end["error"]["message"]

    async def test_absent_outputs_are_retried_in_our_words(self, propeller: Propeller) -> None:
        """Row "SUCCEEDED, outputs declared": not as OutputsNotFound, of kind UNKNOWN, which says nothing."""
        async with propeller.runs() as run:
            for attempt in (0, 1):
                await run.writes(await run.job(attempt), **DONE)
            status, end = await run.ends()
        assert (status, end["attempts"], end["error"]["kind"]) == (4, 2, "USER")
        assert "the Ray job has succeeded but wrote no outputs" in end["error"]["message"]
        assert "OutputsNotFound" not in json.dumps(run.events)

    async def test_two_instances_of_a_sub_workflow_are_two_rayjobs(self, propeller: Propeller) -> None:
        """Row "two instances": only the output prefix tells them apart; each ends with its own outputs."""
        async with propeller.runs("--nodes", "2") as run:
            jobs = await run.jobs(2)
            assert {run.prefix(job).partition(f"{propeller.execution}/")[2] for job in jobs} == {
                "n0/data/0/n0/0",
                "n1/data/0/n0/0",
            }
            await run.succeeds(*jobs)
            status, end = await run.ends()
        assert status == 0
        assert [node["phase"] for node in end["nodes"].values()] == ["SUCCEEDED", "SUCCEEDED"]


class TestFaults:
    """Rows "GetTask that raises", "DeleteTask that raises", "abort", "restart"."""

    async def test_gets_that_did_not_arrive_are_forgiven(self, propeller: Propeller) -> None:
        """Row "GetTask that raises, or UNAVAILABLE": five, while a connector is replaced; a sixth would end it."""
        async with propeller.runs("--fail", "GetTask=5@1") as run:
            job = await run.job()
            await run.until(lambda _: [call["code"] for call in run.calls("GetTask")].count("Unavailable") == 5)
            await run.succeeds(job)
            await ends_in_success(run)

    async def test_no_get_raises_while_the_cluster_is_away(self, propeller: Propeller, seam: Seam) -> None:
        """Row "GetTask that raises": six would freeze the task, however long the cluster is away."""
        async with propeller.runs(seam=seam, stalest=0.0) as run:
            job = await run.job()
            await run.writes(job, **UP)
            await run.sees("RUNNING")
            seam.away = True
            before = len(run.calls("GetTask"))
            await run.until(lambda _: len(run.calls("GetTask")) >= before + 8)
            seam.away = False
            await run.succeeds(job)
            await ends_in_success(run)
        assert {call["code"] for call in run.calls("GetTask")} == {"OK"}

    @pytest.mark.parametrize(
        ("phase", "job_status"),
        [
            pytest.param("QUEUED", {}, id="while it waits"),
            pytest.param("RUNNING", UP, id="while it runs"),
        ],
    )
    async def test_an_abort_removes_the_rayjob(
        self, propeller: Propeller, phase: str, job_status: dict[str, str]
    ) -> None:
        """Row "abort": DeleteTask, then ABORTED."""
        async with propeller.runs("--abort-after", "3s") as run:
            await run.writes(await run.job(), **job_status)
            await run.sees(phase)
            status, end = await run.ends()
            assert await run.jobs(0) == []
        assert (status, end["phase"], run.phases[-2:]) == (6, "ABORTED", [(0, phase), (0, "ABORTED")])

    async def test_an_abort_does_not_raise_while_the_cluster_is_away(self, propeller: Propeller, seam: Seam) -> None:
        """Row "DeleteTask that raises": eleven would be a system failure; the RayJob goes when the cluster is back."""
        seam.faults["delete"] = [Unavailable(Call("delete", "rayjobs.ray.io"), "connection refused")] * 5
        async with propeller.runs("--abort-after", "1s", seam=seam, own=IMPATIENT) as run:
            await run.job()
            status, end = await run.ends()
            assert await run.jobs(0) == []
        assert (status, end["phase"], end["round_errors"]) == (6, "ABORTED", 0)
        assert [call["code"] for call in run.calls("DeleteTask")] == ["OK"]

    async def test_a_restarted_propeller_goes_on(self, propeller: Propeller) -> None:
        """Row "restart of propeller": with the stored metadata, and no second CreateTask."""
        async with propeller.runs("--restart-after", "1s") as run:
            job = await run.job()
            await run.writes(job, **UP)
            await run.until(lambda event: event["event"] == "restart")
            await run.succeeds(job)
            await ends_in_success(run)
        assert len(run.calls("CreateTask")) == 1


class TestSizes:
    """Rows "long messages", "GetTask response over 4 MiB", "resource metadata", "an exception's text"."""

    @pytest.mark.parametrize("outputs", [pytest.param(True, id="with outputs"), pytest.param(False, id="without")])
    async def test_long_texts_are_cut_by_us(self, propeller: Propeller, outputs: bool) -> None:
        """Rows "long messages" and "GetTask response over 4 MiB": of a status, and of the user's error."""
        async with propeller.runs("--attempts", "1", outputs=outputs) as run:
            job = await run.job()
            await run.writes(job, jobDeploymentStatus="Initializing", message="first" + "x" * 500_000 + "last")
            starting = await run.sees("INITIALIZING")
            put_error(run.prefix(job), "USER:ValueError", "first" + "x" * 5_000_000 + "last")
            await run.writes(job, **APP_FAILED)
            _, end = await run.ends()
        assert len(starting["reason"].encode()) < 2300
        assert "first" in starting["reason"]
        assert starting["reason"].endswith("last")
        assert max(call["response_bytes"] for call in run.calls("GetTask")) < 3000
        if not outputs:
            assert end["error"]["message_bytes"] < 2300

    async def test_the_resource_metadata_is_small(self, propeller: Propeller) -> None:
        """Row "resource metadata": propeller stores it in the FlyteWorkflow, also where a lot has no effect here."""
        odd = {f"unknown{number}": {"field": number} for number in range(40)}
        extras = json.dumps({"version": 1, "rayJobPatch": {"spec": odd}})
        async with propeller.runs(config={"kuberay": extras}) as run:
            warned = await run.sees("QUEUED")
            await run.succeeds(await run.job())
            _, end = await run.ends()
        (create,) = run.calls("CreateTask")
        assert "does not know it: spec.unknown0, spec.unknown1, " in warned["reason"]
        assert create["response_bytes"] < 1000
        assert end["state_bytes"] < 2000

    async def test_a_refusal_is_short(self, propeller: Propeller) -> None:
        """Row "an exception's text": flytekit sends ours twice, with its frames, so it is cut before."""
        groups = [{"groupName": f"g{number}", "replicas": -1} for number in range(200)]
        async with propeller.runs(custom={"rayCluster": {"headGroupSpec": {}, "workerGroupSpec": groups}}) as run:
            status, end = await run.ends()
        assert status == 4
        said = " ".join(end["error"]["message"].split())
        assert "200 problems: - custom.rayCluster.workerGroupSpec[0].replicas: is -1;" in said
        assert end["error"]["message_bytes"] < 6000


@pytest.mark.parametrize(
    "target",
    [
        pytest.param({}, id="a container"),
        pytest.param(
            {
                "container": None,
                "k8sPod": {"podSpec": {"containers": [{"name": "main", **template_json()["container"]}]}},
                "config": {"primary_container_name": "main"},
            },
            id="a pod",
        ),
    ],
)
async def test_what_propeller_did_to_the_task_is_not_done_twice(propeller: Propeller, target: dict[str, Any]) -> None:
    """Rows "container task", "k8s_pod task", "labels", "paths": arguments rendered, each variable once, its labels."""
    async with propeller.runs(**target) as run:
        job = await run.job()
        await run.succeeds(job)
        await ends_in_success(run)
    assert job["spec"]["entrypoint"] == f"pyflyte-execute --inputs {propeller.node_prefix}/inputs.pb"
    head = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]
    names = [variable["name"] for variable in head["spec"]["containers"][0]["env"]]
    assert "FLYTE_ATTEMPT_NUMBER" in names
    assert sorted(names) == sorted(set(names))
    labels = {"execution-id": propeller.execution, "interruptible": "false", "node-id": "n0", "task-name": "wf-train"}
    assert labels.items() <= head["metadata"]["labels"].items()
    assert labels.items() <= job["metadata"]["labels"].items()
