"""Flyte's own caller against the connector: propeller's code (../shared/propeller-client), the test as operator."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from flytekit.core.data_persistence import FileAccessProvider
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from typing_extensions import override

from flytekitplugins.kuberay.connector.results import ResultFiles
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient, Manifest
from tests.api import SHARED, ApiServer

from .results import put_error, put_outputs
from .samples import execution_json, template_json
from .serving import service_over, serving

PREFIX = "kuberay.flyte.org/output-prefix"
UP = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
DONE = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}


class Bucket(FileAccessProvider):
    """What propeller-client makes of an object store: s3://bucket/key is FOLDER/bucket/key."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), raw_output_prefix=str(folder))
        self.folder = folder

    @override
    def get_filesystem_for_path(self, path: str = "", anonymous: bool = False, **kwargs: Any) -> DirFileSystem:
        return S3InFolder(path=str(self.folder), fs=LocalFileSystem())  # type: ignore[no-untyped-call]  # fsspec's


class S3InFolder(DirFileSystem):
    """A folder, with s3:// for its path."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("s3://")


@pytest.fixture(scope="session")
def propeller() -> str:
    """The path of propeller-client, built in minutes where it is not yet."""
    build = SHARED / "propeller-client" / "build"
    if not build.exists():
        pytest.skip("no propeller-client: it is built by ../shared/propeller-client/build, which is not there")
    return subprocess.run([build], capture_output=True, text=True, check=True).stdout.strip()


class Run:
    """Propeller's run of a task, and its operator's side.

    Args:
        process: Of propeller-client.
        client: An administrator's.
        namespace: Of the task.
        folder: The object store.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, client: ApiKubeClient, namespace: str, folder: Path
    ) -> None:
        self._process, self._client, self._namespace, self._folder = process, client, namespace, folder

    async def jobs(self, count: int) -> list[Manifest]:
        """The RayJobs of the namespace as soon as there are so many, those that go left out."""
        for _ in range(400):
            found = await self._client.list(RAYJOBS, self._namespace)
            if len(found) == count:
                return found
            await asyncio.sleep(0.05)
        raise AssertionError(f"there are {len(found)} RayJobs, not {count}")

    async def writes(self, job: Manifest, **status: Any) -> None:
        """Nothing; the RayJob has this status."""
        await self._client.patch(
            RAYJOBS, self._namespace, job["metadata"]["name"], {"status": status}, subresource="status"
        )

    def prefix(self, job: Manifest) -> str:
        """The local folder of the RayJob's output prefix."""
        return f"{self._folder}/{job['metadata']['annotations'][PREFIX].removeprefix('s3://')}"

    async def succeeds(self, jobs: list[Manifest]) -> None:
        """Nothing; the RayJobs have run and left their outputs."""
        for job in jobs:
            await self.writes(job, **UP)
        for job in jobs:
            put_outputs(self.prefix(job))
            await self.writes(job, **DONE)

    async def ends(self) -> tuple[int, list[dict[str, Any]]]:
        """Propeller's exit status and what it reported."""
        output, _ = await asyncio.wait_for(self._process.communicate(), 60)
        return self._process.returncode or 0, [json.loads(line) for line in output.decode().splitlines()]


