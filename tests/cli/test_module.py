"""Tasks of a user's Python file: found, named and serialized as `pyflyte run` does."""

from __future__ import annotations

import re
import sys

import pytest
import yaml

from flytekitplugins.kuberay.cli.module import split_target
from tests.cli.running import RAY, SCORE, TRAIN, Ended, Run, first_image, written


OTHER_PLUGIN = """
from flytekit import task
from flytekit.core.python_function_task import PythonFunctionTask
from flytekit.extend import TaskPlugins

class OtherConfig:
    pass

class OtherTask(PythonFunctionTask):
    def __init__(self, task_config, task_function, **kwargs):
        super().__init__(task_config, task_function, task_type="ray", **kwargs)

    def get_custom(self, settings):
        return {"rayCluster": {"workerGroupSpec": [{"groupName": "other", "replicas": 1}]}}

TaskPlugins.register_pythontask_plugin(OtherConfig, OtherTask)

@task(task_config=OtherConfig(), container_image="registry.example.com/other:1")
def train() -> int:
    return 1
"""

ANOTHER = "name a .py file, or a task template with --task-template"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("squares.py", ("squares.py", ""), id="a file"),
        pytest.param("a/squares.py:train", ("a/squares.py", "train"), id="a file and a task"),
        pytest.param("C:\\flyte\\squares.py", ("C:\\flyte\\squares.py", ""), id="a drive"),
        pytest.param("C:\\flyte\\squares.py:train", ("C:\\flyte\\squares.py", "train"), id="a drive and a task"),
        pytest.param("a:b/squares.py", ("a:b/squares.py", ""), id="a colon in a folder's name"),
        pytest.param("squares.py:a.b", ("squares.py:a.b", ""), id="what can't be a task's name"),
    ],
)
def test_a_target_is_split_at_the_tasks_name(target: str, expected: tuple[str, str]) -> None:
    """The task's name is what follows the last colon, if it can be a name."""
    assert split_target(target) == expected


@pytest.mark.parametrize(
    ("target", "files", "name"),
    [
        pytest.param("flow.py", {"flow.py": TRAIN}, "flow.train", id="the only one"),
        pytest.param("flow.py:train", {"flow.py": TRAIN}, "flow.train", id="the only one, by name"),
        pytest.param("flow.py:score", {"flow.py": TRAIN + SCORE}, "flow.score", id="one of two"),
        pytest.param("deep/flow.py", {"deep/flow.py": TRAIN}, "flow.train", id="in a folder"),
        pytest.param(
            "pack/flow.py",
            {"pack/__init__.py": "", "pack/names.py": "", "pack/flow.py": "from . import names\n" + TRAIN},
            "pack.flow.train",
            id="in a package",
        ),
        pytest.param(
            "flow.py",
            {"lib_train.py": TRAIN, "flow.py": "from lib_train import config, task, train\n" + SCORE},
            "flow.score",
            id="the file's own before an imported one",
        ),
        pytest.param(
            "flow.py", {"lib_only.py": TRAIN, "flow.py": "from lib_only import train"}, "lib_only.train", id="imported"
        ),
        pytest.param("flow.py", {"flow.py": TRAIN + "\nalias = train\n"}, "flow.train", id="one with two names"),
        pytest.param("flow.py", {"flow.py": TRAIN + "\n@task\ndef plain(): ...\n"}, "flow.train", id="beside others"),
        pytest.param("flow.py", {"flow.py": OTHER_PLUGIN}, "flow.train", id="another plugin's task of type ray"),
    ],
)
def test_a_task_of_a_python_file(target: str, files: dict[str, str], name: str, run: Run) -> None:
    """A task is found, and called as `pyflyte run` calls it."""
    for file, content in files.items():
        written(file, content)
    assert run(target).job["metadata"]["annotations"]["kuberay.flyte.org/task"] == name


def test_a_file_is_loaded_anew(run: Run) -> None:
    """In one process, a file that has changed is read again, and nothing of it stays behind."""
    first = first_image(run(written("flow.py", TRAIN)).job)
    second = first_image(run(written("flow.py", TRAIN.replace("train:1", "train:second"))).job)
    assert (first, second) == ("registry.example.com/train:1", "registry.example.com/train:second")
    assert "flow" not in sys.modules


@pytest.mark.parametrize(
    ("image", "arguments", "expected"),
    [
        pytest.param('"registry.example.com/own:1"', ["--image", "e.com/i:1"], "registry.example.com/own:1", id="own"),
        pytest.param("None", ["--image", "e.com/i:1"], "e.com/i:1", id="the default image"),
        pytest.param('"{{.image.gpu}}"', ["--image", "gpu=e.com/gpu:1"], "e.com/gpu:1", id="an image by name"),
    ],
)
def test_images(image: str, arguments: list[str], expected: str, run: Run) -> None:
    """--image counts as for `pyflyte run`."""
    flow = written("flow.py", TRAIN.replace('"registry.example.com/train:1"', image))
    assert first_image(run(flow, *arguments).job) == expected


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param('ImageSpec(name="img", registry="e.com/x", builder="none-such")', id="plain"),
        pytest.param(
            'ImageSpec(name="img", registry="e.com/x", builder="none-such", source_copy_mode=CopyFileDetection.ALL)',
            id="with code in it",
        ),
        pytest.param(
            'ImageSpec(name="img", registry="e.com/x", builder="none-such", base_image=ImageSpec(builder="none-such"))',
            id="over another",
        ),
    ],
)
@pytest.mark.parametrize("pod", [pytest.param("None", id="container"), pytest.param("PodTemplate()", id="pod")])
def test_an_image_spec_is_named_and_not_built(spec: str, pod: str, run: Run) -> None:
    """An ImageSpec's image has its name; building it would fail here, for no such builder exists."""
    source = "from flytekit.constants import CopyFileDetection\n" + TRAIN
    flow = written("flow.py", source.replace('"registry.example.com/train:1"', f"{spec}, pod_template={pod}"))
    assert re.fullmatch(r"e\.com/x/img:[\w.-]{22}", first_image(run(flow).job))


