"""The entrypoint through the operator's command lines and a real Ray: each driver gets exactly the argv.

The command lines are those of KubeRay 1.6.2; Ray is the installed one, 2.56 or newer. Older ones lose characters in
K8sJobMode and SidecarMode whatever the entrypoint (the module's docstring says why).
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flytekitplugins.kuberay.cluster.entrypoint import format_entrypoint

pytestmark = pytest.mark.e2e

JOB_ENDS_WITHIN = 120  # seconds
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
}
HOSTILE = [
    *["", " ", "two  words", "tab\there", "line\nbreak", "break at the end\n", "carriage\rreturn\r\n", "back\\\nslash"],
    *["it's", 'say "hi"', """'"'""", '""', "C:\\data\\new\\", '\\"\\\\"', '{"a": ["b c", {"$d": "e\'f"}]}'],
    *["$HOME ${HOME}", "$$", "$$$(HOME)$$(X)$", "$(RAY_JOB_SUBMISSION_ID)", "$(id -u)", "`id -u`", "$'a\\n'", '$"a"'],
    *["a;b", "a&b", "a && b || c | d", "x > /dev/full", "<<EOF\nx\nEOF", "(a)", "{a,b} {1..3}", "*", "?[a-z]* /*"],
    *["-c", "--", "--help", "--address=http://x", "!x !!", "~", "~root/x", "#x", "a #b", "100% %s", "A=b", "^a^b"],
    *["naïve Ä 中文 🚀 \u00a0\u2028\u202e", "\x01\x1b[31m\x7f\x80\x9b", "{{.input}}"],
]

Submit = Callable[[str, str, str], None]


def _kubelet(text: str, environment: dict[str, str]) -> str:
    """The container argument as the kubelet hands it to the container runtime.

    Source: Kubernetes third_party/forked/golang/expansion Expand.
    """

    def replaced(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else environment.get(found[0][2:-1], found[0])

    return re.sub(r"\$(\$|\([^)]*\))", replaced, text)


def _start_submitter(command: str, job: str) -> None:
    environment = {**ENVIRONMENT, "RAY_JOB_SUBMISSION_ID": job}
    subprocess.run(["/bin/bash", "-ce", "--", _kubelet(command, environment)], env=environment, check=True)


def k8s_job_mode(address: str, job: str, entrypoint: str) -> None:
    """Source: common/job.go BuildJobSubmitCommand, rayjob_controller.go configureSubmitterContainer."""
    command = (
        f"if ! ray job status --address {address} {job} >/dev/null 2>&1 ; "
        f"then ray job submit --address {address} --no-wait --submission-id {job} -- {entrypoint.strip()} ; "
        f"fi ; ray job logs --address {address} --follow {job}"
    )
    _start_submitter(command, job)


def sidecar_mode(address: str, job: str, entrypoint: str) -> None:
    """Source: as for K8sJobMode, without the loop that waits for the dashboard."""
    _start_submitter(f"ray job submit --address {address} --submission-id {job} -- {entrypoint.strip()} ;", job)


def http_mode(address: str, job: str, entrypoint: str) -> None:
    """Source: dashboard_httpclient.go ConvertRayJobToReq, SubmitJobReq."""
    body = json.dumps({"entrypoint": entrypoint, "submission_id": job}).encode()
    request = urllib.request.Request(f"{address}/api/jobs/", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _job_status(address: str, job: str) -> str:
    with urllib.request.urlopen(f"{address}/api/jobs/{job}") as answer:
        return str(json.load(answer)["status"])


def _dashboard_answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/api/version") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + JOB_ENDS_WITHIN
    while not ready():
        assert time.monotonic() < deadline, f"not ready after {JOB_ENDS_WITHIN} s"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The dashboard of a Ray head of our own."""
    dashboard, *ports = (_free_port() for _ in range(4))
    gcs, agent, client = ports
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:  # pytest's is too deep for Ray's sockets
        options = ["--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}", f"--port={gcs}", "--num-cpus=1"]
        options += [f"--dashboard-agent-listen-port={agent}", f"--ray-client-server-port={client}"]
        options += ["--node-ip-address=127.0.0.1", f"--temp-dir={folder}", "--object-store-memory=80000000"]
        head = subprocess.Popen(["ray", "start", "--head", "--block", *options], env=ENVIRONMENT)
        try:
            address = f"http://127.0.0.1:{dashboard}"
            _wait(lambda: _dashboard_answers(address))
            yield address
        finally:
            head.terminate()  # with --block it ends what it started
            head.wait()


@pytest.fixture
def driver(tmp_path: Path) -> list[str]:
    """The first words of an argv: a program that writes the others to `got.json`."""
    script = "import json, sys; json.dump(sys.argv[2:], open(sys.argv[1], 'w'))"
    return [sys.executable, "-c", script, str(tmp_path / "got.json")]


@pytest.mark.parametrize(
    "submit",
    [
        pytest.param(k8s_job_mode, id="K8sJobMode"),
        pytest.param(sidecar_mode, id="SidecarMode"),
        pytest.param(http_mode, id="HTTPMode"),
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
    address: str, driver: list[str], tmp_path: Path, submit: Submit, arguments: list[str]
) -> None:
    """What the user's program sees is what the task says, in each submission mode."""
    job = f"{submit.__name__}-{len(arguments)}"

    submit(address, job, format_entrypoint([*driver, *arguments]))
    _wait(lambda: _job_status(address, job) in {"SUCCEEDED", "FAILED", "STOPPED"})

    assert json.loads((tmp_path / "got.json").read_text()) == arguments
    assert _job_status(address, job) == "SUCCEEDED"
