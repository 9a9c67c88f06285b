"""Checks of what a user writes: each takes a value and its path and gives the problems, with what to write instead.

None is unset and always fine. Which field needs which check stands in `config`; pod templates have `podtemplate`.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flytekit.core.resources import Resources

from ..errors import Problem
from ..quantity import is_quantity, parse_quantity
from ..syntax import is_dns_label, is_label_value

INT32_MAX = 2**31 - 1
RESOURCE_NAMES = {
    "cpu": "cpu",
    "mem": "memory",
    "gpu": "nvidia.com/gpu",
    "ephemeral_storage": "ephemeral-storage",
}
"""Field of flytekit's Resources -> Kubernetes resource name, as flytekit's `pod_spec_from_resources` has them."""

GROUP_NAME_RULE = "use letters, digits and '-', begin and end with a letter or digit, at most 63"
_MAX_DEPTH = 50


def shown(value: Any) -> str:
    """The value as an error shows it: short, with its type where that is the news."""
    if isinstance(value, (str, int, float)):
        return f"{repr(value)[:80]} ({type(value).__name__})"
    return f"a {type(value).__name__}"


def required(path: str, value: Any) -> Iterator[Problem]:
    """The problem of a value that is None."""
    if value is None:
        yield Problem(path, "is None", "write its value")


def group_name(path: str, value: Any) -> Iterator[Problem]:
    """The problem of a value that can't be a worker group's name: KubeRay lower-cases it and puts it into pod names.

    An underscore passes, since flytekitplugins-ray's own examples have some; it is for the connector to refuse.
    """
    if not isinstance(value, str):
        yield Problem(path, f"is {shown(value)}", "write text in quotes")
    elif not is_dns_label(value.lower().replace("_", "-")):
        yield Problem(path, f"is {value!r}", GROUP_NAME_RULE)


def flag(path: str, value: Any) -> Iterator[Problem]:
    """The problem of a value that is not a bool."""
    if value is not None and not isinstance(value, bool):
        yield Problem(path, f"is {shown(value)}", "write True or False")


def text(path: str, value: Any) -> Iterator[Problem]:
    """The problem of a value that is no text, or an empty one."""
    if value is not None and not isinstance(value, str):
        yield Problem(path, f"is {shown(value)}", "write text in quotes")
    elif value == "":
        yield Problem(path, "is empty", "write its value, or leave it out")


def label_value(path: str, value: Any) -> Iterator[Problem]:
    """The problem of a value that can't be a Kubernetes label's."""
    yield from text(path, value)
    if isinstance(value, str) and not is_label_value(value):
        rule = "use letters, digits, '-', '_' and '.', begin and end with a letter or digit, at most 63"
        yield Problem(path, f"is {shown(value)}", rule)


def one_of(path: str, value: Any, choices: Iterable[Any]) -> Iterator[Problem]:
    """The problem of a value that is none of the choices."""
    if value is not None and (isinstance(value, bool) or value not in tuple(choices)):
        yield Problem(path, f"is {shown(value)}", "write one of " + ", ".join(map(str, choices)))


def whole_number(path: str, value: Any, least: int = 0) -> Iterator[Problem]:
    """The problem of a value that is not a whole number from `least` on that fits into 32 bits."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        yield Problem(path, f"is {shown(value)}", f"write a whole number{_without_quotes(value)}")
    elif not least <= value <= INT32_MAX:
        yield Problem(path, f"is {value}", f"write a number from {least} to {INT32_MAX}")


def _without_quotes(value: Any) -> str:
    return f": {value.strip()}, without quotes" if isinstance(value, str) and value.strip().isdecimal() else ""


def seconds(path: str, value: Any) -> Iterator[Problem]:
    """The problem of a value that is neither a timedelta nor a number of seconds, of one second or more."""
    if isinstance(value, datetime.timedelta):
        value = math.ceil(value.total_seconds())
    elif value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        remedy = "write a datetime.timedelta, or a whole number of seconds" + _without_quotes(value)
        yield Problem(path, f"is {shown(value)}", remedy)
        return
    yield from whole_number(path, value, least=1)


