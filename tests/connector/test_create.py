"""Create: one RayJob for an attempt, whoever asks and however often, or one short reason why not."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from flytekitplugins.kuberay.kube import (
    POD_TEMPLATES,
    RAYJOBS,
    ApiKubeClient,
    Call,
    DeadlineExceeded,
    Forbidden,
    Manifest,
    NotFound,
    TooManyRequests,
)
from flytekitplugins.kuberay.settings import parse_settings
from flytekitplugins.kuberay.wire import FlyteTask
from tests.api import ApiServer
from tests.kube.admin import merge_patch
from tests.kube.samples import core, rayjob

from .samples import GROUP, flyte_task
from .seam import Seam
from .serving import Caller, job_of, service_over, serving

LABELS = "kuberay.flyte.org/"


async def refusal(caller: Caller, task: FlyteTask) -> str:
    """Why the connector does not create the task."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.create(task)
    return caught.value.details() or ""


async def jobs(client: ApiKubeClient, namespace: str) -> list[Manifest]:
    """All RayJobs there."""
    return await client.list(RAYJOBS, namespace)


async def test_create_makes_the_rayjob_of_the_task(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """The answer says which one it is, in a few hundred bytes, for propeller stores it."""
    task = flyte_task(namespace, outputs=True)
    metadata = await caller.create(task)
    (job,) = await jobs(client, namespace)
    assert json.loads(metadata) == {
        "namespace": namespace,
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "output_prefix": task.output_prefix,
        "has_outputs": True,
        "notes": "",
        "v": 1,
    }
    assert len(metadata) < 400
    assert re.fullmatch(r"f0-n0-0-[0-9a-f]{8}", job["metadata"]["name"])


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param({}, [True, True], id="unset: the connector's choice"),
        pytest.param({"health-probes": "quick"}, [True, True], id="quick"),
        pytest.param({"health-probes": "operator"}, [False, False], id="left to KubeRay"),
    ],
)
async def test_ray_is_found_ready_and_alive_by_probes_of_ours(
    seam: Seam, client: ApiKubeClient, namespace: str, own: Manifest, expected: list[bool]
) -> None:
    """On head and workers, as the API server keeps them."""
    async with serving(service_over(seam, parse_settings({"plugins": {"kuberay": own}}))) as caller:
        cluster = (await job_of(client, await caller.create(flyte_task(namespace))))["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    containers = [group["template"]["spec"]["containers"][0] for group in groups]
    assert [{"readinessProbe", "livenessProbe"} <= set(container) for container in containers] == expected


async def test_identity_is_the_output_prefix(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """Two instances of one sub-workflow have the same execution, node, attempt and labels, and a RayJob each."""
    pair = [await caller.create(flyte_task(namespace, f"/nowhere/{instance}/n0")) for instance in "ab"]
    found = [(await job_of(client, metadata))["metadata"] for metadata in pair]
    assert len({metadata["name"] for metadata in found}) == 2
    assert len({metadata["labels"][f"{LABELS}attempt-key"] for metadata in found}) == 2
    assert len({metadata["labels"][f"{LABELS}node-key"] for metadata in found}) == 2


async def test_the_same_request_twice_is_one_rayjob(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """As after an answer that was lost on its way."""
    answers = [await caller.create(flyte_task(namespace)) for _ in range(2)]
    assert answers[0] == answers[1]
    assert len(await jobs(client, namespace)) == 1


async def test_the_same_request_at_once_is_one_rayjob(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """All callers get it."""
    answers = await asyncio.gather(*(caller.create(flyte_task(namespace)) for _ in range(8)))
    assert len(set(answers)) == 1
    assert len(await jobs(client, namespace)) == 1


async def test_an_answer_that_is_lost_leaves_one_rayjob(
    caller: Caller, seam: Seam, client: ApiKubeClient, namespace: str
) -> None:
    """A create that got no answer may have been carried out: it is sent again, within the request's time."""
    call = Call("create", "rayjobs.ray.io", namespace)
    seam.faults["create"] = [DeadlineExceeded(call, "no answer"), TooManyRequests(call, "busy", retry_after=0.1)]
    await caller.create(flyte_task(namespace))
    assert seam.calls.count("create") == 3
    assert len(await jobs(client, namespace)) == 1


async def test_a_cluster_that_is_away_is_told_in_time(impatient: Caller, seam: Seam, namespace: str) -> None:
    """Propeller tries the next attempt, for which this one need not have ended by itself."""
    seam.away = True
    assert "can't talk to the API server: Connection refused" in await refusal(impatient, flyte_task(namespace))


async def test_a_rayjob_that_is_going_is_no_success(impatient: Caller, client: ApiKubeClient, namespace: str) -> None:
    """It is waited for within the request's time; then the error says what holds."""
    metadata = await impatient.create(flyte_task(namespace))
    name = json.loads(metadata)["name"]
    await merge_patch(client, RAYJOBS, namespace, name, {"metadata": {"finalizers": ["test/held"]}})
    await impatient.delete(metadata)
    expected = f"RayJob {namespace}/{name} of this attempt is still being deleted; try again"
    assert expected in await refusal(impatient, flyte_task(namespace))

    again = asyncio.create_task(impatient.create(flyte_task(namespace)))
    await asyncio.sleep(0.4)
    await merge_patch(client, RAYJOBS, namespace, name, {"metadata": {"finalizers": None}})
    assert json.loads(await again)["name"] == name
    assert json.loads(await again)["uid"] != json.loads(metadata)["uid"]


async def test_a_namespace_that_is_not_watched_is_refused(seam: Seam, namespace: str) -> None:
    """There a task would run unseen; nothing is asked of the cluster."""
    async with serving(service_over(seam, parse_settings({"plugins": {"kuberay": {"namespaces": ["a"]}}}))) as caller:
        text = await refusal(caller, flyte_task(namespace))
    assert f"the connector does not watch namespace {namespace}; whoever runs it has to add it to" in text
    assert seam.calls == []


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({}, id="without labels"),
        pytest.param({f"{LABELS}attempt-key": "of-another"}, id="of another attempt"),
    ],
)
async def test_a_namesake_that_is_not_ours_is_left_alone(
    caller: Caller, client: ApiKubeClient, namespace: str, labels: dict[str, str]
) -> None:
    """The error names it."""
    metadata = await caller.create(flyte_task(namespace))
    name = json.loads(metadata)["name"]
    await client.delete(RAYJOBS, namespace, name)
    stranger = (await client.create(RAYJOBS, namespace, rayjob(name, labels=labels))).manifest
    text = await refusal(caller, flyte_task(namespace))
    assert f"RayJob {namespace}/{name} exists and is not of this task; whoever made it has to delete it" in text
    assert await client.get(RAYJOBS, namespace, name) == stranger


async def test_a_namespace_that_is_missing_is_named(caller: Caller, client: ApiKubeClient) -> None:
    """Flyte makes one for each project and domain; where it has not, this is how it shows."""
    assert 'namespaces "no-such-namespace" not found' in await refusal(caller, flyte_task("no-such-namespace"))


def _refused_pod(**fields: Any) -> Manifest:
    """A K8sPod whose container has fields that only an API server finds wrong."""
    return {"podSpec": {"containers": [{"name": "main", **fields}]}, "primaryContainerName": "main"}


PORTLESS = {"livenessProbe": {"httpGet": {"path": "/healthz"}}}


@pytest.mark.parametrize(
    ("custom", "expected"),
    [
        pytest.param(
            {"headGroupSpec": {"k8sPod": _refused_pod(**PORTLESS)}},
            "head: template.spec.containers[ray-head].livenessProbe.httpGet.port: Required value",
            id="the head",
        ),
        pytest.param(
            {"workerGroupSpec": [GROUP, {**GROUP, "groupName": "gpu", "k8sPod": _refused_pod(**PORTLESS)}]},
            "worker group gpu: template.spec.containers[ray-worker].livenessProbe.httpGet.port: Required value",
            id="a worker group by its name",
        ),
    ],
)
async def test_what_the_api_server_refuses_is_told_in_the_users_words(
    caller: Caller, namespace: str, custom: Manifest, expected: str
) -> None:
    """The part of the task, then the field as it stands in that part's template."""
    text = await refusal(caller, flyte_task(namespace, custom={"rayCluster": {"headGroupSpec": {}, **custom}}))
    assert expected in text
    assert "rayClusterSpec" not in text


async def test_what_rbac_refuses_names_verb_resource_and_namespace(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """And what an administrator has to do."""
    config = yaml.safe_load(Path(api_server.kubeconfig).read_text())
    config["users"] = [{**user, "user": {}} for user in config["users"]]
    (tmp_path / "anonymous").write_text(yaml.safe_dump(config))
    async with serving(service_over(await ApiKubeClient.open(str(tmp_path / "anonymous")))) as caller:
        text = await refusal(caller, flyte_task(namespace))
    cannot = f'cannot create resource "rayjobs" in API group "ray.io" in the namespace "{namespace}"'
    assert cannot in text
    assert "a cluster administrator has to grant it" in text


def _with_unknown_field(namespace: str) -> FlyteTask:
    """A task with a field that no KubeRay knows."""
    patch = {"rayClusterSpec": {"headGroupSpec": {"template": {"spec": {"notYet": 1}}}}}
    extras = json.dumps({"version": 1, "rayJobPatch": {"spec": patch}})
    return flyte_task(namespace, config={"kuberay": extras})


async def test_fields_that_the_cluster_does_not_know_are_told(
    caller: Caller, client: ApiKubeClient, namespace: str
) -> None:
    """An older CRD lacks them: the first message to the user, and every later one, says so."""
    metadata = await caller.create(_with_unknown_field(namespace))
    unknown = "without effect, since this cluster's KubeRay 1.6 or newer does not know it: head: template.spec.notYet"
    assert json.loads(metadata)["notes"] == unknown
    assert (await caller.get(metadata)).message.endswith(f"({unknown})")


async def test_a_schema_that_can_not_be_read_stops_no_task(api_server: ApiServer, namespace: str) -> None:
    """The task goes as it is, and the API server's own warning is told."""
    seam = Seam(await ApiKubeClient.open(api_server.kubeconfig))
    seam.faults["schema"] = [Forbidden(Call("get", "/openapi/v3"), "no")]
    async with serving(service_over(seam)) as caller:
        metadata = await caller.create(_with_unknown_field(namespace))
        warning = 'API server: unknown field "head: template.spec.notYet"'
        assert json.loads(metadata)["notes"] == warning
        assert (await caller.get(metadata)).message.endswith(f"({warning})")


async def test_a_later_attempt_removes_what_earlier_ones_left(
    caller: Caller, client: ApiKubeClient, namespace: str
) -> None:
    """Propeller deletes nothing after a create that raised. Other nodes' and the attempt's own RayJobs stay."""
    first = [await caller.create(flyte_task(namespace, attempt=attempt)) for attempt in (0, 2)]
    other = await caller.create(flyte_task(namespace, node="n1"))
    instance = await caller.create(flyte_task(namespace, "/nowhere/another/n0"))
    third = await caller.create(flyte_task(namespace, attempt=3))
    assert await caller.create(flyte_task(namespace, attempt=3)) == third
    left = {job["metadata"]["uid"] for job in await jobs(client, namespace)}
    assert left == {json.loads(metadata)["uid"] for metadata in (other, instance, third)}
    assert len(first) == 2


async def test_a_late_create_does_not_remove_a_later_attempt(
    caller: Caller, client: ApiKubeClient, namespace: str
) -> None:
    """Only what is earlier goes."""
    later = await caller.create(flyte_task(namespace, attempt=2))
    await caller.create(flyte_task(namespace, attempt=1))
    assert (await job_of(client, later))["metadata"]["uid"] == json.loads(later)["uid"]


async def test_the_named_pod_template_is_fetched(caller: Caller, client: ApiKubeClient, namespace: str) -> None:
    """Of the task's namespace; a task that names none costs no call for it."""
    spec = {"containers": [{"name": "default", "image": "x"}], "nodeSelector": {"pool": "ray"}}
    await client.create(POD_TEMPLATES, namespace, core("PodTemplate", "base", template={"spec": spec}))
    metadata = await caller.create(flyte_task(namespace, metadata={"podTemplateName": "base"}))
    job = await job_of(client, metadata)
    pods = job["spec"]["rayClusterSpec"]
    assert pods["headGroupSpec"]["template"]["spec"]["nodeSelector"] == {"pool": "ray"}


async def test_a_platforms_pod_template_that_may_not_be_read(caller: Caller, seam: Seam, namespace: str) -> None:
    """Is not taken for absent: the task is not created, and the text says which right is missing where."""
    missing = NotFound(Call("get", "podtemplates", namespace, "base"), "no such template")
    denied = Forbidden(Call("get", "podtemplates", "flyte", "base"), 'cannot get resource "podtemplates"')
    seam.faults["get"] = [missing, denied]
    text = await refusal(caller, flyte_task(namespace, metadata={"podTemplateName": "base"}))
    assert 'get podtemplates base in namespace flyte: cannot get resource "podtemplates"' in text
    assert seam.calls == ["get", "get"]


async def test_a_plain_create_costs_one_call(caller: Caller, seam: Seam, namespace: str) -> None:
    """Nothing is read where nothing is named."""
    await caller.create(flyte_task(namespace))
    assert seam.calls == ["create"]


async def test_the_primary_container_may_be_named_in_config(
    caller: Caller, client: ApiKubeClient, namespace: str
) -> None:
    """A K8sPod's own primaryContainerName gets lost in flytekit's service on the way to a connector."""
    containers = [{"name": name, "image": "example/image:1", "args": [name]} for name in ("sidecar", "main")]
    pod = {"podSpec": {"containers": containers}, "primaryContainerName": "main"}
    task = flyte_task(namespace, k8sPod=pod, config={"primary_container_name": "main"}, container=None)
    job = await job_of(client, await caller.create(task))
    names = [c["name"] for c in job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"]]
    assert names == ["ray-head", "sidecar"]
    assert job["spec"]["entrypoint"].endswith("main")
