"""Tasks on clusters with the CRDs of four versions of KubeRay: what is stored there, and what the user is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.cluster.operator import SINCE, UNTIL, operator_of
from flytekitplugins.kuberay.cluster.probes import with_probes_chosen
from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient, Manifest
from flytekitplugins.kuberay.settings import Settings, parse_settings
from flytekitplugins.kuberay.wire import FlyteTask
from tests.api import ApiServer, NoApiServerError, fresh_namespace, own_api_server, run_apart
from tests.kuberay_versions import VERSIONS, NoCrdError, install, spec_schema_of

from .samples import flyte_task
from .serving import job_of, service_over, serving

SHORT = {version: version.rpartition(".")[0] for version in VERSIONS}
"""By version its first two numbers, which is what a CRD tells."""
ORDER = list(SHORT.values())
PAGE = Path(__file__).parents[2] / "docs" / "operators.md"


@dataclass(frozen=True)
class Cluster:
    """An API server with a version's CRD of RayJobs.

    Args:
        version: The version's first two numbers.
        client: An administrator's.
        namespace: A fresh one.
        kubeconfig: For a connector.
    """

    version: str
    client: ApiKubeClient
    namespace: str
    kubeconfig: str

    def has(self, since: str) -> bool:
        """Whether it has what came with a version."""
        return ORDER.index(self.version) >= ORDER.index(since)

    async def created(self, task: FlyteTask, settings: Settings | None = None) -> tuple[Manifest, str]:
        """The RayJob of a task as it is stored, and what its user is told of it."""
        async with serving(service_over(await ApiKubeClient.open(self.kubeconfig), settings)) as caller:
            metadata = await caller.create(task)
            said = (await caller.get(metadata)).message
        notes = json.loads(metadata)["notes"]
        assert notes in said
        return await job_of(self.client, metadata), notes

    async def refusal(self, task: FlyteTask, settings: Settings | None = None) -> str:
        """Why the connector does not create a task; nothing is stored then."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.created(task, settings)
        assert await self.client.list(RAYJOBS, self.namespace) == []
        return caught.value.details() or ""

    def task(self, patch: Manifest | None = None, **extras: Any) -> FlyteTask:
        """The smallest one with a patch of its RayJob's spec, and other settings of ours."""
        ours = {"version": 1, "rayJobPatch": {"spec": patch or {}}, **extras}
        return flyte_task(self.namespace, config={"kuberay": json.dumps(ours)})


@pytest.fixture(scope="module")
def own_server() -> Iterator[ApiServer]:
    """An API server whose CRDs may be replaced."""
    try:
        with own_api_server() as server:
            yield server
    except NoApiServerError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=VERSIONS)
def version(own_server: ApiServer, request: pytest.FixtureRequest) -> str:
    """A version whose CRD the API server has."""
    try:
        run_apart(install(own_server.kubeconfig, request.param))
    except NoCrdError as error:
        pytest.skip(str(error))
    return SHORT[request.param]


@pytest.fixture
async def cluster(own_server: ApiServer, version: str) -> AsyncIterator[Cluster]:
    """A cluster with that version."""
    async with await ApiKubeClient.open(own_server.kubeconfig) as client, fresh_namespace(client) as namespace:
        yield Cluster(version, client, namespace, own_server.kubeconfig)


def holds(stored: Any, sent: Any) -> bool:
    """Whether all that was sent is stored; the API server adds what the CRD has as defaults."""
    if isinstance(sent, dict):
        return isinstance(stored, dict) and all(key in stored and holds(stored[key], sent[key]) for key in sent)
    if isinstance(sent, list):
        return len(stored) == len(sent) and all(holds(*pair) for pair in zip(stored, sent, strict=True))
    return bool(stored == sent)


async def test_the_version_is_told_by_the_crd(cluster: Cluster) -> None:
    """As the API server serves it."""
    assert operator_of(await cluster.client.schema(RAYJOBS, "RayJob")).version == cluster.version


