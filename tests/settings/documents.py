"""The platform's YAML for a test: whole documents, what one gives or is refused for, and all defaults."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flytekitplugins.kuberay.errors import SettingsError
from flytekitplugins.kuberay.settings import parse_settings


def flat(section: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """All settings of a section by the path of their keys."""
    for field in dataclasses.fields(section):
        key, value = f"{prefix}.{field.metadata['key']}", getattr(section, field.name)
        if dataclasses.is_dataclass(value):
            yield from flat(value, key)
        else:
            yield key, value


def k8s(**settings: Any) -> dict[str, Any]:
    """A document with settings of `plugins.k8s`, `_` in a key for `-`."""
    return {"plugins": {"k8s": {key.replace("_", "-"): value for key, value in settings.items()}}}


def kuberay(**settings: Any) -> dict[str, Any]:
    """A document with settings of `plugins.kuberay`, `_` in a key for `-`."""
    return {"plugins": {"kuberay": {key.replace("_", "-"): value for key, value in settings.items()}}}


def ray(**settings: Any) -> dict[str, Any]:
    """A document with settings of `plugins.ray`."""
    return {"plugins": {"ray": settings}}


def in_file(folder: Path, text: str, name: str = "flyte.yaml") -> Path:
    """A file with a text, its common indentation taken away."""
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def problems_of(data: Any) -> list[str]:
    """The texts of the problems for which a document is refused."""
    with pytest.raises(SettingsError) as refused:
        parse_settings(data)
    return [str(problem) for problem in refused.value.problems]


def setting_of(data: Any, attribute: str) -> Any:
    """The setting that a document gives, by a path as `k8s.default_cpus`."""
    value: Any = parse_settings(data)
    for name in attribute.split("."):
        value = getattr(value, name)
    return value
