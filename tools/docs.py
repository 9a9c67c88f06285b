"""Writes the tables of docs/settings.md anew; `make docs` runs it."""

from pathlib import Path

from flytekitplugins.kuberay.settings.reference import with_tables

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"

if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
