"""The links beside a task: which variables have which value, which pods get one, and what is shown when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.cluster.links import Link, links_of
from flytekitplugins.kuberay.cluster.pods import PodView, pod_view_of
from flytekitplugins.kuberay.cluster.status import JobView
from flytekitplugins.kuberay.settings import Settings, parse_settings
from flytekitplugins.kuberay.settings.templates import NEVER_KNOWN, VARIABLES

from .scenes import CREATED, INITIALIZED, NOW, RUNNING, ago, container, job, phase_name, pod

PHASES = (
    TaskExecution.QUEUED,
    TaskExecution.WAITING_FOR_RESOURCES,
    TaskExecution.INITIALIZING,
    TaskExecution.RUNNING,
    TaskExecution.SUCCEEDED,
    TaskExecution.FAILED,
    TaskExecution.RETRYABLE_FAILED,
)
TASK = {
    "taskid": "wf.train",
    "taskversion": "v1",
    "taskproject": "p",
    "taskdomain": "d",
    "taskretryattempt": "1",
    "nodeid": "n0-0-n1",
    "executionname": "f0",
    "executionproject": "ep",
    "executiondomain": "ed",
}
"""What the create has kept of the task."""

JOB = replace(
    RUNNING, namespace="team", name="f0-n1-1-aa", job_id="j-1", head_service="train-c1-head-svc", link_values=TASK
)
HEAD = replace(
    pod("head", {**container("ray-head", running=INITIALIZED), "containerID": "containerd://4e"}, name="train-c1-head"),
    node="node-1",
    hostname="ray-host",
)
SUBMITTER = pod("submitter", name="f0-n1-1-aa-xyz")
WORKER = pod("cpu", name="train-c1-cpu-worker-7xk2p")
PODS = (WORKER, SUBMITTER, HEAD)


def settings(*templates: Mapping[str, Any] | str, **ray: Any) -> Settings:
    """Settings with these log links, a text for one with just that address; `ray` are more of `plugins.ray`."""
    plugins = [{"displayName": "L", "templateUris": each} if isinstance(each, str) else each for each in templates]
    return parse_settings({"plugins": {"ray": {"logs": {"templates": plugins}, **ray}}})


def shown(
    own: Settings,
    pods: Sequence[PodView] = PODS,
    *,
    of: JobView = JOB,
    phase: TaskExecution.Phase = TaskExecution.RUNNING,
) -> dict[str, str]:
    """The addresses of a task's links by their names."""
    return {link.name: link.uri for link in links_of(of, pods, phase, own, NOW)}


VALUES = {
    **{name: value for name, value in TASK.items()},
    "namespace": "team",
    "generatedname": "f0-n1-1-aa",
    "rayclustername": "train-c1",
    "rayjobid": "j-1",
    "rayheadservice": "train-c1-head-svc",
    "podname": "train-c1-head",
    "poduid": "train-c1-head",
    "hostname": "ray-host",
    "nodename": "node-1",
    "containername": "ray-head",
    "containerid": "4e",
    "logname": "head",
    "podrfc3339starttime": "2026-11-30T12:00:00Z",
    "podrfc3339finishtime": "2026-12-02T00:00:00Z",
    "podunixstarttime": str(int(CREATED.timestamp())),
    "podunixfinishtime": "1796169600",
}
"""The value of each variable: of the RayJob, or its head."""


@pytest.mark.parametrize("name", sorted(set(VARIABLES) - set(NEVER_KNOWN)))
def test_each_variable_has_its_value(name: str) -> None:
    """Every one that Flyte knows, but for those of an array node's items."""
    found = links_of(JOB, PODS, TaskExecution.RUNNING, settings(f"https://x/{{{{ .{name} }}}}"), NOW)
    assert found[0].uri == f"https://x/{VALUES[name.lower()]}"


@pytest.mark.parametrize(
    "variable",
    [
        pytest.param("{{ .podName }}", id="as in Flyte's documentation"),
        pytest.param("{{.podName}}", id="without blanks"),
        pytest.param("{{ $podName }}", id="with a dollar"),
        pytest.param("{{  .PODNAME\t}}", id="in another case, with other blanks"),
    ],
)
def test_a_variable_may_be_written_as_flyte_takes_it(variable: str) -> None:
    """Source: flyteplugins, tasklog/template.go MustCreateRegex."""
    assert shown(settings(f"https://x/{variable}?a=b,c"), [HEAD]) == {"L (head)": "https://x/train-c1-head?a=b,c"}


