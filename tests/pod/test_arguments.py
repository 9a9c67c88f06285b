"""Template variables in command and args; the texts of literals were printed by Go's `fmt`."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from flyteidl.core.literals_pb2 import Binary, Literal, Scalar
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.pod.arguments import argument_problems, format_literal, with_rendered_arguments
from tests.pod.samples import PREFIX, container_task


def text(value: str) -> dict[str, Any]:
    """A text as a literal."""
    return {"scalar": {"primitive": {"stringValue": value}}}


INPUTS = {
    "n": {"scalar": {"primitive": {"integer": "3"}}},
    "x.y": text("a b"),
    "loop": text("{{.inputs.n}}"),
    "a_map": {"map": {"literals": {}}},
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("{{.input}}", "s3://bucket/meta/p-d-f1/n0/data/inputs.pb", id="the inputs' file"),
        pytest.param("{{.inputPrefix}}", "s3://bucket/meta/p-d-f1/n0/data", id="its folder"),
        pytest.param("{{.outputPrefix}}", PREFIX, id="the output prefix"),
        pytest.param("{{.rawOutputDataPrefix}}", f"{PREFIX}/raw_output", id="raw data below it"),
        pytest.param(
            "{{.checkpointOutputPrefix}}", f"{PREFIX}/raw_output/_flytecheckpoints", id="checkpoints below that"
        ),
        pytest.param("{{.prevCheckpointPrefix}}", '""', id="no checkpoint before is two quotes"),
        pytest.param("{{.taskTemplatePath}}", "s3://bucket/meta/p-d-f1/n0/data/task.pb", id="the task template's file"),
        pytest.param("{{.perRetryUniqueKey}}", "bucket_meta_p_d_f1_n0_data_0", id="a word of the attempt's own"),
        pytest.param("{{.namespace}}", "p-d", id="the namespace"),
        pytest.param(
            "--out={{ $OUTPUTPREFIX }}/x", f"--out={PREFIX}/x", id="any letter case, blanks, a dollar, within text"
        ),
        pytest.param("{{.inputs.n}}-{{.Inputs.x.y}}", "3-a b", id="inputs by name, dots included"),
        pytest.param("{{.inputs.loop}}", "{{.inputs.n}}", id="what an input holds is not rendered again"),
        pytest.param("{{.unknown}} {{input}} ${x}", "{{.unknown}} {{input}} ${x}", id="anything else stays"),
        pytest.param("{{.inputs.absent}}", "{{.inputs.absent}}", id="an input that was not sent stays"),
    ],
)
def test_variables(template: str, expected: str) -> None:
    """Each variable of Flyte's is replaced, in command and args alike."""
    container = {"name": "c", "command": [template], "args": ["x", template]}
    rendered = with_rendered_arguments(container, container_task(inputs=INPUTS))
    assert rendered == {"name": "c", "command": [expected], "args": ["x", expected]}


def test_rendering_twice_is_rendering_once() -> None:
    """Rendered arguments come through unchanged: newer propellers render before they call a connector."""
    task = container_task(inputs={"n": INPUTS["n"]})
    once = with_rendered_arguments({"args": ["{{.input}}", "{{.inputs.n}}", "{{.prevCheckpointPrefix}}"]}, task)
    assert with_rendered_arguments(once, task) == once


def test_nothing_to_render() -> None:
    """A container without command and args gets neither."""
    assert with_rendered_arguments({"name": "c", "args": []}, container_task()) == {"name": "c", "args": []}


def test_argument_problems() -> None:
    """Inputs that are not there or have no text form are reported with their places and the inputs that are there."""
    container = {"command": ["{{.inputs.n}}"], "args": ["{{.inputs.absent}} {{.inputs.a_map}}"]}
    problems = argument_problems(container, container_task(inputs=INPUTS), "container")
    assert [str(problem) for problem in problems] == [
        "container.args[0]: no input is called 'absent'; the task's inputs: a_map, loop, n, x.y",
        "container.args[0]: input 'a_map' is a map or empty, which has no text form; "
        "pass it by file, not as an argument",
    ]


