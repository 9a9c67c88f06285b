"""What a job in SidecarMode comes to while its cluster is not up; docs/failures.md has the failures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flytekitplugins.kuberay.cluster.phase import Results

from .scenes import (
    FATAL,
    INITIALIZED,
    OUTPUTS,
    STARTING,
    Scene,
    ago,
    at_start,
    beside,
    ended,
    phase_name,
    pod,
    stuck,
)

WORKER = stuck("cpu", "", created=INITIALIZED)
DONE = beside(terminated=ended(0))


@pytest.mark.parametrize(
    ("scene", "expected"),
    [
        pytest.param(at_start(DONE, WORKER, results=OUTPUTS), "SUCCEEDED", id="outputs stand"),
        pytest.param(at_start(DONE, WORKER, has_outputs=False), "SUCCEEDED", id="none are declared"),
        pytest.param(at_start(DONE, WORKER), "RETRYABLE_FAILED", id="declared outputs do not stand"),
        pytest.param(
            at_start(DONE, WORKER, results=Results(unreadable="denied")), "SUCCEEDED", id="nobody could look for them"
        ),
        pytest.param(at_start(DONE, WORKER, results=FATAL, has_outputs=False), "FAILED", id="a user's error stands"),
        pytest.param(
            at_start(replace(beside(running=INITIALIZED), terminating=True), WORKER),
            "RETRYABLE_FAILED",
            id="its head is being deleted",
        ),
        pytest.param(at_start(beside(running=INITIALIZED), WORKER), "INITIALIZING", id="it may run, nobody knows"),
        pytest.param(
            at_start(replace(beside(waiting={"reason": "ContainerCreating"}), terminating=True), WORKER),
            "INITIALIZING",
            id="its head goes before its submitter began",
        ),
        pytest.param(
            Scene(STARTING, (beside(running=INITIALIZED), stuck("cpu", "", created=ago(minutes=1)))),
            "INITIALIZING",
            id="a worker that is made anew is no sign of another head",
        ),
        pytest.param(
            Scene(STARTING, (pod(created=ago(minutes=1)), WORKER)),
            "INITIALIZING",
            id="nor is a head made anew whose job waits for the workers, as in other modes",
        ),
        pytest.param(
            Scene(replace(STARTING, going=True), (DONE, WORKER), Results()), "INITIALIZING", id="it is being deleted"
        ),
    ],
)
def test_an_early_end_is_told(scene: Scene, expected: str) -> None:
    """At once, by the result files before the submitter."""
    assert phase_name(scene.verdict().phase) == expected
