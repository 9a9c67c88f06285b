"""The files that a command is given: protobuf messages and the cluster's PodTemplates."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from flyteidl.core.tasks_pb2 import TaskTemplate
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError, Message

from ..errors import Problem, ProblemsError
from ..wire import Manifest
from ..wire.protojson import has_field, which

M = TypeVar("M", bound=Message)

_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*\{\s*[\"}]")
"""How a JSON object begins; a binary TaskTemplate may begin with a line break and a brace, but not so."""

_TOO_DEEP = "is nested too deep"

_log = logging.getLogger(__name__)


def read_task_template(name: str) -> TaskTemplate:
    """The TaskTemplate of a file, in protobuf's JSON or binary.

    Raises:
        ProblemsError: The file can't be read, or holds something else.
    """
    content = _read(name)
    template = TaskTemplate()
    if _JSON.match(content):
        template = _parsed(_text(content, name), name, TaskTemplate)
    else:
        try:
            template.ParseFromString(content)
        except DecodeError as error:
            raise _refused(name, "is no TaskTemplate, neither in protobuf's JSON nor binary") from error
    if not (template.type or which(template, "target") or has_field(template, "custom")):
        raise _refused(name, "holds no TaskTemplate", "of a TaskSpec, give what stands under its template")
    return template


def read_message(name: str, kind: type[M]) -> M:
    """The message of a file in protobuf's JSON; fields unknown to it are ignored with a warning.

    Raises:
        ProblemsError: The file can't be read, or holds something else.
    """
    return _parsed(_text(_read(name), name), name, kind)


def read_pod_templates(names: Iterable[str], namespace: str) -> list[Manifest]:
    """The PodTemplate objects of the files, those without a namespace in this one.

    Raises:
        ProblemsError: A file can't be read, or holds something else; all problems of all files at once.
    """
    problems: list[Problem] = []
    templates: list[Manifest] = []
    for name in names:
        try:
            found = list(_objects(_documents(_text(_read(name), name), name), name))
        except ProblemsError as error:
            problems += error.problems
            continue
        wrong = [problem for place, item in found for problem in _pod_template_problems(item, place)]
        problems += wrong
        templates += [] if wrong else [_with_namespace(item, namespace) for _, item in found]
    if problems:
        raise ProblemsError(problems)
    return templates


def shown(name: str) -> str:
    """The file's name as errors say it."""
    return "standard input" if name == "-" else name


def _read(name: str) -> bytes:
    if name == "-" and sys.stdin is None:
        raise _refused(name, "is closed", "name a file")
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise _refused(name, f"can't be read: {error.strerror}", "name a file that can be") from error


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(name, f"is not UTF-8 at byte {error.start}", "save it as UTF-8") from error


def _parsed(text: str, name: str, kind: type[M]) -> M:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise _refused(
            f"{shown(name)}, line {error.lineno}, column {error.colno}", f"is not JSON: {error.msg}"
        ) from error
    except RecursionError as error:
        raise _refused(name, _TOO_DEEP) from error
    if not isinstance(value, dict):
        raise _refused(name, f"is no JSON object, so no {kind.__name__}")
    message, lenient = kind(), kind()
    try:
        ParseDict(value, message)
        return message
    except ParseError as error:
        strict = _first_line(error)
    try:
        ParseDict(value, lenient, ignore_unknown_fields=True)
    except ParseError as error:
        raise _refused(name, f"is no {kind.__name__}: {_first_line(error)}") from error
    _log.warning("%s: %s; such fields are ignored", shown(name), strict)
    return lenient


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(" .")


def _refused(name: str, what: str, remedy: str = "") -> ProblemsError:
    return ProblemsError([Problem(shown(name), what, remedy)])


def _documents(text: str, name: str) -> list[Any]:
    """The documents of a YAML or JSON file as plain JSON data."""
    try:
        return [json.loads(text)]  # YAML's reader does not join the two halves of an escaped emoji
    except (ValueError, RecursionError):
        pass
    try:
        documents = list(yaml.load_all(text, _Loader))  # noqa: S506  # a SafeLoader
        plain: list[Any] = json.loads(json.dumps(documents))  # keys that are no text become text, as in kubectl
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{shown(name)}, line {mark.line + 1}, column {mark.column + 1}" if mark else name
        raise _refused(place, f"is not YAML: {error.problem}") from error
    except RecursionError as error:
        raise _refused(name, _TOO_DEEP) from error
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise _refused(name, f"is not YAML of a Kubernetes object: {' '.join(str(error).split())}") from error
    return plain


class _Loader(yaml.SafeLoader):
    """YAML as kubectl reads it: dates and `12:30` are texts."""

    yaml_implicit_resolvers = {
        first: [
            (tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":value", ":int", ":float"))
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(0b[01_]+|0x[\da-fA-F_]+|0[0-7_]*|[1-9][\d_]*)\Z"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"(?:[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z"),
    list("-+.0123456789"),
)


def _objects(documents: Iterable[Any], name: str) -> Iterator[tuple[str, Any]]:
    """Each object with its place, those of a List too; empty documents are skipped."""
    for index, document in enumerate(documents, start=1):
        place = f"{shown(name)}, document {index}"
        items = document.get("items") if isinstance(document, dict) else None
        if isinstance(items, list) and document.get("kind") in ("List", "PodTemplateList"):
            # the items of a PodTemplateList need not say what they are
            default = {"kind": "PodTemplate"} if document["kind"] == "PodTemplateList" else {}
            for item_index, item in enumerate(items):
                yield f"{place}: items[{item_index}]", {**default, **item} if isinstance(item, dict) else item
        elif document is not None:
            yield place, document


def _pod_template_problems(item: Any, place: str) -> Iterator[Problem]:
    if not isinstance(item, dict):
        yield Problem(place, f"is {item!r:.40}, no Kubernetes object", "write a PodTemplate")
        return
    if item.get("kind") != "PodTemplate":
        what = f"is a {item['kind']}" if item.get("kind") else "has no kind"
        yield Problem(place, what, "give PodTemplates, or a List of them")
        return
    metadata, template = item.get("metadata"), item.get("template")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        yield Problem(f"{place}: metadata.name", "is not there or no text", "write the name that tasks call it by")
    if not isinstance(template, dict) or not isinstance(template.get("spec", {}), dict):
        yield Problem(f"{place}: template.spec", "is no map", "write the pod's spec there")


def _with_namespace(template: Manifest, namespace: str) -> Manifest:
    metadata = template["metadata"]
    return {**template, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}
