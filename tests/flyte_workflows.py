"""FlyteWorkflows for the tests' API server: their CustomResourceDefinition, and the smallest objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from flytekitplugins.kuberay.kube import AlreadyExists, ApiKubeClient, KubeClient, Manifest, Resource, UnknownResource
from tests.api import run_apart

FLYTE_WORKFLOWS = Resource("flyte.lyft.com", "v1alpha1", "flyteworkflows")
RUNNING, SUCCEEDED, FAILED, ABORTED = 1, 3, 5, 6
_DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_DEFINITION: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": str(FLYTE_WORKFLOWS)},
    "spec": {
        "group": FLYTE_WORKFLOWS.group,
        "names": {"kind": "FlyteWorkflow", "plural": "flyteworkflows", "singular": "flyteworkflow"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1alpha1", "served": True, "storage": True}
            | {"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
        ],
    },
}
"""Source: flytepropeller pkg/apis/flyteworkflow/crd.go."""


def flyte_workflow(name: str, phase: int) -> Manifest:
    """A FlyteWorkflow in a phase of flytepropeller's WorkflowPhase."""
    kind = {"apiVersion": "flyte.lyft.com/v1alpha1", "kind": "FlyteWorkflow"}
    return {**kind, "metadata": {"name": name}, "spec": {}, "status": {"phase": phase}}


@contextmanager
def served_flyte_workflows(kubeconfig: str) -> Iterator[None]:
    """The API server serves FlyteWorkflows within the block; one that does already is left as it is."""
    ours = run_apart(_install(kubeconfig))
    yield
    if ours:
        run_apart(_remove(kubeconfig))


async def _install(kubeconfig: str) -> bool:
    async with await ApiKubeClient.open(kubeconfig) as client:
        try:
            await client.create(_DEFINITIONS, None, _DEFINITION)
        except AlreadyExists:
            return False
        return await _until_served(client, True)


async def _remove(kubeconfig: str) -> bool:
    async with await ApiKubeClient.open(kubeconfig) as client:
        await client.delete(_DEFINITIONS, None, str(FLYTE_WORKFLOWS))
        return await _until_served(client, False)


async def _until_served(client: KubeClient, expected: bool) -> bool:
    for _ in range(200):
        try:
            await client.list_page(FLYTE_WORKFLOWS, None)
            served = True
        except UnknownResource:
            served = False
        if served is expected:
            return True
        await asyncio.sleep(0.05)
    raise AssertionError("the API server does not follow its CustomResourceDefinitions")
