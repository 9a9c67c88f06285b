"""The shape of a pod spec: which fields exist, and of which type, as `schema.json` says.

`tools/pod_schema.py` writes that file from the kubernetes client. `type_problems` leaves fields alone that it does not
know: a newer API server may know them. `name_problems` tells of those that look like a slip of the pen.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .errors import Problem, up_to_value
from .quantity import is_quantity

PATCH = "$patch"
"""The key of a directive of a strategic merge."""

_PLAIN = {"string": str, "integer": int, "boolean": bool}
_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "quantity": "a quantity such as 500m or 4Gi",
}
_SCALARS = (str, int, float)  # a bool is an int
_MAY_BE_SECRET = re.compile(r"\.(env|args|command)\b")
_ENV = re.compile(r"\.env(\[\d+\])?$")
_ENV_REMEDY = 'write [{"name": ..., "value": ...}]'
_REMEDY = "see the field in Kubernetes' documentation of a pod"
_MAX_SHOWN = 80
_ALIKE = 0.85  # as `container` and `containers`; fields of a kind, `hostname` and `hostnameOverride`, are less so


@functools.cache
def _schema() -> Mapping[str, Mapping[str, str]]:
    loaded: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("schema.json").read_text("utf-8"))
    return loaded


def fields_of(kind: str) -> Mapping[str, str]:
    """The fields of a Kubernetes type of schema.json, each with its own type as for `type_problems`."""
    return _schema()[kind]


def type_problems(value: Any, path: str, kind: str = "V1PodSpec") -> Iterator[Problem]:
    """What in the value is not of the Kubernetes type `kind`, with its path; null fits every type.

    Args:
        value: A pod spec, or the part of one.
        path: Where it stands, for the reader.
        kind: A type of schema.json, `[]T`, `{}T`, or string, integer, boolean, quantity, any.
    """
    if value is None or kind == "any":
        return
    if kind.startswith("[]"):
        yield from _list_problems(value, path, kind[2:])
    elif kind.startswith("{}"):
        yield from _map_problems(value, path, kind[2:])
    elif kind in _schema():
        yield from _object_problems(value, path, kind)
    elif not _fits(value, kind):
        yield _mistyped(value, path, _NAMES[kind])


def name_problems(value: Any, path: str, kind: str = "V1PodSpec") -> Iterator[Problem]:
    """A problem for each key that is nearly a field's name, or in snake_case: an API server drops such in silence.

    Args:
        value: As for `type_problems`; what is of another type is passed over.
        path: Where it stands, for the reader.
        kind: As for `type_problems`.
    """
    if kind.startswith("[]") and isinstance(value, list):
        for index, entry in enumerate(value):
            yield from name_problems(entry, f"{path}[{index}]", kind[2:])
    elif kind.startswith("{}") and isinstance(value, Mapping):
        for key, entry in value.items():
            yield from name_problems(entry, f"{path}[{key}]", kind[2:])
    elif kind in _schema() and isinstance(value, Mapping):
        known = _schema()[kind]
        for key, entry in value.items():
            name = up_to_value(str(key))
            if key not in known and (meant := _meant(name, known)):
                yield Problem(f"{path}.{name}", "is no field of Kubernetes", f"write {meant}")
            yield from name_problems(entry, f"{path}.{name}", known.get(key, "any"))


def _meant(key: str, known: Iterable[str]) -> str:
    """The field that is meant by a key that is none, "" where nothing tells."""
    import difflib  # `import flytekit` loads this module for every user

    first, *words = key.split("_")
    camel_case = first + "".join(word.title() for word in words)
    return next(iter(difflib.get_close_matches(camel_case, known, 1, _ALIKE)), camel_case if words else "")


def _fits(value: Any, kind: str) -> bool:
    if kind == "quantity":
        return is_quantity(value)
    return isinstance(value, _PLAIN[kind]) and isinstance(value, bool) == (kind == "boolean")


def _list_problems(value: Any, path: str, kind: str) -> Iterator[Problem]:
    if not isinstance(value, list):
        yield _mistyped(value, path, "a list")
        return
    for index, entry in enumerate(value):
        yield from (
            type_problems(entry, f"{path}[{index}]", kind)
            if entry is not None
            else [_mistyped(None, f"{path}[{index}]", "an entry")]
        )


def _map_problems(value: Any, path: str, kind: str) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield _mistyped(value, path, "a mapping")
        return
    for key, entry in value.items():
        if key != PATCH:  # a directive of a merge fits any map
            yield from type_problems(entry, f"{path}[{key}]", kind)


def _object_problems(value: Any, path: str, kind: str) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield _mistyped(value, path, "a mapping")
        return
    for key, entry in value.items():
        yield from type_problems(entry, f"{path}.{key}", _schema()[kind].get(key, "any"))


def _mistyped(value: Any, path: str, wanted: str) -> Problem:
    """The problem of a value; it shows a scalar where another is wanted, never what may be, or hold, a secret."""
    shown = f"a value of type {type(value).__name__}"
    if value is None or (wanted in _NAMES.values() and isinstance(value, _SCALARS) and not _MAY_BE_SECRET.search(path)):
        shown = repr(value)
    shown = shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + "..."
    return Problem(path, f"must be {wanted}, got {shown}", _ENV_REMEDY if _ENV.search(path) else _REMEDY)
