"""A submitter's own command where KubeRay's command line would spoil what it carries (design D6)."""

from __future__ import annotations

import json
import shlex

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.cluster.submit_command import submit_command


@pytest.mark.parametrize(
    ("argv", "runtime_env", "own"),
    [
        pytest.param(["pyflyte-execute", "--inputs", "s3://b/x.pb", ""], "", False, id="ordinary arguments"),
        pytest.param(["a b", 'say "hi"', "k=v", "50%"], "pip: [torch]\n", False, id="blanks and double quotes"),
        pytest.param(["it's"], "", True, id="a single quote"),
        pytest.param(["$HOME"], "", True, id="a dollar"),
        pytest.param(["a;b"], "", True, id="a semicolon"),
        pytest.param(["a\nb"], "", True, id="a newline"),
        pytest.param(["ä"], "", True, id="a letter that is no ASCII"),
        pytest.param(["a"], "env_vars: {A: $HOME}\n", True, id="a dollar in the runtime environment"),
        pytest.param(["a"], "env_vars: {A: '`x`'}\n", True, id="a backtick in the runtime environment"),
    ],
)
def test_when(argv: list[str], runtime_env: str, own: bool) -> None:
    """D6 (design): KubeRay's command stays where it brings the arguments over whole."""
    assert ("command" in submit_command(argv, runtime_env)) is own


@hypothesis.settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))), st.text("$`(){}'\"\\ab"))
def test_what(argv: list[str], value: str) -> None:
    """D6 (design): it gets entrypoint and runtime environment as data, with nothing that the kubelet replaces."""
    runtime_env = {"env_vars": {"A": f"{value}$"}}
    entrypoint, shown = submit_command(argv, json.dumps(runtime_env))["args"]
    assert [shlex.split(entrypoint), json.loads(shown)] == [argv, runtime_env]
    assert [text for text in (entrypoint, shown) if "$(" in text or "$$" in text] == []
