"""Errors that hold problems, and what they show of a name."""

import copy
import pickle

import pytest

from flytekitplugins.kuberay.errors import ConfigError, Problem, ProblemsError, SettingsError, TaskError, up_to_value

ONE, TWO = Problem("a.b", "is 5", "write text"), Problem("c", "is missing")


@pytest.mark.parametrize(
    ("problems", "expected"),
    [
        pytest.param([ONE], "a.b: is 5; write text", id="one in one line"),
        pytest.param([ONE, TWO], "2 problems:\n  - a.b: is 5; write text\n  - c: is missing", id="two in a list"),
    ],
)
def test_an_error_says_its_problems(problems: list[Problem], expected: str) -> None:
    """The text of an error is that of its problems."""
    assert str(TaskError(problems)) == expected


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=kind.__name__) for kind in (ConfigError, SettingsError, TaskError)]
)
def test_an_error_survives_a_process(kind: type[ProblemsError]) -> None:
    """A copy, such as Ray brings from a worker, holds the same problems and says the same."""
    error = kind([ONE, TWO])
    for found in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert (type(found), found.problems, str(found), repr(found)) == (kind, (ONE, TWO), str(error), repr(error))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("TOKEN", "TOKEN", id="a name"),
        pytest.param("TOKEN=abc=", "TOKEN=...", id="a name and its value"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_up_to_value(text: str, expected: str) -> None:
    """A name is shown without what may be its value."""
    assert up_to_value(text) == expected
