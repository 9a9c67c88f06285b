"""What is read out of an answer: warnings, and the schema of a kind."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.kube import (
    PODS,
    RAYJOBS,
    ApiError,
    ApiKubeClient,
    Forbidden,
    Resource,
    Unavailable,
    UnknownResource,
)

from .samples import rayjob
from .scripted import Reply, ScriptedServer, answer, failure


async def test_warnings_of_the_server_are_handed_on(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """Quotes and backslashes come as the server meant them, several headers in their order."""
    headers = [("Warning", r'299 - "unknown field \"spec.a\""'), ("Warning", '299 - "b", 299 k8s "c"')]
    server.replies.append(answer({"kind": "RayJob"}, 201, headers))
    created = await scripted.create(RAYJOBS, "ns", rayjob("j"))
    assert created.manifest == {"kind": "RayJob"}
    assert created.warnings == ('unknown field "spec.a"', "b", "c")


def _document(**kinds: list[dict[str, str]]) -> dict[str, object]:
    """An OpenAPI document whose schemas are of these kinds."""
    schemas = {name: {"title": name, "x-kubernetes-group-version-kind": kind} for name, kind in kinds.items()}
    return {"openapi": "3.0.0", "components": {"schemas": {**schemas, "of no kind": {"title": "?"}}}}


RAYJOB_KIND = {"group": "ray.io", "kind": "RayJob", "version": "v1"}


@pytest.mark.parametrize(
    ("resource", "kind", "path"),
    [
        pytest.param(RAYJOBS, RAYJOB_KIND, "/openapi/v3/apis/ray.io/v1", id="of a group"),
        pytest.param(PODS, {"group": "", "kind": "Pod", "version": "v1"}, "/openapi/v3/api/v1", id="of the core API"),
    ],
)
async def test_a_schema_is_found_by_its_kind(
    scripted: ApiKubeClient, server: ScriptedServer, resource: Resource, kind: dict[str, str], path: str
) -> None:
    """Among all of its group and version, whatever the server calls it."""
    other = {**kind, "kind": "Another"}
    server.replies.append(answer(_document(a=[other], b=[{**kind, "version": "v2"}, kind])))
    assert (await scripted.schema(resource, kind["kind"]))["title"] == "b"
    assert [(seen.method, seen.path) for seen in server.seen] == [("GET", path)]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        pytest.param(answer("404 page not found", 404), UnknownResource, id="no such group"),
        pytest.param(answer(_document(a=[{**RAYJOB_KIND, "kind": "RayCluster"}])), UnknownResource, id="no such kind"),
        pytest.param(answer({"openapi": "3.0.0"}), UnknownResource, id="no schemas at all"),
        pytest.param(failure(403, "Forbidden", 'cannot get path "/openapi/v3"'), Forbidden, id="no right"),
        pytest.param(answer("<html>"), Unavailable, id="no JSON"),
    ],
)
async def test_a_schema_that_is_not_there(
    scripted: ApiKubeClient, server: ScriptedServer, reply: Reply, error: type[ApiError]
) -> None:
    """Each fault is an error of this package that names what was asked."""
    server.replies.append(reply)
    with pytest.raises(error, match="^get /openapi/v3/apis/ray.io/v1: "):
        await scripted.schema(RAYJOBS, "RayJob")
