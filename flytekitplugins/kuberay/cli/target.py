"""Which cluster the arguments mean, and which of its RayJobs: by name, or by Flyte's execution."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import kube
from ..cluster.names import ATTEMPT, ATTEMPT_KEY, EXECUTION_LABEL, MANAGED_BY, MANAGER, OURS, annotation_of
from ..errors import KubeRayError, Problem, ProblemsError
from ..settings import Settings, load_settings
from ..wire import Manifest

_OURS = kube.Selector(labels=OURS)
_WHAT_IS_LEFT = "; of a task that failed the diagnosis stands beside its outputs (kuberay-diagnosis.txt)"


class NotThereError(KubeRayError):
    """No RayJob is there that the arguments mean."""


@dataclass(frozen=True)
class Target:
    """A RayJob of this package."""

    namespace: str
    name: str
    uid: str
    key: str  # of the attempt, by which its pods are found
    task: str
    execution: str  # as project/domain/name
    node: str
    attempt: str
    by_propeller: bool  # which may begin another attempt when this one is lost

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def settings_of(arguments: argparse.Namespace, problems: Sequence[Problem] = ()) -> Settings:
    """The platform's settings.

    Args:
        arguments: With the options of each command that asks a cluster.
        problems: What else is wrong with the arguments.

    Raises:
        ProblemsError: Something in files or arguments can't be used; all problems at once.
    """
    found = list(problems)
    if "" in arguments.namespace:
        found.append(Problem("--namespace", "is empty", "name one, or leave the option out for all"))
    try:
        settings = load_settings([Path(name) for name in arguments.config] if arguments.config else None)
    except ProblemsError as error:
        raise ProblemsError([*found, *error.problems]) from error
    if found:
        raise ProblemsError(found)
    return settings


async def opened(arguments: argparse.Namespace, settings: Settings, command: str) -> kube.ApiKubeClient:
    """A client of the cluster that arguments and settings mean.

    Raises:
        AccessError: There is no usable way to it.
    """
    own = settings.kuberay
    kubeconfig, context = arguments.kubeconfig or own.kubeconfig or "", arguments.context or own.context or ""
    return await kube.ApiKubeClient.open(kubeconfig, context, user_agent=f"{MANAGER}-{command}")


def name_problems(arguments: argparse.Namespace) -> list[Problem]:
    """What is wrong with NAME, `name` or `namespace/name`, or with the execution in its place."""
    if arguments.name is None:
        empty = Problem("--execution", "is empty", "write its id, or PROJECT/DOMAIN/ID")
        return [] if arguments.execution.strip("/") else [empty]
    parts = arguments.name.split("/")
    if not all(parts) or len(parts) > 2:
        return [Problem("NAME", f"is {arguments.name!r}", "write it as NAME or NAMESPACE/NAME")]
    if len(parts) == 2 and arguments.namespace:
        return [Problem("--namespace", "NAME has a namespace already", "leave one of them out")]
    return []


async def named(client: kube.ApiKubeClient, arguments: argparse.Namespace, settings: Settings) -> Target:
    """The RayJob of that name: in the namespaces that are named, else in the kubeconfig's, else anywhere.

    Raises:
        NotThereError: There is none.
        KubeRayError: It is not of this package, or may not be looked for.
        ProblemsError: There are several.
    """
    namespace, _, name = arguments.name.rpartition("/")
    places: list[str] = [namespace] if namespace else sorted({*arguments.namespace})
    try:
        found = await _gotten(client, name, places or [client.access.namespace])
    except kube.Forbidden as error:
        if places:
            raise
        here = f"you may not look in namespace {client.access.namespace}, the kubeconfig's"
        raise KubeRayError(f"{here}; write NAMESPACE/NAME: {error}") from error
    if not found and not places:
        places = list(settings.kuberay.namespaces)
        found = await (_gotten(client, name, places) if places else _anywhere(client, name))
    if not found:
        raise NotThereError(f"there is no RayJob {name} in {_where(places)}{_WHAT_IS_LEFT}")
    targets = [_target_of(manifest) for manifest in found]
    if len(targets) > 1:
        names = ", ".join(map(str, targets))
        raise ProblemsError([Problem("NAME", f"{name} is the name of several: {names}", "write NAMESPACE/NAME")])
    if (found[0]["metadata"].get("labels") or {}).get(MANAGED_BY) != MANAGER:
        raise KubeRayError(f"RayJob {targets[0]} is not of this package: it has no label {MANAGED_BY}; use kubectl")
    return targets[0]


async def all_ours(client: kube.KubeClient, namespaces: Iterable[str]) -> AsyncIterator[Manifest]:
    """All RayJobs of this package, in these namespaces or everywhere, page by page: there may be many thousands.

    Raises:
        KubeRayError: They may not be looked for.
    """
    places: list[str | None] = [*sorted({*namespaces})] or [None]
    for place in places:
        try:
            async for page in client.pages(kube.RAYJOBS, place, _OURS):
                for job in page.items:
                    yield job
        except kube.Forbidden as error:
            if place is None:
                raise KubeRayError(f"you may not look everywhere; name yours with --namespace: {error}") from error
            raise


async def of_execution(client: kube.ApiKubeClient, arguments: argparse.Namespace, settings: Settings) -> list[Target]:
    """The RayJobs of an execution, by node and attempt.

    Raises:
        NotThereError: There is none.
        KubeRayError: They may not be looked for.
    """
    places = sorted({*(arguments.namespace or settings.kuberay.namespaces)})
    wanted = arguments.execution.strip("/")
    targets = [_target_of(job) async for job in all_ours(client, places) if wanted in _executions_of(job)]
    if not targets:
        raise NotThereError(f"there is no RayJob of execution {wanted} in {_where(places)}{_WHAT_IS_LEFT}")
    return sorted(targets, key=lambda each: (each.node, int(each.attempt or 0), str(each)))


async def _gotten(client: kube.KubeClient, name: str, namespaces: Iterable[str]) -> list[Manifest]:
    found = []
    for namespace in namespaces:
        try:
            found.append(await client.get(kube.RAYJOBS, namespace, name))
        except kube.NotFound:
            continue
    return found


async def _anywhere(client: kube.ApiKubeClient, name: str) -> list[Manifest]:
    try:
        return await client.list(kube.RAYJOBS, None, replace(_OURS, fields=f"metadata.name={name}"))
    except kube.Forbidden as error:
        here = f"there is no RayJob {name} in namespace {client.access.namespace}"
        raise KubeRayError(f"{here}, and you may not look everywhere; write NAMESPACE/NAME: {error}") from error


def _where(places: Sequence[str]) -> str:
    return f"namespace {', '.join(places)}" if places else "any namespace"


def _executions_of(job: Manifest) -> set[str]:
    """The names under which its execution is known."""
    execution = annotation_of(job, "execution")
    label = (job["metadata"].get("labels") or {}).get(EXECUTION_LABEL, "")
    return {execution, execution.rpartition("/")[2], label} - {""}


def _target_of(job: Manifest) -> Target:
    metadata = job["metadata"]
    labels = metadata.get("labels") or {}
    return Target(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        key=labels.get(ATTEMPT_KEY, ""),
        task=annotation_of(job, "task"),
        execution=annotation_of(job, "execution"),
        node=annotation_of(job, "node"),
        attempt=labels.get(ATTEMPT, ""),
        by_propeller=EXECUTION_LABEL in labels,
    )
