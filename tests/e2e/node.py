"""A real node of ../shared/cluster, and what Flyte needs beside it: an object store and a connector, in its network.

The object store is versitygw, an S3 server whose objects are plain files. So pods and connector write by S3 what
propeller-client, whose object store is a folder, reads as a file at the same moment, with nothing in between that could
copy late. The connector is what `pyflyte serve connector` finds, as the ServiceAccount of deploy/rbac.yaml.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from flytekitplugins.kuberay.wire import Manifest
from tests.command import output_of

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
CLUSTER = SHARED / "cluster"
CACHE = Path(os.environ.get("KUBERAY_TEST_CACHE", Path.home() / ".cache" / "kuberay-cluster"))

IMAGE = "local/ray:e2e"
NAMESPACE = "flytesnacks-development"
BUCKET = "bucket"

_ADDRESS = "10.244.0.1"  # of the node, for its pods
_S3_PORT, _CONNECTOR_PORT, _PROMETHEUS_PORT = 17070, 18000, 19090  # nothing else listens in the node's own network
_VERSITYGW = "1.8.0"
STORE = {
    "FLYTE_AWS_ENDPOINT": f"http://{_ADDRESS}:{_S3_PORT}",
    "FLYTE_AWS_ACCESS_KEY_ID": "e2e",
    "FLYTE_AWS_SECRET_ACCESS_KEY": "not-a-secret",
}
_ROOT_KEYS = {
    "ROOT_ACCESS_KEY_ID": STORE["FLYTE_AWS_ACCESS_KEY_ID"],
    "ROOT_SECRET_ACCESS_KEY": STORE["FLYTE_AWS_SECRET_ACCESS_KEY"],
}
_API = "/api/v1/namespaces/{{ .namespace }}"  # links whose addresses tests can ask the API server for
_SETTINGS = {
    "plugins": {
        "ray": {
            "dashboardURLTemplate": {"templateUris": _API + "/services/{{ .rayHeadService }}:8265/proxy/api/version"},
            "logs": {
                "templates": {
                    "displayName": "Log",
                    "templateUris": _API + "/pods/{{ .podName }}/log?container={{ .containerName }}",
                }
            },
        },
        "k8s": {
            "default-env-vars": [{name: value} for name, value in STORE.items()],
            "image-pull-backoff-grace-period": "10s",
        },
        "kuberay": {
            "submitter-resources": {"requests": {"cpu": "50m", "memory": "100Mi"}},
            "history-server-url-template": "https://history/{{ .rayClusterName }}/{{ .rayJobID }}/{{ .nodeID }}",
        },
    }
}
_KINDS = "rayjobs,rayclusters,jobs,pods,services"
_GONE_WITHIN = 60.0


def what_is_missing() -> str:
    """Why no node can run here; empty where one can."""
    if not (CLUSTER / "up").exists():
        return "../shared/cluster"
    if not (shutil.which("go") and shutil.which("apt-get")):
        return "Go, or apt-get of Debian 12"
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "true"]
    return "" if subprocess.run(unshare, capture_output=True).returncode == 0 else "root's right to make namespaces"


@dataclass(frozen=True)
class Node:
    """A node that runs; commands are run in its network.

    Args:
        state: The folder of this start, for ../shared/cluster.
        folder: What else belongs to it: the object store, logs, configuration.
    """

    state: Path
    folder: Path

    @property
    def store(self) -> Path:
        """The folder in which the buckets lie."""
        return self.folder / "store"

    @property
    def connector(self) -> str:
        """Where the connector listens, in the node's network."""
        return f"127.0.0.1:{_CONNECTOR_PORT}"

    def environ(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """For what runs in the node's network: no proxy, kubeconfig or Flyte setting of this machine's own."""
        kept = {name: os.environ[name] for name in ("HOME", "KUBERAY_TEST_CACHE", "LANG", "PATH") if name in os.environ}
        return {**kept, "KUBERAY_TEST_STATE": str(self.state), **(more or {})}

    def run(self, *command: str) -> str:
        """What a command printed, run in the node's network."""
        return output_of(CLUSTER / "enter", *command, env=self.environ())

    def objects(self, kinds: str, stem: str = "") -> list[Manifest]:
        """The objects of these kinds in the tasks' namespace whose names begin so."""
        answer = self.run("kubectl", "get", kinds, f"--namespace={NAMESPACE}", "--output=json")
        return [item for item in json.loads(answer)["items"] if item["metadata"]["name"].startswith(stem)]

    def settled(self, stem: str = "", within: float = _GONE_WITHIN) -> list[str]:
        """What stands in the tasks' namespace, names beginning so, once all of it has gone, or a minute later."""
        deadline = time.monotonic() + within
        while True:
            left = [f"{item['kind']} {item['metadata']['name']}" for item in self.objects(_KINDS, stem)]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.5)

    def restart(self, daemon: str, after: float) -> None:
        """Ends a daemon of the node's for so many seconds, and waits until it is healthy again."""
        output_of(CLUSTER / "restart", daemon, "--after", f"{after:g}", env=self.environ())

    def suspend(self, stem: str, suspended: bool) -> None:
        """Suspends or resumes the RayJobs whose names begin so, as a queue does it."""
        patch = json.dumps({"spec": {"suspend": suspended}})
        for job in self.objects("rayjobs", stem):
            name = job["metadata"]["name"]
            self.run("kubectl", "patch", "rayjob", name, "--type=merge", f"--patch={patch}", f"--namespace={NAMESPACE}")

    def delete_pod(self, name: str) -> None:
        """Deletes the pod, as when its node is drained."""
        self.run("kubectl", "delete", "pod", name, "--wait=false", f"--namespace={NAMESPACE}")

    def delete_tasks(self, stem: str = "") -> None:
        """Deletes the RayJobs of the tasks whose names begin so."""
        for job in self.objects("rayjobs", stem):
            name = job["metadata"]["name"]
            self.run("kubectl", "delete", "rayjob", name, "--wait=false", f"--namespace={NAMESPACE}")

    def diagnosis(self) -> str:
        """What helps to see why a task did not do as it should."""
        seen = self.run("kubectl", "get", "rayjobs,pods,events", f"--namespace={NAMESPACE}", "--output=wide")
        logs = (f"{path.name}\n{path.read_text()[-5000:]}" for path in sorted(self.folder.glob("*.log")))
        return "\n\n".join([seen, *logs])

    def entered(self, *command: str, kubeconfig: str = "") -> list[str]:
        """The command line that runs in the node's network, with another kubeconfig than the administrator's."""
        return [str(CLUSTER / "enter"), *(["env", f"KUBECONFIG={kubeconfig}"] if kubeconfig else []), *command]

    @contextmanager
    def serving(self, port: int, *command: str, env: Mapping[str, str]) -> Iterator[None]:
        """A process that listens on a port of the node's; it ends with the block, and its log lies in the folder."""
        log = self.folder / f"{Path(command[0]).name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self.entered(*command, kubeconfig=env.get("KUBECONFIG", "")),
                cwd=self.folder,
                env=self.environ(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait = f"until : </dev/tcp/127.0.0.1/{port}; do kill -0 {process.pid} && sleep 0.2 || exit 1; done"
            self.run("timeout", "90", "bash", "-c", f"({wait}) 2>/dev/null || {{ tail {log} >&2; exit 1; }}")
            yield
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def flyte(folder: Path, wheel: Path, announce: Callable[[str], object]) -> Iterator[Node]:
    """A node whose connector serves, with the wheel in `IMAGE`; all of it ends with the block.

    Args:
        folder: An empty one, its path short: it holds Unix sockets.
        wheel: This package.
        announce: Takes a line before each step that may last minutes.
    """
    folder.chmod(0o711)  # pods of any user reach their volumes
    node = Node(folder / "node", folder)
    announce(f"versitygw {_VERSITYGW}")
    versitygw = _built_versitygw()
    _install_network_plugins()
    announce("the programs of the node")
    output_of(CLUSTER / "build")
    announce(f"the image {IMAGE}")
    output_of(CLUSTER / "image", IMAGE.partition(":")[2], wheel)
    (node.store / BUCKET).mkdir(parents=True)
    with ExitStack() as stack:
        announce("the node")
        environ = {**os.environ, "KUBERAY_TEST_STATE": str(node.state)}
        stack.callback(output_of, CLUSTER / "down", env=environ)
        output_of(CLUSTER / "up", env=environ)
        node.run("kubectl", "create", "namespace", NAMESPACE)

        announce("its connector")
        store = [versitygw, "--port", f":{_S3_PORT}", "posix", "--nometa", node.store]
        stack.enter_context(node.serving(_S3_PORT, *map(str, store), env=_ROOT_KEYS))
        ports = ["--port", _CONNECTOR_PORT, "--prometheus_port", _PROMETHEUS_PORT]
        connector = [Path(sys.executable).with_name("pyflyte"), "serve", "connector", *ports]
        stack.enter_context(node.serving(_CONNECTOR_PORT, *map(str, connector), env=_connector_environ(node)))
        yield node


def _built_versitygw() -> Path:
    """The S3 server, built once into the cache."""
    folder = CACHE / f"versitygw-{_VERSITYGW}"
    if not (folder / "versitygw").exists():
        flags = {"GOBIN": str(folder), "CGO_ENABLED": "0", "GOFLAGS": "-trimpath -buildvcs=false"}
        module = f"github.com/versity/versitygw/cmd/versitygw@v{_VERSITYGW}"
        output_of("go", "install", "-ldflags=-s -w", module, env={**os.environ, **flags})
    return folder / "versitygw"


def _install_network_plugins() -> None:
    """Installs the plugins without which no pod starts; ../shared/cluster takes iproute2's `bridge` for them."""
    if not Path("/usr/lib/cni/bridge").exists():
        output_of("apt-get", "update", "-qq")
        output_of("apt-get", "install", "-y", "-qq", "--no-install-recommends", "containernetworking-plugins")


def _connector_environ(node: Node) -> dict[str, str]:
    """The connector's settings, written down, and the rights of deploy/rbac.yaml."""
    settings = node.folder / "settings.yaml"
    settings.write_text(yaml.safe_dump(_SETTINGS))
    return {
        **STORE,
        "KUBECONFIG": str(_service_account_kubeconfig(node)),
        "FLYTE_KUBERAY_CONFIG": str(settings),
        "FLYTE_SDK_LOGGING_FORMAT": "json",
        "FLYTE_SDK_RICH_TRACEBACKS": "0",
    }


def _service_account_kubeconfig(node: Node) -> Path:
    """A kubeconfig with a token of the ServiceAccount that deploy/rbac.yaml makes."""
    node.run("kubectl", "create", "namespace", "flyte")
    node.run("kubectl", "apply", f"--filename={ROOT / 'deploy' / 'rbac.yaml'}")
    return kubeconfig_of(node, "flyte-kuberay", "flyte")


def kubeconfig_of(node: Node, account: str, namespace: str) -> Path:
    """A kubeconfig of a ServiceAccount, with its namespace as the default one."""
    token = node.run("kubectl", "create", "token", account, f"--namespace={namespace}", "--duration=2h").strip()
    config = yaml.safe_load((node.state / "kubeconfig").read_text())
    context = config["contexts"][0]["context"]
    context["namespace"] = namespace
    config["users"] = [{"name": context["user"], "user": {"token": token}}]
    path = node.folder / f"kubeconfig-{account}"
    path.touch(0o600)
    path.write_text(yaml.safe_dump(config))
    return path
