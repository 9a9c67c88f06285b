"""Text stays text in what is written as YAML."""

from __future__ import annotations

import re

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flytekitplugins.kuberay.wire.yaml_text import TextDumper

NO_TEXT = re.compile(
    # YAML 1.2, chapter 10.3.2, the core schema's tags
    r"null|Null|NULL|~|true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN"
    # YAML 1.1, https://yaml.org/type: bool, int, float, timestamp, merge, value
    r"|y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF|[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)"
    r"|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+"
    r"|[-+]?([0-9][0-9_]*\.[0-9.]*|\.[0-9][0-9.]*)([eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[0-9]{4}-[0-9]{2}-[0-9]{2}|<<|="
)
"""Plain scalars that some reader does not take for text, by both specifications (1.1's own pattern also takes a lone
point for a number, as no reader does)."""

texts = (
    st.text(max_size=12)
    | st.from_regex(NO_TEXT, fullmatch=True)
    | st.text(alphabet="0123456789eExo_.:+-yn", max_size=6)
)


@settings(deadline=None)  # CI's machines are slow at times
@given(texts)
@example("1e-5")
@example("08")
@example("1_000")
@example("on")
@example("y")
def test_text_stays_text_for_every_reader(text: str) -> None:
    """Text that a YAML 1.1 or 1.2 reader, or Go's, would take for a number or a truth value is quoted."""
    written = yaml.dump({"k": [text]}, Dumper=TextDumper)
    assert yaml.safe_load(written) == {"k": [text]}
    plain = re.fullmatch(r"k:\n- ([^\"'|>].*)\n", written)
    assert plain is None or not NO_TEXT.fullmatch(plain[1])
