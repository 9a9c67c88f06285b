"""The Kubernetes objects that stand in settings: kinds that read them as plain data, by the types of `schema`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..schema import PATCH, fields_of
from .kinds import ANYTHING, BOOL, INTEGER, QUANTITY, TEXT, TEXT_MAP, TEXTS, Kind, Place, list_of, map_of
from .texts import DNS_LABEL, ENV_NAME

_NAMED = {"V1Container": DNS_LABEL, "V1EnvVar": ENV_NAME}
"""Types of which each object has a `name` -> what that may be."""


def kubernetes(kind: str, name: str) -> Kind:
    """A Kubernetes object as plain data; what its type does not know is kept, with a warning.

    Args:
        kind: Its type, as `schema` names it.
        name: What a reader calls it, with article.
    """

    def read(value: Any, place: Place) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            place.refuse(name if name == _PART else f"a map ({name})", value)
            return {}
        given = {str(key): item for key, item in value.items() if item is not None}
        if place.whole and kind in _NAMED:
            given.setdefault("name", None)
        return {key: _read_field(kind, key, item, place) for key, item in given.items()}

    return Kind(name, read)


def _read_field(kind: str, key: str, value: Any, place: Place) -> Any:
    known = fields_of(kind)
    if key not in known:  # a directive of a merge has nothing to patch here
        replace(place, strict=place.strict or key == PATCH).unknown(key, known)
        return value
    field = _NAMED[kind] if key == "name" and kind in _NAMED else _kind_of(known[key])
    return field.read(value, place.at(key))


def _kind_of(kind: str) -> Kind:
    """The kind of value of a type of `schema`."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind.startswith("[]"):
        return _plain_list(list_of(_kind_of(kind[2:]), "a list"))
    return map_of(_kind_of(kind[2:]), _PART) if kind.startswith("{}") else kubernetes(kind, _PART)


def _plain_list(kind: Kind) -> Kind:
    """The same with a list for its tuple, as plain data has it."""
    return replace(kind, read=lambda value, place: list(kind.read(value, place)))


_PART = "a map"
_PLAIN = {
    "any": ANYTHING,
    "boolean": BOOL,
    "integer": INTEGER,
    "quantity": QUANTITY,
    "string": TEXT,
    "[]string": _plain_list(TEXTS),
    "{}string": TEXT_MAP,
}

TOLERATION = kubernetes("V1Toleration", "a toleration")
TOLERATIONS = list_of(TOLERATION, "a list of tolerations")
AFFINITY = kubernetes("V1Affinity", "an affinity")
NODE_SELECTOR_REQUIREMENT = kubernetes("V1NodeSelectorRequirement", "a node selector requirement")
POD_SECURITY_CONTEXT = kubernetes("V1PodSecurityContext", "a pod security context")
SECURITY_CONTEXT = kubernetes("V1SecurityContext", "a security context")
POD_DNS_CONFIG = kubernetes("V1PodDNSConfig", "a pod DNS config")
CONTAINER = kubernetes("V1Container", "a container")
RESOURCES = kubernetes("V1ResourceRequirements", "resource requirements")