@pytest.mark.parametrize(
    ("target", "content", "expected"),
    [
        pytest.param("flow.py", None, f"flow.py: is not there; {ANOTHER}", id="no file"),
        pytest.param("flow.txt", "", f"flow.txt: is no Python file; {ANOTHER}", id="another file"),
        pytest.param(
            "flow.py", "", "flow.py: has no Ray task; write @task(task_config=RayJobConfig(...))", id="no task"
        ),
        pytest.param(
            "flow.py",
            TRAIN + SCORE,
            "flow.py: has 2 Ray tasks: train, score; name one, as in flow.py:train",
            id="two tasks",
        ),
        pytest.param(
            "flow.py:nope", TRAIN, "flow.py:nope: is not there; the Ray tasks here are train", id="an unknown name"
        ),
        pytest.param(
            "flow.py:plain",
            TRAIN + "@task\ndef plain(): ...\n",
            "flow.py:plain: is a task of type 'python-task', no Ray task; the Ray tasks here are train",
            id="another kind of task",
        ),
        pytest.param(
            "flow.py:config",
            RAY,
            "flow.py:config: is a RayJobConfig, no Ray task; no Ray task is here",
            id="something else",
        ),
        pytest.param(
            "flow.py",
            "\nimport nope.nope\n",
            "flow.py, line 2: ModuleNotFoundError: No module named 'nope'; "
            "install it here, or run this where your tasks' packages are",
            id="a missing module",
        ),
        pytest.param(
            "flow.py",
            "def check():\n    raise ValueError('two\\nlines')\ncheck()\n",
            "flow.py, line 2: ValueError: two lines",
            id="an exception",
        ),
        pytest.param("flow.py", "\nassert False\n", "flow.py, line 2: AssertionError", id="one without a text"),
        pytest.param("flow.py", "\nx = (\n", "flow.py, line 2: SyntaxError: '(' was never closed", id="a syntax error"),
        pytest.param(
            "flow.v2.py",
            TRAIN,
            "flow.v2.py: has a dot in its name, which Python takes for a package's; rename the file",
            id="a name that Python can't import",
        ),
        pytest.param(
            f"{'x' * 300}.py",
            None,
            f"{'x' * 300}.py: can't be read: File name too long; {ANOTHER}",
            id="a name that no file can have",
        ),
        pytest.param("flow.py", "raise BaseException", "flow.py, line 1: BaseException", id="what is no Exception"),
        pytest.param("flow.py", "raise SystemExit(3)", "flow.py, line 1: SystemExit: 3", id="an exit"),
        pytest.param(
            "flow.py",
            RAY + "RayJobConfig(worker_node_config=[WorkerNodeConfig(group_name='w', replicas=-1)])",
            "flow.py, line 5: WorkerNodeConfig.replicas: is -1; write a number from 0 to 2147483647",
            id="a mistake in a config",
        ),
        pytest.param(
            "flow.py",
            TRAIN.replace("registry.example.com/train:1", "{{.image.gpu}}"),
            "flow.py:train: AssertionError: Image Config with name gpu not found in the configuration",
            id="a task that Flyte can't serialize",
        ),
    ],
)
def test_a_python_file_that_is_refused(target: str, content: str | None, expected: str, run: Run) -> None:
    """What is wrong with the file is said in one line, with its place and, where one helps, a remedy."""
    if content is not None:
        written(target.partition(":")[0], content)
    assert run(target) == Ended(2, "", f"error: {expected}\n")


def test_an_exception_in_another_file_of_the_project(run: Run) -> None:
    """An error in a helper module is placed in the user's file and where it came up."""
    written("lib_broken.py", "\n1 / 0\n")
    expected = "error: flow.py, line 1: ZeroDivisionError: division by zero (lib_broken.py, line 2)\n"
    assert run(written("flow.py", "import lib_broken\n")) == Ended(2, "", expected)


def test_a_file_with_the_name_of_a_loaded_module(run: Run) -> None:
    """A file that Python would mistake for another module is refused, for the pod would mistake it as well."""
    expected = f"error: yaml.py: its name, yaml, is that of a module loaded from {yaml.__file__}; rename the file: "
    assert run(written("yaml.py", TRAIN)) == Ended(2, "", expected + "on Flyte it would be mistaken too\n")
