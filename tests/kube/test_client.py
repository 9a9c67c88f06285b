"""What `KubeClient` builds out of its calls: whole lists."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.kube import PODS, RAYJOBS, ApiKubeClient, Resource, Selector

from .scripted import ScriptedServer, answer


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        pytest.param(RAYJOBS, "rayjobs.ray.io", id="with its group"),
        pytest.param(PODS, "pods", id="the core group has no name"),
    ],
)
def test_a_resource_is_called_as_in_rbac(resource: Resource, expected: str) -> None:
    """Texts name it as a Role does."""
    assert str(resource) == expected


async def test_a_list_follows_its_pages(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """All items of all pages come, each page asked for with the token of the one before."""
    server.replies += [
        answer({"items": [{"a": 1}], "metadata": {"resourceVersion": "5", "continue": "t1"}}),
        answer({"items": None, "metadata": {"resourceVersion": "5", "continue": "t2"}}),
        answer({"items": [{"a": 2}], "metadata": {"resourceVersion": "5"}}),
    ]
    assert await scripted.list(PODS, "ns", Selector("a=b", "status.phase=Failed")) == [{"a": 1}, {"a": 2}]
    selected = {"labelSelector": "a=b", "fieldSelector": "status.phase=Failed", "limit": "500"}
    assert [seen.query for seen in server.seen] == [
        selected,
        {**selected, "continue": "t1"},
        {**selected, "continue": "t2"},
    ]
