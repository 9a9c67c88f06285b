"""Whose log is meant: by submission mode and pod, and only where there is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flytekitplugins.kuberay.cluster.capsule import LogSource
from flytekitplugins.kuberay.cluster.logs import WHICH, DashboardLog, dashboard_log, log_sources, mode_of, places_of
from flytekitplugins.kuberay.cluster.pods import PodView
from flytekitplugins.kuberay.config import SUBMISSION_MODES

from .scenes import RUNNING, ago, container, ended, failed, pod, stuck, waiting

SUBMITTER = pod("submitter", container("proxy", running=ago()), container("ray-job-submitter", running=ago()))
SIDECAR = pod("head", container("ray-head", running=ago()), container("ray-job-submitter", running=ago()))
WORKERS = (pod("w", name="w-2"), pod("a", name="a-1"), pod("w", name="w-1"))
OLD = failed("submitter", 1, name="old", created=ago(minutes=10))


@pytest.mark.parametrize(
    ("which", "mode", "pods", "expected"),
    [
        pytest.param(
            "driver", "K8sJobMode", (SIDECAR, OLD, SUBMITTER, *WORKERS),
            [LogSource(SUBMITTER.name, "ray-job-submitter")],
            id="the newest submitter follows the driver",
        ),
        pytest.param(
            "submitter", "K8sJobMode", (replace(OLD, name="o"),), [LogSource("o", "ray-job-submitter")],
            id="one that has failed has a log",
        ),
        pytest.param(
            "driver", "SidecarMode", (SIDECAR, *WORKERS), [LogSource(SIDECAR.name, "ray-job-submitter")],
            id="a sidecar of the head does",
        ),
        pytest.param("submitter", "SidecarMode", (pod("head"),), [], id="and not Ray's own container"),
        pytest.param("driver", "HTTPMode", (SIDECAR, SUBMITTER), [], id="nobody does by HTTP"),
        pytest.param(
            "head", "HTTPMode", (pod("head", name="old", created=ago(hours=1)), SIDECAR, *WORKERS),
            [LogSource(SIDECAR.name, "ray-head")],
            id="the newest head",
        ),
        pytest.param(
            "worker", "K8sJobMode", (SIDECAR, SUBMITTER, *WORKERS),
            [LogSource("a-1", "ray-worker"), LogSource("w-1", "ray-worker"), LogSource("w-2", "ray-worker")],
            id="all workers, group by group",
        ),
        pytest.param(
            "worker", "K8sJobMode", (SUBMITTER, pod("submitter", role="worker", name="w")),
            [LogSource("w", "ray-worker")],
            id="those of a group called submitter too",
        ),
        pytest.param(
            "worker", "K8sJobMode", (stuck("w", "ContainerCreating"),), [],
            id="what has not begun has none",
        ),
        pytest.param(
            "worker", "K8sJobMode",
            (pod("w", container("ray-worker", waiting=waiting("CrashLoopBackOff"), last=ended(1)), name="w"),),
            [LogSource("w", "ray-worker", previous=True)],
            id="of one that waits to start again its last end is shown",
        ),
    ],
)  # fmt: skip
def test_the_containers(which: str, mode: str, pods: tuple[PodView, ...], expected: list[LogSource]) -> None:
    """Of each that is asked for."""
    assert log_sources(which, mode, pods) == expected


@pytest.mark.parametrize("which", WHICH)
@pytest.mark.parametrize("mode", SUBMISSION_MODES)
def test_without_pods_there_is_none(which: str, mode: str) -> None:
    """As when nothing has begun, or all has gone."""
    assert log_sources(which, mode, ()) == []


@pytest.mark.parametrize(
    ("url", "job_id", "state", "expected"),
    [
        pytest.param(
            "c-head-svc.ns.svc.cluster.local:8265",
            "j",
            "RUNNING",
            DashboardLog("c-head-svc:8265", "j"),
            id="as KubeRay writes it",
        ),
        pytest.param("http://svc.ns:80", "j", "FAILED", DashboardLog("svc:80", "j"), id="with a scheme"),
        pytest.param("", "j", "RUNNING", None, id="no dashboard yet"),
        pytest.param("c-head-svc.ns:8265", "", "RUNNING", None, id="no job yet"),
        pytest.param("c-head-svc.ns:8265", "j", "PENDING", None, id="a job that has no process yet"),
    ],
)
def test_the_dashboard(url: str, job_id: str, state: str, expected: DashboardLog | None) -> None:
    """Its Service with the port, from the RayJob's status."""
    assert dashboard_log(replace(RUNNING, dashboard=url, job_id=job_id, job=state)) == expected


@pytest.mark.parametrize(
    ("which", "mode", "url", "expected"),
    [
        pytest.param("driver", "HTTPMode", "svc.ns:80", DashboardLog("svc:80", "j"), id="the driver's, by HTTP"),
        pytest.param("driver", "HTTPMode", "", [], id="the same before there is a dashboard"),
        pytest.param("head", "HTTPMode", "svc.ns:80", [LogSource(SIDECAR.name, "ray-head")], id="a pod's, by HTTP"),
        pytest.param(
            "driver", "K8sJobMode", "svc.ns:80", [LogSource(SUBMITTER.name, "ray-job-submitter")], id="the submitter's"
        ),
    ],
)
def test_the_places(which: str, mode: str, url: str, expected: list[LogSource] | DashboardLog) -> None:
    """The dashboard has the driver's log alone, and only where nobody else has it."""
    job = replace(RUNNING, dashboard=url, job_id="j", job="RUNNING")
    assert places_of(which, mode, job, [SIDECAR, SUBMITTER]) == expected


def test_the_mode() -> None:
    """KubeRay's own default where the RayJob says nothing."""
    assert (mode_of({"spec": {"submissionMode": "HTTPMode"}}), mode_of({})) == ("HTTPMode", "K8sJobMode")
