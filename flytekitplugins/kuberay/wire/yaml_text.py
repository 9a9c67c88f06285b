"""YAML whose text every reader takes for text, 1.1 or 1.2: of runtime environments, and of what the CLI prints."""

from __future__ import annotations

import re

import yaml

# Text that PyYAML leaves plain, but that another reader takes for a number or a truth value: Go's yaml.v2 reads `1e-5`
# and `08` as numbers and `y` as true, YAML 1.2 reads `0o17` as one.
_AMBIGUOUS = re.compile(r"[-+._]*\d[\da-fA-FoOxX_.,:+-]*|[yYnN]")


class TextDumper(yaml.SafeDumper):
    """Writes text so that every YAML reader, 1.1 or 1.2, reads text."""


def represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    """The text's node, in quotes where a reader would take it for something else."""
    style = "'" if _AMBIGUOUS.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


TextDumper.add_representer(str, represent_text)
