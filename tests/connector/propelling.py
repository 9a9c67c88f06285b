"""Propeller's own code (../shared/propeller-client) as the caller of a served connector, the test as operator."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from flytekit.core.data_persistence import FileAccessProvider
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from typing_extensions import override

from flytekitplugins.kuberay.cluster.names import ATTEMPT, PREFIX
from flytekitplugins.kuberay.connector.results import ResultFiles
from flytekitplugins.kuberay.kube import PODS, RAYJOBS, ApiKubeClient, KubeClient, Manifest
from flytekitplugins.kuberay.settings import Settings
from tests.api import SHARED, ApiServer
from tests.kube.admin import merge_patch

from .results import put_outputs
from .samples import execution_json, template_json
from .serving import service_over, serving

UP = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
DONE = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
Event = dict[str, Any]
_OF_PROPELLER = ("Allocation token required", "launched")  # reasons before the connector's first answer


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


def built_propeller() -> str:
    """The path of propeller-client, built in minutes where it is not yet; where there are no sources, a skip."""
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
        self.events: list[Event] = []
        self._reading = asyncio.create_task(self._read())

    async def jobs(self, count: int) -> list[Manifest]:
        """The RayJobs of the namespace as soon as there are so many, those that go left out."""
        for _ in range(400):
            found = await self._client.list(RAYJOBS, self._namespace)
            if len(found) == count:
                return found
            await asyncio.sleep(0.05)
        raise AssertionError(f"there are {len(found)} RayJobs, not {count}")

    async def job(self, attempt: int = 0) -> Manifest:
        """The one RayJob of the namespace, as soon as it is this attempt's."""
        for _ in range(400):
            found = await self._client.list(RAYJOBS, self._namespace)
            if [job["metadata"]["labels"][ATTEMPT] for job in found] == [str(attempt)]:
                return found[0]
            await asyncio.sleep(0.05)
        raise AssertionError(f"attempt {attempt} is not alone: {[job['metadata']['name'] for job in found]}")

    async def writes(self, job: Manifest, **status: Any) -> None:
        """Gives the RayJob this status, and its cluster the name `c`."""
        patch = {"status": {"rayClusterName": "c", **status}}
        await merge_patch(self._client, RAYJOBS, self._namespace, job["metadata"]["name"], patch, status=True)

    async def makes_pod(self, job: Manifest, kind: str, **status: Any) -> str:
        """The name of a new pod of the RayJob's cluster.

        Args:
            job: The RayJob.
            kind: `head`, or the name of a worker group.
            status: Of the pod.
        """
        cluster = job["spec"]["rayClusterSpec"]
        groups = {group["groupName"]: group for group in cluster["workerGroupSpecs"]} | {
            "head": cluster["headGroupSpec"]
        }
        node_type = {"ray.io/node-type": "head" if kind == "head" else "worker", "ray.io/group": kind}
        labels = {**groups[kind]["template"]["metadata"]["labels"], **node_type, "ray.io/cluster": "c"}
        name = f"{job['metadata']['name']}-{kind}"
        spec = {"containers": [{"name": "ray", "image": "i"}], "nodeSelector": {"no": "node"}}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
        await self._client.create(PODS, self._namespace, manifest)
        await self.changes_pod(name, **status)
        return name

    async def changes_pod(self, name: str, **status: Any) -> None:
        """Gives the pod this status, and the connector a moment to see it."""
        await merge_patch(self._client, PODS, self._namespace, name, {"status": status}, status=True)
        await asyncio.sleep(0.2)

    def prefix(self, job: Manifest) -> str:
        """The local folder of the RayJob's output prefix."""
        prefix: str = job["metadata"]["annotations"][f"{PREFIX}output-prefix"]
        return f"{self._folder}/{prefix.removeprefix('s3://')}"

    async def succeeds(self, *jobs: Manifest) -> None:
        """Has the RayJobs run and leave their outputs."""
        for job in jobs:
            await self.writes(job, **UP)
        for job in jobs:
            put_outputs(self.prefix(job))
            await self.writes(job, **DONE)

    async def until(self, found: Callable[[Event], bool]) -> Event:
        """The first of propeller's events for which this holds, as soon as it is there."""
        for _ in range(400):
            if event := next(filter(found, self.events), None):
                return event
            await asyncio.sleep(0.05)
        raise AssertionError(f"it did not come: {self.events}")

    async def sees(self, phase: str, attempt: int = 0) -> Event:
        """The connector's first answer of this phase, as propeller passes it on."""
        return await self.until(
            lambda event: (
                (event["event"], event.get("phase"), event.get("attempt")) == ("task", phase, attempt)
                and event["reason"] not in _OF_PROPELLER
            )
        )

    async def ends(self) -> tuple[int, Event]:
        """Propeller's exit status and its last word."""
        await asyncio.wait_for(self._reading, 60)
        return await self._process.wait(), self.events[-1]

    @property
    def phases(self) -> list[tuple[int, str]]:
        """Attempt and phase of each event that flyteadmin got of the task, those that change neither left out."""
        seen = [(event["attempt"], event["phase"]) for event in self.events if event["event"] == "task"]
        return [each for index, each in enumerate(seen) if index == 0 or seen[index - 1] != each]

    def calls(self, method: str) -> list[Event]:
        """Propeller's calls of the connector so far."""
        return [event for event in self.events if event["event"] == "rpc" and event["method"] == method]

    async def close(self) -> None:
        """Ends propeller."""
        if self._process.returncode is None:
            self._process.kill()
        await asyncio.gather(self._process.wait(), self._reading)

    async def _read(self) -> None:
        assert self._process.stdout is not None  # it is a pipe
        async for line in self._process.stdout:
            self.events.append(json.loads(line))


