"""`logs`: whose log is printed, how it is followed, and what is said where there is none.

Logs come from a kubelet, which an API server alone has not: a scripted server answers here, tests/e2e has real ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from flytekitplugins.kuberay.cli.program import _parser
from flytekitplugins.kuberay.cluster.capsule import place_of
from flytekitplugins.kuberay.cluster.logs import WHICH
from flytekitplugins.kuberay.kube import Manifest
from tests.cli.running import Ended
from tests.cluster.scenes import CREATED, stamp
from tests.kube.scripted import Reply, ScriptedServer, answer, failure, stream

from .tasks import Command, our_job

RUNNING = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayJobInfo": {"startTime": stamp(CREATED)}}
DONE = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
BY_HTTP = {"dashboardURL": "c-head-svc.ns.svc.cluster.local:8265", "jobId": "j-1", "rayClusterName": "c"}


def job(status: Manifest, prefix: str = "s3://b/x", **spec: Any) -> Reply:
    """The answer to a get of RayJob ns/train in this state."""
    manifest = our_job("train", prefix, **spec)
    manifest["metadata"] |= {"namespace": "ns", "uid": "u", "creationTimestamp": stamp(CREATED)}
    return answer({**manifest, "status": status})


def pods(*found: tuple[str, str], state: str = "running") -> Reply:
    """The answer to a list of its pods, each by name and group, whose containers are in this state."""
    return answer({"items": [_pod(name, group, state) for name, group in found]})


def _pod(name: str, group: str, state: str) -> Manifest:
    kind = {"ray.io/node-type": "head" if group == "head" else "worker", "ray.io/group": group}
    names = ["ray-head", "ray-job-submitter"] if group == "head" else ["main"]
    metadata = {"name": name, "creationTimestamp": stamp(CREATED), "labels": {} if group == "submitter" else kind}
    statuses = [{"name": each, "state": {state: {"startedAt": stamp(CREATED)}}} for each in names]
    containers = [{"name": each} for each in names]
    return {"metadata": metadata, "spec": {"containers": containers}, "status": {"containerStatuses": statuses}}


def at_first(state: Reply, found: Reply) -> Iterable[Reply]:
    """The answers until it is known how the task is: the RayJob is found, and read once more after its pods."""
    return (state, found, state)


@pytest.mark.parametrize(
    ("arguments", "mode", "asked"),
    [
        pytest.param((), "K8sJobMode", ("s-1", "main"), id="the submitter has what the code printed"),
        pytest.param((), "SidecarMode", ("h-1", "ray-job-submitter"), id="a sidecar of the head has it"),
        pytest.param(("--pod", "submitter"), "K8sJobMode", ("s-1", "main"), id="the submitter by its name"),
        pytest.param(("--pod", "head"), "HTTPMode", ("h-1", "ray-head"), id="Ray's head"),
        pytest.param(("--pod", "worker"), "HTTPMode", ("w-1", "main"), id="an only worker"),
    ],
)
async def test_a_log_is_printed_as_it_is(
    command: Command,
    server: ScriptedServer,
    scripted_cluster: str,
    arguments: tuple[str, ...],
    mode: str,
    asked: tuple[str, str],
) -> None:
    """Whole, and only that."""
    found = pods(("s-1", "submitter"), ("h-1", "head"), ("w-1", "w"))
    server.replies += [*at_first(job(RUNNING, submissionMode=mode), found), answer("größer\nlast, without an end")]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster, *arguments)
    assert ended == Ended(0, "größer\nlast, without an end", "")
    pod, container = asked
    assert (server.seen[-1].path, server.seen[-1].query) == (
        f"/api/v1/namespaces/ns/pods/{pod}/log",
        {"container": container},
    )


async def test_of_several_workers_each_line_tells_whose_it_is(
    command: Command, server: ScriptedServer, scripted_cluster: str
) -> None:
    """Also where it comes in pieces, or has no end."""
    found = pods(("w-1", "w"), ("w-2", "w"))
    logs = [stream("a", "b\nc"), stream("a", "b\nc")]
    server.replies += [*at_first(job(RUNNING), found), *logs]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster, "--pod", "worker")
    expected = [f"[{pod}] {line}" for pod in ("w-1", "w-2") for line in ("ab", "c")]
    assert (ended.status, sorted(ended.out.splitlines())) == (0, expected)


async def test_it_waits_for_what_is_followed(command: Command, server: ScriptedServer, scripted_cluster: str) -> None:
    """The live line tells why, once for each reason; then the log is followed to its end."""
    starting = job({"jobDeploymentStatus": "Initializing", "rayClusterName": "c"})
    none, begun = pods(), pods(("s-1", "submitter"))
    events = [answer({"items": []})] * 2
    waiting = [none, starting, *events]
    server.replies += [starting, *waiting, *waiting, begun, job(RUNNING), stream("printed\n")]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster, "--follow")
    assert (ended.status, ended.out) == (0, "printed\n")
    (line,) = ended.err.splitlines()
    assert line.startswith("INITIALIZING ")
    assert line.endswith(" · the Ray cluster is starting")
    followed = [seen.query for seen in server.seen if seen.path.endswith("/log")]
    assert followed == [{"container": "main", "follow": "true"}]


BUSY = failure(429, "TooManyRequests", "busy")


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        pytest.param(1, [], id="one"),
        pytest.param(3, ["warning: list pods in namespace ns: busy; looking goes on"], id="several, told once"),
    ],
)
async def test_waiting_outlasts_passing_faults(
    command: Command, server: ScriptedServer, scripted_cluster: str, faults: int, told: list[str]
) -> None:
    """Who waits for hours is not ended by a time-out."""
    state, found = job(RUNNING), pods(("s-1", "submitter"))
    server.replies += [state, *[BUSY] * faults, found, state, stream("printed\n")]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster, "--follow")
    assert (ended.status, ended.out, ended.err.splitlines()) == (0, "printed\n", told)


async def test_a_fault_ends_what_nobody_waits_for(
    command: Command, server: ScriptedServer, scripted_cluster: str
) -> None:
    """Without --follow it is told at once."""
    server.replies += [job(RUNNING), BUSY]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster)
    assert ended == Ended(1, "", "error: list pods in namespace ns: busy\n")


async def test_by_http_the_dashboard_is_asked(command: Command, server: ScriptedServer, scripted_cluster: str) -> None:
    """Through the API server, with the caller's own rights."""
    state = job({**RUNNING, **BY_HTTP}, submissionMode="HTTPMode")
    server.replies += [*at_first(state, pods(("h-1", "head"))), answer("printed\n")]
    assert await command("logs", "ns/train", "--kubeconfig", scripted_cluster) == Ended(0, "printed\n", "")
    assert (server.seen[-1].path, server.seen[-1].query) == (
        "/api/v1/namespaces/ns/services/c-head-svc:8265/proxy/api/v0/logs/file",
        {"submission_id": "j-1", "lines": "-1", "format": "text", "node_ip": "any"},
    )


