"""The client and the watch against a real kube-apiserver with KubeRay's CRDs."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from flytekitplugins.kuberay.kube import (
    EVENTS,
    POD_TEMPLATES,
    PODS,
    RAYJOBS,
    AlreadyExists,
    ApiKubeClient,
    Conflict,
    Expired,
    Invalid,
    Manifest,
    NotFound,
    Resource,
    Selector,
    Unauthorized,
    Unavailable,
    UnknownResource,
)
from flytekitplugins.kuberay.kube.watch import Pace
from tests.api import ApiServer

from .admin import merge_patch
from .conftest import KubeconfigOf
from .samples import core, pod_spec, rayjob
from .shown import ShownWatch


def entrypoint_of(manifest: Manifest) -> str:
    """What the tests keep of a RayJob."""
    return str(manifest["spec"]["entrypoint"])


async def shows(view: ShownWatch[str], expected: dict[str, str], namespace: str) -> None:
    """Waits until the view shows that, 20 s at most."""
    wanted = {(namespace, name): value for name, value in expected.items()}
    for _ in range(400):
        if view.items() == wanted:
            return
        await asyncio.sleep(0.05)
    assert view.items() == wanted


@pytest.mark.parametrize(
    ("resource", "manifest"),
    [
        pytest.param(RAYJOBS, rayjob("a"), id="a RayJob"),
        pytest.param(PODS, core("Pod", "a", spec=pod_spec()), id="a pod"),
        pytest.param(POD_TEMPLATES, core("PodTemplate", "a", template={"spec": pod_spec()}), id="a PodTemplate"),
    ],
)
async def test_an_object_lives_from_create_to_delete(
    client: ApiKubeClient, namespace: str, resource: Resource, manifest: Manifest
) -> None:
    """Create, get, list, patch and delete see one object; then it is gone."""
    created = await client.create(resource, namespace, manifest)
    assert created.warnings == ()
    assert await client.get(resource, namespace, "a") == created.manifest
    labels = {"metadata": {"labels": {"mine": "yes"}}}
    patched = await merge_patch(client, resource, namespace, "a", labels)
    assert patched["metadata"]["labels"] == {"mine": "yes"}
    selected = [await client.list(resource, namespace, Selector(labels=f"mine={value}")) for value in ("yes", "no")]
    assert [[item["metadata"]["uid"] for item in items] for items in selected] == [[patched["metadata"]["uid"]], []]
    await client.delete(resource, namespace, "a")
    with pytest.raises(NotFound):
        await client.get(resource, namespace, "a")


async def test_a_namesake_is_told_apart(client: ApiKubeClient, namespace: str) -> None:
    """A second create says AlreadyExists, and so it does while the first is terminating."""
    await client.create(RAYJOBS, namespace, {**rayjob("a"), "metadata": {"name": "a", "finalizers": ["test/held"]}})
    with pytest.raises(AlreadyExists):
        await client.create(RAYJOBS, namespace, rayjob("a"))
    await client.delete(RAYJOBS, namespace, "a")
    with pytest.raises(AlreadyExists, match="object is being deleted"):
        await client.create(RAYJOBS, namespace, rayjob("a"))
    await merge_patch(client, RAYJOBS, namespace, "a", {"metadata": {"finalizers": None}})
    await client.create(RAYJOBS, namespace, rayjob("a"))


async def test_a_delete_with_a_uid_spares_a_namesake(client: ApiKubeClient, namespace: str) -> None:
    """Only the object that was meant goes."""
    first = (await client.create(RAYJOBS, namespace, rayjob("a"))).manifest
    await client.delete(RAYJOBS, namespace, "a", uid=first["metadata"]["uid"])
    await client.create(RAYJOBS, namespace, rayjob("a"))
    with pytest.raises(Conflict, match="UID"):
        await client.delete(RAYJOBS, namespace, "a", uid=first["metadata"]["uid"])
    await client.get(RAYJOBS, namespace, "a")


async def test_what_is_not_there_is_not_found(client: ApiKubeClient, namespace: str) -> None:
    """Get and delete of nothing, a create in no namespace, and a log of no pod."""
    for missing in (
        client.get(RAYJOBS, namespace, "a"),
        client.delete(RAYJOBS, namespace, "a"),
        client.create(RAYJOBS, "no-such-namespace", rayjob("a")),
        client.read_log(namespace, "a"),
        anext(client.stream_log(namespace, "a", follow=True)),
        anext(client.stream_service(namespace, "a:8265", "api/jobs/")),
    ):
        with pytest.raises(NotFound):
            await missing


async def test_a_missing_crd_is_no_proof_of_a_deletion(client: ApiKubeClient, namespace: str) -> None:
    """A resource that the server does not know has an error of its own."""
    for unknown in (Resource("ray.io", "v99", "rayjobs"), Resource("", "v1", "rayjobs")):
        with pytest.raises(UnknownResource, match="does not serve this resource"):
            await client.get(unknown, namespace, "a")


async def test_an_invalid_object_names_its_fields(client: ApiKubeClient, namespace: str) -> None:
    """Each field comes with what is wrong with it."""
    wrong = rayjob("a", entrypoint=1, ttlSecondsAfterFinished="soon")
    with pytest.raises(Invalid) as caught:
        await client.create(RAYJOBS, namespace, wrong)
    assert {field for field, _ in caught.value.causes} >= {"spec.entrypoint", "spec.ttlSecondsAfterFinished"}
    assert "must be of type integer" in dict(caught.value.causes)["spec.ttlSecondsAfterFinished"]


async def test_a_name_that_kubernetes_does_not_take_is_invalid(client: ApiKubeClient, namespace: str) -> None:
    """The field is metadata.name."""
    with pytest.raises(Invalid) as caught:
        await client.create(RAYJOBS, namespace, rayjob("Not_A_Name"))
    assert caught.value.causes[0][0] == "metadata.name"


async def test_an_unknown_field_warns(client: ApiKubeClient, namespace: str) -> None:
    """The server's warning is handed on, and the field is dropped."""
    created = await client.create(RAYJOBS, namespace, rayjob("a", unheardOf=1))
    assert created.warnings == ('unknown field "spec.unheardOf"',)
    assert "unheardOf" not in created.manifest["spec"]


