"""The task type: into the template, on local Ray, and on a cluster."""

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
from kubernetes.client import V1Container, V1EnvVar, V1PodSpec

from flytekitplugins.kuberay import ConfigError, RayJobConfig, WorkerNodeConfig
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


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            V1PodSpec(
                containers=[
                    V1Container(name="main", env=[V1EnvVar(name=name, value="pod") for name in ("OWN", "FROM")])
                ]
            ),
            id="a V1PodSpec",
        ),
        pytest.param(
            {
                "containers": [
                    {"name": "main", "env": [{"name": "OWN", "value": "pod"}, {"name": "FROM", "value": "pod"}]}
                ]
            },
            id="a dict",
        ),
    ],
)
def test_a_variable_of_task_and_pod_is_the_pods(spec: Any) -> None:
    """Flytekit lists both, `environment` and `pyflyte run --env` first; Kubernetes takes the last, and so do we."""
    template = pod_template(spec, primary_container_name="main")

    @task(task_config=CONFIG, environment={"OWN": "task", "MORE": "task"}, pod_template=template)
    def driver() -> int:
        return 1

    [main] = MessageToDict(registered(driver).k8s_pod)["podSpec"]["containers"]
    names = {entry["name"]: entry["value"] for entry in main["env"]}
    assert [names, len(main["env"])] == [{"MORE": "task", "OWN": "pod", "FROM": "pod"}, 3]


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
