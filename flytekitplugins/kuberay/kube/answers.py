"""What answers of the API server hold, each fault an `ApiError`: objects, events of a watch, schemas, warnings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from .client import Manifest, Resource, WatchEvent
from .errors import Call, Unavailable, UnknownResource, error_of

_WARNING = re.compile(r'\b299 \S+ "((?:[^"\\]|\\.)*)"')
_EVENT_TYPES = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}


def parsed(call: Call, text: bytes) -> Manifest:
    """The object that the text is.

    Raises:
        Unavailable: It is none, or only a part of one.
    """
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise Unavailable(call, "the answer is no JSON, or only a part of it") from error
    if not isinstance(answer, dict):
        raise Unavailable(call, "the answer is no JSON object")
    return answer


def event_of(call: Call, line: bytes) -> WatchEvent:
    """The event that a line of a watch is.

    Raises:
        ApiError: The one that the line tells of; Unavailable where it is no event.
    """
    event = parsed(call, line)
    kind, manifest = event.get("type"), event.get("object")
    if kind == "ERROR" and isinstance(manifest, dict):
        raise error_of(call, int(manifest.get("code") or 500), json.dumps(manifest))
    if kind not in _EVENT_TYPES or not isinstance(manifest, dict) or not isinstance(manifest.get("metadata"), dict):
        raise Unavailable(call, "a line of the watch is not an event")
    return WatchEvent(kind, manifest)


def schema_of(call: Call, resource: Resource, kind: str, document: Manifest) -> Manifest:
    """The schema of a kind, of an OpenAPI document with those of its whole group.

    Raises:
        UnknownResource: There is none.
    """
    wanted = {"group": resource.group, "kind": kind, "version": resource.version}
    schemas: dict[str, Manifest] = (document.get("components") or {}).get("schemas") or {}
    for schema in schemas.values():
        if wanted in schema.get("x-kubernetes-group-version-kind", ()):
            return schema
    raise UnknownResource(call, f"the API server has no schema of a {kind}")


def warnings_of(headers: Iterable[str]) -> tuple[str, ...]:
    """The texts of `Warning` headers."""
    return tuple(re.sub(r"\\(.)", r"\1", text) for header in headers for text in _WARNING.findall(header))
