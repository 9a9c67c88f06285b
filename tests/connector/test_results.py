"""Result files: what the user's process left decides, and what can't be read is not taken for absent."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flyteidl.core.execution_pb2 import TaskExecution
from flytekit.core.data_persistence import FileAccessProvider
from fsspec.implementations.local import LocalFileSystem
from typing_extensions import override

from flytekitplugins.kuberay.cluster.capsule import place_of
from flytekitplugins.kuberay.cluster.phase import Results, UserError
from flytekitplugins.kuberay.connector.follower import Follower
from flytekitplugins.kuberay.connector.metadata import JobMetadata
from flytekitplugins.kuberay.connector.results import Diagnosis, ResultFiles
from flytekitplugins.kuberay.kube import ApiKubeClient, Call, NotFound
from flytekitplugins.kuberay.settings import Settings
from tests.api import ApiServer

from .results import put_error, put_outputs
from .samples import flyte_task
from .seam import Seam
from .serving import Caller, service_over, serving, write_status

RUNNING, SUCCEEDED, FAILED, RETRYABLE = (
    TaskExecution.RUNNING,
    TaskExecution.SUCCEEDED,
    TaskExecution.FAILED,
    TaskExecution.RETRYABLE_FAILED,
)
DONE = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
APP_FAILED = {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed", "message": "exit code 1"}
NOT_SUBMITTED = {"jobDeploymentStatus": "Failed", "reason": "SubmissionFailed", "message": "BackoffLimitExceeded"}
Put = Callable[[str], None]
READ = """
import asyncio, sys
from flytekitplugins.kuberay.connector.results import ResultFiles
files = ResultFiles(seconds=0.1)
print(asyncio.run(files.read(sys.argv[1])).unreadable)
files.close()
"""


class Store(LocalFileSystem):
    """Local files behind a store's faults."""

    cachable = False

    def __init__(self, fault: Exception | None = None, answers: threading.Event | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # fsspec tells few types
        self.fault, self.answers, self.reads = fault, answers, 0

    @override
    def cat_file(self, path: str, *args: Any, **kwargs: Any) -> bytes:
        self.reads += 1
        if self.answers is not None:
            self.answers.wait()
        if self.fault is not None:
            raise self.fault
        content: bytes = super().cat_file(path, *args, **kwargs)  # type: ignore[no-untyped-call]  # as above
        return content


class PutOnly(Store):
    """A store that lets us put files, and nothing else."""

    @override
    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        raise PermissionError("s3:CreateBucket is denied")

    @override
    def cat_file(self, path: str, *args: Any, **kwargs: Any) -> bytes:
        raise PermissionError("s3:GetObject is denied")


class Files(FileAccessProvider):
    """flytekit's way to files, all of which lie in one store."""

    def __init__(self, store: Store, scratch: Path) -> None:
        super().__init__(str(scratch), raw_output_prefix=str(scratch))
        self.store = store

    @override
    def get_filesystem_for_path(self, path: str = "", anonymous: bool = False, **kwargs: Any) -> Store:
        return self.store


def error(*, recoverable: bool) -> Put:
    """Puts an error.pb."""
    return lambda prefix: put_error(prefix, "USER:ValueError", "no luck", recoverable=recoverable)


def nothing(prefix: str) -> None:
    """Leaves no result file."""


@pytest.mark.parametrize(
    ("status", "outputs", "put", "phase", "text"),
    [
        pytest.param(
            APP_FAILED, True, error(recoverable=True), SUCCEEDED, "no luck",
            id="an error of a task with outputs is left to propeller, which reads it upon SUCCEEDED",
        ),
        pytest.param(
            DONE, True, error(recoverable=False), SUCCEEDED, "no luck",
            id="also when the process ended with 0",
        ),
        pytest.param(
            APP_FAILED, False, error(recoverable=False), FAILED, "USER:ValueError: no luck",
            id="of a task without outputs propeller reads nothing: for good",
        ),
        pytest.param(
            APP_FAILED, False, error(recoverable=True), RETRYABLE, "USER:ValueError: no luck",
            id="and to be tried again when the user said so",
        ),
        pytest.param(
            DONE, False, error(recoverable=False), FAILED, "USER:ValueError: no luck",
            id="an error wins over what Ray says",
        ),
        pytest.param(DONE, True, put_outputs, SUCCEEDED, "succeeded", id="outputs stand"),
        pytest.param(DONE, False, nothing, SUCCEEDED, "succeeded", id="no outputs are declared"),
        pytest.param(
            DONE, True, nothing, RETRYABLE, "has succeeded but wrote no outputs", id="declared outputs are absent"
        ),
        pytest.param(NOT_SUBMITTED, True, put_outputs, SUCCEEDED, "were written", id="outputs beat a lost submitter"),
        pytest.param(NOT_SUBMITTED, True, nothing, RETRYABLE, "[SubmissionFailed]", id="a lost submitter"),
        pytest.param(APP_FAILED, True, nothing, FAILED, "[AppFailed] exit code 1", id="the process died with no word"),
    ],
)  # fmt: skip
async def test_the_end_is_what_the_files_say(  # noqa: PLR0913, PLR0917  # a row and three fixtures
    caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path,
    status: dict[str, str], outputs: bool, put: Put, phase: TaskExecution.Phase, text: str,
) -> None:  # fmt: skip
    """The user's own code, kind and recoverability arrive, whether the task declares outputs or not."""
    task = flyte_task(namespace, str(tmp_path), outputs=outputs)
    metadata = await caller.create(task)
    put(task.output_prefix)
    await write_status(client, metadata, **status)
    resource = await caller.becomes(metadata, phase)
    assert (resource.phase, text in resource.message) == (phase, True)


async def test_outputs_that_are_on_their_way_are_waited_for(
    caller: Caller, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """Until KubeRay says Complete."""
    metadata = await caller.create(flyte_task(namespace, str(tmp_path), outputs=True))
    await write_status(client, metadata, jobDeploymentStatus="Running", jobStatus="SUCCEEDED")
    resource = await caller.becomes(metadata, RUNNING)
    assert resource.message.endswith("the Ray job has ended, its outputs are awaited")
    await write_status(client, metadata, **DONE)
    assert (await caller.becomes(metadata, RETRYABLE)).phase == RETRYABLE


@pytest.mark.parametrize(
    ("status", "phase", "text"),
    [
        pytest.param(DONE, SUCCEEDED, "the outputs were not looked at: PermissionError: denied", id="success"),
        pytest.param(APP_FAILED, FAILED, "the result files were not read: PermissionError: denied", id="failure"),
    ],
)
async def test_a_store_that_denies_is_told_and_ray_is_trusted(
    api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path,
    status: dict[str, str], phase: TaskExecution.Phase, text: str,
) -> None:  # fmt: skip
    """Not read is not absent."""
    reader = ResultFiles(Files(Store(PermissionError("denied")), tmp_path))
    seam = Seam(await ApiKubeClient.open(api_server.kubeconfig))
    async with serving(service_over(seam, results=reader)) as caller:
        metadata = await caller.create(flyte_task(namespace, str(tmp_path), outputs=True))
        await write_status(client, metadata, **status)
        resource = await caller.becomes(metadata, phase)
    assert (resource.phase, text in resource.message) == (phase, True)


async def test_files_are_read_once_for_an_ended_task(
    api_server: ApiServer, client: ApiKubeClient, namespace: str, tmp_path: Path
) -> None:
    """However often propeller asks."""
    store = Store()
    seam = Seam(await ApiKubeClient.open(api_server.kubeconfig))
    async with serving(service_over(seam, results=ResultFiles(Files(store, tmp_path)))) as caller:
        metadata = await caller.create(flyte_task(namespace, str(tmp_path), outputs=True))
        await write_status(client, metadata, **DONE)
        assert [(await caller.becomes(metadata, RETRYABLE)).phase for _ in range(5)] == [RETRYABLE] * 5
    assert store.reads == 1


@pytest.mark.parametrize(
    ("remembered", "reads"),
    [
        pytest.param(60.0, [2, 4, 4], id="as long as somebody asks"),
        pytest.param(0.0, [2, 4, 6], id="nobody asked for the first one meanwhile"),
    ],
)
async def test_what_nobody_asks_for_is_forgotten(
    seam: Seam, tmp_path: Path, remembered: float, reads: list[int]
) -> None:
    """Most ended tasks are never deleted. They are read again if somebody asks: error.pb, and the diagnosis."""
    store = Store()
    follower = Follower(seam, Settings(), ResultFiles(Files(store, tmp_path)), remembered=remembered)
    follower.start()
    seam.faults["get"] = [NotFound(Call("get", "rayjobs.ray.io"), "gone") for _ in range(3)]
    first, second = (JobMetadata("n", n, f"uid-{n}", str(tmp_path / n), has_outputs=True) for n in ("a", "b"))
    seen = []
    for metadata in (first, second, first):
        await follower.look(metadata)
        seen.append(store.reads)
    await follower.stop()
    await seam.close()
    assert seen == reads


class TestResultFiles:
    """Reads through flytekit's way to files, in threads of its own."""

    async def test_files_of_a_local_folder(self, tmp_path: Path) -> None:
        """An error before outputs, as propeller does it."""
        reader = ResultFiles()
        assert await reader.read(str(tmp_path)) == Results()
        put_outputs(str(tmp_path))
        assert await reader.read(f"{tmp_path}/") == Results(outputs=True)
        put_error(str(tmp_path), "USER:ValueError", "no luck", recoverable=True)
        assert await reader.read(str(tmp_path)) == Results(error=UserError("USER:ValueError", "no luck", True))
        reader.close()

    async def test_an_error_file_that_is_none(self, tmp_path: Path) -> None:
        """Half of one, or another's: not read."""
        (tmp_path / "error.pb").write_bytes(b"\xff\xff\xff")
        reader = ResultFiles()
        assert (await reader.read(str(tmp_path))).unreadable.startswith("DecodeError: ")
        reader.close()

    async def test_a_store_that_hangs(self, tmp_path: Path) -> None:
        """Does not hold up an answer, nor the other tasks' answers."""
        answers = threading.Event()
        reader = ResultFiles(Files(Store(answers=answers), tmp_path), seconds=0.05)
        try:
            read = await reader.read(str(tmp_path))
            assert read == Results(unreadable="no answer from the object store within 0.05 s")
        finally:
            answers.set()
            reader.close()

    async def test_a_scheme_that_nothing_can_read(self) -> None:
        """The text says which."""
        reader = ResultFiles()
        assert "gopher" in (await reader.read("gopher://x/y")).unreadable
        reader.close()

    def test_a_store_that_hangs_does_not_hold_the_process(self, tmp_path: Path) -> None:
        """Python would wait for the threads of a ThreadPoolExecutor, here for ever: nobody writes into the pipe."""
        os.mkfifo(tmp_path / "error.pb")
        command = [sys.executable, "-c", READ, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        assert done.stdout == "no answer from the object store within 0.1 s\n"

    async def test_nothing_is_left_in_the_temporary_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each look of a person's at a task would leave a folder."""
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        reader = ResultFiles()
        await reader.read(str(tmp_path / "task"))
        reader.close()
        assert list(tmp_path.iterdir()) == []

    async def test_a_diagnosis(self, tmp_path: Path) -> None:
        """Its text, in a folder that was not there; none is none."""
        files = ResultFiles()
        prefix = str(tmp_path / "n0" / "0")
        assert await files.diagnosis(prefix) == Diagnosis()
        assert await files.write(place_of(prefix), "# FAILED: größer\n")
        assert await files.diagnosis(prefix) == Diagnosis("# FAILED: größer\n")
        files.close()

    async def test_a_file_is_put_with_no_other_right(self, tmp_path: Path) -> None:
        """A policy often grants no more than objects, and s3fs would make a folder's bucket."""
        files = ResultFiles(Files(PutOnly(), tmp_path))
        assert await files.write(place_of(str(tmp_path)), "# FAILED: so\n")
        assert await files.diagnosis(str(tmp_path)) == Diagnosis(unreadable="PermissionError: s3:GetObject is denied")
        files.close()

    async def test_a_diagnosis_that_hangs(self, tmp_path: Path) -> None:
        """Is not known to be absent."""
        answers = threading.Event()
        files = ResultFiles(Files(Store(answers=answers), tmp_path), seconds=0.05)
        try:
            found = await files.diagnosis(str(tmp_path))
            assert found == Diagnosis(unreadable="no answer from the object store within 0.05 s")
        finally:
            answers.set()
            files.close()

    async def test_a_file_that_can_not_be_put_is_logged(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """With its place and the reason; the task's end does not tell."""
        files = ResultFiles()
        with caplog.at_level(logging.WARNING):
            assert not await files.write(str(tmp_path), "text")
        files.close()
        assert caplog.messages == [
            f"{tmp_path} can't be written: IsADirectoryError: [Errno 21] Is a directory: '{tmp_path}'"
        ]

    async def test_a_reason_is_short_and_holds_no_secret(self, tmp_path: Path) -> None:
        """Its beginning and its end, for it becomes part of a task's message."""
        fault = PermissionError(f"https://user:password@store/ denied, {'x' * 1000} AccessDenied")
        reader = ResultFiles(Files(Store(fault), tmp_path))
        reason = (await reader.read(str(tmp_path))).unreadable
        reader.close()
        assert reason.startswith("PermissionError: https://[redacted]@store/ denied, xxx")
        assert (reason.endswith("xxx AccessDenied"), " ... " in reason, len(reason)) == (True, True, 317)
