"""A pod template that a user wrote for a Ray group or the submitter: as plain data, and what is wrong with it.

The template is flytekit's PodTemplate, with a V1PodSpec or a dict of Kubernetes' camelCase names in it, or such a dict
alone. Nothing here loads `kubernetes`: its models tell their field names themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from flytekit.core.pod_template import PRIMARY_CONTAINER_DEFAULT_NAME, PodTemplate
from flytekit.core.resources import Resources
from flytekit.image_spec.image_spec import ImageSpec

from . import checks
from .. import schema
from ..errors import Problem

CONTAINER_FIELDS = ("initContainers", "containers")
"""The lists of a pod spec whose containers may have an image that Flyte builds."""

PodTemplateLike: TypeAlias = PodTemplate | Mapping[str, Any]
"""flytekit's PodTemplate, or a pod spec as a dict of camelCase names."""


def pod_spec_of(template: PodTemplateLike) -> dict[str, Any]:
    """The template's pod spec as plain data of its own: models by their camelCase names, less what is None in them."""
    spec = plain(template.pod_spec if isinstance(template, PodTemplate) else template)
    return spec if isinstance(spec, dict) else {}


def primary_of(template: PodTemplateLike) -> str:
    """The name of the template's primary container, "" for none."""
    return template.primary_container_name if isinstance(template, PodTemplate) else ""


def plain(value: Any) -> Any:
    """The value in new dicts and lists, Kubernetes' models by their camelCase names, less what is None in them.

    Source: kubernetes' ApiClient.sanitize_for_serialization.
    """
    names = getattr(value, "attribute_map", None)
    if names is not None:
        found = {name: getattr(value, attribute) for attribute, name in names.items()}
        return {name: plain(item) for name, item in found.items() if item is not None}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def ray_container_of(pod_spec: Mapping[str, Any], names: Iterable[str], sidecars: Collection[str] = ()) -> int | None:
    """The place of the Ray container among the containers, None where all of them are sidecars (D2 of the design).

    It is the one of the first name that one has, else the only one, if it has no image and is none of the sidecars.

    Args:
        pod_spec: Of a group's template.
        names: The template's primary container, ray-head or ray-worker, and the task's own primary container where
            it is known; "" names none.
        sidecars: The names of the other containers of the task's pod, where they are known.
    """
    containers = pod_spec.get("containers") or []
    places = {each["name"]: place for place, each in enumerate(containers) if each.get("name")}  # `$patch` has none
    named = [places[name] for name in names if name in places]
    alone = [place for name, place in places.items() if name not in sidecars and not containers[place].get("image")]
    return next(iter(named or (alone if len(places) == 1 else [])), None)


def with_resources(
    pod_spec: Mapping[str, Any], index: int | None, ray_name: str, requests: Resources | None, limits: Resources | None
) -> dict[str, Any]:
    """The pod spec with the resources in its Ray container; where they name a key they win, all else stays (D17).

    Args:
        pod_spec: Of a group's template.
        index: Of the Ray container, None for one to be added.
        ray_name: The name of a container to be added.
        requests: One side alone stands for both, as in flytekit's `pod_spec_from_resources`.
        limits: The other side.
    """
    containers = list(pod_spec.get("containers") or [])
    if index is None:
        index = len(containers)
        containers.append({"name": ray_name})
    resources = _merged_resources(containers[index].get("resources") or {}, requests, limits)
    containers[index] = {**containers[index], "resources": resources}
    return {**pod_spec, "containers": containers}


def _merged_resources(base: Mapping[str, Any], requests: Resources | None, limits: Resources | None) -> dict[str, Any]:
    given = {"requests": checks.quantities(requests), "limits": checks.quantities(limits)}
    merged = {**base}
    for side, other in (("requests", "limits"), ("limits", "requests")):
        have = base.get(side) or {}
        # a side that was not given follows the other, but never changes what the template says
        found = {**have, **given[side]} if given[side] else {**given[other], **have}
        if found:
            merged[side] = found
    return merged


