"""Checks of what a user writes: each takes a value and its path and gives the problems, with what to write instead.

None is unset and always fine. Which field needs which check stands in `config`; pod templates have `podtemplate`.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flytekit.core.resources import Resources

from ..errors import Problem, up_to_value
from ..quantity import is_quantity, parse_quantity
from ..syntax import is_dns_label, is_label_key, is_label_value

INT32_MAX = 2**31 - 1
RESOURCE_NAMES = {
    "cpu": "cpu",
    "mem": "memory",
    "gpu": "nvidia.com/gpu",
    "ephemeral_storage": "ephemeral-storage",
}
"""Field of flytekit's Resources -> Kubernetes resource name, as flytekit's `pod_spec_from_resources` has them."""

LABEL_VALUE_RULE = "use letters, digits, '-', '_' and '.', begin and end with a letter or digit, at most 63"
_MAX_SHOWN = 80
_LONG_NUMBER = 10**_MAX_SHOWN
GROUP_NAME_RULE = "use letters, digits and '-', begin and end with a letter or digit, at most 63"
_MAX_DEPTH = 50
_FIXED = {"apiVersion": "ray.io/v1", "kind": "RayJob"}
_WHOLE = re.compile(r"\s*\d+\s*", re.ASCII)
_PARAMETER = re.compile(r"[A-Za-z][-A-Za-z0-9]*", re.ASCII)


def shown(value: Any) -> str:
    """The value as an error shows it: short, with its type where that is the news."""
    if isinstance(value, int) and abs(value) > _LONG_NUMBER:  # Python refuses to write very long ones
        return "a number of more than 80 digits"
    if isinstance(value, (str, int, float)):
        return f"{_cut(repr(value))} ({type(value).__name__})"
    return type_of(value)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def type_of(value: Any) -> str:
    """The value's type, as an error names it where the value may be, or hold, a secret."""
    return "None" if value is None else with_article(type(value).__name__)


def with_article(noun: str) -> str:
    """The noun after `a` or `an`."""
    return f"{'an' if noun[0] in 'aeiouAEIO' else 'a'} {noun}"


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
    elif not is_group_name(value.replace("_", "-")):
        yield Problem(path, f"is {_cut(repr(value))}", GROUP_NAME_RULE)


def is_group_name(text: str) -> bool:
    """Whether KubeRay can use the text as a worker group's name."""
    return text.isascii() and is_dns_label(text.lower())


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
        yield Problem(path, f"is {shown(value)}", LABEL_VALUE_RULE)


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
        number = shown(value) if abs(value) > _LONG_NUMBER else value
        yield Problem(path, f"is {number}", f"write a number from {least} to {INT32_MAX}")


def _without_quotes(value: Any) -> str:
    return f": {value.strip()}, without quotes" if isinstance(value, str) and _WHOLE.fullmatch(value) else ""


def seconds(path: str, value: Any) -> Iterator[Problem]:
    """The problem of a value that is neither a timedelta nor a number of seconds, of one second or more."""
    if isinstance(value, datetime.timedelta):
        value = math.ceil(value.total_seconds())
    elif value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        remedy = "write a datetime.timedelta, or a whole number of seconds" + _without_quotes(value)
        yield Problem(path, f"is {shown(value)}", remedy)
        return
    yield from whole_number(path, value, least=1)


def texts(path: str, value: Any, *, secret: bool = False) -> Iterator[Problem]:
    """The problems of a value that is no mapping of text to text; of what may be secret only types are shown."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                yield Problem(_at(path, key), f"has the key {shown(key)}", _as_key(key))
            if not isinstance(item, str):
                remedy = "write text in quotes" if secret else f"write text{_as_text(item)}"
                yield Problem(_at(path, key), f"is {type_of(item) if secret else shown(item)}", remedy)
    elif value is not None:
        yield Problem(path, f"is {type_of(value)}", 'write a dict of text to text, such as {"key": "value"}')


def _at(path: str, key: Any) -> str:
    return f"{path}[{up_to_value(key)!r}]" if isinstance(key, str) else f"{path}[{up_to_value(repr(key))}]"


def _as_key(key: Any) -> str:
    return f'write the key as text: "{up_to_value(str(key))}"'


def start_params(path: str, value: Any) -> Iterator[Problem]:
    """The problems of a value that can't be parameters of `ray start`: KubeRay puts `--` before each name."""
    found = [*texts(path, value)]
    yield from found
    for name in value if value and not found else ():
        if not _PARAMETER.fullmatch(name):
            meant = name.lstrip("-").replace("_", "-")
            remedy = f"write {meant}" if _PARAMETER.fullmatch(meant) else "`ray start --help` lists them"
            yield Problem(f"{path}[{name!r}]", "is no parameter of ray start", remedy)


