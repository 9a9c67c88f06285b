"""Files of this machine among a task's inputs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest
from flytekit.core.context_manager import FlyteContextManager
from flytekit.core.type_engine import TypeEngine
from flytekit.models.core.types import BlobType
from flytekit.models.literals import Blob, BlobMetadata, Literal, LiteralMap, Scalar
from flytekit.types.directory import FlyteDirectory
from flytekit.types.file import FlyteFile

from flytekitplugins.kuberay.direct.files import with_files_uploaded

from .cluster import STORE, run_context, stored


@dataclass(frozen=True)
class Uploaded:
    """The inputs of a task, after the upload."""

    inputs: LiteralMap

    def uri(self, *path: int | str) -> str:
        """The address of the file that stands at the path of the input `x`."""
        literal: Literal = self.inputs.literals["x"]
        for step in path:
            if step == "union":
                literal = literal.scalar.union.value
            else:
                literal = literal.collection.literals[step] if isinstance(step, int) else literal.map.literals[step]
        uri: str = literal.scalar.blob.uri
        return uri


def uploaded(value: Any, kind: Any, folder: Path) -> Uploaded:
    """The inputs of a task with x=value, in a run with an object store."""
    with run_context(folder):
        context = FlyteContextManager.current_context()
        inputs = TypeEngine.dict_to_literal_map(context, {"x": value}, {"x": kind})
        return Uploaded(with_files_uploaded(inputs, context.file_access))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of the user's."""
    path = tmp_path / "numbers.csv"
    path.write_text("1,2")
    return path


AnyFile: Any = FlyteFile  # of any extension


def named(path: Path) -> Any:
    """As `pyflyte run` names a file in a local run. Source: flytekit click_types.py FileParamType."""
    return FlyteFile(str(path), remote_path=False)


def test_a_file_goes_to_the_object_store(file: Path, tmp_path: Path) -> None:
    """Under its own name, whose extension says what it is."""
    uri = uploaded(named(file), FlyteFile, tmp_path).uri()
    assert uri.startswith(f"{STORE}/") and uri.endswith("/numbers.csv")
    assert stored(uri) == b"1,2"


@pytest.mark.parametrize(
    ("wrap", "kind", "path"),
    [
        pytest.param(lambda file: [file], list[AnyFile], (0,), id="in a list"),
        pytest.param(lambda file: {"a": [file]}, dict[str, list[AnyFile]], ("a", 0), id="in a dict of lists"),
        pytest.param(lambda file: file, Optional[AnyFile], ("union",), id="an optional one"),
    ],
)
def test_a_file_is_found_at_any_depth(wrap: Any, kind: Any, path: tuple[int | str, ...], file: Path) -> None:
    """Each is uploaded."""
    assert stored(uploaded(wrap(named(file)), kind, file.parent).uri(*path)) == b"1,2"


def test_a_folder_goes_there_whole(file: Path, tmp_path: Path) -> None:
    """With the files in it."""
    folder: Any = FlyteDirectory(str(file.parent), remote_directory=False)
    uri = uploaded(folder, FlyteDirectory, tmp_path).uri()
    assert stored(f"{uri}/numbers.csv") == b"1,2"


@pytest.mark.parametrize(
    "path",
    [pytest.param("s3://bucket/there.csv", id="in a store"), pytest.param("/in/the/image.csv", id="in the image")],
)
def test_what_is_not_on_this_machine_stays_as_it_is(path: str, tmp_path: Path) -> None:
    """The pods may have it."""
    file = Literal(Scalar(blob=Blob(BlobMetadata(BlobType("", BlobType.BlobDimensionality.SINGLE)), path)))
    with run_context(tmp_path):
        store = FlyteContextManager.current_context().file_access
        assert Uploaded(with_files_uploaded(LiteralMap({"x": file}), store)).uri() == path