@asynccontextmanager
async def run(  # noqa: PLR0913  # all that a run needs
    propeller: str,
    api_server: ApiServer,
    client: ApiKubeClient,
    namespace: str,
    folder: Path,
    *options: str,
    settings: str = "",
) -> AsyncIterator[Run]:
    """A run of a task with outputs, two attempts at most, each followed every 0.2 s.

    `settings` is propeller's configuration in YAML, in which ENDPOINT is the connector's address.
    """
    metadata = execution_json(namespace)
    execution = {
        "task_execution_id": metadata["taskExecutionId"],
        "namespace": namespace,
        "labels": metadata["labels"],
        "max_attempts": 2,
    }
    case = {"task_template": template_json(outputs=True), "task_execution_metadata": execution}
    service = service_over(await ApiKubeClient.open(api_server.kubeconfig), results=ResultFiles(Bucket(folder)))
    async with serving(service) as caller:
        configuration = yaml.safe_load(settings.replace("ENDPOINT", caller.endpoint)) or {}
        (folder / "case.json").write_text(json.dumps({**case, "settings": configuration}))
        arguments = ["--case", f"{folder}/case.json", "--output-dir", str(folder), "--timeout", "50s", *options]
        process = await asyncio.create_subprocess_exec(
            propeller, "run", "--endpoint", caller.endpoint, "--poll", "0.2s", "--resync", "0.2s", *arguments,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, env=os.environ,
        )  # fmt: skip
        try:
            yield Run(process, client, namespace, folder)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def tasks(events: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """Attempt and phase of each event that flyteadmin would get of the task, those that change neither left out."""
    seen = [(event["attempt"], event["phase"]) for event in events if event["event"] == "task"]
    return [each for index, each in enumerate(seen) if index == 0 or seen[index - 1] != each]


async def test_two_instances_of_a_sub_workflow_are_two_rayjobs(
    propeller: str, api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """Propeller tells them apart by the output prefix alone; each ends with its own outputs."""
    async with run(propeller, api_server, client, namespace, tmp_path, "--nodes", "2") as propellers:
        jobs = await propellers.jobs(2)
        assert len({job["metadata"]["annotations"][PREFIX] for job in jobs}) == 2
        await propellers.succeeds(jobs)
        status, events = await propellers.ends()
    assert status == 0
    assert [node["phase"] for node in events[-1]["nodes"].values()] == ["SUCCEEDED", "SUCCEEDED"]


async def test_a_recoverable_error_is_tried_again_and_kept_to_the_end(
    propeller: str, api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """The first attempt's RayJob goes; the second one's error reaches the user with its own code and kind."""
    async with run(propeller, api_server, client, namespace, tmp_path) as propellers:
        (first,) = await propellers.jobs(1)
        await propellers.writes(first, **UP)
        put_error(propellers.prefix(first), "USER:Recoverable", "try again", recoverable=True)
        await propellers.writes(first, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed")
        second = first
        while second["metadata"]["uid"] == first["metadata"]["uid"]:
            (second,) = await propellers.jobs(1)
        put_error(propellers.prefix(second), "USER:ValueError", "no luck")
        await propellers.writes(second, jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed")
        status, events = await propellers.ends()
    assert status == 3
    assert events[-1]["attempts"] == 2
    assert (events[-1]["error"]["code"], events[-1]["error"]["kind"]) == ("USER:ValueError", "USER")
    assert "no luck" in events[-1]["error"]["message"]


async def test_an_abort_removes_the_rayjob(
    propeller: str, api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """While its cluster starts."""
    async with run(propeller, api_server, client, namespace, tmp_path, "--abort-after", "3s") as propellers:
        (job,) = await propellers.jobs(1)
        await propellers.writes(job, jobDeploymentStatus="Initializing")
        status, events = await propellers.ends()
        assert status == 6
        assert (0, "INITIALIZING") in tasks(events)
        assert await propellers.jobs(0) == []


async def test_propeller_takes_the_configuration_of_the_manual(
    propeller: str, api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """Flyte's own loader, which is strict, reads docs/connector.md's block; a task runs by it."""
    manual = (Path(__file__).parents[2] / "docs" / "connector.md").read_text(encoding="utf-8")
    (block,) = [block for block in re.findall(r"```yaml\n(.*?)```", manual, re.S) if "connectorForTaskTypes" in block]
    settings = block.replace("dns:///flyte-kuberay.flyte.svc.cluster.local:8000", "dns:///ENDPOINT").replace(
        "ray: connector-service",
        "ray: connector-service-watched",  # as propeller-client calls its own
    )
    async with run(propeller, api_server, client, namespace, tmp_path, settings=settings) as propellers:
        await propellers.succeeds(await propellers.jobs(1))
        status, events = await propellers.ends()
    assert (status, events[-1]["phase"]) == (0, "SUCCEEDED")


async def test_propeller_gets_over_failures_as_the_manual_says(
    propeller: str, api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """Eight GetTasks fail after the first: with maxSystemFailures of 5 the task would be frozen."""
    settings = "plugins: {connector-service: {webApi: {caching: {maxSystemFailures: 50}}}}"
    options = ("--fail", "GetTask=8@1")
    async with run(propeller, api_server, client, namespace, tmp_path, *options, settings=settings) as propellers:
        jobs = await propellers.jobs(1)
        await propellers.succeeds(jobs)
        status, events = await propellers.ends()
    assert (status, events[-1]["phase"]) == (0, "SUCCEEDED")
    assert events[-1]["calls"]["GetTask"]["errors"] == {"Unavailable": 8}
