"""`sweep` on a real API server: what goes and what stays, dry or not; faults by a scripted server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from flytekitplugins.kuberay.cluster.names import MANAGED_BY, MANAGER
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient, Manifest
from tests.api import ApiServer
from tests.cli.running import Ended
from tests.cli.tasks import Command, run_command
from tests.flyte_workflows import (
    ABORTED,
    FLYTE_WORKFLOWS,
    RUNNING,
    SUCCEEDED,
    flyte_workflow,
    served_flyte_workflows,
)
from tests.kube.admin import merge_patch
from tests.kube.samples import rayjob
from tests.kube.scripted import Reply, ScriptedServer, answer, failure

GONE = failure(404, "NotFound", "no such workflow", name="f0")
UP = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
DONE = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "endTime": "2026-01-01T00:00:00Z"}


def ours(name: str, execution: str) -> Manifest:
    """A RayJob of this package for a task of that execution."""
    job = rayjob(name, labels={MANAGED_BY: MANAGER, "execution-id": execution})
    job["metadata"]["annotations"] = {"kuberay.flyte.org/execution": f"p/d/{execution}"}
    return job


class Cluster:
    """A namespace with RayJobs of ours.

    Args:
        client: An administrator's.
        namespace: Fresh.
    """

    def __init__(self, client: ApiKubeClient, namespace: str) -> None:
        self._client, self.namespace = client, namespace

    async def add(self, name: str, execution: str, phase: int | None = None, status: Manifest | None = None) -> None:
        """Adds a RayJob, and its FlyteWorkflow where it has a phase."""
        await self.add_manifest(ours(name, execution))
        if status:
            await merge_patch(self._client, RAYJOBS, self.namespace, name, {"status": status}, status=True)
        if phase is not None:
            await self._client.create(FLYTE_WORKFLOWS, self.namespace, flyte_workflow(execution, phase))

    async def add_manifest(self, job: Manifest) -> None:
        """Adds this RayJob."""
        await self._client.create(RAYJOBS, self.namespace, job)

    async def names(self) -> list[str]:
        """Of the RayJobs that are there."""
        return [job["metadata"]["name"] for job in await self._client.list(RAYJOBS, self.namespace)]


@pytest.fixture
def cluster(client: ApiKubeClient, namespace: str) -> Cluster:
    """A fresh namespace."""
    return Cluster(client, namespace)


@pytest.fixture
def sweep(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, api_server: ApiServer, namespace: str
) -> Command:
    """Runs `flyte-kuberay sweep` on the fresh namespace."""
    monkeypatch.delenv("FLYTE_KUBERAY_CONFIG", raising=False)
    place = ("--kubeconfig", api_server.kubeconfig, "--namespace", namespace)
    return lambda *arguments: run_command(capsys, "sweep", *place, *arguments)


@pytest.fixture(scope="class")
def flyte_workflows(api_server: ApiServer) -> Iterator[None]:
    """The API server serves FlyteWorkflows."""
    with served_flyte_workflows(api_server.kubeconfig):
        yield


@pytest.mark.usefixtures("flyte_workflows")
class TestWithFlyteWorkflows:
    """Where propeller runs its executions in the same cluster."""

    async def test_nothing_is_deleted_unless_told(self, sweep: Command, cluster: Cluster) -> None:
        """A dry run has one line a RayJob that would go; those of live executions, and of others, stay."""
        await cluster.add("orphan", "f-gone", status=UP)
        await cluster.add("lives", "f-lives", RUNNING, status=DONE)
        await cluster.add("left-over", "f-aborted", ABORTED)
        await cluster.add("kept", "f-done", SUCCEEDED, status=DONE)
        await cluster.add_manifest(rayjob("of-somebody-else", labels={"execution-id": "f-gone"}))
        ended = await sweep()
        lines = [line.split("  ") for line in ended.out.splitlines()]
        table = [[cell.strip() for cell in line if cell.strip()] for line in lines]
        assert [[line[0], line[1], *line[3:]] for line in table] == [
            [f"{cluster.namespace}/left-over", "New", "its execution has ended", "would delete"],
            [f"{cluster.namespace}/orphan", "Running/RUNNING", "its execution is gone", "would delete"],
        ]
        assert (ended.status, ended.err) == (0, "RayJobs: 2 would go (--delete deletes them), 2 stay\n")
        assert await cluster.names() == ["kept", "left-over", "lives", "of-somebody-else", "orphan"]

    async def test_delete_deletes(self, sweep: Command, cluster: Cluster) -> None:
        """And says so in JSON, for a program that reads it."""
        await cluster.add("orphan", "f-gone", status=UP)
        await cluster.add("lives", "f-lives", RUNNING, status=UP)
        ended = await sweep("--delete", "-o", "json")
        (row,) = json.loads(ended.out)
        assert row.pop("age_seconds") in range(60)
        assert row == {
            "namespace": cluster.namespace,
            "name": "orphan",
            "state": "Running/RUNNING",
            "why": "its execution is gone",
            "action": "deleted",
        }
        assert (ended.status, ended.err) == (0, "RayJobs: 1 deleted, 1 stay\n")
        assert await cluster.names() == ["lives"]

    async def test_what_ended_goes_by_its_age(self, sweep: Command, cluster: Cluster, tmp_path: Path) -> None:
        """By the setting, over which the option wins."""
        await cluster.add("ended", "f-done", SUCCEEDED, status=DONE)
        config = tmp_path / "config.yaml"
        config.write_text("plugins: {kuberay: {keep-finished: 1h}}")
        by_setting = await sweep("--config", str(config))
        cells = by_setting.out.split("  ")
        assert (cells[:2], cells[3][:9]) == ([f"{cluster.namespace}/ended", "Complete/SUCCEEDED"], "it ended ")
        assert (await sweep("--config", str(config), "--older-than", "200000h")).out == ""
        assert (await sweep("--older-than", "1h")).out.endswith(" ago  would delete\n")

    async def test_all_namespaces_by_default(
        self, capsys: pytest.CaptureFixture[str], api_server: ApiServer, cluster: Cluster
    ) -> None:
        """The connector's setting narrows it as it does the connector."""
        await cluster.add("orphan", "f-gone")
        ended = await run_command(capsys, "sweep", "--kubeconfig", api_server.kubeconfig, "-o", "json")
        assert (cluster.namespace, "orphan") in [(row["namespace"], row["name"]) for row in json.loads(ended.out)]


