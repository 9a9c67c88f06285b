"""Takes secrets out of texts: values of a manifest whose names say that they are secret, and what looks like one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from ..wire import Manifest

REDACTED = "[redacted]"
SHORTEST_SECRET = 6
"""A shorter value would blot out every word that holds it."""

_SHORTEST_LINE = 12  # of a secret of several lines, which logs show one by one
_SECRET_NAME = re.compile(
    r"(?i)(secret|token(?!i[sz])|passw|credential|private|api_?key|access_?key|(?<![a-z])auth(?!or|_mode))"
)
_NOT_SECRET_NAME = re.compile(r"(?i)name$")  # secretName, which tells which one is missing
_SECRET_TEXT = re.compile(
    r"(?i)\bauthorization\W{1,4}\w+\s+[^\s'\"]+"  # headers
    r"|\bbearer\s+[\w.~+/=-]{8,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"  # AWS access keys
    r"|(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON web tokens; one beginning a word, else the time is its square
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"  # user and password of a URL
    r"|(?:(?<=password=)|(?<=token=)|(?<=secret=))[^\s&'\"]+"
)


def secrets_of(manifest: Manifest) -> frozenset[str]:
    """The values in a RayJob or pod that are likely secrets: of variables whose names say so, runtime_env's too.

    Each in the forms in which texts show it: as it is, on one line, and line by line.
    """
    values = [value for name, value in _named_values(manifest) if _is_secret(name, value)]
    return frozenset(form for value in values for form in _forms(value) if REDACTED not in form)


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without the secrets, and without what looks like one."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return _SECRET_TEXT.sub(REDACTED, text)


def redacted_values(value: Any, secrets: Iterable[str]) -> Any:
    """A copy of data of any depth with its texts redacted: before they are written as JSON, which escapes them."""
    if isinstance(value, str):
        return redacted(value, secrets)
    if isinstance(value, Mapping):
        return {redacted(str(key), secrets): redacted_values(entry, secrets) for key, entry in value.items()}
    return [redacted_values(entry, secrets) for entry in value] if isinstance(value, list) else value


def _forms(value: str) -> Iterator[str]:
    yield value
    yield value.strip()
    yield " ".join(value.split())
    yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= _SHORTEST_LINE)


def _is_secret(name: str, value: str) -> bool:
    if len(value.strip()) < SHORTEST_SECRET or _NOT_SECRET_NAME.search(name):
        return False
    return _SECRET_NAME.search(name) is not None


def _named_values(value: Any, seen: set[int] | None = None) -> Iterator[tuple[str, str]]:
    """Names with their texts, of `{name:, value:}` entries and of maps, at any depth, each once."""
    seen = set() if seen is None else seen
    if id(value) in seen:  # YAML's aliases could make a short text endless
        return
    if isinstance(value, (Mapping, list)):
        seen.add(id(value))
    if isinstance(value, Mapping):
        if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
            yield value["name"], value["value"]
        for key, entry in value.items():
            if key == "runtimeEnvYAML":
                yield from _named_values(_parsed(entry))
            elif isinstance(entry, str):
                yield str(key), entry
            else:
                yield from _named_values(entry, seen)
    elif isinstance(value, list):
        for entry in value:
            yield from _named_values(entry, seen)


def _parsed(text: Any) -> Any:
    try:
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  # it makes texts of all scalars, and nothing else
    except (yaml.YAMLError, AttributeError, RecursionError):
        return None