async def test_a_plain_task_loses_nothing(cluster: Cluster) -> None:
    """All of it is stored, and there is nothing to tell."""
    task = cluster.task()
    job, notes = await cluster.created(task)
    sent = build_ray_job(task, with_probes_chosen(Settings()))
    assert notes == ""
    assert holds(job["spec"], sent["spec"])


NEWER: Manifest = {
    "preRunningDeadlineSeconds": 600,
    "rayClusterSpec": {
        "autoscalerOptions": {"version": "v2", "idleTimeoutSeconds": 30},
        "upgradeStrategy": {"type": "None"},
        "headGroupSpec": {"labels": {"zone": "a"}, "template": {"spec": {"hostnameOverride": "head"}}},
        "workerGroupSpecs": [{"groupName": "cpu", "resources": {"cpu": "1"}}],
    },
}
ADDED = {
    "1.4": ["spec.rayClusterSpec.autoscalerOptions.version"],
    "1.5": ["head: labels", "head: template.spec.hostnameOverride", "worker group cpu: resources"],
    "1.6": ["spec.preRunningDeadlineSeconds", "spec.rayClusterSpec.upgradeStrategy"],
}
"""What of it each version added."""


async def test_what_a_version_lacks_is_told_and_the_rest_is_stored(cluster: Cluster) -> None:
    """Each field that has no effect, and since when there is it; the API server has nothing to warn of."""
    job, notes = await cluster.created(cluster.task(NEWER))
    lacking = {field: since for since, fields in ADDED.items() for field in fields if not cluster.has(since)}
    told = notes.partition(" does not know it: ")[2].split(", ")
    assert sorted(told) == sorted([f"{field} (since KubeRay {since})" for field, since in lacking.items()] or [""])
    assert ("API server" in notes, cluster.version in notes) == (False, bool(lacking))
    ray = job["spec"]["rayClusterSpec"]
    assert ray["autoscalerOptions"]["idleTimeoutSeconds"] == 30
    assert ("version" in ray["autoscalerOptions"]) == cluster.has("1.4")
    assert ("labels" in ray["headGroupSpec"]) == cluster.has("1.5")
    assert ("resources" in ray["workerGroupSpecs"][0]) == cluster.has("1.5")
    assert ("preRunningDeadlineSeconds" in job["spec"]) == cluster.has("1.6")


async def test_a_cluster_with_all_fields_stores_all(cluster: Cluster) -> None:
    """Nothing of what it knows is taken for unknown."""
    job, _ = await cluster.created(cluster.task(NEWER))
    assert holds(job["spec"], NEWER) == cluster.has("1.6")


RULES: Manifest = {
    "shutdownAfterJobFinishes": False,
    "ttlSecondsAfterFinished": None,
    "deletionStrategy": {
        "deletionRules": [{"policy": "DeleteCluster", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 10}}]
    },
}
FAILED_RULE: Manifest = {
    **RULES,
    "deletionStrategy": {"deletionRules": [{"policy": "DeleteSelf", "condition": {"jobDeploymentStatus": "Failed"}}]},
}
TOKEN: Manifest = {"authOptions": {"mode": "token"}}
FROM_FILE: Manifest = {"fileKeyRef": {"key": "K", "path": "env", "volumeName": "v"}}
POD: Manifest = {"spec": {"containers": [{"name": "ray-head", "env": [{"name": "A", "valueFrom": FROM_FILE}]}]}}


