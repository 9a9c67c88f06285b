"""What code written for flytekitplugins-ray 1.16 finds here: the same names, and the same `custom`.

The expected messages are made with the model classes, which are upstream's, as its users make them.
"""

import base64
import inspect
import json
from typing import Any

import pytest
import yaml
from flytekit import PodTemplate, PythonFunctionTask, Resources, task
from flytekit.configuration import Image, ImageConfig, SerializationSettings
from flytekit.core.resources import convert_resources_to_resource_model, pod_spec_from_resources
from flytekit.models.task import K8sPod
from google.protobuf.json_format import MessageToDict
from kubernetes.client import V1Container, V1PodSpec, V1Toleration

import flytekitplugins.kuberay
import flytekitplugins.kuberay.task
from flytekitplugins.kuberay import AutoscalerOptionsConfig, HeadNodeConfig, RayJobConfig, WorkerNodeConfig
from flytekitplugins.kuberay.models import AutoscalerOptions, HeadGroupSpec, RayCluster, RayJob, WorkerGroupSpec
from flytekitplugins.kuberay.task import RayFunctionTask

IMAGE = Image(name="default", fqn="registry/app", tag="1")
SETTINGS = SerializationSettings(
    project="p", domain="d", version="v", env={}, image_config=ImageConfig(default_image=IMAGE, images=[IMAGE])
)
ENV = {"pip": ["numpy"], "env_vars": {"B": "x", "A": "z"}}
TEMPLATE = PodTemplate(
    primary_container_name="ray-worker",
    labels={"a": "b"},
    annotations={"c": "d"},
    pod_spec=V1PodSpec(
        containers=[V1Container(name="ray-worker", image="i")],
        tolerations=[V1Toleration(key="gpu", operator="Exists")],
        host_network=False,
    ),
)
LITTLE, MUCH = Resources(cpu="1", mem="1Gi", gpu="1"), Resources(cpu="2", mem="2Gi", gpu="1")


def cluster(**values: Any) -> RayCluster:
    """A cluster without workers, with what a row sets."""
    return RayCluster(**{"worker_group_spec": [], **values})


ROWS = [
    pytest.param(RayJobConfig(worker_node_config=[]), RayJob(cluster()), id="nothing"),
    pytest.param(
        RayJobConfig(worker_node_config=[], runtime_env=ENV, address="localhost:8265"),
        RayJob(
            cluster(),
            runtime_env=base64.b64encode(json.dumps(ENV).encode()).decode(),
            runtime_env_yaml=yaml.dump(ENV),
        ),
        id="an existing cluster",
    ),
    pytest.param(
        RayJobConfig(
            [
                WorkerNodeConfig("test_group", 3, 0, 10, {"num-cpus": "2"}, TEMPLATE),
                WorkerNodeConfig("b", 2, 5),
                WorkerNodeConfig("c", 0, requests=LITTLE),
            ],
            HeadNodeConfig(requests=LITTLE, limits=MUCH),
        ),
        RayJob(
            RayCluster(
                [
                    WorkerGroupSpec("test_group", 3, 0, 10, {"num-cpus": "2"}, K8sPod.from_pod_template(TEMPLATE)),
                    WorkerGroupSpec("b", 2, 5),
                    WorkerGroupSpec(
                        "c",
                        0,
                        k8s_pod=K8sPod.from_pod_template(
                            PodTemplate(pod_spec=pod_spec_from_resources("ray-worker", LITTLE, None))
                        ),
                    ),
                ],
                HeadGroupSpec(
                    k8s_pod=K8sPod.from_pod_template(
                        PodTemplate(pod_spec=pod_spec_from_resources("ray-head", LITTLE, MUCH))
                    )
                ),
            )
        ),
        id="groups with templates and resources",
    ),
    pytest.param(
        RayJobConfig(
            [],
            HeadNodeConfig({"num-cpus": "0"}),
            True,
            AutoscalerOptionsConfig(
                AutoscalerOptionsConfig.UpscalingMode.CONSERVATIVE, 120, {"A": "b"}, "image", LITTLE, MUCH
            ),
            shutdown_after_job_finishes=True,
            ttl_seconds_after_finished=20,
        ),
        RayJob(
            cluster(
                head_group_spec=HeadGroupSpec({"num-cpus": "0"}),
                enable_autoscaling=True,
                autoscaler_options=AutoscalerOptions(
                    AutoscalerOptions.UpscalingMode.CONSERVATIVE,
                    120,
                    "image",
                    {"A": "b"},
                    convert_resources_to_resource_model(LITTLE, MUCH),
                ),
            ),
            ttl_seconds_after_finished=20,
            shutdown_after_job_finishes=True,
        ),
        id="autoscaling, shutdown and ttl",
    ),
]


@pytest.mark.parametrize(("config", "expected"), ROWS)
def test_custom_is_what_upstream_sends(config: RayJobConfig, expected: RayJob) -> None:
    """The same arguments give the same message, so that Flyte's own Ray plugin runs the task as before."""

    @task(task_config=config)
    def driver(a: int) -> str:
        return str(a)

    assert isinstance(driver, RayFunctionTask)
    assert isinstance(driver, PythonFunctionTask)
    assert (driver.task_type, driver.task_type_version, driver.task_config) == ("ray", 0, config)
    assert driver.get_custom(SETTINGS) == MessageToDict(expected.to_flyte_idl())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(
            RayJobConfig,
            [
                "worker_node_config",
                "head_node_config",
                "enable_autoscaling",
                "autoscaler_options",
                "runtime_env",
                "address",
                "shutdown_after_job_finishes",
                "ttl_seconds_after_finished",
            ],
            id="the job",
        ),
        pytest.param(HeadNodeConfig, ["ray_start_params", "pod_template", "requests", "limits"], id="the head"),
        pytest.param(
            WorkerNodeConfig,
            ["group_name", "replicas", "min_replicas", "max_replicas"]
            + ["ray_start_params", "pod_template", "requests", "limits"],
            id="a worker group",
        ),
        pytest.param(
            AutoscalerOptionsConfig,
            ["upscaling_mode", "idle_timeout_seconds", "env", "image", "requests", "limits"],
            id="the autoscaler",
        ),
    ],
)
def test_positional_arguments(kind: type, expected: list[str]) -> None:
    """What can be given by position is upstream's, in upstream's order."""
    parameters = inspect.signature(kind).parameters.values()
    assert [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD] == expected


def test_names_stand_where_upstream_has_them() -> None:
    """Code that changes only `flytekitplugins.ray` to `flytekitplugins.kuberay` in its imports finds every name."""
    names = ["AutoscalerOptionsConfig", "HeadNodeConfig", "RayJobConfig", "WorkerNodeConfig"]
    of_task = {name: getattr(flytekitplugins.kuberay.task, name) for name in [*names, "RayFunctionTask"]}
    assert of_task == {name: getattr(flytekitplugins.kuberay, name) for name in [*names, "RayFunctionTask"]}


@pytest.mark.parametrize("row", [pytest.param(row.values[1], id=str(row.id)) for row in ROWS])
def test_models_read_what_they_write(row: RayJob) -> None:
    """A model made of its message is equal to it, primary container names included."""
    assert RayJob.from_flyte_idl(row.to_flyte_idl()).to_flyte_idl() == row.to_flyte_idl()
