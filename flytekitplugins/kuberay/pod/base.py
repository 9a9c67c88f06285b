"""The base PodTemplate of the cluster: which one, and how it goes under a task's pod.

Source: flyteplugins flytek8s/pod_helper.go (getBasePodTemplate, MergeBasePodSpecOntoTemplate).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..errors import Problem
from ..settings import Settings
from ..wire import FlyteTask, Manifest
from .account import with_one_service_account
from .checks import content_problems, shape_problems
from .containers import LISTS, with_each_container, without_containers
from .merge import merge_pod_spec

_MAGIC = {"initContainers": "default-init", "containers": "default"}
"""The containers of a base PodTemplate that count for every container of a list."""

_PRIMARY = "primary"
"""The one that counts for the primary container."""


def base_template_name(task: FlyteTask, settings: Settings) -> str:
    """The PodTemplate that the task or the platform names; "" for none."""
    return task.template.metadata.pod_template_name or settings.k8s.default_pod_template_name


def base_template_namespaces(task: FlyteTask, settings: Settings) -> list[str]:
    """Where the base PodTemplate is looked up, first to last."""
    return list(dict.fromkeys([task.execution.namespace, settings.kuberay.platform_namespace]))


def find_base_template(templates: Iterable[Manifest], task: FlyteTask, settings: Settings) -> Manifest | None:
    """The base PodTemplate among these objects, the task's namespace before the platform's; None where it is not."""
    name = base_template_name(task, settings)
    found = {metadata.get("namespace"): each for each in templates if (metadata := each["metadata"])["name"] == name}
    return next(
        (found[namespace] for namespace in base_template_namespaces(task, settings) if namespace in found), None
    )


def over_base(spec: Manifest, base_spec: Manifest, primary: str) -> Manifest:
    """The pod spec over the base PodTemplate's, container by container.

    Containers of the base that match nothing go, as Flyte documents: such templates carry a dummy container.

    Source: pod_helper.go MergeBasePodSpecOntoTemplate.
    """
    below = with_one_service_account(without_containers(base_spec))
    if below.get("dnsPolicy") == "ClusterFirst":  # the API server writes the default into each PodTemplate
        del below["dnsPolicy"]
    merged = merge_pod_spec(below, without_containers(spec))
    own = {field: spec[field] for field in LISTS if spec.get(field)}
    return with_each_container(
        {**merged, **own},
        lambda c, field: _merged_container(base_container(c["name"], field, base_spec, primary), c),
    )


def base_container(name: str, field: str, base_spec: Manifest, primary: str) -> Manifest:
    """What the base PodTemplate has for a container: `default`, then `primary`, then the one of its name."""
    parts = base_parts(name, field, base_spec, primary)
    merged: Manifest = {}
    for part in parts:
        merged = _merged_container(merged, part)
    return merged


def base_parts(name: str, field: str, base_spec: Manifest, primary: str) -> list[Manifest]:
    """The containers of the base PodTemplate that count for one container, lowest first."""
    by_name = {container["name"]: container for container in base_spec.get(field) or []}
    names = [_MAGIC[field], *([_PRIMARY] if field == "containers" and name == primary else [])]
    if name not in (*_MAGIC.values(), _PRIMARY):
        names.append(name)
    return [by_name[each] for each in names if each in by_name]


def _merged_container(base: Manifest, overlay: Manifest) -> Manifest:
    merged: Manifest = merge_pod_spec({"containers": [{**base, "name": overlay["name"]}]}, {"containers": [overlay]})[
        "containers"
    ][0]
    return merged


def template_spec(base: Manifest | None) -> Manifest:
    """The pod spec of a PodTemplate object; empty for none."""
    spec: Manifest = ((base or {}).get("template") or {}).get("spec") or {}
    return spec


def base_problems(task: FlyteTask, settings: Settings, base: Manifest | None) -> Iterator[Problem]:
    """What is wrong with the base PodTemplate, its absence where the task names it included."""
    named = task.template.metadata.pod_template_name
    if named and base is None:
        looked_in = " or ".join(repr(namespace) for namespace in base_template_namespaces(task, settings))
        yield Problem(
            "metadata.podTemplateName",
            f"no PodTemplate is called {named!r} in namespace {looked_in}",
            "create it there",
        )
    if base is not None:
        path = f"PodTemplate {(base.get('metadata') or {}).get('name')}: template"
        yield from shape_problems(base.get("template"), path, "V1PodTemplateSpec") or content_problems(
            template_spec(base), f"{path}.spec", directives=()
        )
