"""deploy/connector.yaml: a real API server takes it whole, and its parts fit each other, rbac.yaml and the image."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from flytekit.clis.sdk_in_container.serve import connector as serve_connector

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.kube import ApiKubeClient, Manifest, Resource
from flytekitplugins.kuberay.settings import parse_settings
from tests.kube.admin import strict_dry_run

from .samples import flyte_task

ROOT = Path(__file__).parents[2]
DOCUMENTS: dict[str, Manifest] = {
    document["kind"]: document for document in yaml.safe_load_all((ROOT / "deploy" / "connector.yaml").read_text())
}
POD: Manifest = DOCUMENTS["Deployment"]["spec"]["template"]
CONTAINER: Manifest = POD["spec"]["containers"][0]
RESOURCES = {
    "ConfigMap": Resource("", "v1", "configmaps"),
    "Deployment": Resource("apps", "v1", "deployments"),
    "PodDisruptionBudget": Resource("policy", "v1", "poddisruptionbudgets"),
    "NetworkPolicy": Resource("networking.k8s.io", "v1", "networkpolicies"),
    "Service": Resource("", "v1", "services"),
}


@pytest.mark.parametrize("kind", RESOURCES)
async def test_an_api_server_takes_it(client: ApiKubeClient, namespace: str, kind: str) -> None:
    """Without an unknown field."""
    document = DOCUMENTS[kind]
    placed = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
    created = await strict_dry_run(client, RESOURCES[kind], namespace, placed)
    assert created.warnings == ()


def test_all_kinds_are_checked() -> None:
    """One document of each."""
    assert set(DOCUMENTS) == set(RESOURCES)


def test_it_runs_as_the_account_that_has_the_rights() -> None:
    """The one of rbac.yaml, in its namespace."""
    account = next(yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text()))["metadata"]
    deployment = DOCUMENTS["Deployment"]["metadata"]
    assert (POD["spec"]["serviceAccountName"], deployment["namespace"]) == (account["name"], account["namespace"])


def test_the_example_settings_are_settings() -> None:
    """Every key under plugins.kuberay is known, every value is of its kind."""
    content = yaml.safe_load(DOCUMENTS["ConfigMap"]["data"]["kuberay.yaml"])
    assert parse_settings(content).k8s.default_memory == "2Gi"


def test_settings_that_are_commented_out_are_settings_too() -> None:
    """Each line with a key of YAML in it, in its place."""
    lines = DOCUMENTS["ConfigMap"]["data"]["kuberay.yaml"].splitlines()
    text = "\n".join(re.sub(r"# (?= *[a-z-]+:( |$))", "", line) for line in lines)
    own = parse_settings(yaml.safe_load(text)).kuberay
    assert {side: sorted(amounts) for side, amounts in own.platform_resources.items()} == {
        "requests": ["cpu", "memory"],
        "limits": ["cpu", "memory"],
    }


def test_the_example_settings_end_what_holds_gpus() -> None:
    """A cluster goes soon after its job; KubeRay has a deadline of its own, for it takes both of ours for one."""
    settings = parse_settings(yaml.safe_load(DOCUMENTS["ConfigMap"]["data"]["kuberay.yaml"]))
    spec = build_ray_job(flyte_task("p-d"), settings)["spec"]
    assert (spec["shutdownAfterJobFinishes"], spec["ttlSecondsAfterFinished"]) == (True, 300)
    assert timedelta(seconds=spec["activeDeadlineSeconds"]) == timedelta(hours=1 + 72, minutes=10)
    own = settings.kuberay
    assert (own.max_keep_seconds, own.keep_finished) == (4 * 3600, timedelta(hours=48))


def test_the_settings_are_mounted_where_they_are_looked_for() -> None:
    """In the check before the start, and in the connector."""
    (volume,) = POD["spec"]["volumes"]
    assert volume["configMap"]["name"] == DOCUMENTS["ConfigMap"]["metadata"]["name"]
    for container in (*POD["spec"]["initContainers"], CONTAINER):
        (mount,) = container["volumeMounts"]
        path = next(entry["value"] for entry in container["env"] if entry["name"] == "FLYTE_KUBERAY_CONFIG")
        assert (mount["name"], path) == (volume["name"], f"{mount['mountPath']}/kuberay.yaml")


def test_pyflyte_has_the_options() -> None:
    """And they are those of the image's own command."""
    known = {option for parameter in serve_connector.params for option in parameter.opts}
    assert {argument for argument in CONTAINER["args"] if argument.startswith("--")} <= known
    command = next(line for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("CMD "))
    assert yaml.safe_load(command.removeprefix("CMD ")) == CONTAINER["args"]


