"""Files and folders of this machine among a task's inputs, which pods can read only in the object store.

flytekit uploads what a task in this process gives, and datasets; a file or folder that `pyflyte run` is given for a
local run it leaves where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from flyteidl.core.literals_pb2 import Blob, Literal
from flytekit.core.data_persistence import FileAccessProvider
from flytekit.models.literals import LiteralMap


def with_files_uploaded(inputs: LiteralMap, store: FileAccessProvider) -> LiteralMap:
    """The inputs, with files and folders that stand on this machine in the object store; others are the pods' own."""
    message = inputs.to_flyte_idl()
    for literal in message.literals.values():
        for file in _files(literal):
            if not store.is_remote(file.uri) and (local := Path(file.uri.removeprefix("file://"))).exists():
                target = f"{store.get_random_remote_directory()}/{local.resolve().name}"
                store.put_data(str(local), target, is_multipart=local.is_dir())
                file.uri = target
    uploaded: LiteralMap = LiteralMap.from_flyte_idl(message)
    return uploaded


def _files(literal: Literal) -> Iterator[Blob]:
    """What of a literal names a file, at any depth."""
    scalar = literal.scalar
    if scalar.HasField("blob"):
        yield scalar.blob
    elif scalar.HasField("union"):
        yield from _files(scalar.union.value)
    for item in (*literal.collection.literals, *literal.map.literals.values()):
        yield from _files(item)