async def test_pages_of_a_real_list(client: ApiKubeClient, namespace: str) -> None:
    """Five objects in pages of two, all of one version; a token that is no token is refused."""
    for number in range(5):
        await client.create(RAYJOBS, namespace, rayjob(f"j{number}"))
    pages = [page async for page in client.pages(RAYJOBS, namespace, limit=2)]
    assert [len(page.items) for page in pages] == [2, 2, 1]
    assert len({page.resource_version for page in pages}) == 1
    with pytest.raises(Invalid):
        await client.list_page(RAYJOBS, namespace, continue_from="nonsense")


async def test_events_of_one_object_are_selected_by_field(client: ApiKubeClient, namespace: str) -> None:
    """How the causes are found that stand in no pod."""
    for name in ("a", "b"):
        involved = {"involvedObject": {"kind": "RayJob", "name": name, "namespace": namespace}}
        await client.create(
            EVENTS, namespace, core("Event", name, reason="FailedToCreate", message="quota", **involved)
        )
    (event,) = await client.list(EVENTS, namespace, Selector(fields="involvedObject.name=a"))
    assert event["metadata"]["name"] == "a"


async def test_a_wrong_token_is_unauthorized(client: ApiKubeClient, kubeconfig_of: KubeconfigOf) -> None:
    """It is not taken for a missing right: a token can be renewed."""
    cluster = {"certificate-authority": client.access.configuration.ssl_ca_cert}
    stranger = kubeconfig_of(client.access.configuration.host, cluster, {"token": "nonsense"})
    async with await ApiKubeClient.open(stranger) as stranger_client:
        with pytest.raises(Unauthorized):
            await stranger_client.get(PODS, "default", "a")


async def test_a_strange_certificate_is_told(client: ApiKubeClient, kubeconfig_of: KubeconfigOf) -> None:
    """Without the cluster's authority nothing is sent."""
    async with await ApiKubeClient.open(kubeconfig_of(client.access.configuration.host)) as stranger:
        with pytest.raises(Unavailable, match="its certificate is not accepted"):
            await stranger.get(PODS, "default", "a")


