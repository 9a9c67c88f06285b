"""What tools/docs.py writes into the documentation."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from flyteidl.admin.matchable_resource_pb2 import PluginOverride, PluginOverrides
from flyteidl.core.execution_pb2 import TaskExecution
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.cluster.links import links_of
from flytekitplugins.kuberay.cluster.names import PREFIX
from flytekitplugins.kuberay.settings import parse_settings
from flytekitplugins.kuberay.settings.templates import NEVER_KNOWN, VARIABLES
from tests.cluster.scenes import NOW, RUNNING, container, pod
from tests.connector.samples import flyte_task
from tools.docs import PAGE, with_tables

CONNECTOR = PAGE.parent / "connector.md"


def test_the_documentation_is_up_to_date() -> None:
    """docs/settings.md holds the tables that the code gives; `make docs` writes them."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text


def test_tables_need_their_marks() -> None:
    """A document without the marks is refused, not overwritten."""
    with pytest.raises(ValueError, match="must hold the lines"):
        with_tables("# Settings\n")


def section(heading: str) -> str:
    """A section of docs/connector.md."""
    return CONNECTOR.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def links_section() -> str:
    """The section "Links" there."""
    return section("Links")


def test_the_links_in_the_documentation_are_those_that_come() -> None:
    """Its example gives the names that its table has."""
    example = re.findall(r"```yaml\n(.*?)```", links_section(), re.DOTALL)[0]
    values = {"executionname": "f0", "link_type": "vscode", "taskconfig.port": "8080"}
    job = replace(RUNNING, namespace="team", link_values=values)
    head = pod("head", {**container("ray-head", running=NOW), "containerID": "containerd://4e"})
    settings = parse_settings(yaml.safe_load(example))
    phases = TaskExecution.INITIALIZING, TaskExecution.RUNNING, TaskExecution.SUCCEEDED
    assert [
        [link.name for link in links_of(job, [replace(head, node="node-1")], phase, settings, NOW)] for phase in phases
    ] == [
        ["Ray Dashboard", "Logs of the node (head)"],
        ["Ray Dashboard", "Kubernetes Logs (head)", "All logs", "Logs of the node (head)", "VSCode"],
        ["Ray History Server", "Kubernetes Logs (head)", "All logs", "Logs of the node (head)"],
    ]


def test_each_variable_of_a_link_is_in_the_documentation() -> None:
    """In the table of the section "Links"."""
    table = links_section().partition("| variable | value |")[2]
    assert [name for name in VARIABLES if name not in NEVER_KNOWN and f"`{name}`" not in table] == []


def test_the_images_name_is_put_everywhere(tmp_path: Path) -> None:
    """By the command of the installation's second step, in the files as they are."""
    (command,) = re.findall(r"^ *(sed .*)$", section("Install it"), re.MULTILINE)
    shutil.copytree(PAGE.parent.parent / "deploy", tmp_path / "deploy")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    texts = [path.read_text(encoding="utf-8") for path in sorted(tmp_path.glob("deploy/*.yaml"))]
    assert [text.count("example/") for text in texts] == [0] * len(texts)
    assert [text.count("image: REGISTRY/flyte-kuberay:0.1.0\n") for text in texts] == [2, 0, 0, 1]


def test_what_is_restarted_is_there() -> None:
    """The Deployment that the installation's commands name."""
    documents = list(yaml.safe_load_all((PAGE.parent.parent / "deploy/connector.yaml").read_text(encoding="utf-8")))
    (metadata,) = (each["metadata"] for each in documents if each["kind"] == "Deployment")
    named = re.findall(r"kubectl rollout \w+ deployment/(\S+) -n (\S+)", section("Install it"))
    assert named == [(metadata["name"], metadata["namespace"])] * 2


def test_the_plugin_override_is_one() -> None:
    """What flytectl sends of the file: flyteidl's own message, by the names of its fields."""
    (block,) = (
        each for each in re.findall(r"```yaml\n(.*?)```", section("Tell propeller"), re.DOTALL) if "task_type" in each
    )
    content = yaml.safe_load(block)
    assert set(content) == {"project", "domain", "overrides"}
    (override,) = ParseDict({"overrides": content["overrides"]}, PluginOverrides()).overrides
    assert override == PluginOverride(task_type="ray", plugin_id=["connector-service"])


def test_each_label_of_ours_is_in_the_documentation() -> None:
    """And each annotation, with the objects that have it."""
    rows = re.findall(r"^\| `(kuberay\S+)` \| (\w+) \| (.*) \|$", section("Labels and annotations"), re.MULTILINE)
    job = build_ray_job(flyte_task("p-d"), parse_settings(yaml.safe_load(LINKED)))
    spec = job["spec"]
    cluster = spec["rayClusterSpec"]
    pods = [
        cluster["headGroupSpec"]["template"],
        cluster["workerGroupSpecs"][0]["template"],
        spec["submitterPodTemplate"],
    ]
    for kind in ("label", "annotation"):
        told = {key: "not on the pods" not in value for key, each, value in rows if each == kind}
        assert set(told) == ours(job, kind)
        assert [ours(each, kind) for each in pods] == [{key for key in told if told[key]}] * 3


LINKED = "plugins: {ray: {logs: {templates: [{displayName: A, templateUris: ['https://x/{{ .executionName }}']}]}}}"


def ours(thing: dict[str, Any], kind: str) -> set[str]:
    """The keys of ours among the labels, or annotations, of an object or a pod template."""
    return {key for key in thing["metadata"][f"{kind}s"] if key.startswith(PREFIX)}
