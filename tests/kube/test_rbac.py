"""deploy/rbac.yaml lets the connector, and who sweeps, do all that they do, and nothing in it could go.

The tests act as its ServiceAccount, with a token that a real kube-apiserver issued, in one role at a time.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio.client import ApiClient, AuthenticationV1TokenRequest, CoreV1Api, V1TokenRequestSpec

from flytekitplugins.kuberay.kube import (
    EVENTS,
    POD_TEMPLATES,
    PODS,
    RAYJOBS,
    ApiKubeClient,
    Forbidden,
    Manifest,
    NotFound,
    Resource,
)

from tests.api import ApiServer, fresh_namespace
from tests.flyte_workflows import FLYTE_WORKFLOWS, RUNNING, flyte_workflow, served_flyte_workflows

from .admin import may, merge_patch
from .conftest import KubeconfigOf
from .samples import core, pod_spec, rayjob

ROOT = Path(__file__).parents[2]
DOCUMENTS = list(yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text()))
RULES: dict[str, list[Manifest]] = {
    document["metadata"]["name"]: document["rules"] for document in DOCUMENTS if document["kind"] == "ClusterRole"
}
CONNECTOR, TERMINAL, SWEEP = "flyte-kuberay", "flyte-kuberay-terminal", "flyte-kuberay-sweep"
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts")
NARROW = {
    "Role": Resource("rbac.authorization.k8s.io", "v1", "roles"),
    "RoleBinding": Resource("rbac.authorization.k8s.io", "v1", "rolebindings"),
}
Right = tuple[str, str]  # resource as RBAC names it, verb
Do = Callable[[ApiKubeClient, str], Awaitable[object]]


async def opened(client: ApiKubeClient, resource: Resource) -> None:
    """A watch of the whole cluster, until it is accepted."""
    version = (await client.list_page(resource, None, limit=1)).resource_version
    async with aclosing(client.watch(resource, None, resource_version=version)) as events:
        await anext(events)


async def asked(client: ApiKubeClient, namespace: str) -> None:
    """A question to a Service, which is not there."""
    with suppress(NotFound):
        await anext(client.stream_service(namespace, "head-svc:8265", "api/jobs/"))


CONNECTOR_CALLS: dict[Right, Do] = {
    ("rayjobs", "create"): lambda c, ns: c.create(RAYJOBS, ns, rayjob(f"j{uuid.uuid4().hex[:8]}")),
    ("rayjobs", "get"): lambda c, ns: c.get(RAYJOBS, ns, "job"),
    ("rayjobs", "list"): lambda c, ns: c.list(RAYJOBS, None),
    ("rayjobs", "watch"): lambda c, ns: opened(c, RAYJOBS),
    ("rayjobs", "delete"): lambda c, ns: c.delete(RAYJOBS, ns, "held"),
    ("pods", "list"): lambda c, ns: c.list(PODS, None),
    ("pods", "watch"): lambda c, ns: opened(c, PODS),
    ("pods/log", "get"): lambda c, ns: c.read_log(ns, "pod"),
    ("events", "list"): lambda c, ns: c.list(EVENTS, ns),
    ("podtemplates", "get"): lambda c, ns: c.get(POD_TEMPLATES, ns, "template"),
}
SWEEP_CALLS: dict[Right, Do] = {
    ("rayjobs", "list"): lambda c, ns: c.list(RAYJOBS, None),
    ("rayjobs", "delete"): lambda c, ns: c.delete(RAYJOBS, ns, "held"),
    ("flyteworkflows", "get"): lambda c, ns: c.get(FLYTE_WORKFLOWS, ns, "workflow"),
}
TERMINAL_CALLS: dict[Right, Do] = {
    ("rayjobs", "get"): lambda c, ns: c.get(RAYJOBS, ns, "job"),
    ("rayjobs", "list"): lambda c, ns: c.list(RAYJOBS, None),
    ("rayjobs", "delete"): lambda c, ns: c.delete(RAYJOBS, ns, "held"),
    ("pods", "list"): lambda c, ns: c.list(PODS, ns),
    ("pods/log", "get"): lambda c, ns: c.read_log(ns, "pod"),
    ("events", "list"): lambda c, ns: c.list(EVENTS, ns),
    ("services/proxy", "get"): asked,
}
CALLS = {CONNECTOR: CONNECTOR_CALLS, TERMINAL: TERMINAL_CALLS, SWEEP: SWEEP_CALLS}
EACH_ROLE = pytest.mark.parametrize("connector", CALLS, indirect=True)
EACH_RIGHT = pytest.mark.parametrize(
    ("connector", "right"),
    [pytest.param(role, right, id=f"{role}: {right[1]} {right[0]}") for role in CALLS for right in CALLS[role]],
    indirect=["connector"],
)


def without(right: Right, rules: list[Manifest]) -> list[Manifest]:
    """The rules less one verb on one resource."""
    resource, verb = right
    cut = [
        {**rule, "verbs": [each for each in rule["verbs"] if [resource] != rule["resources"] or each != verb]}
        for rule in rules
    ]
    return [rule for rule in cut if rule["verbs"]]


@dataclass(frozen=True)
class Connector:
    """Who the tests act as, in which role of the file, and how its rights are changed."""

    client: ApiKubeClient
    namespace: str
    role: str
    admin: ApiKubeClient

    async def allow(self, rules: list[Manifest]) -> None:
        """Gives it these rules; the role's copy is called as the namespace."""
        await merge_patch(self.admin, ROLES, None, self.namespace, {"rules": rules})

    async def settles(self, right: Right, expected: bool) -> None:
        """Waits until the server has taken the rules over: it does within moments."""
        resource, _, subresource = right[0].partition("/")
        (group,) = {rule["apiGroups"][0] for rule in RULES[self.role] if right[0] in rule["resources"]}
        asked, end = Resource(group, "v1", resource), time.monotonic() + 10
        while await may(self.client, right[1], asked, self.namespace, subresource=subresource) is not expected:
            assert time.monotonic() < end, f"{right} does not become {expected}"
            await asyncio.sleep(0.02)


