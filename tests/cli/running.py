"""What the CLI's tests share: a run of the command, files, golden cases as files, tasks in Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import yaml

from flytekitplugins.kuberay.wire import Manifest
from tests.golden.case import FILES, Case, read_case

RAY = """
from flytekit import ImageSpec, PodTemplate, task, workflow
from flytekitplugins.kuberay import RayJobConfig, WorkerNodeConfig
config = RayJobConfig(worker_node_config=[WorkerNodeConfig(group_name="w", replicas=1)])
"""
TRAIN = f"""{RAY}
@task(task_config=config, container_image="registry.example.com/train:1")
def train() -> int:
    return 1
"""
SCORE = """
@task(task_config=config)
def score() -> int:
    return 1
"""

POD_TEMPLATE: Manifest = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "metadata": {"name": "pool"},
    "template": {"spec": {"containers": [{"name": "default", "image": "none"}], "nodeSelector": {"pool": "batch"}}},
}


class Ended(NamedTuple):
    """How a run of the command ended."""

    status: int
    out: str
    err: str

    @property
    def job(self) -> Manifest:
        """The manifest that was printed."""
        assert (self.status, self.err) == (0, "")
        job: Manifest = yaml.safe_load(self.out)
        return job


Run = Callable[..., Ended]


def written(name: str, content: str | bytes | Manifest) -> str:
    """The name of a file with this content, a manifest's as JSON."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, (str, bytes)) else json.dumps(content)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return name


def case_files(case: Case) -> list[str]:
    """The arguments that describe a golden case, their files written."""
    raw = case.raw
    arguments = ["--task-template", written("task.json", raw["task_template"])]
    arguments += ["--execution", written("execution.json", raw["execution"])]
    arguments += ["--config", written("config.json", raw["settings"]), "--output-prefix", raw["output_prefix"]]
    for index, template in enumerate(raw["pod_templates"]):
        arguments += ["--pod-template", written(f"pod-template-{index}.json", template)]
    return arguments + (["--inputs", written("inputs.json", raw["inputs"])] if raw.get("inputs") else [])


def golden(name: str) -> Case:
    """The golden case of that name."""
    return next(read_case(path) for path in FILES if path.stem == name)


def first_image(job: Manifest) -> str:
    """The image of the head."""
    image: str = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"]
    return image