def group_problems(
    path: str, template: Any, ray_name: str, requests: Resources | None, limits: Resources | None
) -> Iterator[Problem]:
    """The problems of a group's template and resources, alone and together; `path` is the group's."""
    found = [*problems_of(f"{path}.pod_template", template, ray_name), *checks.resources(path, requests, limits)]
    yield from found
    if found or template is None or (requests is None and limits is None):
        return
    spec = pod_spec_of(template)
    index = ray_container_of(spec, (primary_of(template), ray_name))
    if index is not None:
        container = with_resources(spec, index, ray_name, requests, limits)["containers"][index]
        merged = container["resources"]
        yield from checks.over_limits(f"{path}.requests", merged.get("requests", {}), merged.get("limits", {}))


def task_problems(template: Any) -> Iterator[Problem]:
    """The problems of the task's own template where its pod spec is a dict; of the others flytekit takes care."""
    if not isinstance(template, PodTemplate) or not isinstance(template.pod_spec, Mapping):
        return
    spec = dict(template.pod_spec)
    for field in CONTAINER_FIELDS:
        if isinstance(spec.get(field), list):
            spec[field] = [_without_image_spec(container) for container in spec[field]]
    yield from problems_of("pod_template", replace(template, pod_spec=spec))


def _without_image_spec(container: Any) -> Any:
    """The container less an image that Flyte builds: in the task's own template it may be one."""
    if not isinstance(container, Mapping) or not isinstance(container.get("image"), ImageSpec):
        return container
    return {key: value for key, value in container.items() if key != "image"}


def problems_of(path: str, template: Any, ray_name: str = "") -> Iterator[Problem]:
    """The problems of a template, None being fine.

    Args:
        path: Of the template, in the user's terms.
        template: What the user gave.
        ray_name: ray-head or ray-worker; "" where no Ray container is looked for, in the submitter's template.
    """
    if template is None:
        return
    spec = template
    if isinstance(template, PodTemplate):
        yield from checks.label_map(f"{path}.labels", template.labels)
        yield from checks.annotation_map(f"{path}.annotations", template.annotations)
        yield from checks.text(f"{path}.primary_container_name", template.primary_container_name)
        path, spec = f"{path}.pod_spec", template.pod_spec
    if isinstance(spec, Mapping) or (isinstance(template, PodTemplate) and type(spec).__name__ == "V1PodSpec"):
        found = list(_spec_problems(path, spec))
        yield from found or _primary_problems(path, template, ray_name)
    else:
        yield Problem(path, f"is {checks.type_of(spec)}", "write PodTemplate(pod_spec=V1PodSpec(...)), or a dict")


def _spec_problems(path: str, given: Any) -> Iterator[Problem]:
    try:
        spec = plain(given)
    except RecursionError:
        yield Problem(path, "is nested too deep", "does it hold itself?")
        return
    if whole := [key for key in ("spec", "metadata", "template") if key in spec]:
        remedy = "write what stands under its spec; labels go into a PodTemplate"
        yield Problem(path, f"is a whole Pod or PodTemplate, with {whole[0]}", remedy)
        return
    found = list(_image_problems(path, spec)) or list(checks.json_mapping(path, spec))
    yield from found or [*schema.name_problems(spec, path), *schema.type_problems(spec, path)]


def _image_problems(path: str, spec: Mapping[str, Any]) -> Iterator[Problem]:
    for field in CONTAINER_FIELDS:
        containers = spec.get(field)
        for index, container in enumerate(containers if isinstance(containers, list) else []):
            image = container.get("image") if isinstance(container, dict) else None
            if image is not None and not isinstance(image, str):
                remedy = "write text; Flyte builds an ImageSpec only for the task's own container_image"
                yield Problem(f"{path}.{field}[{index}].image", f"is {checks.shown(image)}", remedy)


def _primary_problems(path: str, template: PodTemplateLike, ray_name: str) -> Iterator[Problem]:
    """The problem of a primary container that is named and not there; nobody wrote the default name."""
    primary = primary_of(template)
    spec = pod_spec_of(template)
    names = [str(container.get("name", "without a name")) for container in spec.get("containers") or []]
    if not names or not ray_name or primary in ("", PRIMARY_CONTAINER_DEFAULT_NAME):
        return
    if ray_container_of(spec, (primary, ray_name)) is None:
        what = f"is {primary!r}, but the containers are {', '.join(names)}"
        place = path.removesuffix(".pod_spec") + ".primary_container_name"
        yield Problem(place, what, f"name one of them, or call Ray's container {ray_name}")
