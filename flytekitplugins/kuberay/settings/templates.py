"""Templates of links: text with variables like `{{ .podName }}`, and the kinds of value that check them at start.

Source: Flyte v1.16.8, flyteplugins: tasklog/template.go, k8s/ray/ray.go logTemplateRegexes,
array/k8s/subtask_exec_context.go logTemplateRegexes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .kinds import TEXT, Kind, Place

TASK_CONFIG = "taskconfig."
"""How the name of a variable begins that stands for an entry of a task's own `config`."""

POD_VARIABLES = ("podName", "podUID", "hostname", "nodeName", "containerName", "containerID", "logName")
"""What differs from pod to pod; times do too, where one of these stands beside them."""

NEVER_KNOWN = (
    "subtaskExecutionIndex",
    "subtaskParentName",
    "subtaskRetryAttempt",
    "subtaskParentRetryAttempt",
)
"""What only an array node's items have: no mistake, for plugins share templates, but nothing that a Ray task has."""

VARIABLES = (
    *POD_VARIABLES,
    "namespace",
    "podRFC3339StartTime",
    "podRFC3339FinishTime",
    "podUnixStartTime",
    "podUnixFinishTime",
    "taskID",
    "taskVersion",
    "taskProject",
    "taskDomain",
    "taskRetryAttempt",
    "nodeID",
    "executionName",
    "executionProject",
    "executionDomain",
    "generatedName",
    "rayClusterName",
    "rayJobID",
    "rayHeadService",  # ours: the Service to which a proxy can lead
    *NEVER_KNOWN,
)
_KNOWN = {name.lower(): name for name in VARIABLES}
_BRACES = re.compile(r"\{\{(.*?)\}\}")
_VARIABLE = re.compile(r"\s*[.$](?:(taskconfig)[.$]([\w-]+)|(\w+))\s*", re.IGNORECASE)
_LITERAL = "braces that are meant are written %7B%7B"


def variables_of(template: str) -> list[str]:
    """The names of a template's variables, in lower case but for an entry of `taskConfig`, which has its own case."""
    return [name for inside in _BRACES.findall(template) if (name := _name_of(inside))]


def filled(template: str, values: Mapping[str, str]) -> str | None:
    """The template with all its variables replaced, as they are, without escaping; None where one has no value."""
    if not all(values.get(name) for name in variables_of(template)):
        return None
    return _BRACES.sub(lambda found: values[_name_of(found[1])], template)


def _name_of(inside: str) -> str:
    """The name of the variable between two pairs of braces; "" where it is none."""
    found = _VARIABLE.fullmatch(inside)
    if found is None:
        return ""
    return TASK_CONFIG + found[2] if found[1] else found[3].lower()


def _read_template(value: Any, place: Place) -> Any:
    text = TEXT.read(value, place)
    if isinstance(text, str):
        place.problems.extend(place.problem(what, remedy) for what, remedy in _faults(text))
    return text


def _faults(template: str) -> Iterator[tuple[str, str]]:
    for inside in _BRACES.findall(template):
        name = _name_of(inside)
        if name not in _KNOWN and not name.startswith(TASK_CONFIG):
            yield f"has the unknown variable {{{{{inside}}}}}", _remedy(inside)
    if "{{" in _BRACES.sub("", template):
        yield "has {{ without }}", f"write a variable as {{{{ .podName }}}}; {_LITERAL}"


def _remedy(inside: str) -> str:
    near = difflib.get_close_matches(inside.strip(" .$").lower(), _KNOWN, n=1)
    meant = f"did you mean {{{{ .{_KNOWN[near[0]]} }}}}?" if near else "see docs/connector.md for those there are"
    return f"{meant} ({_LITERAL})"


def _read_templates(value: Any, place: Place) -> tuple[Any, ...]:
    items = [value] if isinstance(value, str) else value  # a comma in a URL divides nothing, unlike in other lists
    if not isinstance(items, (list, tuple)):
        place.refuse("a list of templates", value)
        return ()
    return tuple(_read_template(item, place.at(i)) for i, item in enumerate(items))


TEMPLATE = Kind("a template", _read_template)
TEMPLATES = Kind("a list of templates", _read_templates)
