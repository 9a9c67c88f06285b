"""Every golden case: what we build of it against what it expects, by the comparison of `compare.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from flytekitplugins.kuberay.errors import TaskError
from flytekitplugins.kuberay.wire import Manifest
from tests.golden.case import FILES, Case, read_case
from tests.golden.compare import differences


def built(case: Case) -> Manifest:
    """The manifest of a case, or the error that refuses it, in the form that the comparison takes."""
    try:
        return case.build()
    except TaskError as error:
        return {"error": str(error)}


def test_cases_are_there() -> None:
    """The cases are copied whole: 112 of today's SDK and 6 of older ones."""
    assert [len(FILES), len([path for path in FILES if path.parent.name == "wire"])] == [118, 6]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
def test_golden(path: Path) -> None:
    """The case gives what it expects."""
    case = read_case(path)
    assert differences(case.raw["expected"], built(case)) == []


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
def test_build_changes_nothing(path: Path) -> None:
    """A build leaves task, settings and base PodTemplate as they were, so that the next one gives the same."""
    case, untouched = read_case(path), read_case(path)
    results = [built(case), built(case)]
    assert (case, results[0]) == (untouched, results[1])
