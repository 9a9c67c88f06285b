"""What links ask of a task is kept with its RayJob from the create on, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.cluster.link_templates import link_annotation
from flytekitplugins.kuberay.cluster.links import links_of
from flytekitplugins.kuberay.cluster.names import LINKS
from flytekitplugins.kuberay.cluster.status import view_of
from flytekitplugins.kuberay.settings import parse_settings
from flytekitplugins.kuberay.wire import FlyteTask
from tests.pod.samples import container_task

from .scenes import NOW

TASK = container_task(
    id={"resourceType": "TASK", "project": "tp", "domain": "td", "name": "tasks.train", "version": "v1"},
    config={"link_type": "vscode", "port": "8080", "token": "s3cret"},
    execution={"taskExecutionId": {
        "retryAttempt": 2,
        "nodeExecutionId": {"nodeId": "n0", "executionId": {"project": "p", "domain": "d", "name": "f1"}},
    }},
)  # fmt: skip
EDITOR = {"dynamic-log-links": {"vscode": {"templateUris": "https://e/{{ .taskConfig.port }}"}}}


def template(text: str) -> dict[str, Any]:
    """The settings of one log link."""
    return {"logs": {"templates": [{"displayName": "L", "templateUris": text}]}}


def kept(task: FlyteTask, ray: dict[str, Any], **own: Any) -> dict[str, str]:
    """What the annotation holds; {} without one."""
    found = link_annotation(task, parse_settings({"plugins": {"ray": ray, "kuberay": own}}))
    values: dict[str, str] = json.loads(found.get(LINKS, "{}"))
    return values


@pytest.mark.parametrize(
    ("ray", "expected"),
    [
        pytest.param({}, {}, id="no templates"),
        pytest.param(template("https://{{ .podName }}/{{ .rayClusterName }}"), {}, id="what the cluster tells"),
        pytest.param(template("{{ .taskID }}"), {"taskid": "tasks.train"}, id="the task's name"),
        pytest.param(template("{{ .taskVersion }}"), {"taskversion": "v1"}, id="its version"),
        pytest.param(template("{{ .taskProject }}"), {"taskproject": "tp"}, id="its project"),
        pytest.param(template("{{ .taskDomain }}"), {"taskdomain": "td"}, id="its domain"),
        pytest.param(template("{{ .taskRetryAttempt }}"), {"taskretryattempt": "2"}, id="the attempt"),
        pytest.param(template("{{ .nodeID }}"), {"nodeid": "n0"}, id="the node"),
        pytest.param(template("{{ .executionName }}"), {"executionname": "f1"}, id="the execution"),
        pytest.param(template("{{ .executionProject }}"), {"executionproject": "p"}, id="the execution's project"),
        pytest.param(template("{{ .executionDomain }}"), {"executiondomain": "d"}, id="the execution's domain"),
        pytest.param(template("{{ .taskConfig.port }}"), {"taskconfig.port": "8080"}, id="one entry of its config"),
        pytest.param(template("{{ .taskConfig.none }}"), {}, id="an entry that it does not have"),
        pytest.param(
            {"logs": EDITOR}, {"link_type": "vscode", "taskconfig.port": "8080"}, id="a dynamic link that it chooses"
        ),
        pytest.param(
            {"logs": {"dynamic-log-links": {"wandb": {"templateUris": "{{ .taskConfig.port }}"}}}},
            {"link_type": "vscode"},
            id="a dynamic link that it does not choose",
        ),
        pytest.param(
            {"logs": {"templates": [{"displayName": "{{ .taskID }}", "templateUris": "x"}]}},
            {"taskid": "tasks.train"},
            id="in a link's name",
        ),
        pytest.param({"dashboardURLTemplate": {"templateUris": "{{ .nodeID }}"}}, {"nodeid": "n0"}, id="a dashboard"),
    ],
)  # fmt: skip
def test_what_templates_ask_for_is_kept(ray: dict[str, Any], expected: dict[str, str]) -> None:
    """A GetTask brings neither task template nor execution."""
    assert kept(TASK, ray) == expected


def test_what_a_task_does_not_say_is_not_kept() -> None:
    """A task that no registration gave a version has none."""
    assert kept(container_task(id={"name": "tasks.train"}), template("{{ .taskID }}{{ .taskVersion }}")) == {
        "taskid": "tasks.train"
    }


def test_what_the_history_servers_template_asks_for_is_kept() -> None:
    """It is a setting of our own."""
    own = {"history-server-url-template": "https://h/{{ .executionName }}"}
    assert kept(TASK, {}, **own) == {"executionname": "f1"}


def test_the_annotation_stands_on_the_rayjob_alone() -> None:
    """Pods need it not; and without a template there is none."""
    settings = parse_settings({"plugins": {"ray": template("{{ .nodeID }}")}})
    job = build_ray_job(TASK, settings)
    assert job["metadata"]["annotations"][LINKS] == '{"nodeid":"n0"}'
    assert json.dumps(job).count(LINKS) == 1
    assert LINKS not in json.dumps(build_ray_job(TASK, parse_settings({})))


def test_a_rayjob_that_was_built_has_its_links() -> None:
    """From a task's config to an address, by way of the cluster."""
    settings = parse_settings({"plugins": {"ray": {"logs": EDITOR}}})
    job = view_of(build_ray_job(TASK, settings))
    (link,) = links_of(job, [], TaskExecution.RUNNING, settings, NOW)
    assert (link.name, link.uri, link.message_format) == ("vscode", "https://e/8080", 2)
