"""docs/tasks.md: its table names every argument, and its examples become what it says."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from flytekitplugins.kuberay import AutoscalerOptionsConfig, HeadNodeConfig, RayJobConfig, WorkerNodeConfig
from flytekitplugins.kuberay.config import SubmitterConfig
from tests.command import output_of

PAGE = (Path(__file__).parent.parent / "docs" / "tasks.md").read_text(encoding="utf-8")
PROGRAM = Path(sys.executable).parent / "flyte-kuberay"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("FLYTE_")}
CONFIGS: tuple[type[Any], ...] = (
    RayJobConfig,
    HeadNodeConfig,
    WorkerNodeConfig,
    AutoscalerOptionsConfig,
    SubmitterConfig,
)
Render = Callable[..., dict[str, Any]]


def section(heading: str) -> str:
    """What stands below a heading, down to the next one."""
    return re.split(r"\n##+ ", PAGE.partition(f"# {heading}\n")[2])[0]


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's table, less its head."""
    lines = [line for line in section(heading).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def example(heading: str) -> str:
    """The Python block of a section."""
    (block,) = re.findall(r"```python\n(.*?)```", section(heading), re.DOTALL)
    return str(block)


def arguments() -> dict[str, dict[str, str]]:
    """The defaults that the page tells: class -> argument -> default, all in its order."""
    told: dict[str, dict[str, str]] = {}
    for name, _, default, _ in rows("All arguments"):
        if name.startswith("**"):
            told[name.strip("*`")] = {}
        else:
            told[next(reversed(told))][name.strip("`")] = default
    return told


@pytest.fixture
def render(tmp_path: Path) -> Render:
    """Renders the one task of a program, as `flyte-kuberay render` does in an empty folder."""

    def rendered(program: str, *options: str) -> dict[str, Any]:
        (tmp_path / "flow.py").write_text(program, encoding="utf-8")
        text = output_of(PROGRAM, "render", "flow.py", *options, cwd=tmp_path, env=ENVIRONMENT)
        job: dict[str, Any] = yaml.safe_load(text)
        return job

    return rendered


def groups(job: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The head and the worker groups by their names."""
    cluster = job["spec"]["rayClusterSpec"]
    return {"head": cluster["headGroupSpec"], **{group["groupName"]: group for group in cluster["workerGroupSpecs"]}}


def containers(group: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A group's containers by their names, Ray's first."""
    return {container["name"]: container for container in group["template"]["spec"]["containers"]}


def requested(group: dict[str, Any]) -> dict[str, str]:
    """What a group's Ray container asks for; its limits are the same."""
    resources = next(iter(containers(group).values()))["resources"]
    assert resources["requests"] == resources["limits"]
    return dict(resources["requests"])


def test_every_argument_is_in_the_table() -> None:
    """And no other, in the order in which they may be written."""
    assert {name: list(told) for name, told in arguments().items()} == {
        config.__name__: [field.name for field in fields(config)] for config in CONFIGS
    }


def test_the_table_tells_what_must_be_written() -> None:
    """The arguments without a default, and no other."""
    required = [
        (config.__name__, field.name)
        for config in CONFIGS
        for field in fields(config)
        if field.default is field.default_factory is MISSING
    ]
    assert required == [(name, key) for name, told in arguments().items() for key in told if told[key] == "required"]


def test_the_table_tells_what_goes_by_keyword_alone() -> None:
    """From the row that says so on."""
    (first,) = (name.strip("`") for name, _, _, meaning in rows("All arguments") if "keyword" in meaning)
    names = [field.name for field in fields(RayJobConfig)]
    assert [field.name for field in fields(RayJobConfig) if field.kw_only] == names[names.index(first) :]


def test_workers_have_gpus_and_the_head_has_none(render: Render) -> None:
    """Each pod asks for what its own group says."""
    found = groups(render(example("Workers with GPUs, a head without")))
    assert requested(found["head"]) == {"cpu": "2", "memory": "8Gi"}
    assert found["head"]["rayStartParams"]["num-cpus"] == "0"
    assert (found["gpu"]["replicas"], requested(found["gpu"])["nvidia.com/gpu"]) == (4, "1")


def test_the_autoscaler_has_its_bounds(render: Render) -> None:
    """From nothing to eight."""
    job = render(example("From nothing to eight workers"))
    group = groups(job)["gpu"]
    assert [group[key] for key in ("replicas", "minReplicas", "maxReplicas")] == [0, 0, 8]
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["enableInTreeAutoscaling"] is True
    assert cluster["autoscalerOptions"] == {"idleTimeoutSeconds": 120}


def test_a_template_is_its_groups_alone(render: Render) -> None:
    """Sidecar, volume, toleration and label are in that group, beside what it asks for; the task's image is there."""
    found = groups(render(example("A sidecar and a volume for one group")))
    assert {name: list(containers(group)) for name, group in found.items()} == {
        "head": ["ray-head"],
        "cached": ["ray-worker", "fetcher"],
        "plain": ["ray-worker"],
    }
    pod, ray = found["cached"]["template"], containers(found["cached"])["ray-worker"]
    assert pod["spec"]["volumes"] == [{"name": "cache", "emptyDir": {"sizeLimit": "20Gi"}}]
    assert pod["spec"]["tolerations"][0]["key"] == "pool"
    assert pod["metadata"]["labels"]["team"] == "search"
    assert (ray["image"], ray["volumeMounts"]) == ("example/train:1", [{"name": "cache", "mountPath": "/cache"}])
    assert requested(found["cached"]) == requested(found["plain"]) == {"cpu": "4", "memory": "16Gi"}


def test_the_runtime_environment_arrives(render: Render) -> None:
    """`excludes` is no part of it: the driver has it from the task's own code."""
    job = render(example("Variables for the workers, and files that they need not get"))
    assert yaml.safe_load(job["spec"]["runtimeEnvYAML"]) == {"env_vars": {"NCCL_DEBUG": "INFO"}}


def test_requests_come_from_the_task_where_a_group_says_none(render: Render) -> None:
    """Resource by resource, as the table says; one side stands for both."""
    found = groups(render(example("Requests and limits")))
    cpu, memory, gpu = "cpu", "memory", "nvidia.com/gpu"
    assert rows("Requests and limits") == [
        [name, *(requested(found[group])[key] for key in (cpu, memory, gpu))]
        for name, group in (("head", "head"), ("each of `same`", "same"), ("each of `large`", "large"))
    ]


def test_a_head_can_do_without_the_tasks_gpus(render: Render) -> None:
    """By asking for none."""
    text = 'requests=Resources(gpu="0")'
    assert f"HeadNodeConfig({text})" in section("Requests and limits")
    program = example("Requests and limits").replace('requests=Resources(cpu="2")', text)
    assert requested(groups(render(program))["head"])["nvidia.com/gpu"] == "0"


def test_gpus_of_a_group_are_nvidias(render: Render, tmp_path: Path) -> None:
    """Whatever the platform calls a task's GPU: the name is written where the task is registered."""
    (tmp_path / "kuberay.yaml").write_text("plugins: {k8s: {gpu-resource-name: example.com/gpu}}", encoding="utf-8")
    found = groups(render(example("Requests and limits"), "--config", "kuberay.yaml"))
    assert {key for key in requested(found["same"]) if "/" in key} == {"example.com/gpu"}
    assert {key for key in requested(found["large"]) if "/" in key} == {"example.com/gpu", "nvidia.com/gpu"}


def test_an_image_spec_is_an_image(render: Render) -> None:
    """By its name, as it is not built here."""
    image = containers(groups(render(example("The image")))["head"])["ray-head"]["image"]
    assert image.startswith("example/train:")


def test_kueue_gets_its_labels(render: Render) -> None:
    """On the RayJob; the page names both."""
    labels = {"kueue.x-k8s.io/queue-name": "team-a", "kueue.x-k8s.io/priority-class": "high"}
    assert [key for key in labels if f"`{key}`" not in section("Kueue")] == []
    job = render(example("The image").replace("RayJobConfig()", 'RayJobConfig(queue="team-a", priority="high")'))
    assert labels.items() <= job["metadata"]["labels"].items()


ENDS = {
    "": (True, 3600),
    "ttl_seconds_after_finished=600": (True, 600),
    "ttl_seconds_after_finished=0": (True, 0),
    "shutdown_after_job_finishes=True": (True, 0),
    "shutdown_after_job_finishes=False": (True, 86400),
}
"""What a task says of its cluster's end, and what KubeRay gets."""


@pytest.mark.parametrize("written", [pytest.param(each, id=each or "nothing") for each in ENDS])
def test_the_cluster_goes_when_the_page_says(render: Render, written: str) -> None:
    """After so many seconds."""
    spec = render(example("The image").replace("RayJobConfig()", f"RayJobConfig({written})"))["spec"]
    assert (spec["shutdownAfterJobFinishes"], spec["ttlSecondsAfterFinished"]) == ENDS[written]


def test_a_platform_may_keep_clusters(render: Render, tmp_path: Path) -> None:
    """Then a ttl alone does not count, as for Flyte's own plugin."""
    (tmp_path / "kuberay.yaml").write_text("plugins: {ray: {shutdownAfterJobFinishes: false}}", encoding="utf-8")
    program = example("The image").replace("RayJobConfig()", "RayJobConfig(ttl_seconds_after_finished=600)")
    spec = render(program, "--config", "kuberay.yaml")["spec"]
    assert (spec["shutdownAfterJobFinishes"], "ttlSecondsAfterFinished" in spec) == (False, False)


def test_each_end_is_in_the_page() -> None:
    """In its table, in this order."""
    told = [re.findall(r"`(.+?)`", cells[0]) for cells in rows("When the cluster goes")]
    assert [each[0] if each else "" for each in told] == list(ENDS)
