"""Standard output: what was asked for and nothing else; a manifest as YAML or JSON, in colour on a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

import yaml

from ..errors import KubeRayError
from ..wire import Manifest
from ..wire.yaml_text import TextDumper, represent_text

_LINE_BREAKS_OF_OLD = re.compile("[\x85\u2028\u2029]")
"""Line breaks in YAML 1.1, text in YAML 1.2."""


@contextmanager
def reserved_stdout() -> Iterator[None]:
    """Sends to standard error what others print: a user's module as it is imported, and processes that it starts.

    Raises:
        KubeRayError: Standard output is closed.
    """
    if sys.stdout is None:
        raise KubeRayError("standard output: is closed; send it to a file, or to another command")
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def print_manifest(manifest: Manifest, form: str, color: str) -> None:
    """Writes a manifest to standard output.

    Args:
        manifest: What to write.
        form: `yaml` or `json`.
        color: `always`, `never`, or `auto` for a terminal where NO_COLOR is not set.

    Raises:
        OSError: It can't be written; BrokenPipeError where the reader is gone.
    """
    text = format_yaml(manifest) if form == "yaml" else json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    if color == "always" or (color == "auto" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")):
        text = _colored(text, form)
    print_text(text)


def print_text(text: str) -> None:
    """Writes a text to standard output.

    Raises:
        OSError: It can't be written; BrokenPipeError where the reader is gone.
    """
    try:
        _write(text)
    except OSError:
        with suppress(OSError, ValueError):  # else Python complains about the rest at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, its cells one below the other; the last one may be of any length."""
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    padded = ([cell.ljust(width) for cell, width in zip(row, widths, strict=False)] for row in rows)
    return ["  ".join([*cells, row[-1]]).rstrip() for cells, row in zip(padded, rows, strict=True)]


def _write(text: str) -> None:
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:  # a caller's io.StringIO
        sys.stdout.write(text)
    else:  # UTF-8 whatever the locale: kubectl reads no other
        sys.stdout.flush()
        binary.write(text.encode())
        binary.flush()


def format_yaml(manifest: Manifest) -> str:
    """The manifest as YAML that YAML 1.1 and 1.2 read alike: keys in their order, long lines whole, no anchors."""
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=sys.maxsize)


class _Dumper(TextDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_lines(dumper: _Dumper, value: str) -> yaml.Node:
    if _LINE_BREAKS_OF_OLD.search(value):
        style = '"'
    elif "\n" in value:
        style = "|"
    else:
        return represent_text(dumper, value)
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _represent_lines)


def _colored(text: str, form: str) -> str:
    """The text with its keys in one colour."""
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Name

    lexer: Any = get_lexer_by_name(form, stripnl=False)  # type: ignore[no-untyped-call]  # Pygments has no types
    return "".join(f"\x1b[36m{part}\x1b[0m" if kind is Name.Tag else part for kind, part in lexer.get_tokens(text))
