"""The quick probes: which containers get them, and what their scripts ask of a Ray that runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from typing_extensions import override

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.cluster.probes import with_probes_chosen, with_quick_probes
from flytekitplugins.kuberay.wire import FlyteTask, Manifest
from tests.pod.samples import base_template, container_task, custom, pod_task, primary, settings, sidecar

OWN = {"httpGet": {"port": 8265, "path": "/api/version"}}
QUICK = {"health-probes": "quick"}
HEAD_CHECKS = "healthy 52365 api/local_raylet_healthz && healthy 8265 api/gcs_healthz"
WORKER_CHECKS = "healthy 52365 api/local_raylet_healthz"


def groups_of(task: FlyteTask, own: Manifest | None = None, base: Manifest | None = None) -> list[Manifest]:
    """The head group and the worker groups of a task's RayJob, by default with quick probes."""
    cluster = build_ray_job(task, settings(kuberay=QUICK if own is None else own), base)["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def containers_of(group: Manifest) -> list[Manifest]:
    """A group's containers."""
    containers: list[Manifest] = group["template"]["spec"]["containers"]
    return containers


READINESS, LIVENESS = "readinessProbe", "livenessProbe"


def kind_of(container: Manifest, field: str = READINESS) -> str:
    """What a probe of it asks; "" where it has none, `own` where it is the user's."""
    probe = container.get(field)
    if not probe:
        return ""
    checks = re.search(r"healthy \d[^;]*", json.dumps(probe))
    return checks[0] if checks else "own"


def kinds_of(task: FlyteTask, base: Manifest | None = None, field: str = READINESS) -> list[list[str]]:
    """The same of each container of each group."""
    return [[kind_of(container, field) for container in containers_of(group)] for group in groups_of(task, base=base)]


def patched(**cluster: Any) -> FlyteTask:
    """A task whose patch says that of its RayCluster."""
    return container_task(
        config={"kuberay": json.dumps({"version": 1, "rayJobPatch": {"spec": {"rayClusterSpec": cluster}}})}
    )


def with_template(**container: Any) -> FlyteTask:
    """A task whose worker group has a template with these fields of its Ray container."""
    template = {"podSpec": {"containers": [{"name": "ray-worker", **container}]}}
    return container_task(custom=custom({"k8sPod": template}))


@pytest.mark.parametrize("own", [{}, {"health-probes": "operator"}])
def test_nothing_is_added_unasked(own: Manifest) -> None:
    """A RayJob is Flyte's as it is, unless the platform, or the connector for it, wants the quick probes."""
    groups = groups_of(container_task(), own)
    containers = [container for group in groups for container in containers_of(group)]
    assert [(kind_of(container, READINESS), kind_of(container, LIVENESS)) for container in containers] == [("", "")] * 2


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (READINESS, {"timeoutSeconds": 30, "periodSeconds": 5, "failureThreshold": 3}),
        (LIVENESS, {"initialDelaySeconds": 30, "timeoutSeconds": 5, "periodSeconds": 5, "failureThreshold": 120}),
    ],
)
def test_only_the_probes_are_ours(field: str, expected: Manifest) -> None:
    """Nothing else of the RayJob changes. The liveness probe ends what KubeRay's ends: ten minutes of no answer."""
    plain = build_ray_job(container_task(), settings())
    quick = build_ray_job(container_task(), settings(kuberay=QUICK))
    cluster = quick["spec"]["rayClusterSpec"]
    containers = [containers_of(group)[0] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]
    probes = [{each: container.pop(each) for each in (READINESS, LIVENESS)} for container in containers]
    assert quick == plain
    assert [{key: value for key, value in probe[field].items() if key != "exec"} for probe in probes] == [expected] * 2