@dataclass(frozen=True)
class Propeller:
    """Runs tasks in one namespace.

    Args:
        binary: propeller-client.
        kubeconfig: Of the API server.
        client: An administrator's.
        namespace: Of the tasks.
        folder: The object store.
    """

    binary: str
    api_server: ApiServer
    client: ApiKubeClient
    namespace: str
    folder: Path

    @property
    def execution(self) -> str:
        """The name of the execution; the output prefix follows from it, by which pods are told apart."""
        return f"f{self.namespace.rpartition('-')[2]}"

    @property
    def node_prefix(self) -> str:
        """Below what the attempts' outputs go."""
        return f"s3://bucket/metadata/propeller/p-d-{self.execution}/n0/data"

    @asynccontextmanager
    async def runs(  # noqa: PLR0913  # what a test varies
        self,
        *options: str,
        settings: str = "",
        seam: KubeClient | None = None,
        own: Settings | None = None,
        stalest: float = 60.0,
        **template: Any,
    ) -> AsyncIterator[Run]:
        """A run of a task that declares an output, two attempts at most, each followed every 0.2 s.

        Args:
            options: Of propeller-client.
            settings: Propeller's configuration in YAML, in which ENDPOINT is the connector's address.
            seam: The connector's client; by default one that fails in nothing.
            own: The connector's settings.
            stalest: As the connector's service takes it.
            template: As `template_json` takes it.
        """
        client = seam or await ApiKubeClient.open(self.api_server.kubeconfig)
        service = service_over(client, own, ResultFiles(Bucket(self.folder)), stalest=stalest)
        async with serving(service) as caller:
            case = self._case(template, yaml.safe_load(settings.replace("ENDPOINT", caller.endpoint)) or {})
            (self.folder / "case.json").write_text(json.dumps(case))
            process = await asyncio.create_subprocess_exec(
                self.binary, "run", "--endpoint", caller.endpoint, "--poll", "0.1s", "--resync", "0.2s", "--trace",
                "--case", f"{self.folder}/case.json", "--output-dir", str(self.folder), "--timeout", "50s", *options,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, env=os.environ,
            )  # fmt: skip
            run = Run(process, self.client, self.namespace, self.folder)
            try:
                yield run
            finally:
                await run.close()

    def _case(self, template: dict[str, Any], settings: Any) -> Manifest:
        metadata = execution_json(self.namespace, execution=self.execution)
        execution = {
            "task_execution_id": metadata["taskExecutionId"],
            "namespace": self.namespace,
            "labels": metadata["labels"],
            "max_attempts": 2,
        }
        task = template_json(**{"outputs": True, **template})
        return {"task_template": task, "task_execution_metadata": execution, "settings": settings}
