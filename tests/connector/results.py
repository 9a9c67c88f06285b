"""Result files as a task's own process leaves them, and a store that denies them."""

from __future__ import annotations

from pathlib import Path

from flyteidl.core.errors_pb2 import ContainerError, ErrorDocument
from flyteidl.core.execution_pb2 import ExecutionError
from flyteidl.core.literals_pb2 import LiteralMap
from typing_extensions import override

from flytekitplugins.kuberay.cluster.phase import Results
from flytekitplugins.kuberay.connector.results import ResultFiles


class Denied(ResultFiles):
    """A store that lets nobody read."""

    @override
    async def read(self, output_prefix: str, *, diagnosis: bool = False) -> Results:
        return Results(unreadable="PermissionError: denied")


def put_outputs(prefix: str) -> None:
    """Writes outputs.pb below a local prefix, with one output `o0`."""
    outputs = LiteralMap()
    outputs.literals["o0"].scalar.primitive.integer = 7
    _put(prefix, "outputs.pb", outputs.SerializeToString())


def put_error(prefix: str, code: str, message: str, *, recoverable: bool = False) -> None:
    """Writes error.pb below a local prefix."""
    kind = ContainerError.RECOVERABLE if recoverable else ContainerError.NON_RECOVERABLE
    error = ContainerError(code=code, message=message, kind=kind, origin=ExecutionError.USER)
    document = ErrorDocument(error=error)
    _put(prefix, "error.pb", document.SerializeToString())


def _put(prefix: str, name: str, content: bytes) -> None:
    folder = Path(prefix)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.part").write_bytes(content)
    (folder / f"{name}.part").rename(folder / name)  # as an object store: there at once, and whole
