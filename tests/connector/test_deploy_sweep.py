"""deploy/sweep.yaml: a real API server takes it whole, and its CronJob does what `flyte-kuberay sweep` is for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml

from flytekitplugins.kuberay.kube import ApiKubeClient, Manifest, Resource
from tests.api import ApiServer
from tests.cli.tasks import Tasks, our_job, run_command
from tests.flyte_workflows import FLYTE_WORKFLOWS, RUNNING, SUCCEEDED, flyte_workflow, served_flyte_workflows
from tests.kube.admin import strict_dry_run

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(name: str) -> dict[str, Manifest]:
    """The documents of a file, by their kinds."""
    found: list[Manifest] = list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))
    return {document["kind"]: document for document in found}


SWEEP, CONNECTOR = documents("sweep.yaml"), documents("connector.yaml")
POD: Manifest = SWEEP["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
CONTAINER: Manifest = POD["containers"][0]
RESOURCES = {
    "ServiceAccount": Resource("", "v1", "serviceaccounts"),
    "ClusterRoleBinding": Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
    "CronJob": Resource("batch", "v1", "cronjobs"),
}


@pytest.mark.parametrize("kind", RESOURCES)
async def test_an_api_server_takes_it(client: ApiKubeClient, namespace: str, kind: str) -> None:
    """Without an unknown field."""
    document, resource = SWEEP[kind], RESOURCES[kind]
    within = {"namespace": namespace} if "namespace" in document["metadata"] else {}
    metadata = {**document["metadata"], **within}
    created = await strict_dry_run(client, resource, within.get("namespace"), {**document, "metadata": metadata})
    assert created.warnings == ()


def test_all_kinds_are_checked() -> None:
    """One document of each."""
    assert set(SWEEP) == set(RESOURCES)


def test_its_account_has_the_role_of_a_sweep() -> None:
    """That of rbac.yaml, by the binding."""
    account, binding = SWEEP["ServiceAccount"]["metadata"], SWEEP["ClusterRoleBinding"]
    (subject,) = binding["subjects"]
    roles = [
        document["metadata"]["name"]
        for document in yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text(encoding="utf-8"))
        if any("flyteworkflows" in rule["resources"] for rule in document.get("rules", ()))
    ]
    assert [binding["roleRef"]["name"]] == roles
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])
    assert (POD["serviceAccountName"], SWEEP["CronJob"]["metadata"]["namespace"]) == (subject["name"], "flyte")


def test_it_is_the_connectors_image_with_its_settings() -> None:
    """The same name to replace, and the same ConfigMap in the same place."""
    connector = CONNECTOR["Deployment"]["spec"]["template"]["spec"]
    assert CONTAINER["image"] == connector["containers"][0]["image"]
    assert (CONTAINER["volumeMounts"], POD["volumes"]) == (
        connector["containers"][0]["volumeMounts"],
        connector["volumes"],
    )
    assert CONTAINER["env"][0] == connector["containers"][0]["env"][0]


@pytest.fixture(scope="module")
def flyte_workflows(api_server: ApiServer) -> Iterator[None]:
    """The API server serves FlyteWorkflows."""
    with served_flyte_workflows(api_server.kubeconfig):
        yield


@pytest.mark.usefixtures("flyte_workflows")
async def test_it_deletes_what_nobody_needs(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    api_server: ApiServer,
    client: ApiKubeClient,
    namespace: str,
) -> None:
    """By the settings of connector.yaml: what ended stays for two days."""
    (tmp_path / "kuberay.yaml").write_text(CONNECTOR["ConfigMap"]["data"]["kuberay.yaml"], encoding="utf-8")
    monkeypatch.setenv("FLYTE_KUBERAY_CONFIG", str(tmp_path / "kuberay.yaml"))
    tasks, now = Tasks(client, namespace), datetime.now(timezone.utc)
    await tasks.add(our_job("orphan", execution="gone"), jobDeploymentStatus="Running", jobStatus="RUNNING")
    await tasks.add(our_job("runs", execution="lives"), jobDeploymentStatus="Running", jobStatus="RUNNING")
    for name, days in (("ended-long-ago", 3), ("ended-lately", 1)):
        end = (now - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
        ended = {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "endTime": end}
        await tasks.add(our_job(name, execution="done"), **ended)
    for execution, phase in (("lives", RUNNING), ("done", SUCCEEDED)):
        await client.create(FLYTE_WORKFLOWS, namespace, flyte_workflow(execution, phase))
    program, *arguments = CONTAINER["args"]
    done = await run_command(capsys, *arguments, "--kubeconfig", api_server.kubeconfig, "--namespace", namespace)
    assert (program, done.status) == ("flyte-kuberay", 0)
    assert await tasks.names() == ["ended-lately", "runs"]
