"""Flyte's template variables in a container's command and arguments: `{{.input}}`, `{{.inputs.x}}` and the like.

Source: flyteplugins pluginmachinery/core/template/template.go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgpack
from flyteidl.core.literals_pb2 import Literal, Primitive, Scalar

from ..errors import Problem
from ..wire import FlyteTask, Manifest
from ..wire.protojson import has_field, which

_VARIABLE = re.compile(r"\{\{\s*[.$](\w+)\s*\}\}")
_INPUT = re.compile(r"\{\{\s*[.$]inputs\.([^}\s]+)\s*\}\}", re.IGNORECASE)


def variables_of(task: FlyteTask) -> Mapping[str, str]:
    """The value of each template variable, by its lower-case name.

    Paths follow from the output prefix, which is all that a connector is told: inputs and task template beside it, raw
    data and checkpoints below it. No previous checkpoint is the text `""`, as Flyte renders and flytekit reads it.
    """
    prefix = task.output_prefix.rstrip("/")
    parent = prefix.rpartition("/")[0]
    return {
        "input": f"{parent}/inputs.pb",
        "inputprefix": parent,
        "outputprefix": prefix,
        "rawoutputdataprefix": f"{prefix}/raw_output",
        "checkpointoutputprefix": f"{prefix}/raw_output/_flytecheckpoints",
        "prevcheckpointprefix": '""',
        "perretryuniquekey": _unique_key(prefix),
        "tasktemplatepath": f"{parent}/task.pb",
        "namespace": task.execution.namespace,
    }


def with_rendered_arguments(container: Manifest, task: FlyteTask) -> Manifest:
    """The container with the variables in its command and args replaced; rendered ones are left as they are.

    Unknown variables stay as they stand; so do inputs that were not sent, which `argument_problems` reports.
    """
    variables = variables_of(task)
    rendered = {
        field: [_render(text, variables, task) for text in container[field]]
        for field in ("command", "args")
        if container.get(field)
    }
    return {**container, **rendered}


def argument_problems(container: Manifest, task: FlyteTask, path: str) -> Iterator[Problem]:
    """The inputs that command or args name and that can't be put there; none where no input was sent."""
    if task.inputs is None or not task.inputs.literals:
        return
    for field in ("command", "args"):
        for index, text in enumerate(container.get(field) or []):
            for name in _INPUT.findall(text):
                if name not in task.inputs.literals:
                    known = ", ".join(sorted(task.inputs.literals)) or "none"
                    yield Problem(
                        f"{path}.{field}[{index}]", f"no input is called {name!r}", f"the task's inputs: {known}"
                    )
                    continue
                try:
                    format_literal(task.inputs.literals[name])
                except ValueError as error:
                    yield Problem(
                        f"{path}.{field}[{index}]", f"input {name!r} {error}", "pass it by file, not as an argument"
                    )


def format_literal(literal: Literal) -> str:
    """A literal as Flyte writes it into an argument.

    Raises:
        ValueError: Its type has no text form.

    Source: template.go serializeLiteral.
    """
    if has_field(literal, "collection"):
        return "[" + ",".join(format_literal(each) for each in literal.collection.literals) + "]"
    if has_field(literal, "scalar"):
        return _format_scalar(literal.scalar)
    raise ValueError("is a map or empty, which has no text form")


def _render(text: str, variables: Mapping[str, str], task: FlyteTask) -> str:
    text = _VARIABLE.sub(lambda found: variables.get(found.group(1).lower(), found.group(0)), text)
    literals = task.inputs.literals if task.inputs is not None else {}
    return _INPUT.sub(
        lambda found: format_literal(literals[found.group(1)]) if found.group(1) in literals else found.group(0), text
    )


def _unique_key(prefix: str) -> str:
    """A word of letters, digits and underscores that is the task's and attempt's own."""
    return re.sub(r"[^a-zA-Z0-9_]+", "_", re.sub(r"^[^a-zA-Z_]+", "a", prefix.partition("://")[2] or prefix))


def _format_scalar(scalar: Scalar) -> str:
    kind = which(scalar, "value")
    if kind == "primitive":
        return _format_primitive(scalar.primitive)
    if kind in ("blob", "schema"):
        return str(getattr(scalar, kind).uri)
    if kind == "binary" and scalar.binary.tag == "msgpack":
        return _format_msgpack(scalar.binary.value)
    raise ValueError(f"is of type {kind}, which has no text form")


def _format_msgpack(packed: bytes) -> str:
    try:
        return _format_go(msgpack.unpackb(packed, strict_map_key=False))  # type: ignore[attr-defined,no-untyped-call]  # untyped
    except (ValueError, TypeError, RecursionError) as error:  # TypeError: a list as a key
        raise ValueError("holds msgpack data that have no text form") from error


def _format_primitive(primitive: Primitive) -> str:
    kind = which(primitive, "value")
    if not kind:
        raise ValueError("is empty, which has no text form")
    if kind == "datetime":  # as Go's RFC3339Nano: a fraction ends with no 0
        return re.sub(r"(\.\d+?)0*Z", r"\1Z", primitive.datetime.ToJsonString())
    if kind == "duration":  # the text form of the message
        return " ".join(f"{field.name}:{value}" for field, value in primitive.duration.ListFields())
    return _format_go(getattr(primitive, kind))


def _format_go(value: Any) -> str:
    """A plain value as Go's %v prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _format_float(value)
    if isinstance(value, (list, bytes)):
        return "[" + " ".join(map(_format_go, value)) + "]"
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (type(key).__name__, key))
        return "map[" + " ".join(f"{_format_go(key)}:{_format_go(value[key])}" for key in keys) + "]"
    return "<nil>" if value is None else str(value)


def _format_float(value: float) -> str:
    """A float as Go's %v prints it: the shortest digits, an exponent below 1e-4 and from 1e6 on."""
    if not math.isfinite(value):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    power = len(digits) + int(exponent) - 1
    if value == 0 or -4 <= power < 6:
        return format(Decimal(repr(value)).normalize(), "f")
    return f"{value:.{len(digits) - 1}e}"
