"""The entrypoint through the operator's command lines and a real Ray: each driver gets exactly the argv.

The command lines are those of KubeRay 1.6.2, and our own where the submitter has one. Ray is the installed one, and
2.40: before 2.56 it joins an entrypoint's words without quoting, which our own command gets round in K8sJobMode.
Nothing can in SidecarMode, so that is not tried with it.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from flytekitplugins.kuberay.cluster.entrypoint import format_entrypoint
from flytekitplugins.kuberay.cluster.submit_command import submit_command
from tests.command import output_of
from tests.ports import free_ports
from tests.submission import expanded, kuberay_submit_command

pytestmark = pytest.mark.e2e

JOB_ENDS_WITHIN = 120  # seconds
INSTALLED, OLDER = "installed", "2.40.0"
PORTS = [
    *["dashboard-port", "port", "ray-client-server-port", "dashboard-agent-listen-port"],
    *["dashboard-agent-grpc-port", "runtime-env-agent-port", "metrics-export-port"],
]
UV = Path(__file__).parents[2] / "tools" / "uv"
HOSTILE = [
    *["", " ", "two  words", "tab\there", "line\nbreak", "break at the end\n", "carriage\rreturn\r\n", "back\\\nslash"],
    *["it's", 'say "hi"', """'"'""", '""', "C:\\data\\new\\", '\\"\\\\"', '{"a": ["b c", {"$d": "e\'f"}]}'],
    *["$HOME ${HOME}", "$$", "$$$(HOME)$$(X)$", "$(RAY_JOB_SUBMISSION_ID)", "$(id -u)", "`id -u`", "$'a\\n'", '$"a"'],
    *["a;b", "a&b", "a && b || c | d", "x > /dev/full", "<<EOF\nx\nEOF", "(a)", "{a,b} {1..3}", "*", "?[a-z]* /*"],
    *["-c", "--", "--help", "--address=http://x", "!x !!", "~", "~root/x", "#x", "a #b", "100% %s", "A=b", "^a^b"],
    *["naïve Ä 中文 🚀 \u00a0\u2028\u202e", "\x01\x1b[31m\x7f\x80\x9b", "{{.input}}"],
]


@dataclass(frozen=True)
class Cluster:
    """A Ray head of our own, and the environment in which its programs run."""

    address: str
    environment: dict[str, str]


Submit = Callable[[Cluster, str, list[str]], None]


def _start_submitter(cluster: Cluster, job: str, command: list[str], arguments: list[str]) -> None:
    environment = cluster.environment | {"RAY_JOB_SUBMISSION_ID": job}
    environment["RAY_DASHBOARD_ADDRESS"] = cluster.address.removeprefix("http://")
    subprocess.run([*command, *(expanded(each, environment) for each in arguments)], env=environment, check=True)


def kuberays_command(cluster: Cluster, job: str, argv: list[str]) -> None:
    """What a submitter without a command runs in K8sJobMode."""
    *command, line = kuberay_submit_command({"entrypoint": format_entrypoint(argv)}, cluster.address, job)
    _start_submitter(cluster, job, command, [line])


def our_command(cluster: Cluster, job: str, argv: list[str]) -> None:
    """What a submitter runs in K8sJobMode where the arguments need it."""
    needing_it = {"entrypoint": format_entrypoint(argv), "metadata": {"cost": "$5"}}
    own = submit_command(needing_it)
    _start_submitter(cluster, job, own["command"], own["args"])


def sidecar_mode(cluster: Cluster, job: str, argv: list[str]) -> None:
    """Source: common/job.go BuildJobSubmitCommand, without the loop that waits for the dashboard."""
    entrypoint = format_entrypoint(argv).strip()
    command = f"ray job submit --address {cluster.address} --submission-id {job} -- {entrypoint} ;"
    _start_submitter(cluster, job, ["/bin/bash", "-ce", "--"], [command])


def http_mode(cluster: Cluster, job: str, argv: list[str]) -> None:
    """Source: dashboard_httpclient.go ConvertRayJobToReq, SubmitJobReq."""
    body = json.dumps({"entrypoint": format_entrypoint(argv), "submission_id": job}).encode()
    request = urllib.request.Request(f"{cluster.address}/api/jobs/", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def _job_status(address: str, job: str) -> str:
    with urllib.request.urlopen(f"{address}/api/jobs/{job}") as answer:
        return str(json.load(answer)["status"])


def _takes_jobs(address: str) -> bool:
    """Whether a job can be submitted: the dashboard answers before the agent that starts jobs has joined."""
    request = urllib.request.Request(
        f"{address}/api/jobs/", b'{"entrypoint": "true"}', {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + JOB_ENDS_WITHIN
    while not ready():
        assert time.monotonic() < deadline, f"not ready after {JOB_ENDS_WITHIN} s"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of the older Ray."""
    folder = tmp_path_factory.mktemp("older") / "venv"
    output_of(UV, "venv", "--quiet", "--python", sys.executable, folder)
    install = ("pip", "install", "--quiet", "--compile-bytecode", "--python", folder / "bin" / "python")
    output_of(UV, *install, f"ray[default]=={OLDER}", "setuptools<81")  # its dashboard imports pkg_resources
    return folder / "bin"