def label_map(path: str, value: Any) -> Iterator[Problem]:
    """The problems of a value that can't be the labels of a pod."""
    yield from _metadata(path, value)
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if isinstance(item, str) and not is_label_value(item):
            yield Problem(f"{path}[{key!r}]", f"is {shown(item)}", LABEL_VALUE_RULE)


def annotation_map(path: str, value: Any) -> Iterator[Problem]:
    """The problems of a value that can't be the annotations of a pod."""
    yield from _metadata(path, value)


def _metadata(path: str, value: Any) -> Iterator[Problem]:
    yield from texts(path, value)
    for key in value if isinstance(value, Mapping) else ():
        if isinstance(key, str) and not is_label_key(key):
            yield Problem(f"{path}[{key!r}]", "is no key of Kubernetes", "write [prefix.example.com/]name")


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
        yield Problem(path, f"is {type_of(value)}", "write a dict")
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
                yield Problem(path, f"has the key {shown(key)}", _as_key(key))
            place = f"{path}.{key}" if str(key).isidentifier() else _at(path, key)
            yield from _json(place, item, within)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _json(f"{path}[{index}]", item, within)
    elif isinstance(value, float) and not math.isfinite(value):
        yield Problem(path, f"is {value}", "JSON knows only finite numbers")
    elif value is not None and not isinstance(value, (str, bool, int, float)):
        what = f"is {type_of(value)}"
        yield Problem(path, what, "write text, numbers, bools, None, lists and dicts of them")


def ray_job_patch(path: str, value: Any) -> Iterator[Problem]:
    """The problems of a value that can't be merged into a RayJob, or would be without effect."""
    found = list(json_mapping(path, value))
    yield from found
    for key, item in value.items() if value and not found else ():
        if key in ("metadata", "spec"):
            if not isinstance(item, Mapping):
                yield Problem(f"{path}.{key}", f"is {type_of(item)}", "write a dict")
            elif key == "metadata" and (fixed := sorted({"name", "namespace"} & item.keys())):
                yield Problem(f"{path}.{key}.{fixed[0]}", "can't be chosen", "leave it out: Flyte finds the job by it")
        elif _FIXED.get(key, item) != item:
            yield Problem(f"{path}.{key}", f"is {shown(item)}", f"leave it out: it is {_FIXED[key]}")
        elif key not in _FIXED:
            yield Problem(f"{path}.{key}", "is no field of a RayJob", 'write it under "spec"')


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
    """A problem for each resource with requests that don't go with its limit: Kubernetes refuses the pod."""
    for name, value in requests.items():
        limit = limits.get(name)
        if not (is_quantity(value) and is_quantity(limit)):  # a template's own are checked with the pod
            continue
        if parse_quantity(value) > parse_quantity(limit):
            yield Problem(path, f"asks {value} of {name}, above the limit of {limit}", "raise the limit to it")
        elif "/" in name and parse_quantity(value) != parse_quantity(limit):
            what = f"asks {value} of {name}, below the limit of {limit}"
            yield Problem(path, what, "write the same: it can't be shared")


def quantities(value: Resources | None) -> dict[str, Any]:
    """The resources by their Kubernetes names, each as the user wrote it."""
    found = {RESOURCE_NAMES[field]: getattr(value, field, None) for field in RESOURCE_NAMES}
    return {name: quantity for name, quantity in found.items() if quantity is not None}