async def test_without_flyte_workflows_only_age_counts(sweep: Command, cluster: Cluster) -> None:
    """The connector's cluster is not propeller's: nobody there is known to be gone, and it says so."""
    await cluster.add("runs", "f-somewhere", status=UP)
    await cluster.add("ended", "f-somewhere", status=DONE)
    ended = await sweep("--older-than", "1h", "--delete")
    assert [line.partition("  ")[0] for line in ended.out.splitlines()] == [f"{cluster.namespace}/ended"]
    first, last = ended.err.splitlines()
    assert first.startswith("warning: the cluster has no FlyteWorkflows, so it is not known which executions are gone")
    assert (ended.status, last) == (0, "RayJobs: 1 deleted, 1 stay")
    assert await cluster.names() == ["runs"]


def listed(*names: str) -> Reply:
    """The answer to a list: RayJobs of ours, of execution f0."""
    jobs = [ours(name, "f0") for name in names]
    for job in jobs:
        job["metadata"] |= {"namespace": "ns", "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return answer({"metadata": {"resourceVersion": "1"}, "items": jobs})


class TestFaults:
    """Nothing goes that is not known to be free."""

    @pytest.fixture
    async def server(self) -> AsyncIterator[ScriptedServer]:
        """A server."""
        async with ScriptedServer() as server:
            yield server

    async def swept(
        self,
        server: ScriptedServer,
        capsys: pytest.CaptureFixture[str],
        folder: Path,
        *replies: Reply,
        of: tuple[str, ...] = ("orphan",),
    ) -> Ended:
        """How `sweep --delete` of these RayJobs ends when the server answers so after the list."""
        server.replies += [listed(*of), *replies]
        content = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(content))
        return await run_command(capsys, "sweep", "--kubeconfig", str(folder / "kubeconfig"), "--delete")

    async def test_a_deletion_means_this_rayjob_alone(
        self, server: ScriptedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """Its uid is sent along: a namesake that was made meanwhile stays, and that is no failure."""
        ended = await self.swept(server, capsys, tmp_path, GONE, failure(409, "Conflict", "the uid is another"))
        assert json.loads(server.seen[-1].body)["preconditions"] == {"uid": "u-1"}
        assert (ended.status, ended.out.split("  ")[-1]) == (0, "was gone\n")

    async def test_what_came_of_it_is_counted(
        self, server: ScriptedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """A RayJob that was gone already, or could not be deleted, is not one that was deleted."""
        gone, refused = failure(404, "NotFound", "no such RayJob", name="b"), failure(403, "Forbidden", "no")
        ended = await self.swept(server, capsys, tmp_path, GONE, answer({}), gone, refused, of=("a", "b", "c"))
        assert [line.split("  ")[-1] for line in ended.out.splitlines()] == ["deleted", "was gone", "not deleted"]
        assert ended.err.splitlines()[1] == "RayJobs: 1 deleted, 1 already gone, 1 not deleted, 0 stay"

    async def test_an_execution_that_may_not_be_asked_for_is_not_gone(
        self, server: ScriptedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """Without the right to read FlyteWorkflows nothing is deleted."""
        ended = await self.swept(server, capsys, tmp_path, failure(403, "Forbidden", "you cannot get it"))
        assert (ended.status, ended.out) == (1, "")
        assert ended.err.startswith("error: get flyteworkflows.flyte.lyft.com f0 in namespace ns: you cannot get it")
        assert [seen.method for seen in server.seen] == ["GET", "GET"]

    async def test_an_execution_that_cannot_be_asked_for_now(
        self, server: ScriptedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """Its RayJob stays; the others are gone through, and the status tells."""
        busy = failure(429, "TooManyRequests", "busy")
        ended = await self.swept(server, capsys, tmp_path, busy, GONE, answer({}), of=("first", "second"))
        assert [line.split("  ")[0] for line in ended.out.splitlines()] == ["ns/second"]
        assert [seen.path.split("/")[-1] for seen in server.seen if seen.method == "DELETE"] == ["second"]
        assert (ended.status, ended.err.splitlines()) == (
            1,
            [
                "warning: get flyteworkflows.flyte.lyft.com f0 in namespace ns: busy",
                "RayJobs: 1 deleted, 1 stay",
                "error: 1 of 2 RayJobs could not be swept; the warnings tell why",
            ],
        )

    async def test_a_deletion_that_fails(
        self, server: ScriptedServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """The others are gone through, and the status tells."""
        ended = await self.swept(server, capsys, tmp_path, GONE, failure(403, "Forbidden", "a webhook says no"))
        assert (ended.status, ended.out.split("  ")[-1]) == (1, "not deleted\n")
        assert ended.err.splitlines() == [
            "warning: delete rayjobs.ray.io orphan in namespace ns: a webhook says no",
            "RayJobs: 0 deleted, 1 not deleted, 0 stay",
            "error: 1 of 1 RayJobs could not be swept; the warnings tell why",
        ]


async def test_bad_input_is_told_at_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An empty namespace, as of a variable that is not set, is not all of them."""
    (tmp_path / "config.yaml").write_text("plugins: {kuberay: {keep-finished: long}}")
    arguments = ("--older-than", "2", "--namespace", "", "--config", str(tmp_path / "config.yaml"))
    ended = await run_command(capsys, "sweep", *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.splitlines() == [
        "error: 3 problems:",
        "  - --older-than: must be a duration, got '2'; write it with units, as 90s, 3m or 1h30m",
        "  - --namespace: is empty; name one, or leave the option out for all",
        f"  - {tmp_path}/config.yaml: plugins.kuberay.keep-finished: must be a duration, got 'long';"
        " write it with units, as 90s, 3m or 1h30m",
    ]