async def test_a_watch_from_long_ago_has_expired(client: ApiKubeClient, namespace: str) -> None:
    """Version 1 is compacted or out of the server's cache."""
    with pytest.raises(Expired):
        async with aclosing(client.watch(RAYJOBS, namespace, resource_version="1")) as events:
            async for _ in events:
                pass


@pytest.mark.parametrize(
    "everywhere", [pytest.param(True, id="the whole cluster"), pytest.param(False, id="a namespace")]
)
async def test_the_view_follows_the_cluster(client: ApiKubeClient, namespace: str, everywhere: bool) -> None:
    """An object is seen when it comes, changes, loses its label and goes."""
    namespaces = () if everywhere else (namespace,)
    labels = {"mine": namespace}
    selector = Selector(f"mine={namespace}")
    await client.create(RAYJOBS, namespace, rayjob("before", labels=labels))
    view = ShownWatch(client, RAYJOBS, entrypoint_of, selector=selector, namespaces=namespaces)
    view.start()
    assert await view.wait_synced(namespace, 10)
    assert view.items() == {(namespace, "before"): "python -V"}

    await client.create(RAYJOBS, namespace, rayjob("stranger"))
    await client.create(RAYJOBS, namespace, rayjob("a", labels=labels))
    await client.create(RAYJOBS, namespace, rayjob("b", labels=labels))
    await shows(view, {"before": "python -V", "a": "python -V", "b": "python -V"}, namespace)
    await merge_patch(client, RAYJOBS, namespace, "a", {"spec": {"entrypoint": "python -c 1"}})
    await merge_patch(client, RAYJOBS, namespace, "b", {"metadata": {"labels": None}})
    await client.delete(RAYJOBS, namespace, "before")
    await shows(view, {"a": "python -c 1"}, namespace)
    assert view.age(namespace) < 60
    await view.stop()


async def test_an_idle_view_stays_fresh(client: ApiKubeClient, namespace: str) -> None:
    """The ends of its watches prove it, without any event."""
    view = ShownWatch(
        client, Resource("ray.io", "v1", "rayclusters"), str, namespaces=[namespace], pace=Pace(seconds=1, timeout=3)
    )
    view.start()
    await view.wait_synced(namespace, 10)
    before = after = view.age(namespace)
    for _ in range(300):
        if after < before:  # nothing else makes it younger
            break
        await asyncio.sleep(0.1)
        before, after = after, view.age(namespace)
    await view.stop()
    assert after < before
    assert view.error(namespace) is None


# Python 3.10 says so of a TLS connection that the other side reset.
@pytest.mark.filterwarnings("ignore:.*_SSLProtocolTransport:pytest.PytestUnraisableExceptionWarning")
async def test_the_view_survives_an_api_server_that_is_killed(
    api_server: ApiServer, client: ApiKubeClient, namespace: str
) -> None:
    """While it is away the last state stays readable and its age tells; afterwards it follows again."""
    if not api_server.state:
        pytest.skip("KUBECONFIG is set, and what it names must not be restarted")
    await client.create(RAYJOBS, namespace, rayjob("a"))
    view = ShownWatch(
        client, RAYJOBS, entrypoint_of, namespaces=[namespace], pace=Pace(seconds=5, timeout=3, longest_pause=1)
    )
    view.start()
    await view.wait_synced(namespace, 10)
    restart = asyncio.create_task(asyncio.to_thread(api_server.restart, "--signal", "KILL", "--after", "2"))
    while view.error(namespace) is None and not restart.done():
        await asyncio.sleep(0.05)
    assert view.get(namespace, "a") == "python -V"
    assert str(view.error(namespace)).startswith(
        f"watch rayjobs.ray.io in namespace {namespace}: can't talk to the API server: "
    )
    await restart
    await merge_patch(client, RAYJOBS, namespace, "a", {"spec": {"entrypoint": "python -c 1"}}, timeout=20)
    await shows(view, {"a": "python -c 1"}, namespace)
    assert view.age(namespace) < 60
    await view.stop()
