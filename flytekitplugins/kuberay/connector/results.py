"""The files of an attempt: which results stand (error.pb, outputs.pb), and the diagnosis that we put beside them.

They are read with the connector's own identity. Reading blocks, and may hang, so a few threads of its own do it, within
a time, once for each attempt that has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from flyteidl.core.errors_pb2 import ContainerError, ErrorDocument
from flytekit.core.data_persistence import FileAccessProvider, default_local_file_access_provider

from ..cluster.capsule import declared_in, place_of
from ..cluster.phase import Results, UserError
from ..cluster.redaction import redacted
from ..errors import shortened
from .threads import DaemonThreads

_THREADS = 8
_SCRATCH = default_local_file_access_provider.local_sandbox_dir  # flytekit wants one, and has made this one itself
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Diagnosis(NamedTuple):
    """The capsule of an attempt."""

    text: str = ""  # "" where there is none
    unreadable: str = ""  # why it is not known whether there is one


class ResultFiles:
    """Reads and writes an attempt's files through flytekit's FileAccessProvider.

    Args:
        files: flytekit's way to them; by default one for the object store of this process's configuration.
        seconds: How long the reading for one attempt may take.
    """

    def __init__(self, files: FileAccessProvider | None = None, *, seconds: float = 5.0) -> None:
        self._files, self._seconds = files or FileAccessProvider(_SCRATCH, raw_output_prefix=""), seconds
        self._threads = DaemonThreads(_THREADS, "kuberay-results")

    async def read(self, output_prefix: str, *, diagnosis: bool = False) -> Results:
        """The result files below an output prefix. Raises nothing: what can't be read is `unreadable`.

        Args:
            output_prefix: That of the attempt.
            diagnosis: Whether to look for an earlier look's verdict too, where neither result stands.
        """
        try:
            return await self._in_time(partial(self._read, output_prefix, diagnosis))
        except Exception as error:  # noqa: BLE001 - any store, any fault: unreadable is not absent
            return Results(unreadable=self._reason(error))

    async def diagnosis(self, output_prefix: str) -> Diagnosis:
        """The capsule below an output prefix. Raises nothing."""
        try:
            content = await self._in_time(partial(self._content, place_of(output_prefix)))
        except Exception as error:  # noqa: BLE001 - any store, any fault: unreadable is not absent
            return Diagnosis(unreadable=self._reason(error))
        return Diagnosis((content or b"").decode(errors="replace"))

    async def write(self, path: str, text: str) -> bool:
        """Whether the text stands at the path now. Raises nothing: without it a task ends as it does."""
        try:
            await self._in_time(partial(self._write, path, text))
        except Exception as error:  # noqa: BLE001 - any store, any fault
            _log.warning("%s can't be written: %s", path, self._reason(error))
            return False
        return True

    def close(self) -> None:
        """Lets no new file be read."""
        self._threads.shutdown()

    async def _in_time(self, call: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        return await asyncio.wait_for(loop.run_in_executor(self._threads, call), self._seconds)

    def _reason(self, error: Exception) -> str:
        if isinstance(error, asyncio.TimeoutError):
            return f"no answer from the object store within {self._seconds:g} s"
        return f"{type(error).__name__}: {shortened(redacted(str(error)), longest=300, front=150, mark=' ... ')}"

    def _read(self, output_prefix: str, diagnosis: bool) -> Results:
        prefix = output_prefix.rstrip("/")
        if (document := self._content(f"{prefix}/error.pb")) is not None:
            return Results(error=_user_error(document))
        outputs = self._stands(f"{prefix}/outputs.pb")
        left = self._content(place_of(prefix)) if diagnosis and not outputs else None
        return Results(outputs=outputs, declared=declared_in(left.decode(errors="replace")) if left else None)

    def _write(self, path: str, text: str) -> None:
        # No folder is made: flytekit's local files make their own, and s3fs would ask for rights on the bucket.
        self._filesystem(path).pipe_file(path, text.encode())

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
        return self._files.get_filesystem_for_path(path)


def _user_error(document: bytes) -> UserError:
    error = ErrorDocument.FromString(document).error
    return UserError(error.code, error.message, recoverable=error.kind == ContainerError.RECOVERABLE)
