"""From files to `Settings`: which files, their YAML, how they are merged, and all their problems at once."""

from __future__ import annotations

import copy
import glob
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from types import NoneType
from typing import Any

import yaml

from ..errors import Problem, SettingsError
from .flyte import K8sSettings, RaySettings
from .kinds import Place, in_lower_case, section_kind
from .own import KuberaySettings

FILES_VARIABLE = "FLYTE_KUBERAY_CONFIG"

Document = tuple[str, Mapping[str, Any]]
"""The name of a file, for errors, and its content."""

_SECTIONS = {
    "k8s": section_kind(K8sSettings),
    "ray": section_kind(RaySettings),
    "kuberay": section_kind(KuberaySettings),
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """All settings of the platform. Read once, passed on as an argument, changed by nobody."""

    k8s: K8sSettings = field(default_factory=K8sSettings)
    ray: RaySettings = field(default_factory=RaySettings)
    kuberay: KuberaySettings = field(default_factory=KuberaySettings)


def load_settings(paths: Iterable[Path] | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of the files named, else of those that FLYTE_KUBERAY_CONFIG names, else the defaults.

    Args:
        paths: Files or glob patterns; the later wins.
        environ: FLYTE_KUBERAY_CONFIG is split at the system's path separator.

    Raises:
        SettingsError: A file can't be read or says what can't be; all problems of all files at once.
    """
    if paths is None:
        paths = [Path(path) for path in environ.get(FILES_VARIABLE, "").split(os.pathsep) if path.strip()]
    problems: list[Problem] = []
    documents = [(str(path), _read_yaml(path, problems)) for path in _expanded(paths, problems)]
    settings = _parsed(documents, environ, problems)
    said = {name: _lowered(content, Place(name)) for name, content in documents if content}
    if said and not any("plugins" in content for content in said.values()):
        text = "%s: no section is called plugins, so all settings are the defaults; see docs/settings.md"
        _log.warning(text, ", ".join(said))
    return settings


def parse_settings(data: Mapping[str, Any] | Sequence[Document], environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of one YAML document's content, or of several with their names, of which the later win.

    Args:
        data: Content like `{"plugins": {"k8s": {...}, "ray": {...}, "kuberay": {...}}}`.
        environ: Where POD_NAMESPACE and the variables of `default-env-vars-from-env` are looked up.

    Raises:
        SettingsError: A value can't be used; all problems at once.
    """
    documents = [("", data)] if isinstance(data, Mapping) else list(data)
    return _parsed(documents, environ or {}, [])


def _parsed(documents: Sequence[Document], environ: Mapping[str, str], problems: list[Problem]) -> Settings:
    """The settings of all documents; each is read alone first, so that a problem names its file."""
    contents = []
    for name, document in documents:
        place = Place(name, problems=problems)
        sections = _sections_of(document, place)
        _read(sections, place)
        contents.append({key: _SECTIONS[key].spelled(copy.deepcopy(section)) for key, section in sections.items()})
        for warning in place.warnings:
            _log.warning("%s", warning)
    if problems:
        raise SettingsError(problems)
    settings = _read(reduce(_merged, contents, _from_environment(environ)), Place("", problems=problems, whole=True))
    if problems:
        raise SettingsError(problems)
    _warn_of_remote_cluster(settings)
    return replace(settings, k8s=_with_environment(settings.k8s, environ), ray=_with_node_address(settings.ray))


def _sections_of(document: Any, place: Place) -> dict[str, Any]:
    """What a document says in each of the three sections, its others left alone: they are Flyte's."""
    plugins = _lowered(_lowered(document, place).get("plugins"), place.at("plugins"))
    return {name: plugins[name] for name in _SECTIONS if name in plugins}


def _read(sections: Mapping[str, Any], place: Place) -> Settings:
    """The settings of the three sections; of our own every key is known."""
    plugins = place.at("plugins")
    places = {name: replace(plugins.at(name), strict=name == "kuberay") for name in _SECTIONS}
    return Settings(**{name: kind.read(sections.get(name), places[name]) for name, kind in _SECTIONS.items()})


def _lowered(value: Any, place: Place) -> dict[str, Any]:
    """A map with its keys in lower case, as Flyte's count in any; {} for null and, with a problem, what is no map."""
    if not isinstance(value, (Mapping, NoneType)):
        place.refuse("a map", value)
        return {}
    return {key: item for key, (_, item) in in_lower_case(value or {}, place).items()}


def _merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Both maps: maps key by key, all else from the overlay; null over a map changes nothing.

    Source: viper v1.21.0, mergeMaps, by which Flyte merges its files.
    """
    merged = dict(base)
    for key, value in overlay.items():
        earlier = merged.get(key)
        if isinstance(earlier, Mapping) and (value is None or isinstance(value, Mapping)):
            value = _merged(earlier, value or {})
        merged[key] = value
    return merged


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """What the environment says below every file."""
    namespace = environ.get("POD_NAMESPACE")
    return {"kuberay": {"platform-namespace": namespace}} if namespace else {}


def _warn_of_remote_cluster(settings: Settings) -> None:
    """Tells of Flyte's setting that names another cluster, where none of ours does."""
    own = settings.kuberay
    if settings.ray.remote_cluster_config.enabled and not (own.kubeconfig or own.context):
        text = "plugins.ray.remoteClusterConfig is not used: name the RayJobs' cluster by plugins.kuberay.kubeconfig"
        _log.warning("%s; see docs/settings.md", text)


def _with_environment(k8s: K8sSettings, environ: Mapping[str, str]) -> K8sSettings:
    """The settings with the values of the variables that they name; of one that is not there, "" as in Flyte."""
    values = {name: environ.get(variable, "") for name, variable in k8s.default_env_vars_from_env.items()}
    return replace(k8s, default_env_vars_from_env=values)


def _with_node_address(ray: RaySettings) -> RaySettings:
    """The settings with Flyte's old `nodeIPAddress` where a group's address is empty."""
    head, worker = (
        replace(node, ip_address=node.ip_address or ray.node_ip_address)
        for node in (ray.defaults.head_node, ray.defaults.worker_node)
    )
    return replace(ray, defaults=replace(ray.defaults, head_node=head, worker_node=worker))


def _expanded(paths: Iterable[Path], problems: list[Problem]) -> list[Path]:
    """The files of all paths, a pattern's in the order of their names."""
    files: list[Path] = []
    for path in paths:
        found = [Path(name) for name in sorted(glob.glob(str(path)))] if glob.has_magic(str(path)) else [path]
        if not found:
            problems.append(Problem(str(path), "matches no file", "correct the pattern or add a file"))
        files += found
    return files


def _read_yaml(path: Path, problems: list[Problem]) -> Any:
    """The content of a YAML file; {} for an empty one, and for one that can't be read, with a problem."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506  # a SafeLoader
    except OSError as error:
        problems.append(Problem(str(path), f"can't be read: {error.strerror}", "name a file that can be"))
    except UnicodeDecodeError as error:
        problems.append(Problem(str(path), f"is not UTF-8 at byte {error.start}", "save it as UTF-8"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}, line {mark.line + 1}, column {mark.column + 1}" if mark else str(path)
        problems.append(Problem(place, f"is not YAML: {error.problem}"))
    except RecursionError:
        problems.append(Problem(str(path), "is nested too deep"))
    except yaml.YAMLError as error:
        problems.append(Problem(str(path), f"is not YAML: {' '.join(str(error).split())}"))
    except (ValueError, LookupError, AttributeError):  # PyYAML's own, as for `!!int x`, `!!bool x`, `!!timestamp x`
        problems.append(Problem(str(path), "has a value that its !! tag does not fit", "drop the tag"))
    else:
        return {} if content is None else content
    return {}


class _Loader(yaml.SafeLoader):
    """YAML as Flyte reads it: `no`, `12:30` and dates are texts, a key that stands twice is an error."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """The map that comes next, each of its keys once."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in lines:
                text = f"the key {key.value} stands in line {lines[key.value]} already"
                raise yaml.composer.ComposerError(problem=text, problem_mark=key.start_mark)
            lines[key.value] = key.start_mark.line + 1
        return node


for _tag, _pattern in (
    ("null", r"~|null|Null|NULL|"),
    ("bool", r"true|True|TRUE|false|False|FALSE"),
    ("int", r"[-+]?(0|[1-9][0-9]{0,17})"),  # longer ones are none for Go either, and Python refuses very long ones
    ("float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?"),
    ("merge", r"<<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), None)