@pytest.mark.parametrize(
    ("task", "base", "expected"),
    [
        pytest.param(
            container_task(), None, [[HEAD_CHECKS], [WORKER_CHECKS]], id="a head answers for its raylet and the GCS"
        ),
        pytest.param(
            container_task(custom=custom({}, {"groupName": "more"})),
            None,
            [[HEAD_CHECKS], [WORKER_CHECKS], [WORKER_CHECKS]],
            id="each worker group",
        ),
        pytest.param(
            pod_task({"containers": [sidecar(), primary()]}),
            None,
            [[HEAD_CHECKS, ""], [WORKER_CHECKS, ""]],
            id="a sidecar stays as it is",
        ),
        pytest.param(
            pod_task({"containers": [primary(readinessProbe=OWN)]}), None, [["own"], ["own"]], id="the task's own probe"
        ),
        pytest.param(
            container_task(),
            base_template({"containers": [{"name": "primary", "image": "x", "readinessProbe": OWN}]}),
            [["own"], ["own"]],
            id="the platform's own probe",
        ),
        pytest.param(
            with_template(readinessProbe=OWN), None, [[HEAD_CHECKS], ["own"]], id="a group's own probe, in its group"
        ),
        pytest.param(
            with_template(readinessProbe=None), None, [[HEAD_CHECKS], [WORKER_CHECKS]], id="a null says nothing"
        ),
        pytest.param(
            with_template(startupProbe=OWN),
            None,
            [[HEAD_CHECKS], [WORKER_CHECKS]],
            id="a startup probe is no reason",
        ),
        pytest.param(
            patched(
                headGroupSpec={"template": {"spec": {"containers": [{"name": "ray-head", "readinessProbe": OWN}]}}}
            ),
            None,
            [["own"], [WORKER_CHECKS]],
            id="a patch's own probe",
        ),
    ],
)
def test_which_containers_get_it(task: FlyteTask, base: Manifest | None, expected: list[list[str]]) -> None:
    """Ray's, where nobody has said how it is found ready."""
    assert kinds_of(task, base) == expected


def test_each_probe_is_the_users_by_itself() -> None:
    """A liveness probe says nothing of readiness."""
    task = with_template(livenessProbe=OWN)
    assert kinds_of(task, field=LIVENESS) == [[HEAD_CHECKS], ["own"]]
    assert kinds_of(task, field=READINESS) == [[HEAD_CHECKS], [WORKER_CHECKS]]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        pytest.param(
            {"dashboard-port": "9000"},
            "healthy 52365 api/local_raylet_healthz && healthy 9000 api/gcs_healthz",
            id="the dashboard's",
        ),
        pytest.param(
            {"dashboard-agent-listen-port": "9001"},
            "healthy 9001 api/local_raylet_healthz && healthy 8265 api/gcs_healthz",
            id="the agent's",
        ),
        pytest.param({"dashboard-port": "$PORT; x", "dashboard-agent-listen-port": ""}, HEAD_CHECKS, id="no number"),
    ],
)
def test_ports_are_those_of_the_start_parameters(params: Manifest, expected: str) -> None:
    """Whoever set them, as KubeRay reads them."""
    head, _ = groups_of(patched(headGroupSpec={"rayStartParams": params}))
    assert kind_of(containers_of(head)[0]) == expected


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param({"headGroupSpec": None}, id="no head"),
        pytest.param({"headGroupSpec": "big"}, id="a head that is a text"),
        pytest.param({"headGroupSpec": {"rayStartParams": []}}, id="parameters that are a list"),
        pytest.param({"workerGroupSpecs": {"groupName": "w"}}, id="one group, not a list"),
        pytest.param({"workerGroupSpecs": [{"groupName": "new"}, "w"]}, id="groups without a template"),
        pytest.param(
            {"headGroupSpec": {"template": {"spec": {"containers": ["ray"]}}}}, id="a container that is a text"
        ),
    ],
)
def test_what_a_patch_spoils_is_the_api_servers(cluster: Manifest) -> None:
    """It refuses that in its own words."""
    job = build_ray_job(patched(**cluster), settings())
    quick = build_ray_job(patched(**cluster), settings(kuberay=QUICK))
    assert list(quick["spec"]["rayClusterSpec"]) == list(job["spec"]["rayClusterSpec"])


def test_a_patch_may_take_the_cluster_away() -> None:
    """A RayJob on a cluster that stands already has none."""
    job = {"spec": {"entrypoint": "train", "clusterSelector": {"ray.io/cluster": "standing"}}}
    assert with_quick_probes(job) == job