@pytest.mark.parametrize("inputs", [pytest.param(None, id="none sent"), pytest.param({}, id="an empty map sent")])
def test_no_argument_problems_without_inputs(inputs: dict[str, Any] | None) -> None:
    """Where no inputs were sent, nothing can be said of them."""
    assert list(argument_problems({"args": ["{{.inputs.n}}"]}, container_task(inputs=inputs), "container")) == []


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        pytest.param(text("a b"), "a b", id="text"),
        pytest.param({"scalar": {"primitive": {"boolean": True}}}, "true", id="a boolean in Go's letters"),
        pytest.param({"scalar": {"primitive": {"integer": "-7"}}}, "-7", id="an integer"),
        pytest.param({"scalar": {"primitive": {"floatValue": 3.0}}}, "3", id="a whole float"),
        pytest.param(
            {"scalar": {"primitive": {"floatValue": 1e6}}}, "1e+06", id="a large float has an exponent of two digits"
        ),
        pytest.param({"scalar": {"primitive": {"floatValue": 999999}}}, "999999", id="below a million it has none"),
        pytest.param(
            {"scalar": {"primitive": {"floatValue": 1234567.5}}}, "1.2345675e+06", id="with the shortest digits"
        ),
        pytest.param({"scalar": {"primitive": {"floatValue": 0.0001}}}, "0.0001", id="a small float"),
        pytest.param({"scalar": {"primitive": {"floatValue": 0.00001}}}, "1e-05", id="a smaller one has an exponent"),
        pytest.param({"scalar": {"primitive": {"floatValue": -0.0}}}, "-0", id="minus zero"),
        pytest.param({"scalar": {"primitive": {"floatValue": "-Infinity"}}}, "-Inf", id="infinity"),
        pytest.param({"scalar": {"primitive": {"floatValue": "NaN"}}}, "NaN", id="not a number"),
        pytest.param(
            {"scalar": {"primitive": {"datetime": "2024-01-02T03:04:05.500Z"}}}, "2024-01-02T03:04:05.5Z", id="a time"
        ),
        pytest.param(
            {"scalar": {"primitive": {"datetime": "2024-01-02T03:04:50Z"}}}, "2024-01-02T03:04:50Z", id="a whole second"
        ),
        pytest.param(
            {"scalar": {"primitive": {"duration": "90s"}}}, "seconds:90", id="a duration as its message's text"
        ),
        pytest.param({"scalar": {"blob": {"uri": "s3://b/x"}}}, "s3://b/x", id="a blob's address"),
        pytest.param({"scalar": {"schema": {"uri": "s3://b/y"}}}, "s3://b/y", id="a schema's address"),
        pytest.param({"collection": {"literals": [text("a"), text("b")]}}, "[a,b]", id="a list"),
    ],
)
def test_format_literal(literal: dict[str, Any], expected: str) -> None:
    """A literal's text is the one that Flyte's Go code writes."""
    assert format_literal(ParseDict(literal, Literal())) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(5, "5", id="an integer"),
        pytest.param(
            {"b": 1, "a": [True, None, 1.5, "x"]}, "map[a:[true <nil> 1.5 x] b:1]", id="a map, its keys sorted"
        ),
        pytest.param(b"\x01\x02", "[1 2]", id="bytes as numbers"),
    ],
)
def test_format_msgpack(value: Any, expected: str) -> None:
    """A value of the SDK's msgpack form is written as Go's %v writes it."""
    packed = Binary(value=msgpack.packb(value), tag="msgpack")
    assert format_literal(Literal(scalar=Scalar(binary=packed))) == expected


@pytest.mark.parametrize(
    "literal",
    [
        pytest.param(Literal(), id="nothing"),
        pytest.param(ParseDict(INPUTS["a_map"], Literal()), id="a map"),
        pytest.param(ParseDict({"scalar": {"primitive": {}}}, Literal()), id="an empty primitive"),
        pytest.param(ParseDict({"scalar": {"noneType": {}}}, Literal()), id="none"),
        pytest.param(ParseDict({"scalar": {"generic": {}}}, Literal()), id="a Struct"),
        pytest.param(Literal(scalar=Scalar(binary=Binary(value=b"x", tag="other"))), id="bytes of an unknown form"),
        pytest.param(Literal(scalar=Scalar(binary=Binary(value=b"\xc1", tag="msgpack"))), id="broken msgpack"),
    ],
)
def test_no_text_form(literal: Literal) -> None:
    """Other literals have no text form, and that is said."""
    with pytest.raises(ValueError, match="no text form"):
        format_literal(literal)
