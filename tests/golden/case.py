"""A golden case as the objects that a builder takes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flyteidl.admin.agent_pb2 import TaskExecutionMetadata
from flyteidl.core.literals_pb2 import LiteralMap
from flyteidl.core.tasks_pb2 import TaskTemplate
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.pod.base import find_base_template
from flytekitplugins.kuberay.settings import Settings, parse_settings
from flytekitplugins.kuberay.wire import FlyteTask, Manifest

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("cases/*.json")) + sorted(FOLDER.glob("wire/*.json"))


@dataclass(frozen=True)
class Case:
    """One file of cases/ or wire/."""

    name: str
    raw: dict[str, Any]
    task: FlyteTask
    settings: Settings
    base: Manifest | None

    def build(self) -> Manifest:
        """The RayJob that we build of it.

        Raises:
            TaskError: The task is refused.
        """
        return build_ray_job(self.task, self.settings, self.base)


def read_case(path: Path) -> Case:
    """The case of a file."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    inputs = ParseDict(raw["inputs"], LiteralMap()) if raw.get("inputs") else None
    template = ParseDict(raw["task_template"], TaskTemplate())
    execution = ParseDict(raw["execution"], TaskExecutionMetadata())
    task = FlyteTask(template, execution, raw["output_prefix"], inputs)
    settings = parse_settings(raw["settings"])
    return Case(path.stem, raw, task, settings, find_base_template(raw["pod_templates"], task, settings))
