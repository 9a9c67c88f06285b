"""Ray's runtime environment on the wire: YAML, and, in tasks of old, only base64 of JSON."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from typing import Any

import yaml
from typing_extensions import override

from ..errors import Problem
from .protojson import whole
from .yaml_text import TextDumper

_LARGEST = 100_000  # nodes


class _JsonLoader(yaml.SafeLoader):
    """Reads as KubeRay's reader does, on its way to JSON.

    What JSON has no word for is text, as dates, `12:30`, `=` and `<<`; what has a tag of somebody's own counts by its
    form, as the tuples that `yaml.dump` writes. Plain `y`, `1e5` and `0o17` stay the texts that Python's writers mean.
    """

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        if None in mapping:
            raise yaml.constructor.ConstructorError(None, None, "a null key", node.start_mark)
        return mapping


def _construct_by_form(
    loader: _JsonLoader, node: yaml.MappingNode | yaml.SequenceNode | yaml.ScalarNode
) -> dict[Any, Any] | list[Any] | str:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    text = str(loader.construct_scalar(node))
    if not text:  # an unquoted `!keep.txt` is a tag, and the text is lost
        raise yaml.constructor.ConstructorError(None, None, f"{node.tag} has no value", node.start_mark)
    return text


def _construct_number(loader: _JsonLoader, node: yaml.ScalarNode) -> float | str:
    if ":" in node.value:
        return str(node.value)
    return loader.construct_yaml_int(node) if node.tag.endswith(":int") else loader.construct_yaml_float(node)


for _type in ("int", "float"):
    _JsonLoader.add_constructor(f"tag:yaml.org,2002:{_type}", _construct_number)
for _type in ("timestamp", "value", "merge", "set", "omap", "pairs"):
    _JsonLoader.add_constructor(f"tag:yaml.org,2002:{_type}", _construct_by_form)
_JsonLoader.add_constructor(None, _construct_by_form)


def format_runtime_env(runtime_env: Mapping[str, Any]) -> str:
    """The runtime environment as YAML with sorted keys, which every YAML reader understands alike."""
    return yaml.dump(runtime_env, Dumper=TextDumper)


def to_base64(runtime_env: Mapping[str, Any]) -> str:
    """The runtime environment in the old form, for Flyte's Go plugins that know no other."""
    return base64.b64encode(json.dumps(runtime_env).encode()).decode()


def read_runtime_env(job: Mapping[str, Any], problems: list[Problem]) -> str:
    """The runtime environment as YAML; the old base64 form counts only where there is no YAML, as in Go.

    Source: ray.go convertBase64RuntimeEnvToYaml.
    """
    if job.get("runtimeEnvYaml"):
        return _checked_yaml(job["runtimeEnvYaml"], problems)
    if not job.get("runtimeEnv"):
        return ""
    path, remedy = "custom.runtimeEnv", "register the task anew, with a mapping as runtime_env"
    try:
        value = json.loads(
            base64.b64decode(job["runtimeEnv"], validate=True), parse_float=lambda digits: whole(float(digits))
        )
    except (binascii.Error, ValueError):  # no text of theirs: it may hold a secret of the environment
        problems.append(Problem(path, "is not base64 of JSON", remedy))
        return ""
    if not isinstance(value, dict):
        problems.append(Problem(path, f"is a {type(value).__name__}, not a mapping", remedy))
        return ""
    return format_runtime_env(value)


def parse_runtime_env(document: str) -> tuple[dict[str, Any], str]:
    """What the YAML holds, which JSON can say too, and what is wrong with it: one of the two is empty, or both."""
    try:
        loader = _JsonLoader(document)
        root = loader.get_single_node()
        if root is None:
            return {}, ""
        if not isinstance(root, yaml.MappingNode):
            return {}, "is not a mapping"
        if _size(root, {}) > _LARGEST:
            return {}, "holds itself, or grows out of all bounds by its aliases"
        value: dict[str, Any] = loader.construct_document(root)
        json.dumps(value, allow_nan=False)
    except (yaml.YAMLError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        return {}, f"is no YAML (line {line})"
    except (TypeError, ValueError, LookupError):  # LookupError: of PyYAML's own, as for `!!bool x`
        return {}, "holds what JSON has no word for, and Ray takes JSON"
    return value, ""


def _size(node: yaml.Node, known: dict[int, float]) -> float:
    """The nodes of a document with its aliases written out; infinite where one holds itself."""
    if id(node) in known:
        return known[id(node)]
    if isinstance(node, yaml.ScalarNode):
        return 1
    known[id(node)] = math.inf  # for whoever meets it below itself
    below = [part for each in node.value for part in (each if isinstance(each, tuple) else (each,))]
    known[id(node)] = 1 + sum(_size(each, known) for each in below if isinstance(each, yaml.Node))
    return known[id(node)]


def _checked_yaml(document: str, problems: list[Problem]) -> str:
    path, remedy = "custom.runtimeEnvYaml", "register the task anew, with a mapping as runtime_env"
    value, fault = parse_runtime_env(document)
    if fault:
        problems.append(Problem(path, fault, remedy))
    return document if value else ""
