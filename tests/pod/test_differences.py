"""What a comparison with Flyte's own Go code brought up: each fact was checked by running that code."""

from __future__ import annotations

import base64
from typing import Any

import msgpack
import pytest
from flyteidl.core.literals_pb2 import Literal
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.errors import TaskError
from flytekitplugins.kuberay.pod.arguments import format_literal
from tests.pod import samples


def primitive(**value: Any) -> dict[str, Any]:
    """A literal's protobuf JSON."""
    return {"scalar": {"primitive": value}}


def packed(value: bytes) -> dict[str, Any]:
    """A literal of msgpack data."""
    return {"scalar": {"binary": {"tag": "msgpack", "value": base64.b64encode(value).decode()}}}


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        pytest.param(primitive(datetime="2020-01-02T03:04:50Z"), "2020-01-02T03:04:50Z", id="a whole second"),
        pytest.param(
            primitive(datetime="2020-01-02T03:04:05.120Z"), "2020-01-02T03:04:05.12Z", id="a fraction's zeros go"
        ),
        pytest.param(primitive(duration="90s"), "seconds:90", id="a duration is protobuf's text"),
        pytest.param(primitive(duration="-1.5s"), "seconds:-1 nanos:-500000000", id="a fraction of a duration"),
        pytest.param(primitive(duration="0s"), "", id="no duration is no text"),
        pytest.param(packed(msgpack.packb({10: 1, 2: b"ab"})), "map[2:[97 98] 10:1]", id="numbers as keys go by size"),
    ],
)
def test_literals_read_as_go_writes_them(literal: dict[str, Any], expected: str) -> None:
    """An input in an argument has the text that Flyte's Go code gives it."""
    assert format_literal(ParseDict(literal, Literal())) == expected


@pytest.mark.parametrize(
    "literal",
    [
        pytest.param(packed(b"\x81\x91\x01\x01"), id="a list as a key"),
        pytest.param(packed(b"\x91" * 500 + b"\x01"), id="lists in lists without end"),
        pytest.param(packed(b"\x93\x01"), id="data that end too early"),
        pytest.param({"scalar": {"primitive": {}}}, id="a primitive without a value"),
    ],
)
def test_literals_without_a_text_are_refused(literal: dict[str, Any]) -> None:
    """What Flyte can't put into an argument is a problem at that argument, never another exception."""
    task = samples.container_task(inputs={"x": literal}, container={"args": ["run", "{{.inputs.x}}"]})
    with pytest.raises(TaskError, match=r"container\.args\[1\]: input 'x'"):
        build_ray_job(task, samples.settings())


def test_without_inputs_nothing_is_replaced() -> None:
    """Where no input was sent at all, `{{.inputs.x}}` is the task's own text, as in Flyte."""
    task = samples.container_task(inputs={}, container={"args": ["echo", "{{.inputs.x}}"]})
    assert build_ray_job(task, samples.settings())["spec"]["entrypoint"] == "echo '{{.inputs.x}}'"
