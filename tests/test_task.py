"""The task type: into the template, on local Ray, and on a cluster."""

import os
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from flytekit import ImageSpec, PodTemplate, Resources, task
from flytekit.configuration import Image, ImageConfig, SerializationSettings
from flytekit.tools.translator import get_serializable
from google.protobuf.json_format import MessageToDict

from flytekitplugins.kuberay import ConfigError, KubeRayError, RayJobConfig, WorkerNodeConfig
from flytekitplugins.kuberay.task import DEFAULT_EXCLUDES, init_with_working_dir, refuse_open_ray
from flytekitplugins.kuberay.wire import from_config, from_template

IMAGE = Image(name="default", fqn="registry/app", tag="1")
SETTINGS = SerializationSettings(
    project="p",
    domain="d",
    version="v",
    env={"FROM": "settings"},
    image_config=ImageConfig(default_image=IMAGE, images=[IMAGE]),
)
CONFIG = RayJobConfig([WorkerNodeConfig("w", 1)], shutdown_after_job_finishes=False, queue="q")


def pod_template(spec: Any, **values: Any) -> PodTemplate:
    """A PodTemplate with a dict, which flytekit's types do not know."""
    return PodTemplate(pod_spec=spec, **values)


def registered(driver: Any) -> Any:
    """The task template as flytekit registers it, flyteidl's message."""
    spec: Any = get_serializable(OrderedDict(), SETTINGS, driver)
    return spec.template.to_flyte_idl()


def test_the_registered_template_is_read_back() -> None:
    """What flytekit registers holds the user's settings, the extras beside flytekit's own config."""

    @task(task_config=CONFIG, pod_template=pod_template({"containers": []}, primary_container_name="main"))
    def driver() -> int:
        return 1

    template = registered(driver)
    assert from_template(template) == from_config(CONFIG)
    assert dict(template.config) == {
        "primary_container_name": "main",
        "kuberay": '{"queue": "q", "shutdown": false, "version": 1}',
    }


def test_a_task_without_extras_has_flytekits_config_only() -> None:
    """Nothing is added to the config of a task that flyteidl says wholly."""

    @task(task_config=RayJobConfig([WorkerNodeConfig("w", 1)]))
    def driver() -> int:
        return 1

    assert driver.get_config(SETTINGS) == {}


def test_the_tasks_own_pod_spec_may_be_a_dict() -> None:
    """Flytekit adds the task to the primary container; the rest of the dict stays, explicit nulls too."""
    spec = {
        "hostNetwork": None,
        "containers": [
            {"name": "proxy", "image": "envoy", "tty": False},
            {"name": "main", "env": [{"name": "OWN", "value": "1"}], "volumeMounts": []},
        ],
    }

    @task(
        task_config=CONFIG,
        requests=Resources(cpu="1"),
        pod_template=pod_template(spec, primary_container_name="main", labels={"a": "b"}),
    )
    def driver() -> int:
        return 1

    pod = MessageToDict(registered(driver).k8s_pod)
    assert pod == {
        "metadata": {"labels": {"a": "b"}},
        "primaryContainerName": "main",
        "podSpec": {
            "hostNetwork": None,
            "containers": [
                {"name": "proxy", "image": "envoy", "tty": False},
                {
                    "name": "main",
                    "image": "registry/app:1",
                    "command": [],
                    "args": driver.get_command(SETTINGS),
                    "env": [{"name": "FROM", "value": "settings"}, {"name": "OWN", "value": "1"}],
                    "resources": {"requests": {"cpu": "1"}, "limits": {}},
                    "volumeMounts": [],
                },
            ],
        },
    }


def test_the_tasks_own_dict_is_checked_as_it_is_written() -> None:
    """A dict that is no pod spec is told with the place of each fault, an ImageSpec in it being none."""
    spec = {"containers": [{"name": "main", "env": 5, "image": ImageSpec()}, 3], "host_network": True}
    with pytest.raises(ConfigError) as caught:
        task(task_config=CONFIG, pod_template=pod_template(spec))(sum)
    assert [problem.path for problem in caught.value.problems] == [
        "pod_template.pod_spec.host_network",
        "pod_template.pod_spec.containers[0].env",
        "pod_template.pod_spec.containers[1]",
    ]


OVERRIDE = "RAY_OVERRIDE_JOB_RUNTIME_ENV"