def texts(path: str, value: Any) -> Iterator[Problem]:
    """The problems of a value that is no mapping of text to text."""
    if value is None:
        return
    if not isinstance(value, Mapping):
        yield Problem(path, f"is {shown(value)}", 'write a dict of text to text, such as {"key": "value"}')
        return
    for key, item in value.items():
        if not isinstance(key, str):
            yield Problem(f"{path}[{key!r}]", f"has the key {shown(key)}", f'write the key as text: "{key}"')
        if not isinstance(item, str):
            yield Problem(f"{path}[{key!r}]", f"is {shown(item)}", f"write text{_as_text(item)}")


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return f': "{str(value).lower()}"'
    return f': "{value}"' if isinstance(value, (int, float)) else ", JSON where Ray wants more"


def text_list(path: str, value: Any) -> Iterator[Problem]:
    """The problems of a value that is no list of texts."""
    if value is None:
        return
    if not isinstance(value, (list, tuple)):
        yield Problem(path, f"is {shown(value)}", 'write a list of text, such as ["data/*.bin"]')
        return
    for index, item in enumerate(value):
        if not isinstance(item, str) or not item:
            yield Problem(f"{path}[{index}]", f"is {shown(item)}", "write text in quotes")


def json_mapping(path: str, value: Any) -> Iterator[Problem]:
    """The problems of a value that is no mapping, or holds what JSON does not know; it shows no value, only types."""
    if value is not None and not isinstance(value, Mapping):
        yield Problem(path, f"is a {type(value).__name__}", "write a dict")
    else:
        yield from _json(path, value, ())


def _json(path: str, value: Any, around: tuple[int, ...]) -> Iterator[Problem]:
    """As json_mapping, of any value; `around` are the ids of the values that hold it."""
    within = (*around, id(value))
    if id(value) in around or len(around) > _MAX_DEPTH:
        yield Problem(path, "is nested too deep", "does it hold itself?")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                yield Problem(path, f"has the key {shown(key)}", f'write the key as text: "{key}"')
            place = f"{path}.{key}" if str(key).isidentifier() else f"{path}[{key!r}]"
            yield from _json(place, item, within)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _json(f"{path}[{index}]", item, within)
    elif isinstance(value, float) and not math.isfinite(value):
        yield Problem(path, f"is {value}", "JSON knows only finite numbers")
    elif value is not None and not isinstance(value, (str, bool, int, float)):
        yield Problem(path, f"is a {type(value).__name__}", "write text, numbers, bools, None, lists and dicts of them")


def resources(path: str, requests: Any, limits: Any) -> Iterator[Problem]:
    """The problems of a pair of flytekit's Resources, either of which may be None."""
    found = [*_resources(f"{path}.requests", requests), *_resources(f"{path}.limits", limits)]
    yield from found
    if not found and requests is not None and limits is not None:
        yield from over_limits(f"{path}.requests", quantities(requests), quantities(limits))


def _resources(path: str, value: Any) -> Iterator[Problem]:
    if value is None:
        return
    if not isinstance(value, Resources):
        yield Problem(path, f"is {shown(value)}", 'write flytekit.Resources(cpu="1", mem="2Gi")')
        return
    for field in dataclasses.fields(value):
        yield from _quantity(f"{path}.{field.name}", getattr(value, field.name), field.name)


def _quantity(path: str, value: Any, name: str) -> Iterator[Problem]:
    if value is None:
        return
    if isinstance(value, (list, tuple)):
        yield Problem(path, f"is a pair, {value!r}", "write the first as requests and the second as limits")
    elif not is_quantity(value) or parse_quantity(value) < 0:
        yield Problem(path, f"is {shown(value)}, no quantity", 'write one such as "500m", "2" or "4Gi"')
    elif name == "gpu" and parse_quantity(value) % 1:
        yield Problem(path, f"is {shown(value)}", "GPUs come whole")


def over_limits(path: str, requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Iterator[Problem]:
    """A problem for each resource of which more is requested than the limit allows: Kubernetes refuses the pod."""
    for name, value in requests.items():
        comparable = is_quantity(value) and is_quantity(limits.get(name))  # a template's own are checked with the pod
        if comparable and parse_quantity(value) > parse_quantity(limits[name]):
            yield Problem(path, f"asks {value} of {name}, above the limit of {limits[name]}", "raise the limit to it")


def quantities(value: Resources | None) -> dict[str, Any]:
    """The resources by their Kubernetes names, each as the user wrote it."""
    found = {RESOURCE_NAMES[field]: getattr(value, field, None) for field in RESOURCE_NAMES}
    return {name: quantity for name, quantity in found.items() if quantity is not None}