@pytest.fixture(scope="module")
def flyte_workflows(api_server: ApiServer) -> Iterator[None]:
    """The API server serves FlyteWorkflows."""
    with served_flyte_workflows(api_server.kubeconfig):
        yield


@pytest.fixture
async def connector(
    request: pytest.FixtureRequest,
    client: ApiKubeClient,
    namespace: str,
    kubeconfig_of: KubeconfigOf,
    flyte_workflows: None,
) -> AsyncIterator[Connector]:
    """The ServiceAccount of rbac.yaml in a role of it, moved to a fresh namespace, and objects to work on."""
    role_name = getattr(request, "param", CONNECTOR)
    (account,) = (_moved(document, namespace) for document in DOCUMENTS if document["kind"] == "ServiceAccount")
    (role,) = (_moved(document, namespace) for document in DOCUMENTS if document.get("rules") == RULES[role_name])
    (binding,) = (_moved(document, namespace) for document in DOCUMENTS if document["kind"] == "ClusterRoleBinding")
    await client.create(SERVICE_ACCOUNTS, namespace, account)
    await client.create(ROLES, None, role)
    await client.create(BINDINGS, None, binding)
    held = {**rayjob("held"), "metadata": {"name": "held", "finalizers": ["test/held"]}}
    await client.create(RAYJOBS, namespace, rayjob("job"))
    await client.create(RAYJOBS, namespace, held)
    await client.create(PODS, namespace, core("Pod", "pod", spec={**pod_spec(), "nodeSelector": {"no": "node"}}))
    await client.create(POD_TEMPLATES, namespace, core("PodTemplate", "template", template={"spec": pod_spec()}))
    await client.create(FLYTE_WORKFLOWS, namespace, flyte_workflow("workflow", RUNNING))
    configuration = client.access.configuration
    cluster_entry = {"certificate-authority": configuration.ssl_ca_cert}
    token = await _token(client, namespace, account["metadata"]["name"])
    own = await ApiKubeClient.open(kubeconfig_of(configuration.host, cluster_entry, {"token": token}))
    yield Connector(own, namespace, role_name, client)
    await own.close()
    await merge_patch(client, RAYJOBS, namespace, "held", {"metadata": {"finalizers": None}})
    await client.delete(BINDINGS, None, binding["metadata"]["name"])
    await client.delete(ROLES, None, role["metadata"]["name"])


def _moved(document: dict[str, Any], namespace: str) -> Manifest:
    """The document with a cluster-wide name of its own, so that it meets no other."""
    text = yaml.safe_dump(document).replace("namespace: flyte\n", f"namespace: {namespace}\n")
    moved: Manifest = yaml.safe_load(text)
    if document["kind"] != "ServiceAccount":
        moved["metadata"]["name"] = namespace
    if "roleRef" in moved:
        moved["roleRef"]["name"] = namespace
    return moved


async def _token(client: ApiKubeClient, namespace: str, account: str) -> str:
    async with ApiClient(client.access.configuration) as library:
        request = AuthenticationV1TokenRequest(spec=V1TokenRequestSpec(audiences=[]))
        answer = await CoreV1Api(library).create_namespaced_service_account_token(account, namespace, request)
        assert answer.status is not None
        return str(answer.status.token)


