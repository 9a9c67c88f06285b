"""What tests ask of an API server and the package never does: patches, strict dry runs, and who may do what."""

from __future__ import annotations

from kubernetes.aio.client import ApiClient

from flytekitplugins.kuberay.kube import ApiKubeClient, Call, Created, KubeClient, Manifest, Resource
from flytekitplugins.kuberay.kube.answers import parsed, warnings_of
from flytekitplugins.kuberay.kube.api import _path
from flytekitplugins.kuberay.kube.exchange import Exchange, Request

_REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews")


async def merge_patch(
    client: ApiKubeClient,
    resource: Resource,
    namespace: str | None,
    name: str,
    change: Manifest,
    *,
    status: bool = False,
    timeout: float = 5.0,
) -> Manifest:
    """The object after a JSON merge patch, with `status` one of its status, as an operator writes it.

    Maps merge, lists are replaced, null removes.

    Raises:
        ApiError: By what the server answers.
    """
    path = _path(resource, namespace, name, "status" if status else "")
    call = Call("patch", str(resource), namespace or "", name)
    async with ApiClient(client.access.configuration) as library:
        library.set_default_header("Content-Type", "application/merge-patch+json")
        request = Request("PATCH", path, body=change)
        async with Exchange(client.access, library).answer(call, request, timeout) as response:
            return parsed(call, await response.read())


async def strict_dry_run(
    client: ApiKubeClient, resource: Resource, namespace: str | None, manifest: Manifest
) -> Created:
    """The object as the server would store it; nothing is stored, and an unknown field is an error.

    Raises:
        ApiError: As of a create.
    """
    call = Call("create", str(resource), namespace or "")
    query = (("fieldValidation", "Strict"), ("dryRun", "All"))
    async with ApiClient(client.access.configuration) as library:
        request = Request("POST", _path(resource, namespace), query, manifest)
        async with Exchange(client.access, library).answer(call, request, 5.0) as response:
            return Created(parsed(call, await response.read()), warnings_of(response.headers.getall("Warning", [])))


async def may(client: KubeClient, verb: str, resource: Resource, namespace: str, *, subresource: str = "") -> bool:
    """Whether RBAC lets this client do that; any user may ask about itself.

    Raises:
        ApiError: When the question itself fails.
    """
    attributes = {"verb": verb, "group": resource.group, "version": resource.version, "resource": resource.plural}
    attributes |= {"namespace": namespace, "subresource": subresource}
    kind = {"apiVersion": f"{_REVIEWS.group}/{_REVIEWS.version}", "kind": "SelfSubjectAccessReview"}
    created = await client.create(_REVIEWS, None, {**kind, "spec": {"resourceAttributes": attributes}})
    return bool(created.manifest["status"]["allowed"])