@pytest.mark.parametrize(
    ("changed", "template"),
    [
        pytest.param({"cluster": ""}, "{{ .rayClusterName }}", id="of the RayJob"),
        pytest.param({"link_values": {}}, "{{ .executionName }}", id="of a RayJob that an older release made"),
        pytest.param({}, "{{ .nodeName }}", id="of a pod that has no node yet"),
        pytest.param({}, "{{ .subtaskExecutionIndex }}", id="that only array nodes have"),
        pytest.param({}, "{{ .taskConfig.port }}", id="that the task does not set"),
    ],
)
def test_a_link_with_an_unresolved_variable_is_left_out(changed: dict[str, Any], template: str) -> None:
    """Half an address leads nowhere; the other links stay."""
    own = settings(f"https://x/{{{{ .namespace }}}}/{template}", {"displayName": "N", "templateUris": "https://n"})
    assert shown(own, [WORKER], of=replace(JOB, **changed)) == {"N": "https://n"}


def test_a_link_whose_name_has_an_unresolved_variable_is_left_out() -> None:
    """As half a name says nothing."""
    assert shown(settings({"displayName": "On {{ .nodeName }}", "templateUris": "https://x"}), [WORKER]) == {}


def test_a_name_may_have_variables() -> None:
    """Those of a pod tell the links apart, without more."""
    own = settings({"displayName": "Log of {{ .podName }}", "templateUris": "https://x/{{ .podName }}"})
    assert list(shown(own)) == ["Log of train-c1-head", "Log of f0-n1-1-aa-xyz", "Log of train-c1-cpu-worker-7xk2p"]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param({"displayName": "D", "name": "n"}, "D", id="its name in the console"),
        pytest.param({"name": "n"}, "n", id="else its name"),
        pytest.param({}, "Logs", id="else what it is"),
    ],
)
def test_a_link_has_a_name(template: dict[str, Any], expected: str) -> None:
    """A console has nothing else to show."""
    assert shown(settings({**template, "templateUris": "https://x"})) == {expected: "https://x"}


def test_each_pod_has_a_link_where_one_is_asked_for() -> None:
    """The head first, then the submitter, which has the driver's output, then workers."""
    assert shown(settings("https://x/{{ .podName }}")) == {
        "L (head)": "https://x/train-c1-head",
        "L (submitter)": "https://x/f0-n1-1-aa-xyz",
        "L (cpu-7xk2p)": "https://x/train-c1-cpu-worker-7xk2p",
    }


def test_a_pod_of_which_nothing_is_known_yet_has_a_link() -> None:
    """The submitter's begins with the run, whose first answer has all links: its container's name is in its spec."""
    spec = {"containers": [{"name": "ray-job-submitter"}, {"name": "sidecar"}]}
    new = {"metadata": {"name": "f0-xyz", "creationTimestamp": "2026-11-30T12:02:00Z"}, "spec": spec}
    own = settings("https://x/{{ .podName }}/{{ .containerName }}")
    assert shown(own, [pod_view_of(new)]) == {"L (submitter)": "https://x/f0-xyz/ray-job-submitter"}


def test_one_link_serves_all_pods_where_nothing_of_a_pod_is_asked_for() -> None:
    """Times are the RayJob's then."""
    own = settings("https://x/{{ .rayClusterName }}?from={{ .podUnixStartTime }}")
    assert shown(own) == {"L": f"https://x/train-c1?from={int(CREATED.timestamp())}"}


def test_a_pods_link_has_the_pods_own_time() -> None:
    """Which began later than the RayJob."""
    own = settings("https://x/{{ .podName }}?from={{ .podUnixStartTime }}")
    assert shown(own, [HEAD]) == {"L (head)": f"https://x/train-c1-head?from={int(INITIALIZED.timestamp())}"}


def test_ten_workers_of_all_groups_have_a_link() -> None:
    """A thousand links help nobody, and no group goes without."""
    cpus = [pod("cpu", name=f"c-cpu-worker-{index:05}") for index in range(30)]
    gpus = [pod("gpu", name=f"c-gpu-worker-{index:05}") for index in range(2)]
    names = list(shown(settings("https://x/{{ .podName }}"), [*cpus, HEAD, *gpus]))
    assert names[:5] == ["L (head)", "L (cpu-00000)", "L (gpu-00000)", "L (cpu-00001)", "L (gpu-00001)"]
    assert names[5:] == [f"L (cpu-{index:05})" for index in range(2, 8)]


