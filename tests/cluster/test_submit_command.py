"""A submitter's own command where KubeRay's command line would spoil what it carries (design D6)."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import ray
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.cluster.entrypoint import format_entrypoint
from flytekitplugins.kuberay.cluster.submit_command import submit_command, with_submit_command
from flytekitplugins.kuberay.wire import Manifest
from tests.submission import expanded, kuberay_submit_command

ALL_FIELDS: Manifest = {
    "runtimeEnvYAML": "env_vars: {A: b}\nexcludes:\n- x y\n",
    "metadata": {"team": "a b", "cost": "1"},
    "entrypointNumCpus": 0.5,
    "entrypointNumGpus": 2,
    "entrypointResources": '{"tpu": 1, "x": 0.5}',
}


@pytest.mark.parametrize(
    ("argv", "own"),
    [
        pytest.param(["pyflyte-execute", "--inputs", "s3://b/x.pb", ""], False, id="ordinary arguments"),
        pytest.param(["a b", 'say "hi"', "k=v", "50%"], False, id="blanks and double quotes"),
        pytest.param(["it's"], True, id="a single quote"),
        pytest.param(["$HOME"], True, id="a dollar"),
        pytest.param(["a;b"], True, id="a semicolon"),
        pytest.param(["a\nb"], True, id="a newline"),
        pytest.param(["ä"], True, id="a letter that is no ASCII"),
    ],
)
def test_when_for_an_argv(argv: list[str], own: bool) -> None:
    """D6 (design): KubeRay's command stays where it brings the arguments over whole."""
    assert ("command" in submit_command({"entrypoint": format_entrypoint(argv)})) is own


@pytest.mark.parametrize(
    ("spec", "own"),
    [
        pytest.param(ALL_FIELDS, False, id="nothing that bash reads"),
        pytest.param({"entrypoint": " python a.py\n"}, False, id="KubeRay takes the blanks around it away"),
        pytest.param({"entrypoint": "python a.py $X"}, True, id="a variable for the head's shell"),
        pytest.param({"entrypoint": "python a.py\npython b.py"}, True, id="two lines"),
        pytest.param({"entrypoint": "A='b c' python a.py"}, True, id="a quoted part of a word"),
        pytest.param({"entrypoint": "python 'a"}, True, id="what no shell can read"),
        pytest.param({"entrypoint": "", "metadata": {"a": "$"}}, False, id="nothing to start"),
        pytest.param({"runtimeEnvYAML": "env_vars: {A: $HOME}\n"}, True, id="a dollar in the runtime environment"),
        pytest.param({"runtimeEnvYAML": "env_vars: {A: '`x`'}\n"}, True, id="a backtick in the runtime environment"),
        pytest.param({"runtimeEnvYAML": 'env_vars: {A: "\\x24HOME"}\n'}, True, id="a dollar that YAML hides"),
        pytest.param({"runtimeEnvYAML": "env_vars: {A: ä}\n"}, False, id="any letter in the runtime environment"),
        pytest.param({"metadata": {"cost": "$5"}}, True, id="a dollar in the metadata"),
        pytest.param({"metadata": {"a": "\x7f"}}, True, id="what Go quotes as JSON does not"),
        pytest.param({"entrypointResources": '{"$x": 1}'}, True, id="a dollar in the resources"),
        pytest.param({"entrypointResources": '{"x": 1}\n'}, True, id="a line's end in the resources"),
        pytest.param({"entrypoint": 1, "runtimeEnvYAML": {"a": "$"}}, False, id="no texts: the API server takes none"),
    ],
)
def test_when(spec: Manifest, own: bool) -> None:
    """KubeRay's command stays where it brings over whole all that the RayJob says, whoever wrote it."""
    assert ("command" in submit_command({"entrypoint": "python a.py", **spec})) is own


def handed_over(spec: Manifest) -> tuple[str, Manifest]:
    """The entrypoint and the options that the submitter's process gets."""
    entrypoint, options = (expanded(text, {"HOME": "/root"}) for text in submit_command(spec)["args"])
    return entrypoint, json.loads(options)


@hypothesis.settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))), st.text("$`(){}'\"\\ab"))
def test_what(argv: list[str], value: str) -> None:
    """D6 (design): it gets entrypoint and options as data, whatever the kubelet would replace."""
    runtime_env, metadata = {"env_vars": {"A": f"{value}$"}}, {"$(HOME)": value}
    spec = {"entrypoint": format_entrypoint(["x", *argv]), "runtimeEnvYAML": json.dumps(runtime_env)}
    entrypoint, options = handed_over({**spec, "metadata": metadata})
    assert [shlex.split(entrypoint), options] == [["x", *argv], {"runtime_env": runtime_env, "metadata": metadata}]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {}, id="nothing said"),
        pytest.param(
            ALL_FIELDS,
            {
                "runtime_env": {"env_vars": {"A": "b"}, "excludes": ["x y"]},
                "metadata": {"team": "a b", "cost": "1"},
                "entrypoint_num_cpus": 0.5,
                "entrypoint_num_gpus": 2,
                "entrypoint_resources": {"tpu": 1, "x": 0.5},
            },
            id="all",
        ),
        pytest.param(
            {
                "runtimeEnvYAML": "# none\n",
                "metadata": {},
                "entrypointNumCpus": 0,
                "entrypointNumGpus": 0,
                "entrypointResources": "",
            },
            {},
            id="nothing in each",
        ),
    ],
)
def test_options(spec: Manifest, expected: Manifest) -> None:
    """What KubeRay's command hands over beside the entrypoint, ours does too."""
    assert handed_over({"entrypoint": "train 'a;b'", **spec}) == ("train 'a;b'", expected)