@pytest.mark.parametrize("role", CALLS)
def test_every_right_has_a_call(role: str) -> None:
    """Nothing stands in a role that no call of ours needs."""
    rights = [(resource, verb) for rule in RULES[role] for resource in rule["resources"] for verb in rule["verbs"]]
    assert sorted(rights) == sorted(CALLS[role])


def test_there_is_no_other_role() -> None:
    """Each is looked at here."""
    assert list(RULES) == list(CALLS)


@EACH_ROLE
async def test_all_calls_succeed_under_it(connector: Connector) -> None:
    """Nothing is needed that the file does not hold."""
    calls = CALLS[connector.role]
    await connector.settles(next(reversed(calls)), True)
    for call in calls.values():
        await call(connector.client, connector.namespace)


@EACH_RIGHT
async def test_each_right_is_needed(connector: Connector, right: Right) -> None:
    """Without it its call is Forbidden, and the text names verb, resource and namespace."""
    await connector.settles(right, True)
    await connector.allow(without(right, RULES[connector.role]))
    await connector.settles(right, False)
    with pytest.raises(Forbidden, match=f'cannot {right[1]} resource "{right[0]}"'):
        await CALLS[connector.role][right](connector.client, connector.namespace)


@EACH_ROLE
async def test_a_schema_needs_no_right(connector: Connector) -> None:
    """Who may log in may read it: what the installed CRD knows is learned without a right on CRDs."""
    await connector.allow([])
    await connector.settles(next(iter(CALLS[connector.role])), False)
    schema = await connector.client.schema(RAYJOBS, "RayJob")
    assert "rayClusterSpec" in schema["properties"]["spec"]["properties"]


@EACH_ROLE
async def test_it_may_not_do_more(connector: Connector) -> None:
    """No secrets, no pods of its own, nothing in the cluster's own objects."""
    for verb, resource in (
        ("get", Resource("", "v1", "secrets")),
        ("list", Resource("", "v1", "secrets")),
        ("create", PODS),
        ("delete", PODS),
        ("delete", Resource("ray.io", "v1", "rayclusters")),
        ("deletecollection", RAYJOBS),
        ("create", BINDINGS),
        ("get", CRDS),
        ("delete", FLYTE_WORKFLOWS),
    ):
        assert not await may(connector.client, verb, resource, connector.namespace)


def narrow_documents(tasks: str, platform: str, role: str) -> list[Manifest]:
    """The manifests of docs/connector.md for some namespaces alone: a namespace of tasks', the platform's, the role."""
    manual = (ROOT / "docs" / "connector.md").read_text(encoding="utf-8")
    text = re.findall(r"```yaml\n(.*?)```", manual.partition("### Rights in some namespaces alone\n")[2], re.DOTALL)[0]
    text = text.replace("namespace: flytesnacks-development", f"namespace: {tasks}")
    text = text.replace("namespace: flyte}", f"namespace: {platform}}}")
    return list(
        yaml.safe_load_all(
            text.replace("kind: ClusterRole, name: flyte-kuberay}", f"kind: ClusterRole, name: {role}}}")
        )
    )


async def test_rights_in_some_namespaces_alone(
    client: ApiKubeClient, namespace: str, kubeconfig_of: KubeconfigOf
) -> None:
    """As docs/connector.md narrows them: nothing elsewhere, but the PodTemplates of the platform's namespace."""
    (role,) = (_moved(document, namespace) for document in DOCUMENTS if document.get("rules") == RULES[CONNECTOR])
    await client.create(ROLES, None, role)
    async with fresh_namespace(client) as platform:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "flyte-kuberay"}}
        await client.create(SERVICE_ACCOUNTS, platform, account)
        first, *second = narrow_documents(namespace, platform, namespace)
        await client.create(NARROW["RoleBinding"], namespace, first)
        configuration = client.access.configuration
        token = await _token(client, platform, "flyte-kuberay")
        cluster_entry = {"certificate-authority": configuration.ssl_ca_cert}
        own = await ApiKubeClient.open(kubeconfig_of(configuration.host, cluster_entry, {"token": token}))
        narrowed = Connector(own, namespace, CONNECTOR, client)
        await narrowed.settles(("rayjobs", "list"), True)
        assert await own.list(RAYJOBS, namespace) == []
        with pytest.raises(Forbidden):
            await own.list(RAYJOBS, None)
        with pytest.raises(Forbidden, match='cannot get resource "podtemplates"'):
            await own.get(POD_TEMPLATES, platform, "template")
        for document in second:
            await client.create(NARROW[document["kind"]], platform, document)
        await Connector(own, platform, CONNECTOR, client).settles(("podtemplates", "get"), True)
        with pytest.raises(NotFound):
            await own.get(POD_TEMPLATES, platform, "template")
        assert not await may(own, "list", RAYJOBS, platform)
        await own.close()
    await client.delete(ROLES, None, namespace)