def test_a_worker_group_may_be_called_head() -> None:
    """Its pods stand beside the head."""
    found = shown(settings("https://x/{{ .podName }}"), [HEAD, pod("head", role="worker", name="c-head-worker-7xk2p")])
    assert found == {"L (head)": "https://x/train-c1-head", "L (head-7xk2p)": "https://x/c-head-worker-7xk2p"}


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param([pod("head", name="old", created=ago(minutes=9, seconds=40))], "new", id="the newest"),
        pytest.param([pod("head", name="young", created=NOW, deleted=True)], "new", id="not one that goes"),
        pytest.param([pod("head", name="other", created=NOW, cluster="train-c0")], "new", id="of this cluster"),
    ],
)
def test_the_head_that_counts_has_the_link(others: list[PodView], expected: str) -> None:
    """Under the name that the head's link had before, which it replaces."""
    found = shown(settings("https://x/{{ .podName }}"), [*others, pod("head", name="new", created=INITIALIZED)])
    assert found == {"L (head)": f"https://x/{expected}"}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param(
            "{{ .podName }}/{{ .containerName }}",
            {"L (head)": "https://x/train-c1-head-1/ray-head", "L (submitter)": "https://x/train-c1-head-1/ray-job-submitter"},
            id="two of its containers",
        ),
        pytest.param("{{ .podName }}", {"L (head)": "https://x/train-c1-head-1"}, id="one of the pod"),
    ],
)  # fmt: skip
def test_a_submitter_beside_the_head_has_a_link_of_its_own(template: str, expected: dict[str, str]) -> None:
    """In SidecarMode, where the address tells containers apart."""
    up = [container(name, running=INITIALIZED) for name in ("ray-head", "ray-job-submitter", "sidecar")]
    assert shown(settings(f"https://x/{template}"), [pod("head", *up)]) == expected


KUBERNETES = "https://k8s/#!/log/team/train-c1-head/pod?namespace=team"
CLOUDWATCH = (
    "https://console.aws.amazon.com/cloudwatch/home?region=eu-1#logEventViewer:group=/flyte;"
    "stream=var.log.containers.train-c1-head_team_ray-head-4e.log"
)
STACKDRIVER = (
    "https://console.cloud.google.com/logs/viewer?project=g-1&angularJsUrl=%2Flogs%2Fviewer%3Fproject%3Dg-1"
    "&resource=k8s_container&advancedFilter=resource.labels.pod_name%3Dtrain-c1-head"
)


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        pytest.param(
            {"kubernetes-enabled": True, "kubernetes-url": "https://k8s"},
            {"Kubernetes Logs (head)": KUBERNETES},
            id="Kubernetes' dashboard",
        ),
        pytest.param(
            {"kubernetes-enabled": True, "kubernetes-url": "u", "kubernetes-template-uri": "https://k/{{ .podUID }}"},
            {"Kubernetes Logs (head)": "https://k/train-c1-head"},
            id="Kubernetes' dashboard, by a template",
        ),
        pytest.param(
            {"cloudwatch-enabled": True, "cloudwatch-region": "eu-1", "cloudwatch-log-group": "/flyte"},
            {"Cloudwatch Logs (head)": CLOUDWATCH},
            id="CloudWatch",
        ),
        pytest.param(
            {"cloudwatch-enabled": True, "cloudwatch-template-uri": "https://c/{{ .containerId }}"},
            {"Cloudwatch Logs (head)": "https://c/4e"},
            id="CloudWatch, by a template",
        ),
        pytest.param(
            {"stackdriver-enabled": True, "gcp-project": "g-1", "stackdriver-logresourcename": "k8s_container"},
            {"Stackdriver Logs (head)": STACKDRIVER},
            id="Google Cloud Logging",
        ),
        pytest.param(
            {"stackdriver-enabled": True, "stackdriver-template-uri": "https://g/{{ .rayClusterName }}"},
            {"Stackdriver Logs": "https://g/train-c1"},
            id="Google Cloud Logging, by a template",
        ),
        pytest.param({"kubernetes-url": "https://k8s", "cloudwatch-template-uri": "x"}, {}, id="none is switched on"),
        pytest.param(
            {f"{name}-enabled": True for name in ("kubernetes", "cloudwatch", "stackdriver")},
            {},
            id="no place is named",
        ),
    ],
)
def test_flytes_own_log_links(logs: dict[str, Any], expected: dict[str, str]) -> None:
    """Source: flyteplugins, logs/logging_utils.go InitializeLogPlugins."""
    own = parse_settings({"plugins": {"ray": {"logs": logs}}})
    found = links_of(JOB, [HEAD], TaskExecution.RUNNING, own, NOW)
    assert {link.name: link.uri for link in found} == expected
    assert {link.message_format for link in found} <= {2}


