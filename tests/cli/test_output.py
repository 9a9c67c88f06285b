"""The output: YAML that every reader understands alike, JSON, colours on a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.cli.output import format_yaml, print_manifest
from flytekitplugins.kuberay.wire import Manifest
from tests.cli.running import golden


# What some YAML reader, 1.1 or 1.2, Go's or Python's, takes for something else than text.
AMBIGUOUS = (
    "on off yes no y n Y N true null ~ 1e-5 1e3 .5 08 0o7 -0o7 0x1F -0X1F 0b1 1_000 12:30:45 2024-11-07 .inf .nan "
    "= << - * & !"
).split()


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_ambiguous_text_is_quoted(text: str) -> None:
    """Text that a YAML reader might take for something else is quoted, as a value and as a key."""
    assert format_yaml({"a": text}) == f"a: '{text}'\n"
    assert format_yaml({text: 1}) == f"'{text}': 1\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("pip:\n- torch\n", "a: |\n  pip:\n  - torch\n", id="lines as lines"),
        pytest.param("first\nlast", "a: |-\n  first\n  last\n", id="lines without an end"),
        pytest.param("Größe 你好 🚀", "a: Größe 你好 🚀\n", id="letters of all alphabets"),
        pytest.param("x " * 100 + "x", f"a: {'x ' * 100}x\n", id="a long line in one"),
        pytest.param("a\u2028b", 'a: "a\\Lb"\n', id="a line break of YAML 1.1 only"),
        pytest.param([{"b": 1}, []], "a:\n- b: 1\n- []\n", id="lists as kubectl writes them"),
    ],
)
def test_yaml_for_people(value: Any, expected: str) -> None:
    """YAML is in block style, with lines and letters as they are."""
    assert format_yaml({"a": value}) == expected


def test_no_anchors() -> None:
    """A value that stands in two places is written twice."""
    shared = {"x": "z"}
    assert format_yaml({"a": shared, "b": shared}) == "a:\n  x: z\nb:\n  x: z\n"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(AMBIGUOUS)
VALUES = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_yaml_gives_the_manifest_back(manifest: Manifest) -> None:
    """What is written is read as it was, with its order."""
    assert json.dumps(yaml.safe_load(format_yaml(manifest))) == json.dumps(manifest)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_colours_change_nothing_else(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With --color the keys are in colour; without the colours it is the same text."""
    job = golden("container-minimal").build()
    print_manifest(job, form, "always")
    colored = capsys.readouterr().out
    print_manifest(job, form, "never")
    plain = capsys.readouterr().out
    key = '"kind"' if form == "json" else "kind"
    assert (f"\x1b[36m{key}\x1b[0m" in colored, re.sub(r"\x1b\[\d+m", "", colored)) == (True, plain)


@pytest.mark.parametrize(
    ("color", "no_color", "expected"),
    [
        pytest.param("auto", "", "\x1b[36ma\x1b[0m: b\r\n", id="auto"),
        pytest.param("auto", "1", "a: b\r\n", id="auto with NO_COLOR"),
        pytest.param("never", "", "a: b\r\n", id="never"),
        pytest.param("always", "1", "\x1b[36ma\x1b[0m: b\r\n", id="always with NO_COLOR"),
    ],
)
def test_colours_on_a_terminal(color: str, no_color: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal keys are in colour unless NO_COLOR is set or --color says otherwise."""
    monkeypatch.setenv("NO_COLOR", no_color)
    own, terminal = os.openpty()
    with open(terminal, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        print_manifest({"a": "b"}, "yaml", color)
        monkeypatch.undo()
        assert os.read(own, 100).decode() == expected
    os.close(own)


def test_no_colours_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Where standard output is no terminal there are no colours."""
    print_manifest({"a": "b"}, "yaml", "auto")
    assert capsys.readouterr().out == "a: b\n"