async def test_by_http_following_ends_with_the_job(
    command: Command, server: ScriptedServer, scripted_cluster: str
) -> None:
    """The dashboard's own stream has no end, and a busy API server is none."""
    running, found = job({**RUNNING, **BY_HTTP}, submissionMode="HTTPMode"), pods(("h-1", "head"))
    done = job({**DONE, **BY_HTTP}, submissionMode="HTTPMode")
    server.replies += [*at_first(running, found), stream("printed\n", then="hang")]
    server.replies += [BUSY, found, running, found, done]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster, "--follow")
    assert ended == Ended(0, "printed\n", "")
    assert server.seen[3].path.endswith("/proxy/api/v0/logs/stream")


async def test_by_http_a_refusal_tells_how_else(
    command: Command, server: ScriptedServer, scripted_cluster: str
) -> None:
    """As where Ray asks for a token: the file lies in the head."""
    state = job({**RUNNING, **BY_HTTP}, submissionMode="HTTPMode")
    found = pods(("h-1", "head"))
    server.replies += [*at_first(state, found), answer("Unauthorized", 401), found, state]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err == (
        "error: get services/proxy c-head-svc:8265 in namespace ns: the answer was HTTP 401 without a Kubernetes"
        " Status; else: kubectl exec --namespace ns h-1 -- cat /tmp/ray/session_latest/logs/job-driver-j-1.log\n"
    )


async def test_by_http_there_is_no_submitter(command: Command, server: ScriptedServer, scripted_cluster: str) -> None:
    """Nobody waits for one."""
    server.replies += at_first(job(RUNNING, submissionMode="HTTPMode"), pods(("h-1", "head")))
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster, "--follow", "--pod", "submitter")
    expected = "error: ns/train has no submitter, its mode is HTTPMode; --pod driver is there\n"
    assert ended == Ended(1, "", expected)


async def test_no_log_yet(command: Command, server: ScriptedServer, scripted_cluster: str) -> None:
    """Why, and how to wait for it."""
    found = pods(("s-1", "submitter"), ("h-1", "head"), state="waiting")
    server.replies += [*at_first(job(RUNNING), found)]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith("error: the driver of ns/train has no log yet: RUNNING ")
    assert ended.err.endswith("; --follow waits for it\n")


@pytest.mark.parametrize("left", [pytest.param(True, id="the diagnosis"), pytest.param(False, id="nothing")])
@pytest.mark.parametrize(
    "seen",
    [pytest.param(False, id="its pod is gone"), pytest.param(True, id="it goes as its log is asked for")],
)
async def test_a_log_that_is_gone(
    command: Command, server: ScriptedServer, scripted_cluster: str, tmp_path: Path, *, left: bool, seen: bool
) -> None:
    """What was kept of it is printed, in its stead."""
    prefix = str(tmp_path)
    if left:
        Path(place_of(prefix)).write_text("# FAILED: it was so\n")
    state, found = job(DONE, prefix), pods(("s-1", "submitter")) if seen else pods()
    server.replies += at_first(state, found)
    if seen:
        server.replies += [failure(404, "NotFound", "no such pod", name="s-1"), found, state]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster, "--follow")
    gone = "the log of the driver of ns/train is gone with its pod"
    if left:
        assert ended == Ended(0, "# FAILED: it was so\n", f"{gone}; this was kept of it, in {place_of(prefix)}:\n")
    else:
        assert ended == Ended(1, "", f"error: {gone}, and no diagnosis was kept: there is no {place_of(prefix)}\n")