def job_with(container: Manifest, **spec: Any) -> Manifest:
    """A RayJob whose submitter has this container, and a sidecar."""
    containers = [container, {"name": "sidecar"}]
    return {"spec": {"entrypoint": "a;b", "submitterPodTemplate": {"spec": {"containers": containers}}, **spec}}


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(job_with({"name": "s"}), id="no mode is KubeRay's default"),
        pytest.param(job_with({"name": "s"}, submissionMode="K8sJobMode"), id="K8sJobMode"),
        pytest.param(job_with({"name": "s", "command": []}), id="an empty command is none"),
        pytest.param(
            job_with({"name": "s", "args": ["x"]}), id="arguments without a command are dropped by KubeRay, too"
        ),
    ],
)
def test_where(job: Manifest) -> None:
    """The submitter gets it, which is the first container."""
    submitter, sidecar = with_submit_command(job)["spec"]["submitterPodTemplate"]["spec"]["containers"]
    assert [submitter["command"][0], submitter["args"], sidecar] == ["python", ["a;b", "{}"], {"name": "sidecar"}]


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(job_with({"name": "s", "command": ["own"]}), id="the user's own command"),
        pytest.param(job_with({"name": "s"}, entrypoint="a"), id="where KubeRay's command does"),
        pytest.param(job_with({"name": "s"}, submissionMode="HTTPMode"), id="a mode without a submitter"),
        pytest.param(job_with({"name": "s"}, submitterPodTemplate=None), id="no submitter"),
        pytest.param(job_with({"name": "s"}, submitterPodTemplate={"spec": {"containers": ["x"]}}), id="no container"),
    ],
)
def test_where_not(job: Manifest) -> None:
    """Else the RayJob stays as it is."""
    assert with_submit_command(job) == job


class _Dashboard(BaseHTTPRequestHandler):
    """As much of Ray's as takes a job."""

    jobs: list[Manifest]

    def do_GET(self) -> None:
        """The version, and no jobs."""
        version = {"version": "4", "ray_version": ray.__version__, "ray_commit": ray.__commit__}
        self._answer(version if self.path == "/api/version" else [])

    def do_POST(self) -> None:
        """A job is kept."""
        self.jobs.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer({"job_id": "raysubmit_1", "submission_id": "raysubmit_1"})

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def _answer(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def _dashboard() -> Iterator[tuple[str, list[Manifest]]]:
    """Its address, and the jobs that it gets."""
    jobs: list[Manifest] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Dashboard", (_Dashboard,), {"jobs": jobs})) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}", jobs
        finally:
            server.shutdown()
            thread.join()


def submitted(command: Sequence[str], arguments: Sequence[str], folder: Path) -> Manifest:
    """The one job that Ray's dashboard gets from a submitter with this command, by the installed Ray.

    The dashboard's address stands for itself as `ADDRESS`. No `ray` but `ray job submit` is run.
    """
    programs = Path(sys.executable).parent
    (folder / "ray").write_text(f'#!/bin/sh\n[ "$2" != submit ] || exec {programs}/ray "$@"\n[ "$2" = logs ]\n')
    (folder / "ray").chmod(0o755)
    with _dashboard() as (address, jobs):
        environment = {
            "PATH": f"{folder}:{programs}:{os.environ['PATH']}",
            "RAY_DASHBOARD_ADDRESS": address,
            "RAY_JOB_SUBMISSION_ID": "job-1",
            "RAY_AUTH_MODE": "disabled",
        }
        expanded_arguments = [expanded(each, environment).replace("ADDRESS", f"http://{address}") for each in arguments]
        subprocess.run([*command, *expanded_arguments], env=environment, check=True, capture_output=True)
    (job,) = jobs
    return job


def test_ray_gets_what_kuberays_command_gives_it(tmp_path: Path) -> None:
    """Through bash and `ray job submit`, or from our own command: the same job, but for what KubeRay's would spoil."""
    *command, line = kuberay_submit_command({**ALL_FIELDS, "entrypoint": "train"}, "ADDRESS", "job-1")
    theirs = submitted(command, [line], tmp_path)
    own = submit_command({**ALL_FIELDS, "entrypoint": "train '$(x);'"})
    ours = submitted(own["command"], own["args"], tmp_path)
    assert ours == {**theirs, "entrypoint": "train '$(x);'"}
    assert [theirs["entrypoint"], theirs["entrypoint_num_gpus"], theirs["submission_id"]] == ["train", 2, "job-1"]
