"""A RayJob's fields in the words of who wrote the task: an API server names them as they stand in the manifest."""

from __future__ import annotations

import re
from typing import Any

from ..wire import Manifest

_PATH = re.compile(r"\bspec(?:\.[\w/-]+|\[[^\]\s]*\])+")
_SEGMENT = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")
_PLACES = (
    (re.compile(r"spec\.rayClusterSpec\.headGroupSpec\."), "head: "),
    (re.compile(r"spec\.rayClusterSpec\.workerGroupSpecs\[([^\]]*)\]\."), r"worker group \1: "),
    (re.compile(r"spec\.submitterPodTemplate\."), "submitter: "),
)


def in_users_words(text: str, job: Manifest) -> str:
    """The text with each path into the RayJob's spec as `head: `, `worker group NAME: ` or `submitter: ` and the rest.

    Items of lists are called by their name where they have one: `containers[sidecar]` for `containers[1]`.

    Args:
        text: What an API server or an admission webhook says of the RayJob.
        job: The manifest that was sent.
    """
    return _PATH.sub(lambda found: _placed(_with_names(found[0], job)), text)


def _with_names(path: str, job: Manifest) -> str:
    """The path with the names of list items for their numbers."""
    named, value = "", job
    for key, index in _SEGMENT.findall(path):
        value = _entry(value, key or index)
        name = isinstance(value, dict) and (value.get("groupName") or value.get("name"))
        named += f".{key}" if key else f"[{name or index}]"
    return named.removeprefix(".")


def _entry(value: Any, key: str) -> Any:
    if isinstance(value, list):
        return value[int(key)] if key.isdecimal() and int(key) < len(value) else None
    return value.get(key) if isinstance(value, dict) else None


def _placed(path: str) -> str:
    for pattern, place in _PLACES:
        path = pattern.sub(place, path)
    return path