def test_the_argument_stays() -> None:
    """And a second time changes nothing."""
    job = build_ray_job(container_task(), settings())
    before = deepcopy(job)
    once = with_quick_probes(job)
    assert job == before
    assert with_quick_probes(once) == once


class Ray:
    """Two ports that answer as a Ray node's do.

    Args:
        answers: By path, what is said each time it is asked; the last one for ever.
    """

    def __init__(self, answers: dict[str, list[str]]) -> None:
        self.asked: list[str] = []
        ray = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                ray.asked.append(self.path)
                said = answers[self.path.removeprefix("/api/")]
                text = said.pop(0) if len(said) > 1 else said[0]
                self.send_response(200 if text == "success" else 503)
                self.end_headers()
                self.wfile.write(text.encode())

            @override
            def log_message(self, *arguments: object) -> None:
                pass

        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
        self.agent, self.dashboard = (server.server_port for server in self._servers)

    @contextmanager
    def up(self) -> Iterator[None]:
        """It answers."""
        threads = [threading.Thread(target=server.serve_forever) for server in self._servers]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for server, thread in zip(self._servers, threads, strict=True):
                server.shutdown()
                thread.join()
                server.server_close()


def look(agent: int, dashboard: int, field: str = READINESS, **environ: str) -> subprocess.CompletedProcess[str]:
    """What a look of the head's probe comes to."""
    params = {"dashboard-agent-listen-port": str(agent), "dashboard-port": str(dashboard)}
    head, _ = groups_of(patched(headGroupSpec={"rayStartParams": params}))
    command = containers_of(head)[0][field]["exec"]["command"]
    return subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("raylet", "gcs", "asked"),
    [
        pytest.param(["success"], ["success"], ["raylet", "gcs"], id="all is well"),
        pytest.param(["", "success"], ["success"], ["raylet", "raylet", "gcs"], id="the raylet comes up"),
        pytest.param(
            ["success"], ["no", "success"], ["raylet", "gcs", "raylet", "gcs"], id="the GCS comes up after its raylet"
        ),
    ],
)
def test_a_look_lasts_until_ray_is_up(raylet: list[str], gcs: list[str], asked: list[str]) -> None:
    """And ends at once then, with nothing said."""
    ray = Ray({"local_raylet_healthz": raylet, "gcs_healthz": gcs})
    with ray.up():
        done = look(ray.agent, ray.dashboard)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert ["gcs" if "gcs" in path else "raylet" for path in ray.asked] == asked


def test_a_look_ends_in_time() -> None:
    """Where nothing listens, and 20 s have passed; bash counts on from what the environment says."""
    ray = Ray({})
    with ray.up():
        pass
    assert look(ray.agent, ray.dashboard, SECONDS="20").returncode == 1


@pytest.mark.parametrize(
    ("gcs", "status", "asked"),
    [
        pytest.param(["success"], 0, ["raylet", "gcs"], id="all is well"),
        pytest.param(["no", "success"], 1, ["raylet", "gcs"], id="the GCS is not"),
    ],
)
def test_a_look_whether_it_lives_does_not_wait(gcs: list[str], status: int, asked: list[str]) -> None:
    """Kubernetes counts."""
    ray = Ray({"local_raylet_healthz": ["success"], "gcs_healthz": gcs})
    with ray.up():
        done = look(ray.agent, ray.dashboard, LIVENESS)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")
    assert ["gcs" if "gcs" in path else "raylet" for path in ray.asked] == asked


def test_nothing_lives_where_nothing_listens() -> None:
    """And nothing is said of it."""
    ray = Ray({})
    with ray.up():
        pass
    done = look(ray.agent, ray.dashboard, LIVENESS)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_unset_probes_are_quick() -> None:
    """What the platform says stays."""
    assert with_probes_chosen(settings()) == settings(kuberay=QUICK)
    own = settings(kuberay={"health-probes": "operator"})
    assert with_probes_chosen(own) == own
