"""What tools/docs.py writes into the documentation."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.cluster.links import links_of
from flytekitplugins.kuberay.settings import parse_settings
from flytekitplugins.kuberay.settings.templates import NEVER_KNOWN, VARIABLES
from tests.cluster.scenes import NOW, RUNNING, container, pod
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


def links_section() -> str:
    """The section "Links" of docs/connector.md."""
    return CONNECTOR.read_text(encoding="utf-8").partition("\n## Links\n")[2].partition("\n## ")[0]


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