@pytest.mark.parametrize(
    ("extras", "own", "stored", "since", "what"),
    [
        pytest.param(
            {},
            {"ray-auth": "token"},
            {"rayClusterSpec": TOKEN},
            "1.5",
            "spec.rayClusterSpec.authOptions: is not known",
            id="a token, by the platform",
        ),
        pytest.param(
            {"patch": {"rayClusterSpec": TOKEN}},
            {},
            {"rayClusterSpec": TOKEN},
            "1.5",
            "spec.rayClusterSpec.authOptions: is not known",
            id="a token, by the task",
        ),
        pytest.param(
            {"submissionMode": "SidecarMode"},
            {},
            {"submissionMode": "SidecarMode"},
            "1.5",
            "spec.submissionMode: is SidecarMode, which",
            id="SidecarMode, by the task",
        ),
        pytest.param(
            {},
            {"submission-mode": "SidecarMode"},
            {"submissionMode": "SidecarMode"},
            "1.5",
            "spec.submissionMode: is SidecarMode, which",
            id="SidecarMode, by the platform",
        ),
        pytest.param(
            {"patch": RULES},
            {},
            {"deletionStrategy": RULES["deletionStrategy"]},
            "1.5",
            "spec.deletionStrategy: is not known",
            id="deletion rules that alone would end the cluster",
        ),
        pytest.param(
            {"patch": FAILED_RULE},
            {},
            {"deletionStrategy": FAILED_RULE["deletionStrategy"]},
            "1.6",
            " is not known",
            id="a rule for a failed deployment",
        ),
        pytest.param(
            {"patch": {"rayClusterSpec": {"headGroupSpec": {"template": POD}}}},
            {},
            {},
            "1.5",
            "head: template.spec.containers[ray-head].env[A].valueFrom.fileKeyRef: is not known",
            id="a variable out of a file",
        ),
    ],
)
async def test_what_a_task_needs_is_stored_or_refused(
    cluster: Cluster, extras: Manifest, own: Manifest, stored: Manifest, since: str, what: str
) -> None:
    """Never dropped: it would be another task, or run open to everybody, or for ever."""
    task, settings = cluster.task(**extras), parse_settings({"plugins": {"kuberay": own}})
    if cluster.has(since):
        job, notes = await cluster.created(task, settings)
        assert notes == ""
        assert holds(job["spec"], stored)
    else:
        refusal = await cluster.refusal(task, settings)
        assert what in refusal
        assert f"KubeRay {cluster.version}" in refusal


async def test_an_older_word_is_told_where_it_has_gone(cluster: Cluster) -> None:
    """DeletionPolicy stands in no CRD since 1.5."""
    job, notes = await cluster.created(cluster.task({"deletionPolicy": "DeleteCluster"}))
    known = not cluster.has("1.5")
    assert job["spec"].get("deletionPolicy") == ("DeleteCluster" if known else None)
    assert notes.endswith("" if known else "does not know it: spec.deletionPolicy (until KubeRay 1.4)")


def fields_of(schema: Manifest, path: str = "spec") -> set[str]:
    """The paths of all fields of a schema, lists left out."""
    if "items" in schema:
        return fields_of(schema["items"], path)
    properties = schema.get("properties", {})
    return {path}.union(*(fields_of(child, f"{path}.{name}") for name, child in properties.items()))


def ends_of(table: dict[str, str], path: str) -> list[str]:
    """The versions that a table has for a path."""
    return [version for end, version in table.items() if f".{path}".endswith(f".{end}")]


def topmost(paths: set[str]) -> set[str]:
    """Those that stand below none of the others."""
    return {path for path in paths if path.rpartition(".")[0] not in paths}


@pytest.fixture(scope="module")
def fields() -> dict[str, set[str]]:
    """The fields of each version."""
    try:
        return {SHORT[version]: fields_of(spec_schema_of(version)) for version in VERSIONS}
    except NoCrdError as error:
        pytest.skip(str(error))


def test_since_when_there_is_a_field_is_right(fields: dict[str, set[str]]) -> None:
    """Every field that came with a version has a row that says so, and no row says anything else."""
    rows = set()
    for older, newer in pairwise(ORDER):
        for path in topmost(fields[newer] - fields[older]):
            assert (path, ends_of(SINCE, path)) == (path, [newer])
            rows |= {end for end in SINCE if f".{path}".endswith(f".{end}")}
    assert rows == set(SINCE)


def test_until_when_there_was_a_field_is_right(fields: dict[str, set[str]]) -> None:
    """The same for those that have gone."""
    gone = {path: older for older, newer in pairwise(ORDER) for path in topmost(fields[older] - fields[newer])}
    assert gone == UNTIL


def test_the_page_names_every_field() -> None:
    """With the version that it came with, or went with."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for end, version in {**SINCE, **UNTIL}.items():
        start = f"| `{end.removeprefix('spec.')}` | {version} |"
        assert (start, len([line for line in lines if line.startswith(start)])) == (start, 1)
