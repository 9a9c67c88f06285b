"""The capsule: bounded, the ends kept, cuts marked, no secrets, and the verdict found in it again."""

from __future__ import annotations

import pytest
from flyteidl.core.execution_pb2 import TaskExecution
from hypothesis import given, settings
from hypothesis import strategies as st

from flytekitplugins.kuberay.cluster.capsule import (
    LONGEST,
    LogSource,
    LogTail,
    declared_in,
    format_capsule,
    logs_to_read,
    tail,
)
from flytekitplugins.kuberay.cluster.phase import Verdict
from flytekitplugins.kuberay.cluster.pods import PodView
from flytekitplugins.kuberay.cluster.redaction import REDACTED

from .scenes import CLUSTER, INITIALIZED, container, ended, failed, phase_name, pod, stuck, waiting

TEXTS = st.text() | st.builds(lambda text, times: text * times, st.text(min_size=1), st.integers(1, 60_000))
SECRET = "hunter22-hunter22"


def log(text: str, name: str = "p") -> LogTail:
    """The end of a container's log."""
    return LogTail(LogSource(name, "c"), text)


def test_a_capsule_holds_all_that_tells() -> None:
    """In sections, the verdict first."""
    text = format_capsule(
        "RETRYABLE_FAILED: no luck",
        {"jobStatus": "FAILED"},
        [failed("head", 137, "OOMKilled"), pod("cpu", deleted=True)],
        ["FailedMount: not found"],
        [log("one\ntwo")],
    )
    assert text == (
        "# RETRYABLE_FAILED: no luck\n\n"
        "## Pods\n"
        f"head: {CLUSTER}-head-1: Failed\n  container ray-head: exit code 137 OOMKilled\n"
        f"cpu: {CLUSTER}-cpu-1: Running, being deleted\n  container ray-worker: running\n\n"
        "## Events\nFailedMount: not found\n\n"
        '## Status of the RayJob\n{\n "jobStatus": "FAILED"\n}\n\n'
        "## Log of p, container c\none\ntwo\n"
    )


@settings(max_examples=25)
@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=3), st.lists(TEXTS, max_size=4))
def test_a_capsule_is_bounded(verdict: str, message: str, events: list[str], logs: list[str]) -> None:
    """Whatever is put into it."""
    text = format_capsule(verdict, {"message": message}, [], events, [log(each) for each in logs])
    assert len(text.encode()) <= LONGEST


@settings(max_examples=25)
@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_no_secret_is_in_a_capsule(before: str, verdict: str, event: str, end: str) -> None:
    """In no part of it, wherever a part is cut."""
    told = [f"{text}{SECRET}" for text in (verdict, event, before)]
    text = format_capsule(
        told[0], {"message": told[2]}, [], [told[1]], [log(f"{before}{SECRET}{end}")], secrets=frozenset([SECRET])
    )
    assert SECRET not in text
    assert "hunter22" not in text  # nor half of it


def test_what_pods_say_is_redacted_too() -> None:
    """A registry's answer may hold a password."""
    pods = [stuck("head", "ErrImagePull", f"denied for {SECRET}")]
    assert f"denied for {REDACTED}" in format_capsule("FAILED: no", {}, pods, [], [], secrets=frozenset([SECRET]))


@pytest.mark.parametrize("part", ["events", "logs", "status"])
def test_no_part_pushes_the_verdict_out(part: str) -> None:
    """It is what a connector that was started anew looks for."""
    loud = "x" * 2_000_000
    text = format_capsule(
        "FAILED: no luck",
        {"message": loud} if part == "status" else {},
        [],
        [loud] if part == "events" else [],
        [log(loud)] if part == "logs" else [],
    )
    assert declared_in(text) == Verdict(TaskExecution.FAILED, "no luck")


def test_the_end_of_each_log_is_kept() -> None:
    """It tells why; a cut is marked."""
    text = format_capsule("FAILED: no", {}, [], [], [log("x\n" * 500_000 + f"end {n}", f"p{n}") for n in range(4)])
    assert [f"end {n}\n" in text for n in range(4)] == [True] * 4
    assert text.count("[... cut here: ") == 4


@given(st.text(), st.integers(0, 500))
def test_a_tail_is_bounded(text: str, longest: int) -> None:
    """In bytes, which are what is stored."""
    assert len(tail(text, longest).encode()) <= max(longest, 0)


def test_a_tail_begins_with_a_line() -> None:
    """Not in the middle of one, and says how much is left out."""
    text = "".join(f"line {number}\n" for number in range(100))
    mark, _, kept = tail(text, 100).partition("\n")
    assert kept == "line 96\nline 97\nline 98\nline 99\n"
    assert mark == f"[... cut here: {len(text) - len(kept)} bytes left out ...]"


@given(st.sampled_from([TaskExecution.FAILED, TaskExecution.RETRYABLE_FAILED]), st.text().map(str.strip))
def test_a_verdict_is_found_again(phase: TaskExecution.Phase, message: str) -> None:
    """With every line of it, after a restart of the connector that declared it."""
    text = format_capsule(f"{phase_name(phase)}: {message}", {}, [], [], [])
    assert declared_in(text) == Verdict(phase, message)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("# USER_ERROR: no luck\n\n## Pods\n", id="the user's own error, which error.pb tells"),
        pytest.param("# SUCCEEDED: fine\n\n## Pods\n", id="no failure"),
        pytest.param("FAILED", id="something else"),
    ],
)
def test_another_text_holds_no_verdict(text: str) -> None:
    """Nothing is declared by it."""
    assert declared_in(text) is None


HEAD, SUBMITTER = pod("head"), pod("submitter")
BOTH = pod("head", container("ray-head", running=INITIALIZED), container("ray-job-submitter", running=INITIALIZED))
CRASHED = pod("cpu", container("ray-worker", waiting=waiting("CrashLoopBackOff"), last=ended(1)), policy="Always")


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(
            [HEAD, SUBMITTER, pod("cpu")], ["submitter/ray-job-submitter", "head/ray-head"], id="the job's own"
        ),
        pytest.param([BOTH], ["head/ray-job-submitter", "head/ray-head"], id="the job's own in SidecarMode"),
        pytest.param(
            [HEAD, SUBMITTER, failed("cpu", 1)],
            ["cpu/ray-worker", "submitter/ray-job-submitter", "head/ray-head"],
            id="what failed first",
        ),
        pytest.param([CRASHED], ["cpu/ray-worker (previous)"], id="the run before, of what waits to start again"),
        pytest.param([stuck("head", "ImagePullBackOff")], [], id="none that has begun"),
        pytest.param(
            [failed("cpu", 1, name=f"{CLUSTER}-w{n}-1") for n in range(9)],
            [f"w{n}/ray-worker" for n in range(4)],
            id="four at most",
        ),
    ],
)
def test_the_logs_that_tell_most_are_read(pods: list[PodView], expected: list[str]) -> None:
    """And no others: each costs a call."""
    found = [
        f"{each.pod.removeprefix(f'{CLUSTER}-').removesuffix('-1')}/{each.container}{' (previous)' * each.previous}"
        for each in logs_to_read(pods)
    ]
    assert found == expected
