"""What is published: wheel, sdist and the connector's image. Those marked `packaging` need a registry and minutes."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.command import output_of
from tests.ports import free_ports

ROOT = Path(__file__).parent.parent
UV = ROOT / "tools" / "uv"
BUILT_FROM = ["LICENSE", "README.md", "flytekitplugins", "pyproject.toml", "setup.py"]

WHAT_IS_SERVED = """
import json, sys, grpc
from flyteidl.admin.agent_pb2 import ListAgentsRequest
from flyteidl.service.agent_pb2_grpc import AgentMetadataServiceStub
from grpc_health.v1 import health_pb2, health_pb2_grpc
with grpc.insecure_channel(sys.argv[1]) as channel:
    request = health_pb2.HealthCheckRequest(service="flyteidl.service.AsyncAgentService")
    health = health_pb2_grpc.HealthStub(channel).Check(request, wait_for_ready=True, timeout=60)
    agents = AgentMetadataServiceStub(channel).ListAgents(ListAgentsRequest()).agents
served = {agent.name: sorted(agent.supported_task_types) for agent in agents}
print(json.dumps([health_pb2.HealthCheckResponse.ServingStatus.Name(health.status), served["KubeRay Connector"]]))
"""

LOADED_PLUGINS = """
import json
import flytekit, flytekitplugins.kuberay, flytekitplugins.pod, flytekitplugins.ray
from flytekit.extend import TaskPlugins
print(json.dumps({
    "kuberay": TaskPlugins.find_pythontask_plugin(flytekitplugins.kuberay.RayJobConfig).__module__,
    "pod": TaskPlugins.find_pythontask_plugin(flytekitplugins.pod.Pod).__module__,
    "ray": TaskPlugins.find_pythontask_plugin(flytekitplugins.ray.RayJobConfig).__module__,
}))
"""


def copied(names: list[str], target: Path) -> None:
    """Copies files and folders of the project into a folder, less what running them left."""
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target / name)


def package_files() -> set[str]:
    """The files of the source tree that make the package."""
    found = (path for path in ROOT.joinpath("flytekitplugins").rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in found if "__pycache__" not in path.parts}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that was built from that sdist."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    copied(BUILT_FROM, source)
    output_of(UV, "build", "--quiet", "--python", sys.executable, "--out-dir", target, source)
    return target


@pytest.fixture
def wheel(built: Path) -> Path:
    """The wheel."""
    return next(built.glob("*.whl"))


def dockerfile() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in their order, each with its argument."""
    text = ROOT.joinpath("Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, " ".join(rest.split())) for word, _, rest in (line.partition(" ") for line in lines)]


def arguments_of(instruction: str) -> list[str]:
    """The arguments of each such instruction of the Dockerfile."""
    return [argument for word, argument in dockerfile() if word == instruction]


def test_the_namespace_is_shared() -> None:
    """flytekitplugins/ has no __init__.py: with one, other plugins' modules could not be found (PEP 420)."""
    assert not ROOT.joinpath("flytekitplugins", "__init__.py").exists()


def imported(path: Path) -> set[str]:
    """The top-level modules that a file imports, of this package's own none."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    froms = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.partition(".")[0] for name in plain | froms} - sys.stdlib_module_names


def test_what_is_imported_is_required() -> None:
    """The source imports no package that only another one's requirements bring."""
    required = set(re.findall(r'"([\w-]+)[^"]*>=', ROOT.joinpath("setup.py").read_text("utf-8").lower()))
    modules = set[str]().union(*map(imported, ROOT.joinpath("flytekitplugins").rglob("*.py")))
    providers = {each: {name.lower() for name in names} for each, names in packages_distributions().items()}
    assert [each for each in sorted(modules) if not required & providers.get(each, set())] == []


@pytest.mark.packaging
def test_a_wheel_holds_the_source_tree(wheel: Path) -> None:
    """The wheel, built from the sdist, holds the files of the source tree: no module, schema or py.typed less."""
    with zipfile.ZipFile(wheel) as archive:
        got = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert got == package_files()


@pytest.mark.packaging
def test_an_sdist_holds_the_source_tree(built: Path) -> None:
    """The sdist holds the source tree, the licence and the README."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        members = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert {name for name in members if name.startswith("flytekitplugins/")} == package_files()
    assert {"LICENSE", "README.md", "pyproject.toml", "setup.py"} <= members


@pytest.mark.packaging
def test_beside_other_plugins(wheel: Path, tmp_path: Path) -> None:
    """Beside flytekitplugins-ray and -pod `import flytekit` works, and each config class has its own task."""
    output_of(UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    plugins = ["flytekitplugins-ray==1.16.31", "flytekitplugins-pod==1.16.31"]
    locked = ["--constraint", str(ROOT / "requirements.lock")]
    output_of(UV, "pip", "install", "--quiet", "--python", python, *locked, wheel, *plugins)
    assert json.loads(output_of(python, "-c", LOADED_PLUGINS, cwd=tmp_path)) == {
        "kuberay": "flytekitplugins.kuberay.task",
        "pod": "flytekitplugins.pod.task",
        "ray": "flytekitplugins.ray.task",
    }


def test_the_image_is_not_root() -> None:
    """The connector's image runs as a user who is not root, named by number so that Kubernetes can tell."""
    assert [user.isdigit() and int(user) > 0 for user in arguments_of("USER")] == [True]


def test_the_image_logs_plainly() -> None:
    """The image sets both switches without which flytekit's logging blocks the connector's event loop."""
    settings = set(" ".join(arguments_of("ENV")).split())
    assert {"FLYTE_SDK_LOGGING_FORMAT=json", "FLYTE_SDK_RICH_TRACEBACKS=0"} <= settings


@pytest.mark.packaging
def test_the_image_serves(tmp_path: Path) -> None:
    """The Dockerfile's COPY, pip and CMD lines, run in an empty folder and a clean venv, serve the task type `ray`."""
    context, venv = tmp_path / "context", tmp_path / "venv"
    context.mkdir()
    output_of(sys.executable, "-m", "venv", venv)
    path = f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, **dict(each.split("=", 1) for each in " ".join(arguments_of("ENV")).split())}
    for word, argument in dockerfile():
        if word == "COPY":
            copied(argument.split()[:-1], context)
        elif word == "RUN" and argument.startswith("pip "):
            output_of("bash", "-ec", argument, cwd=context, env=env)

    port, metrics = free_ports(2)
    ports = {"8000": str(port), "9090": str(metrics)}
    command = [ports.get(each, each) for each in json.loads(arguments_of("CMD")[0])]
    address = f"127.0.0.1:{port}"
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL) as served:
        try:
            got = output_of(venv / "bin" / "python", "-c", WHAT_IS_SERVED, address, env=env)
        finally:
            served.terminate()
    assert json.loads(got) == ["SERVING", ["ray"]]