PORT = {"displayName": "Editor", "templateUris": "https://e/{{ .podName }}/{{ .taskConfig.port }}"}
NAMED = {"name": "vscode", "displayName": "Editor", "dynamicTemplateUris": PORT["templateUris"]}


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param({"dynamic-log-links": {"vscode": PORT}}, id="a dynamic log link"),
        pytest.param({"dynamic-log-links": [{"vscode": PORT}]}, id="the same as a list"),
        pytest.param({"templates": [NAMED]}, id="a template with a name"),
    ],
)
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        pytest.param("vscode", {"Editor (head)": "https://e/train-c1-head/8080"}, id="chosen"),
        pytest.param("wandb,vscode", {"Editor (head)": "https://e/train-c1-head/8080"}, id="chosen with another"),
        pytest.param("wandb", {}, id="another one chosen"),
        pytest.param("", {}, id="none chosen"),
    ],
)
def test_a_dynamic_link_is_shown_where_the_task_chooses_it(
    logs: dict[str, Any], chosen: str, expected: dict[str, str]
) -> None:
    """By `link_type` of its config, with what else stands there."""
    of = replace(JOB, link_values={"link_type": chosen, "taskconfig.port": "8080"})
    assert shown(parse_settings({"plugins": {"ray": {"logs": logs}}}), [HEAD], of=of) == expected


def test_a_dynamic_link_without_a_name_is_never_shown() -> None:
    """No task can choose it, and one that chooses nothing has not."""
    assert shown(settings({"dynamicTemplateUris": "https://x"})) == {}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param({}, "RUNNING SUCCEEDED FAILED RETRYABLE_FAILED", id="by default, from the run on"),
        pytest.param(
            {"showWhilePending": True},
            "QUEUED WAITING_FOR_RESOURCES INITIALIZING RUNNING SUCCEEDED FAILED RETRYABLE_FAILED",
            id="always",
        ),
        pytest.param({"hideOnceFinished": True}, "RUNNING", id="while it runs"),
    ],
)
def test_a_link_is_shown_in_its_phases(flags: dict[str, bool], expected: str) -> None:
    """As flyteadmin's filter has it."""
    own = settings({"displayName": "L", "templateUris": "https://x", **flags})
    assert " ".join(phase_name(phase) for phase in PHASES if shown(own, phase=phase)) == expected


def test_a_link_carries_the_marks_by_which_flyteadmin_filters() -> None:
    """And its format."""
    flags = {"showWhilePending": True, "hideOnceFinished": True, "messageFormat": 1}
    own = settings({"displayName": "L", "templateUris": "https://x", **flags})
    assert links_of(JOB, PODS, TaskExecution.RUNNING, own, NOW) == [Link("L", "https://x", 1, True, True)]


DASHBOARD = settings(dashboardURLTemplate={"templateUris": "https://ray/{{ .rayClusterName }}"})
NOT_READY = replace(HEAD, ready=False)
INITIALIZING, IS_RUNNING = TaskExecution.INITIALIZING, TaskExecution.RUNNING
SUBMITTED = replace(JOB, dashboard="train-c1-head-svc:8265")