def test_the_service_leads_to_the_pods() -> None:
    """By their labels, to the ports on which the connector listens."""
    service = DOCUMENTS["Service"]["spec"]
    assert service["selector"].items() <= POD["metadata"]["labels"].items()
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == ports
    assert [str(port) for port in ports.values()] == [CONTAINER["args"][4], CONTAINER["args"][6]]


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(DOCUMENTS["Deployment"]["spec"]["selector"], id="the Deployment"),
        pytest.param(DOCUMENTS["PodDisruptionBudget"]["spec"]["selector"], id="the budget for disruptions"),
        pytest.param(DOCUMENTS["NetworkPolicy"]["spec"]["podSelector"], id="the network policy"),
        pytest.param(POD["spec"]["topologySpreadConstraints"][0]["labelSelector"], id="the spread over nodes"),
    ],
)
def test_each_selector_means_the_pods(selector: Manifest) -> None:
    """By a label that they have."""
    assert selector["matchLabels"].items() <= POD["metadata"]["labels"].items()


def test_a_disruption_leaves_one_replica() -> None:
    """And is not blocked for ever: there is another one."""
    assert DOCUMENTS["PodDisruptionBudget"]["spec"]["minAvailable"] == DOCUMENTS["Deployment"]["spec"]["replicas"] - 1


def test_propeller_alone_reaches_the_connectors_port() -> None:
    """By the labels that Flyte's charts give its pods; Prometheus reaches the metrics, and nobody anything else.

    Source: Flyte's charts, flyte-core and flyte-binary, templates/_helpers.tpl, selectorLabels.
    """
    propeller, prometheus = DOCUMENTS["NetworkPolicy"]["spec"]["ingress"]
    name = {"key": "app.kubernetes.io/name", "operator": "In", "values": ["flytepropeller", "flyte-binary"]}
    assert propeller["from"] == [{"podSelector": {"matchExpressions": [name]}}]
    ports = [[port["containerPort"]] for port in CONTAINER["ports"]]
    assert [[port["port"] for port in rule["ports"]] for rule in (propeller, prometheus)] == ports


def test_each_container_is_confined() -> None:
    """The connector and the check before it: no privileges, and a limit of memory."""
    assert POD["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*POD["spec"]["initContainers"], CONTAINER):
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        pytest.param(DOCUMENTS["ConfigMap"]["data"]["kuberay.yaml"], 0, id="the example"),
        pytest.param("plugins: {kuberay: {queues: x}}", 1, id="a mistake"),
    ],
)
def test_a_mistake_in_the_settings_stops_the_roll_out(content: str, status: int, tmp_path: Path) -> None:
    """By the init container's own command."""
    (tmp_path / "kuberay.yaml").write_text(content)
    _, *arguments = POD["spec"]["initContainers"][0]["command"]
    environ = {"FLYTE_KUBERAY_CONFIG": str(tmp_path / "kuberay.yaml"), "FLYTE_SDK_RICH_TRACEBACKS": "0"}
    done = subprocess.run([sys.executable, *arguments], env=environ, capture_output=True, text=True)
    assert done.returncode == status
    assert ("plugins.kuberay.queues" in done.stderr) == bool(status)
