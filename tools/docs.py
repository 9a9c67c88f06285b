"""Writes the tables of docs/settings.md anew, from the settings' own fields; `make docs` runs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from flytekitplugins.kuberay.settings import K8sSettings, KuberaySettings, RaySettings, TemplateLogPlugin

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"

_BEGIN, _END = "<!-- tables: begin, written by `make docs` -->\n", "<!-- tables: end -->\n"
_TABLES: dict[str, type[Any]] = {
    "`plugins.kuberay`": KuberaySettings,
    "`plugins.k8s`": K8sSettings,
    "`plugins.ray`": RaySettings,
    "A log link": TemplateLogPlugin,
}


def with_tables(document: str) -> str:
    """The document with fresh tables between its two marks.

    Raises:
        ValueError: A mark is missing.
    """
    if _BEGIN not in document or _END not in document:
        raise ValueError(f"the document must hold the lines {_BEGIN.strip()} and {_END.strip()}")
    before, rest = document.split(_BEGIN)
    return f"{before}{_BEGIN}{settings_tables()}\n{_END}{rest.split(_END)[1]}"


def settings_tables() -> str:
    """Markdown tables of all settings: key, kind, default, meaning."""
    head = ("| key | value | default | meaning |", "| --- | --- | --- | --- |")
    return "\n".join("\n".join(("", f"## {title}", "", *head, *_rows(cls))) for title, cls in _TABLES.items()) + "\n"


def _rows(cls: type[Any], prefix: str = "") -> Iterator[str]:
    for setting in fields(cls):
        key = prefix + setting.metadata["key"]
        if "section" in setting.metadata:
            yield from _rows(setting.metadata["section"], f"{key}.")
        else:
            cells = (f"`{key}`", setting.metadata["kind"].name, _default(setting), setting.metadata["doc"])
            yield f"| {' | '.join(cells)} |"


def _default(setting: Field[Any]) -> str:
    """The default as one writes it in YAML; nothing where it is unset or empty."""
    value = setting.default if setting.default_factory is MISSING else setting.default_factory()
    if isinstance(value, timedelta):
        return f"`{_format_duration(value)}`"
    if isinstance(value, bool) or isinstance(value, dict) and value:
        return f"`{json.dumps(value)}`"
    return f"`{value}`" if isinstance(value, int) or value else ""


def _format_duration(value: timedelta) -> str:
    seconds = int(value.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount) or "0s"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