async def test_a_diagnosis_that_can_not_be_read_is_not_absent(
    command: Command, server: ScriptedServer, scripted_cluster: str, tmp_path: Path
) -> None:
    """The reason is told; here a folder stands in its place."""
    place = place_of(str(tmp_path))
    Path(place).mkdir()
    server.replies += at_first(job(DONE, str(tmp_path)), pods())
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster)
    reason = f"IsADirectoryError: [Errno 21] Is a directory: '{place}'"
    told = f"is gone with its pod, and the diagnosis could not be read, {place}: {reason}"
    assert ended == Ended(1, "", f"error: the log of the driver of ns/train {told}\n")


BROKE = "{}: can't talk to the API server: its answer broke off"
OF_POD = BROKE.format("get pods/log s-1 in namespace ns") + "\n"
BY_HAND = "kubectl exec --namespace ns h-1 -- cat /tmp/ray/session_latest/logs/job-driver-j-1.log\n"
OF_DASHBOARD = BROKE.format("get services/proxy c-head-svc:8265 in namespace ns") + f"; else: {BY_HAND}"
CUT = "error: the log of the driver of ns/train broke off: "


@pytest.mark.parametrize(
    ("mode", "status", "arguments", "told"),
    [
        pytest.param("K8sJobMode", RUNNING, ("--follow",), CUT + OF_POD, id="while the job runs"),
        pytest.param("K8sJobMode", DONE, ("--follow",), CUT + OF_POD, id="at the job's end"),
        pytest.param("K8sJobMode", DONE, (), CUT + OF_POD, id="at the job's end, not followed"),
        pytest.param("HTTPMode", DONE, (), CUT + OF_DASHBOARD, id="of the dashboard"),
        pytest.param("HTTPMode", RUNNING, ("--follow",), f"error: {OF_DASHBOARD}", id="of the dashboard, followed"),
        pytest.param("HTTPMode", DONE, ("--follow",), "", id="but not when it goes with the cluster at the end"),
    ],
)
async def test_a_log_that_breaks_off(
    command: Command,
    server: ScriptedServer,
    scripted_cluster: str,
    mode: str,
    status: Manifest,
    arguments: tuple[str, ...],
    told: str,
) -> None:
    """What came is printed, and the status tells that it is not all."""
    begun, found = job({**RUNNING, **BY_HTTP}, submissionMode=mode), pods(("s-1", "submitter"), ("h-1", "head"))
    then = job({**status, **BY_HTTP}, submissionMode=mode)
    server.replies += [*at_first(begun, found), stream("printed\n", then="break"), found, then]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster, *arguments)
    assert ended == Ended(1 if told else 0, "printed\n", told)


async def test_a_worker_whose_log_breaks_off_ends_no_other(
    command: Command, server: ScriptedServer, scripted_cluster: str
) -> None:
    """Its name is told, the others are printed to their ends."""
    logs = [stream("a\n", then="break"), stream("b\n", "c\n")]
    server.replies += [*at_first(job(RUNNING), pods(("w-1", "w"), ("w-2", "w"))), *logs]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster, "--pod", "worker", "--follow")
    broken, whole = [seen.path.split("/")[-2] for seen in server.seen if seen.path.endswith("/log")]
    assert sorted(ended.out.splitlines()) == sorted([f"[{broken}] a", f"[{whole}] b", f"[{whole}] c"])
    told = BROKE.format(f"get pods/log {broken} in namespace ns")
    assert (ended.status, ended.err) == (0, f"warning: {told}; the logs of the other pods go on\n")


async def test_logs_of_workers_that_all_break_off(
    command: Command, server: ScriptedServer, scripted_cluster: str
) -> None:
    """The status tells that it is not all."""
    logs = [stream("a\n", then="break"), stream("a\n", then="break")]
    server.replies += [*at_first(job(RUNNING), pods(("w-1", "w"), ("w-2", "w"))), *logs]
    ended = await command("logs", "ns/train", "--kubeconfig", scripted_cluster, "--pod", "worker", "--follow")
    warning, error = ended.err.splitlines()
    assert (ended.status, sorted(ended.out.splitlines())) == (1, ["[w-1] a", "[w-2] a"])
    assert warning.endswith("; the logs of the other pods go on")
    assert error.startswith("error: the log of the worker of ns/train broke off: get pods/log w-")


def test_each_kind_of_pod_can_be_named() -> None:
    """The parser, which must load quickly, has the names of its own."""
    for which in WHICH:
        assert _parser().parse_args(["logs", "x", "--pod", which]).pod == which
