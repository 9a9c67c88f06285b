"""What users of the plugin write: the tasks of test_pods.py, sent to their pods by fast registration."""

import os
import time
from pathlib import Path
from typing import Any

import ray
from flytekit import PodTemplate, Resources, Secret, task
from kubernetes.client import V1Container, V1EnvVar, V1PodSpec

from flytekitplugins.kuberay import AutoscalerOptionsConfig, HeadNodeConfig, RayJobConfig, WorkerNodeConfig

# The node has two cores, which all pods share: small requests, and limits that do not slow the start of Ray.
REQUESTS = Resources(cpu="100m", mem="300Mi")
LIMITS = Resources(cpu="2", mem="2Gi")
NO_CPU = {"num-cpus": "0"}  # with none at the head, remote functions run on workers
RED, BLUE = ({"num-cpus": "1", "resources": f'"{{\\"{colour}\\": 1}}"'} for colour in ("red", "blue"))
ODD = "$(id) \"x\" 'y' `id`"  # Ray itself replaces $HOME
RUNTIME_ENV = {"env_vars": {"SAID": "by the runtime environment", "ODD": ODD}, "working_dir": "file:///code/code.zip"}


def bash(name: str, script: str, *mounts: str) -> dict[str, Any]:
    """A container of the task's image that runs a script."""
    return {
        "name": name,
        "image": "local/ray:e2e",
        "command": ["bash", "-c", script],
        "volumeMounts": [{"name": mount, "mountPath": f"/{mount}"} for mount in mounts],
        "resources": {"requests": {"cpu": "10m"}},
    }


@task(
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(
            ray_start_params=NO_CPU,
            pod_template={
                "volumes": [{"name": "shared", "emptyDir": {}}],
                "containers": [
                    {"name": "ray-head", "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]},
                    bash("writer", "echo from the sidecar > /shared/note; sleep infinity", "shared"),
                ],
            },
        ),
        worker_node_config=[
            WorkerNodeConfig(
                group_name="red",
                replicas=1,
                ray_start_params=RED,
                requests=Resources(cpu="120m", mem="310Mi"),
                limits=Resources(cpu="2", mem="2Gi"),
                pod_template=PodTemplate(
                    pod_spec=V1PodSpec(
                        containers=[V1Container(name="main", env=[V1EnvVar(name="FROM", value="main")])]
                    ),
                    primary_container_name="main",
                ),
            ),
            WorkerNodeConfig(
                group_name="blue",
                replicas=1,
                ray_start_params=BLUE,
                pod_template={
                    "volumes": [
                        {"name": "made", "emptyDir": {}},
                        {"name": "settings", "configMap": {"name": "e2e-settings"}},
                    ],
                    "initContainers": [bash("maker", "echo from the init container > /made/note", "made")],
                    "containers": [
                        {
                            "name": "ray-worker",
                            "volumeMounts": [
                                {"name": "made", "mountPath": "/made"},
                                {"name": "settings", "mountPath": "/settings"},
                            ],
                            "env": [
                                {
                                    "name": "FROM",
                                    "valueFrom": {"secretKeyRef": {"name": "e2e-token", "key": "token"}},
                                }
                            ],
                        }
                    ],
                },
            ),
        ],
        runtime_env=RUNTIME_ENV,
    ),
    requests=REQUESTS,
    limits=LIMITS,
    secret_requests=[Secret(group="e2e", key="unread")],
    pod_template=PodTemplate(
        pod_spec={  # type: ignore[arg-type]  # a dict will do, which flytekit's annotation does not know
            "serviceAccountName": "trainer",
            "volumes": [{"name": "code", "configMap": {"name": "e2e-code"}}],
            "containers": [
                {"name": "primary", "volumeMounts": [{"name": "code", "mountPath": "/code"}]},
                bash("beside", "sleep infinity"),
            ],
        },
        labels={"team": "vision"},
    ),
)
def templates() -> dict[str, str]:
    """What stands in the pods, by where it was found."""

    @ray.remote(num_cpus=1)
    def found(files: list[str]) -> str:
        return read(["FROM", "SAID", "ODD"], files)

    blue_files = ["/made/note", "/settings/rate", "packed.txt"]
    red, blue = found.options(resources={"red": 1}), found.options(resources={"blue": 1})
    texts = ray.get([red.remote([]), blue.remote(blue_files)])
    while not os.path.exists("/shared/note"):
        time.sleep(0.5)
    time.sleep(5)  # the test looks at the pods
    here = read(["SAID", "ODD"], ["/shared/note", "packed.txt"])
    return {"head": here, "red": texts[0], "blue": texts[1]}


def read(variables: list[str], files: list[str]) -> str:
    """What the variables and files hold, a line each."""
    return "\n".join([*(os.environ[each] for each in variables), *(Path(each).read_text().strip() for each in files)])


@task(
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(ray_start_params=NO_CPU),
        worker_node_config=[
            WorkerNodeConfig(group_name="red", replicas=0, max_replicas=1, ray_start_params=RED),
            WorkerNodeConfig(group_name="blue", replicas=0, max_replicas=1, ray_start_params=BLUE),
        ],
        enable_autoscaling=True,
        autoscaler_options=AutoscalerOptionsConfig(idle_timeout_seconds=5),
    ),
    requests=REQUESTS,
    limits=LIMITS,
)
def scaled() -> dict[str, int]:
    """How many workers there were: at first, with work for each group, and long after it."""

    @ray.remote(num_cpus=1)
    def colour(name: str) -> str:
        return name

    def workers() -> int:
        return sum(node["Alive"] for node in ray.nodes()) - 1  # type: ignore[no-untyped-call]

    first = workers()
    ray.get([colour.options(resources={each: 1}).remote(each) for each in ("red", "blue")])
    most, deadline = workers(), time.monotonic() + 90
    while workers() and time.monotonic() < deadline:
        time.sleep(1)
    return {"first": first, "most": most, "last": workers()}
