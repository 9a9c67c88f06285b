"""The examples, and the README's, do what they say: they run on Ray here, and become the RayJob beside them."""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path

import pytest

from flytekitplugins.kuberay import ConfigError, RayJobConfig, WorkerNodeConfig
from tests.command import output_of

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
README = ROOT.joinpath("README.md").read_text(encoding="utf-8")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("FLYTE_")} | {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def readme_block(language: str) -> str:
    """The README's first block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("example", [pytest.param(path, id=path.stem) for path in EXAMPLES])
def test_an_example_becomes_the_rayjob_beside_it(example: Path, golden: bool) -> None:
    """`flyte-kuberay render` prints exactly the YAML beside the example; `make golden` writes it anew."""
    got = output_of(BIN / "flyte-kuberay", "render", example.relative_to(ROOT), cwd=ROOT, env=ENVIRONMENT)
    if golden:
        example.with_suffix(".yaml").write_text(got, encoding="utf-8")
    assert example.with_suffix(".yaml").read_text(encoding="utf-8") == got


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("example", "arguments", "expected"),
    [
        pytest.param("squares.py", ["sum_of_squares", "--n", "10"], 285, id="squares"),
        pytest.param("pod_templates.py", ["count_words", "--text", "a b a"], {"a": 2, "b": 1}, id="pod templates"),
    ],
)
def test_an_example_runs_here(example: str, arguments: list[str], expected: object) -> None:
    """`pyflyte run` runs the example on Ray in its own process and prints the result last."""
    printed = output_of(BIN / "pyflyte", "run", f"examples/{example}", *arguments, cwd=ROOT, env=ENVIRONMENT)
    assert ast.literal_eval(printed.splitlines()[-1]) == expected


@pytest.mark.e2e
def test_the_readmes_example_runs(tmp_path: Path) -> None:
    """The README's example is a whole program, of 15 lines at most, and gives the sum of the squares."""
    program = readme_block("python")
    assert len([line for line in program.splitlines() if line]) <= 15
    (tmp_path / "squares.py").write_text(program, encoding="utf-8")
    printed = output_of(
        BIN / "pyflyte", "run", "squares.py", "sum_of_squares", "--n", "10", cwd=tmp_path, env=ENVIRONMENT
    )
    assert ast.literal_eval(printed.splitlines()[-1]) == 285


def test_the_readmes_error_is_the_real_one() -> None:
    """The message that the README shows is what such a mistake gives."""
    workers = [WorkerNodeConfig(group_name=name, replicas=1) for name in ("cpu", "CPU")]
    with pytest.raises(ConfigError) as caught:
        RayJobConfig(worker_node_config=workers, ttl_seconds_after_finished=-5)
    assert readme_block("text") == f"{caught.value}\n"