class RecordedInit:
    """In place of `ray.init`: keeps what it was given, and fails as told."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.given: list[dict[str, Any]] = []

    def __call__(self, **given: Any) -> None:
        """Keeps the arguments."""
        self.given.append(given)
        if self.failure:
            raise self.failure


def test_workers_get_the_working_directory_less_the_excludes(tmp_path: Path) -> None:
    """On a cluster, Ray is given the directory and the patterns of what stays."""
    init = RecordedInit()
    init_with_working_dir(init, tmp_path, [*DEFAULT_EXCLUDES, "data"])
    assert init.given == [
        {"address": None, "runtime_env": {"working_dir": str(tmp_path), "excludes": [*DEFAULT_EXCLUDES, "data"]}}
    ]
    assert {"script_mode.tar.gz", "fast*.tar.gz", ".python_history", ".git", ".venv"} <= set(DEFAULT_EXCLUDES)


def test_the_working_directory_stands_above_the_runtime_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray refuses to start where both name one, unless it is told which counts; the user's own word on that counts."""
    monkeypatch.setenv(OVERRIDE, "0")
    init_with_working_dir(RecordedInit(), tmp_path, [])
    assert os.environ[OVERRIDE] == "0"
    monkeypatch.delenv(OVERRIDE)
    init_with_working_dir(RecordedInit(), tmp_path, [])
    assert os.environ[OVERRIDE] == "1"


def test_a_working_directory_above_rays_limit_is_explained(tmp_path: Path) -> None:
    """The error says what is large, less what is excluded, and what to do; Ray's own is its cause."""
    for name, size in (("data/a.bin", 3_000_000), ("data/b.bin", 1_000_000), (".git/x", 9_000_000), ("m.py", 1000)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(size))
    # as Ray 2.60 says it with its limit lowered
    failure = RuntimeError(
        "Failed to set up runtime environment.\nFailed to upload working_dir /x to the Ray cluster: "
        "Package size (2.86MiB) exceeds the maximum size of 1.91MiB. To exclude large files, add them to ..."
    )
    with pytest.raises(KubeRayError) as caught:
        init_with_working_dir(RecordedInit(failure), tmp_path, DEFAULT_EXCLUDES)
    assert str(caught.value) == (
        f"The working directory {tmp_path} is larger than Ray sends to its workers; the largest in it: "
        'data (3.8 MiB), m.py (0.0 MiB). Leave out what workers do not read with RayJobConfig(excludes=["data", ...]) '
        "or a .rayignore file, or keep it in the image or in an object store."
    )
    assert caught.value.__cause__ is failure


def test_other_failures_of_ray_pass_as_they_are(tmp_path: Path) -> None:
    """Nothing but the size limit is told anew."""
    failure = ConnectionError("no cluster")
    with pytest.raises(ConnectionError) as caught:
        init_with_working_dir(RecordedInit(failure), tmp_path, [])
    assert caught.value is failure


def refusal_of_open_ray(version: str, mode: str | None) -> str:
    """Why a task does not run with this Ray; "" where it does."""
    try:
        refuse_open_ray(version, mode)
    except KubeRayError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("version", "mode", "refused"),
    [
        pytest.param("2.52.0", "token", False, id="the first that can"),
        pytest.param("3.0.0.dev0", "token", False, id="a newer one"),
        pytest.param("2.51.1", "token", True, id="the last that can't"),
        pytest.param("2.9.3", "token", True, id="an older one"),
        pytest.param("2.9.3", None, False, id="an old one that is not told to"),
        pytest.param("2.9.3", "disabled", False, id="an old one that is told not to"),
    ],
)
def test_a_ray_that_is_open_though_it_should_not_is_refused(version: str, mode: str | None, refused: bool) -> None:
    """KubeRay can't see what the image holds, and a Ray before 2.52 does not read what it is told."""
    text = (
        "the Ray cluster was to ask for a token (authOptions, plugins.kuberay.ray-auth), but the image's Ray"
        f" {version} can't; use an image with Ray 2.52 or newer"
    )
    assert refusal_of_open_ray(version, mode) == (text if refused else "")


WORKFLOW = """
import ray
from flytekit import map_task, task, workflow
from flytekitplugins.kuberay import RayJobConfig, WorkerNodeConfig

@ray.remote
def square(x: int) -> int:
    return x * x

@task(task_config=RayJobConfig([WorkerNodeConfig("w", 2)]))
def squares(n: int) -> int:
    assert ray.is_initialized()
    return sum(ray.get([square.remote(i) for i in range(n)]))

@workflow
def wf(n: int) -> list[int]:
    squares(n=n)
    return map_task(squares)(n=[1, 2, 3])
"""


def test_pyflyte_run_runs_on_ray_in_the_process(tmp_path: Path) -> None:
    """A local run needs no cluster: Ray starts in the process, for a task and for a map over it."""
    pytest.importorskip("ray", reason="a local run needs Ray")
    (tmp_path / "wf.py").write_text(WORKFLOW)
    pyflyte = Path(sys.executable).with_name("pyflyte")
    run = subprocess.run([pyflyte, "run", "wf.py", "wf", "--n", "4"], cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout.strip().splitlines()[-1:] == ["[0, 1, 5]"], run.stderr
