"""A user's own template for one group or for the submitter, on top of the pod that is built for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import Problem
from ..pod.account import with_one_service_account
from ..pod.checks import metadata_problems, pod_spec_problems
from ..pod.containers import LISTS
from ..pod.environment import with_container_renamed
from ..pod.merge import merge_pod_spec
from ..pod.resources import resources_of, with_gpu_names, with_sides_agreeing
from ..pod.template import PodTemplate
from ..settings import Settings
from ..wire import K8sPod, Manifest


def overlay_problems(own: K8sPod, path: str) -> Iterator[Problem]:
    """What is wrong with a template as it was written."""
    yield from pod_spec_problems(own.pod_spec, f"{path}.podSpec")
    yield from metadata_problems(own.labels, own.annotations, f"{path}.metadata")


def with_overlay(built: PodTemplate, own: K8sPod, main: str, task_primary: str, settings: Settings) -> PodTemplate:
    """The pod template with a user's own on top.

    Args:
        built: What is built without it.
        own: A template without `overlay_problems`.
        main: Its container that goes over the primary one; "" where all of its containers are sidecars.
        task_primary: The name that the primary container had in the task's pod.
        settings: The platform's settings.
    """
    overlay = _renamed(own.pod_spec, main, built.primary, task_primary)
    return replace(
        built,
        spec=_merged(built.spec, with_gpu_names(with_one_service_account(overlay), settings), built.primary),
        labels={**built.labels, **own.labels},
        annotations={**built.annotations, **own.annotations},
    )


def _renamed(spec: Manifest, main: str, primary: str, task_primary: str) -> Manifest:
    """The template's pod spec with its main container, and references to it, under the primary's name (design D18)."""
    own = {container.get("name") for field in LISTS for container in spec.get(field) or []}
    for old in filter(None, (main, "" if task_primary in own else task_primary)):
        spec = with_container_renamed(spec, old, primary)
    if main:
        spec["containers"] = [{**c, "name": primary} if c.get("name") == main else c for c in spec["containers"]]
    return spec


def _merged(spec: Manifest, overlay: Manifest, primary: str) -> Manifest:
    """The pod spec with the overlay's on top, resources that were given on one side settled (design D19)."""
    merged = merge_pod_spec(spec, overlay)
    for field in LISTS:
        known = {c["name"] for c in spec.get(field) or []}
        given = {c["name"]: resources_of(c) for c in overlay.get(field) or [] if c.get("name") in known}
        if merged.get(field):
            merged[field] = [_settled(c, given.get(c["name"], {})) for c in merged[field]]
    if merged.get("containers"):  # D8 (design), whatever a `$patch` made of the order
        merged["containers"] = sorted(merged["containers"], key=lambda c: bool(c["name"] != primary))
    return merged


def _settled(container: Manifest, given: Manifest) -> Manifest:
    resources = resources_of(container)
    return {**container, "resources": with_sides_agreeing(resources, given)} if resources else container