@pytest.mark.parametrize(
    ("phase", "of", "pods", "expected"),
    [
        pytest.param(INITIALIZING, JOB, [NOT_READY], False, id="the head starts"),
        pytest.param(INITIALIZING, JOB, [HEAD], True, id="the head is up, workers are not"),
        pytest.param(INITIALIZING, SUBMITTED, [], False, id="KubeRay's last word, without a head"),
        pytest.param(IS_RUNNING, JOB, [HEAD], True, id="the job runs"),
        pytest.param(IS_RUNNING, SUBMITTED, [NOT_READY], True, id="the job runs, a probe failed"),
        pytest.param(IS_RUNNING, SUBMITTED, [], True, id="the job runs on a cluster elsewhere"),
        pytest.param(IS_RUNNING, JOB, [], False, id="nothing is known"),
        pytest.param(TaskExecution.SUCCEEDED, SUBMITTED, [HEAD], False, id="success"),
        pytest.param(TaskExecution.FAILED, SUBMITTED, [HEAD], False, id="failure"),
        pytest.param(TaskExecution.RETRYABLE_FAILED, SUBMITTED, [HEAD], False, id="failure that may pass"),
    ],
)
def test_rays_dashboard_is_linked_while_the_head_is_up(
    phase: TaskExecution.Phase, of: JobView, pods: list[PodView], expected: bool
) -> None:
    """After the end it leads nowhere."""
    assert shown(DASHBOARD, pods, of=of, phase=phase) == ({"Ray Dashboard": "https://ray/train-c1"} if expected else {})


@pytest.mark.parametrize(
    ("phase", "kept"),
    [
        pytest.param(INITIALIZING, True, id="kept while it starts"),
        pytest.param(IS_RUNNING, False, id="dropped when a running task is suspended"),
    ],
)
def test_flyteadmin_is_to_drop_the_dashboard_when_the_head_goes(phase: TaskExecution.Phase, kept: bool) -> None:
    """At the end always, whatever the template says: it keeps each link that it was not told to drop."""
    (link,) = links_of(JOB, [HEAD], phase, DASHBOARD, NOW)
    assert (link.show_while_pending, link.hide_once_finished) == (kept, True)


def test_the_dashboards_template_knows_the_heads_pod() -> None:
    """For a proxy that leads to pods."""
    own = settings(dashboardURLTemplate={"displayName": "Ray", "templateUris": "https://ray/{{ .podName }}"})
    assert shown(own) == {"Ray": "https://ray/train-c1-head"}


@pytest.mark.parametrize("phase", PHASES, ids=phase_name)
def test_the_history_server_is_linked_after_the_end(phase: TaskExecution.Phase) -> None:
    """In the dashboard's place."""
    template = "https://history/{{ .namespace }}/{{ .rayClusterName }}"
    own = parse_settings({"plugins": {"kuberay": {"history-server-url-template": template}}})
    ended = phase in PHASES[-3:]
    assert shown(own, phase=phase) == ({"Ray History Server": "https://history/team/train-c1"} if ended else {})


@pytest.mark.parametrize(
    ("phase", "ended", "expected"),
    [
        pytest.param(IS_RUNNING, None, "2026-12-02T00:00:00Z", id="it runs: past tomorrow"),
        pytest.param(TaskExecution.FAILED, None, "2026-11-30T12:10:00Z", id="we end it: now"),
        pytest.param(
            TaskExecution.SUCCEEDED, NOW - timedelta(minutes=5), "2026-11-30T12:06:00Z", id="it has ended: a bit later"
        ),
    ],
)
def test_a_time_window_holds_all_logs_until_the_next_link(
    phase: TaskExecution.Phase, ended: Any, expected: str
) -> None:
    """Of a task that runs no other link comes before its end; and each look gives the same one."""
    own = settings("https://x/{{ .podRFC3339FinishTime }}")
    of = replace(JOB, ended=ended)
    later = links_of(of, PODS, phase, own, NOW + timedelta(hours=3))
    assert shown(own, of=of, phase=phase) == {"L": f"https://x/{expected}"}
    assert (later[0].uri == f"https://x/{expected}") == (ended is not None or phase == IS_RUNNING)


def test_an_address_is_linked_once() -> None:
    """The first of two templates that come to the same keeps it."""
    own = settings("https://x/{{ .namespace }}", {"displayName": "M", "templateUris": ["https://x/team", "https://y"]})
    assert shown(own) == {"L": "https://x/team", "M": "https://y"}


@pytest.mark.parametrize(
    ("of", "own"),
    [
        pytest.param(None, settings("https://x"), id="the RayJob is gone"),
        pytest.param(JOB, settings(), id="the platform has no templates"),
        pytest.param(job(), settings("https://x/{{ .podName }}"), id="there are no pods"),
    ],
)
def test_there_may_be_no_links(of: JobView | None, own: Settings) -> None:
    """Which is no fault: flyteadmin keeps those that it has."""
    assert links_of(of, [], TaskExecution.RUNNING, own, NOW) == []
