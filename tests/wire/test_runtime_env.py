"""Ray's runtime environment as YAML that every reader understands alike."""

from typing import Any

import pytest
import yaml
from flyteidl.core.tasks_pb2 import TaskTemplate

from flytekitplugins.kuberay.errors import TaskError
from flytekitplugins.kuberay.wire import from_template, parse_runtime_env
from flytekitplugins.kuberay.wire.runtime_env import format_runtime_env


@pytest.mark.parametrize(
    "runtime_env",
    [
        pytest.param({"pip": ["numpy"]}, id="a package"),
        pytest.param(
            {"working_dir": ".", "excludes": [".git", "*.bin"], "b": {"a": None}, "c": [1, 0.5, True]}, id="more"
        ),
        pytest.param({"pip": ["numpy==1.26.4", "ray[default]>=2.9"], "env_vars": {"ON": "1", "É": "é"}}, id="versions"),
    ],
)
def test_other_text_is_written_as_upstream_writes_it(runtime_env: dict[str, Any]) -> None:
    """Where no reader could err, the text is that of flytekitplugins-ray."""
    assert format_runtime_env(runtime_env) == yaml.dump(runtime_env)


@pytest.mark.parametrize("text", ["08", "1e-5", "y", "-_1", "87E8_", "40e_3", "-0Xf", "0o17", "1:30"])
def test_text_that_go_reads_as_a_number_or_truth_value_is_quoted(text: str) -> None:
    """Found by giving 180,000 random texts to yaml.v2, yaml.v3 and sigs.k8s.io/yaml, which read the rest as text."""
    assert format_runtime_env({"k": text}) == f"k: '{text}'\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "a0: &a0 [x, x]\n" + "\n".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)), id="a bomb"
        ),
        pytest.param("a: &a [*a]", id="a list that holds itself"),
    ],
)
def test_aliases_without_bounds_are_refused(text: str) -> None:
    """They are short, and would take the connector's time and memory."""
    template = TaskTemplate(type="ray")
    template.custom.update({"rayCluster": {}, "runtimeEnvYaml": text})
    with pytest.raises(TaskError, match="grows out of all bounds by its aliases"):
        from_template(template)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param("pip: [a]\nb: {1: 0.5}\n", ({"pip": ["a"], "b": {1: 0.5}}, ""), id="a mapping"),
        pytest.param("# nothing\n", ({}, ""), id="nothing"),
        pytest.param(
            "{a: 2024-02-30, 2024-01-01: b, c: =, d: <<}",
            ({"a": "2024-02-30", "2024-01-01": "b", "c": "=", "d": "<<"}, ""),
            id="dates and the like are text",
        ),
        pytest.param("a: &a {b: c}\nd: {<<: *a}\n", ({"a": {"b": "c"}, "d": {"b": "c"}}, ""), id="a merge of mappings"),
        pytest.param("a: 1\n? [b]\n: c\n", ({}, "is no YAML (line 2)"), id="a list for a key"),
        pytest.param("a: " + "[" * 1000, ({}, "is no YAML (line 1)"), id="too deep"),
        pytest.param(
            "a: .inf", ({}, "holds what JSON has no word for, and Ray takes JSON"), id="a number that is none in JSON"
        ),
        pytest.param(
            "a: !!bool x", ({}, "holds what JSON has no word for, and Ray takes JSON"), id="a truth value that is none"
        ),
        pytest.param(
            "a: !!binary eA==",
            ({}, "holds what JSON has no word for, and Ray takes JSON"),
            id="bytes, whose text nobody would know for a secret",
        ),
        pytest.param("b: !!set {c, d}\n", ({"b": {"c": None, "d": None}}, ""), id="a set"),
        pytest.param("{a: 12:30, b: 7, c: 1:30.5}", ({"a": "12:30", "b": 7, "c": "1:30.5"}, ""), id="a time is text"),
        pytest.param("a: {null: b}", ({}, "is no YAML (line 1)"), id="a null for a key"),
        pytest.param("a: &a b\nc: *a\n", ({"a": "b", "c": "b"}, ""), id="a text that is named twice"),
        pytest.param(
            yaml.dump({"excludes": ("a", "b")}), ({"excludes": ["a", "b"]}, ""), id="a tuple as yaml.dump writes it"
        ),
        pytest.param("a: !b {c: 1}\nd: !e f\n", ({"a": {"c": 1}, "d": "f"}, ""), id="tags of somebody's own"),
        pytest.param("excludes: [!keep.txt]", ({}, "is no YAML (line 1)"), id="a text lost in a tag"),
    ],
)
def test_what_a_document_holds(document: str, expected: tuple[dict[str, Any], str]) -> None:
    """As KubeRay reads it on its way to JSON, or what is wrong with it."""
    assert parse_runtime_env(document) == expected
