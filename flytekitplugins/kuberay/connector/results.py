"""The files of an attempt: which results stand (error.pb, outputs.pb), and the diagnosis that we put beside them.

They are read with the connector's own identity. Reading blocks, so it is done by a few threads of its own, within a
time, once for each attempt that has ended.
"""

from __future__ import annotations

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flyteidl.core.errors_pb2 import ContainerError, ErrorDocument
from flytekit.core.data_persistence import FileAccessProvider

from ..cluster.capsule import declared_in, place_of
from ..cluster.phase import Results, UserError

_THREADS = 8


class ResultFiles:
    """Reads and writes an attempt's files through flytekit's FileAccessProvider.

    Args:
        files: For tests; by default one for the object store of the connector's own configuration.
        seconds: How long the reading for one attempt may take.
    """

    def __init__(self, files: FileAccessProvider | None = None, *, seconds: float = 5.0) -> None:
        self._files, self._seconds = files, seconds
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="kuberay-results")

    async def read(self, output_prefix: str, *, diagnosis: bool = False) -> Results:
        """The result files below an output prefix. Raises nothing: what can't be read is `unreadable`.

        Args:
            output_prefix: That of the attempt.
            diagnosis: Whether to look for an earlier look's verdict too, where neither result stands.
        """
        loop = asyncio.get_running_loop()
        try:
            return await asyncio.wait_for(
                loop.run_in_executor(self._threads, self._read, output_prefix, diagnosis), self._seconds
            )
        except asyncio.TimeoutError:
            return Results(unreadable=f"no answer from the object store within {self._seconds:g} s")
        except Exception as error:  # noqa: BLE001 - any store, any fault: unreadable is not absent
            return Results(unreadable=f"{type(error).__name__}: {str(error)[:300]}")

    async def diagnosis(self, output_prefix: str) -> str:
        """The text of the capsule below an output prefix; "" where there is none, or it can't be read."""
        loop = asyncio.get_running_loop()
        try:
            reading = loop.run_in_executor(self._threads, self._content, place_of(output_prefix))
            return (await asyncio.wait_for(reading, self._seconds) or b"").decode(errors="replace")
        except Exception:  # noqa: BLE001 - any store, any fault
            return ""

    async def write(self, path: str, text: str) -> bool:
        """Whether the text stands at the path now. Raises nothing: without it a task ends as it does."""
        loop = asyncio.get_running_loop()
        try:
            await asyncio.wait_for(loop.run_in_executor(self._threads, self._write, path, text), self._seconds)
        except Exception:  # noqa: BLE001 - any store, any fault
            return False
        return True

    def close(self) -> None:
        """Nothing; no new file is read."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _read(self, output_prefix: str, diagnosis: bool) -> Results:
        prefix = output_prefix.rstrip("/")
        if (document := self._content(f"{prefix}/error.pb")) is not None:
            return Results(error=_user_error(document))
        outputs = self._stands(f"{prefix}/outputs.pb")
        left = self._content(place_of(prefix)) if diagnosis and not outputs else None
        return Results(outputs=outputs, declared=declared_in(left.decode(errors="replace")) if left else None)

    def _write(self, path: str, text: str) -> None:
        filesystem = self._filesystem(path)
        filesystem.makedirs(filesystem._parent(path), exist_ok=True)
        filesystem.pipe_file(path, text.encode())

    def _content(self, path: str) -> bytes | None:
        try:
            return bytes(self._filesystem(path).cat_file(path))
        except FileNotFoundError:
            return None

    def _stands(self, path: str) -> bool:
        filesystem = self._filesystem(path)
        filesystem.invalidate_cache()
        try:
            filesystem.info(path)  # not `exists`, to which a store that denies the answer is a file that is not there
        except FileNotFoundError:
            return False
        return True

    def _filesystem(self, path: str) -> Any:
        if self._files is None:
            self._files = FileAccessProvider(tempfile.mkdtemp(prefix="flyte-kuberay-"), raw_output_prefix="")
        return self._files.get_filesystem_for_path(path)


def _user_error(document: bytes) -> UserError:
    error = ErrorDocument.FromString(document).error
    return UserError(error.code, error.message, recoverable=error.kind == ContainerError.RECOVERABLE)