@pytest.fixture(scope="module")
def clusters(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Cluster]]:
    """A head of each Ray, started when it is asked for."""
    with ExitStack() as running:

        @functools.cache
        def cluster(ray: str) -> Cluster:
            programs = request.getfixturevalue("older") if ray == OLDER else Path(sys.executable).parent
            path = f"{programs}:{os.environ['PATH']}"
            off = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
            return running.enter_context(_head({**os.environ, **off, "PATH": path}))

        yield cluster


@contextmanager
def _head(environment: dict[str, str]) -> Iterator[Cluster]:
    """A head with ports of ours: one that loses an agent's port to another connection never takes a job."""
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:  # pytest's is too deep for Ray's sockets
        options = ["--dashboard-host=127.0.0.1", "--node-ip-address=127.0.0.1", f"--temp-dir={folder}"]
        options += ["--num-cpus=1", "--object-store-memory=80000000"]
        options += [f"--{name}={port}" for name, port in ports.items()]
        program = shutil.which("ray", path=environment["PATH"])
        assert program is not None
        head = subprocess.Popen([program, "start", "--head", "--block", *options], env=environment)
        try:
            address = f"http://127.0.0.1:{ports['dashboard-port']}"
            _wait(lambda: _takes_jobs(address))
            yield Cluster(address, environment)
        finally:
            head.terminate()  # with --block it ends what it started
            head.wait()


@pytest.fixture
def driver(tmp_path: Path) -> list[str]:
    """The first words of an argv: a program that writes the others to `got.json`."""
    script = "import json, sys; json.dump(sys.argv[2:], open(sys.argv[1], 'w'))"
    return [sys.executable, "-c", script, str(tmp_path / "got.json")]


@pytest.mark.parametrize(
    ("ray", "submit"),
    [
        pytest.param(INSTALLED, kuberays_command, id="KubeRay's command in K8sJobMode"),
        pytest.param(INSTALLED, our_command, id="our command in K8sJobMode"),
        pytest.param(INSTALLED, sidecar_mode, id="SidecarMode"),
        pytest.param(INSTALLED, http_mode, id="HTTPMode"),
        pytest.param(OLDER, our_command, id="our command in K8sJobMode, Ray 2.40"),
        pytest.param(OLDER, http_mode, id="HTTPMode, Ray 2.40"),
    ],
)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(HOSTILE, id="every character that a shell minds"),
        pytest.param(["x y" * 33_333], id="100 kB"),
    ],
)
def test_the_driver_gets_the_argv(
    clusters: Callable[[str], Cluster],
    driver: list[str],
    tmp_path: Path,
    ray: str,
    submit: Submit,
    arguments: list[str],
) -> None:
    """What the user's program sees is what the task says, in each submission mode."""
    cluster, job = clusters(ray), f"{submit.__name__}-{len(arguments)}"

    submit(cluster, job, [*driver, *arguments])
    _wait(lambda: _job_status(cluster.address, job) in {"SUCCEEDED", "FAILED", "STOPPED"})

    assert json.loads((tmp_path / "got.json").read_text()) == arguments
    assert _job_status(cluster.address, job) == "SUCCEEDED"


def test_an_ordinary_argv_needs_no_command_of_ours(
    clusters: Callable[[str], Cluster], driver: list[str], tmp_path: Path
) -> None:
    """Flyte's arguments survive KubeRay's command with any Ray, so that it stays."""
    argv = ["pyflyte-execute", "--inputs", "s3://b/f0/n0/data/inputs.pb", "--prev-checkpoint", '""', "--", "x", ""]
    assert submit_command({"entrypoint": format_entrypoint(argv)}) == {}
    kuberays_command(clusters(OLDER), "ordinary", [*driver[:1], _script_of(driver, tmp_path), driver[3], *argv])
    _wait(lambda: _job_status(clusters(OLDER).address, "ordinary") in {"SUCCEEDED", "FAILED", "STOPPED"})
    assert json.loads((tmp_path / "got.json").read_text()) == argv


def _script_of(driver: list[str], folder: Path) -> str:
    """The driver's program as a file: `python -c` is no ordinary argument."""
    script = folder / "driver.py"
    script.write_text(driver[2], encoding="utf-8")
    return str(script)
