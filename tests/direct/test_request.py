"""What a direct run asks for: image, code, inputs."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from flyteidl.core.literals_pb2 import LiteralMap as LiteralMapMessage
from flytekit import PodTemplate, dynamic, task
from flytekit.configuration import DefaultImages
from flytekit.core.context_manager import FlyteContextManager
from flytekit.core.python_auto_container import default_notebook_task_resolver
from flytekit.core.python_function_task import PythonFunctionTask
from flytekit.core.type_engine import TypeEngine

from flytekitplugins.kuberay import KubeRayError, RayJobConfig
from flytekitplugins.kuberay.direct.request import Request, request_of

from .cluster import IMAGE, STORE, run_context, stored

CONFIG = RayJobConfig(worker_node_config=[])
NO_IMAGE = "no image is named, and flytekit's own has neither Ray nor this package"


@task(task_config=CONFIG)
def plain(x: int) -> int:
    """A container target."""
    return x


@task(task_config=CONFIG, pod_template=PodTemplate(pod_spec={"containers": [{"name": "primary"}]}))  # type: ignore[arg-type]
def templated(x: int) -> int:
    """A K8sPod target whose template names no image."""
    return x


@task(task_config=CONFIG, container_image="registry.example/own:2")
def own_image(x: int) -> int:
    """Names its image itself."""
    return x


@task(task_config=CONFIG)
@contextmanager
def decorated(x: int) -> Iterator[int]:
    """Its code stands in the decorator's file."""
    yield x


@dynamic(task_config=CONFIG)
def making(x: int) -> int:
    """Makes tasks."""
    return plain(x=x)  # type: ignore[return-value]  # flytekit's promises


def requested(of: PythonFunctionTask[Any], folder: Path, **run: str) -> Request:
    """The request for a task with x=3, in a run as `run_context` makes it."""
    with run_context(folder, **run):
        context = FlyteContextManager.current_context()
        inputs = TypeEngine.dict_to_literal_map(context, {"x": 3}, {"x": int})
        return request_of(of, inputs, context, node="n0", namespace="team-a")


@pytest.mark.parametrize("of", [pytest.param(plain, id="container"), pytest.param(templated, id="pod template")])
def test_a_task_without_an_image_is_refused(of: PythonFunctionTask[Any], tmp_path: Path) -> None:
    """Its head would never start; the error says where to name one."""
    with pytest.raises(KubeRayError, match=rf"^tests\.direct\.test_request\.\w+: {NO_IMAGE}; write container_image="):
        requested(of, tmp_path, image=DefaultImages.default_image())


def test_a_tasks_own_image_is_enough(tmp_path: Path) -> None:
    """Then nobody needs --image."""
    request = requested(own_image, tmp_path, image=DefaultImages.default_image())
    assert request.template.container.image == "registry.example/own:2"


def test_image_option_serves_the_others(tmp_path: Path) -> None:
    """--image is for tasks that name none."""
    assert requested(plain, tmp_path).template.container.image == IMAGE


def test_a_dynamic_with_a_cluster_of_its_own_is_refused(tmp_path: Path) -> None:
    """It would leave tasks for a backend to run, and no outputs."""
    with pytest.raises(KubeRayError, match=r"making: a @dynamic .* needs a Flyte backend.*leave out its task_config"):
        requested(making, tmp_path)


def test_a_notebooks_task_is_refused(tmp_path: Path) -> None:
    """It is sent as a pickle, which flytekit's remote client alone uploads."""
    of = task(task_config=CONFIG, task_resolver=default_notebook_task_resolver)(plain.task_function)
    with pytest.raises(KubeRayError, match="plain: pods can't load a task out of a notebook; write it into a module"):
        requested(of, tmp_path)


TYPED = """
from flytekit import task
from flytekit.core.context_manager import FlyteContextManager
from flytekit.models.literals import LiteralMap
from flytekitplugins.kuberay import KubeRayError, RayJobConfig
from flytekitplugins.kuberay.direct.request import request_of

@task(task_config=RayJobConfig(worker_node_config=[]), container_image="registry.example/own:2")
def typed() -> None: ...

try:
    request_of(typed, LiteralMap({}), FlyteContextManager.current_context(), node="n0", namespace="team-a")
except KubeRayError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("arguments", "name"),
    [pytest.param(["-c", TYPED], "<string>", id="python -c"), pytest.param(["-"], "<stdin>", id="standard input")],
)
def test_a_task_that_stands_in_no_file_is_refused(arguments: list[str], name: str) -> None:
    """No pod could import it, which would be known only when its cluster stands."""
    done = subprocess.run([sys.executable, *arguments], input=TYPED, capture_output=True, text=True)
    assert done.stdout == f"{name}.typed: pods can't load a task that stands in no file; write it into a module\n"


def test_attempts_share_their_inputs(tmp_path: Path) -> None:
    """inputs.pb stands once, above the folders of the attempts."""
    request = requested(plain, tmp_path)
    assert [request.attempt(n).output_prefix for n in (0, 1)] == [f"{request.place}/0", f"{request.place}/1"]
    read = LiteralMapMessage.FromString(stored(f"{request.place}/inputs.pb"))
    assert read.literals["x"].scalar.primitive.integer == 3


@pytest.mark.parametrize("of", [pytest.param(plain, id="plain"), pytest.param(decorated, id="decorated elsewhere")])
def test_code_that_pyflyte_run_has_not_uploaded_is_uploaded(of: PythonFunctionTask[Any], tmp_path: Path) -> None:
    """A script that calls a task itself: the modules loaded from beside it go to the object store."""
    arguments = list(requested(of, tmp_path, code="").template.container.args)
    where = arguments[arguments.index("--additional-distribution") + 1]
    assert where.startswith(f"{STORE}/")
    names = tarfile.open(fileobj=io.BytesIO(stored(where))).getnames()
    assert "tests/direct/test_request.py" in names
