"""Why pods are not up, and how they ended: one line each, and when it is final."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.cluster.diagnosis import (
    Cause,
    Trouble,
    Waiting,
    format_duration,
    head_loss,
    is_final,
    is_permanent,
    pod_failures,
    submitter_end,
    trouble_of,
    unexplained,
    waiting_groups,
)
from flytekitplugins.kuberay.cluster.pods import PodView
from flytekitplugins.kuberay.settings import Settings, parse_settings

from .scenes import (
    CLUSTER,
    INITIALIZED,
    NOT_FOUND,
    NOW,
    PREEMPTED,
    PROVISIONED,
    UP,
    ago,
    container,
    ended,
    failed,
    pod,
    stuck,
    unschedulable,
    waiting,
)

NATIVE_SIDECAR = {**container("mesh", running=INITIALIZED), "restartPolicy": "Always"}
LINES = [
    pytest.param(
        unschedulable("head", "0/4 nodes are available: 4 Insufficient nvidia.com/gpu", since=ago(minutes=3)),
        "head: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu (3m)",
        Cause.UNSCHEDULABLE,
        id="no node can take it",
    ),
    pytest.param(
        unschedulable("cpu", "", gates=("example.com/ready",), since=ago(minutes=3)),
        "worker group cpu: held back by the scheduling gates example.com/ready (3m)",
        Cause.UNSCHEDULABLE,
        id="a gate holds it back",
    ),
    pytest.param(
        stuck("head", "ImagePullBackOff", NOT_FOUND, since=ago(seconds=20)),
        f"head: container ray-head: ImagePullBackOff: {NOT_FOUND} (20s)",
        Cause.IMAGE_PULL,
        id="the registry's answer",
    ),
    pytest.param(
        stuck("head", "ErrImageNeverPull", "not on the node", since=ago(seconds=20)),
        "head: container ray-head: ErrImageNeverPull: not on the node (20s)",
        Cause.CONFIG,
        id="an image that nobody pulls",
    ),
    pytest.param(
        pod(
            "head",
            container(
                "ray-head", waiting=waiting("CrashLoopBackOff", "back-off"), last=ended(137, "OOMKilled"), restarts=2
            ),
            policy="Always",
            ready=False,
            since=ago(minutes=1),
        ),
        "head: container ray-head: crashed 2 times, last with exit code 137 (OOMKilled) (1m)",
        Cause.CRASH,
        id="a crash loop for memory",
    ),
    pytest.param(
        pod(
            "cpu",
            container("ray-worker", waiting=waiting("PodInitializing")),
            phase="Pending",
            inits=[
                container("data", waiting=waiting("CrashLoopBackOff"), last=ended(2, "Error", "no bucket"), restarts=1)
            ],
            since=ago(hours=2, minutes=5),
        ),
        "worker group cpu: init container data: crashed 1 times, last with exit code 2: no bucket (2h5m)",
        Cause.CRASH,
        id="an init container that crashes",
    ),
    pytest.param(
        pod(
            "cpu",
            container("ray-worker", waiting=waiting("PodInitializing")),
            phase="Pending",
            inits=[container("data", terminated=ended(2))],
            policy="OnFailure",
            since=NOW,
        ),
        "worker group cpu: init container data ended with exit code 2 (0s)",
        Cause.INIT,
        id="an init container between two tries",
    ),
    pytest.param(
        pod(
            "cpu",
            container("ray-worker", waiting=waiting("PodInitializing")),
            phase="Pending",
            inits=[container("data", running=NOW)],
            since=NOW,
        ),
        "worker group cpu: init container data is running (0s)",
        Cause.STARTING,
        id="an init container at work",
    ),
    pytest.param(
        pod(
            "cpu",
            container("ray-worker", waiting=waiting("PodInitializing")),
            phase="Pending",
            inits=[NATIVE_SIDECAR, container("wait-gcs-ready", running=NOW)],
            since=NOW,
        ),
        "worker group cpu: waits for the head (0s)",
        Cause.STARTING,
        id="KubeRay's init container, after one that lasts",
    ),
    pytest.param(
        pod("head", container("ray-head", running=INITIALIZED), inits=[NATIVE_SIDECAR], ready=False, since=NOW),
        "head: running, not ready yet (0s)",
        Cause.STARTING,
        id="a sidecar that lasts is no wait",
    ),
    pytest.param(
        stuck("head", "NovelError", "what is it", since=NOW),
        "head: container ray-head: NovelError: what is it (0s)",
        Cause.STARTING,
        id="a reason to come",
    ),
    pytest.param(
        pod("cpu", phase="Failed", conditions=PREEMPTED, since=NOW),
        f"worker group cpu: pod {CLUSTER}-cpu-1: PreemptionByScheduler"
        " preempting to accommodate a higher priority pod (0s)",
        Cause.STARTING,
        id="a pod that was taken away",
    ),
    pytest.param(
        unschedulable("submitter", "0/4 nodes are available", since=NOW),
        "submitter: 0/4 nodes are available (0s)",
        Cause.UNSCHEDULABLE,
        id="the submitter",
    ),
]


@pytest.mark.parametrize(("seen", "line", "cause"), LINES)
def test_a_line_names_group_cause_and_time(seen: PodView, line: str, cause: Cause) -> None:
    """In words for who wrote the task."""
    (found,) = waiting_groups([seen])
    assert (found.line(NOW), found.cause) == (line, cause)


def test_pods_of_one_group_and_cause_share_a_line() -> None:
    """With their number, and the longest wait."""
    pods = [unschedulable("cpu", "no node", name=f"p{minutes}", since=ago(minutes=minutes)) for minutes in (1, 9, 3)]
    assert [each.line(NOW) for each in waiting_groups(pods)] == ["worker group cpu (3 pods): no node (9m)"]


def test_a_worker_group_called_head_has_a_line_of_its_own() -> None:
    """After the head's."""
    pods = [unschedulable("head", "no node", role="worker", since=NOW), unschedulable("head", "no node", since=NOW)]
    assert [each.line(NOW) for each in waiting_groups(pods)] == [
        "head: no node (0s)",
        "worker group head: no node (0s)",
    ]


def test_the_head_comes_first_then_what_needs_a_person() -> None:
    """Workers wait for the head anyway."""
    pods = [
        stuck("cpu", "ContainerCreating"),
        unschedulable("gpu", "no node"),
        stuck("cpu", "InvalidImageName", name="p2"),
        stuck("head", "ContainerCreating"),
    ]
    assert [(each.group, each.cause) for each in waiting_groups(pods)] == [
        ("head", Cause.STARTING),
        ("cpu", Cause.INVALID_IMAGE),
        ("gpu", Cause.UNSCHEDULABLE),
        ("cpu", Cause.STARTING),
    ]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(pod("head"), id="ready"),
        pytest.param(stuck("head", "ImagePullBackOff", deleted=True), id="being deleted"),
        pytest.param(pod("submitter", container("s", terminated=ended(0)), phase="Succeeded"), id="done"),
        pytest.param(failed("submitter", 1), id="a submitter that failed"),
    ],
)
def test_nobody_waits_for_these(seen: PodView) -> None:
    """They are up, or will never be, or another takes their place."""
    assert waiting_groups([seen]) == []


def graces(**parts: str) -> Settings:
    """Settings with these of `plugins.k8s`."""
    return parse_settings({"plugins": {"k8s": {key.replace("_", "-"): value for key, value in parts.items()}}})


@pytest.mark.parametrize(
    ("cause", "grace", "default"),
    [
        pytest.param(Cause.INVALID_IMAGE, "", timedelta(0), id="an image's name"),
        pytest.param(Cause.CONFIG, "create_container_config_error_grace_period", timedelta(0), id="config"),
        pytest.param(Cause.CREATE, "create_container_error_grace_period", timedelta(minutes=3), id="creation"),
        pytest.param(Cause.IMAGE_PULL, "image_pull_backoff_grace_period", timedelta(minutes=3), id="image pull"),
        pytest.param(Cause.CRASH, "image_pull_backoff_grace_period", timedelta(minutes=3), id="crash"),
    ],
)
def test_a_cause_has_its_grace(cause: Cause, grace: str, default: timedelta) -> None:
    """flytek8s' own settings, with their defaults."""

    def final(since: timedelta, settings: Settings) -> bool:
        return is_final(Waiting("head", "head", 1, cause, "", NOW - since), settings, NOW)

    assert final(default, Settings())
    assert not final(default - timedelta(seconds=1), Settings())
    if grace:
        longer = graces(**{grace: "10m"})
        assert (final(timedelta(minutes=9), longer), final(timedelta(minutes=10), longer)) == (False, True)


@pytest.mark.parametrize("cause", [Cause.UNSCHEDULABLE, Cause.STARTING, Cause.INIT])
def test_what_takes_its_time_is_not_final(cause: Cause) -> None:
    """A quota, an autoscaler of nodes, a large image, data to be copied: unless the platform sets a limit."""
    long = Waiting("head", "head", 1, cause, "", ago(days=1), pending=True)
    assert not is_final(long, Settings(), NOW)
    assert is_final(long, graces(pod_pending_timeout="12h"), NOW)
    assert not is_final(long, graces(pod_pending_timeout="-1s"), NOW)  # as in flytek8s


@pytest.mark.parametrize("cause", Cause)
def test_what_another_attempt_would_meet_again_is_permanent(cause: Cause) -> None:
    """As in flytek8s, where these fail and the others may be tried again."""
    permanent = cause in (Cause.INVALID_IMAGE, Cause.CONFIG, Cause.CREATE)
    assert is_permanent(Waiting("head", "head", 1, cause, "", NOW)) == permanent


class TestTrouble:
    """The grace of a trouble counts from when it was seen first."""

    BAD = waiting_groups([stuck("head", "ImagePullBackOff", NOT_FOUND, since=ago(hours=1))])
    GOOD = waiting_groups([stuck("head", "ContainerCreating")])

    def test_it_begins_when_it_is_seen(self) -> None:
        """Though the pod is as it is since an hour: it pulled."""
        trouble = trouble_of(self.BAD, None, NOW)
        assert trouble == Trouble(NOW, NOW)
        assert not is_final(self.BAD[0], Settings(), NOW, trouble)

    def test_it_goes_on_over_moments_that_look_well(self) -> None:
        """A crash loop's pods start again and again."""
        seen = trouble_of(self.BAD, None, NOW)
        well = trouble_of(self.GOOD, seen, NOW + timedelta(minutes=1))
        again = trouble_of(self.BAD, well, NOW + timedelta(minutes=2))
        assert again == Trouble(NOW, NOW + timedelta(minutes=2))
        later = NOW + timedelta(minutes=4)
        assert is_final(self.BAD[0], Settings(), later, trouble_of(self.BAD, again, later))

    def test_it_is_forgiven_after_two_minutes_without(self) -> None:
        """The next one has its own grace."""
        old = Trouble(ago(minutes=9), ago(minutes=4), fine=ago(minutes=3))
        assert trouble_of(self.GOOD, old, NOW) is None
        assert trouble_of(self.BAD, old, NOW) == Trouble(NOW, NOW)

    def test_looks_far_apart_do_not_forgive(self) -> None:
        """Nothing was seen well in between."""
        old = Trouble(ago(hours=1), ago(minutes=30))
        assert trouble_of(self.BAD, old, NOW) == Trouble(ago(hours=1), NOW)

    def test_none_is_none(self) -> None:
        """A cluster that comes up as it should."""
        assert trouble_of(self.GOOD, None, NOW) is None


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], [], id="no pods at all, as for a quota"),
        pytest.param([stuck("head", "ContainerCreating")], [f"{CLUSTER}-head-1"], id="a volume, perhaps"),
        pytest.param([unschedulable("head", "no node")], None, id="a pod that tells"),
        pytest.param([pod("head", ready=False)], [], id="a pod that runs"),
    ],
)
def test_events_are_asked_for_where_no_pod_tells(pods: list[PodView], expected: list[str] | None) -> None:
    """They cost a call."""
    assert unexplained(pods) == expected


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param(UP, "", id="the head it began with"),
        pytest.param([pod(created=PROVISIONED)], "", id="made in the same second"),
        pytest.param([pod("cpu")], "the head pod is gone", id="gone"),
        pytest.param(
            [pod("head", container("ray-head", running=PROVISIONED), policy="Always")],
            "",
            id="a container that began then",
        ),
        pytest.param(
            [pod("head", container("ray-head", terminated=ended(0)))],
            f"pod {CLUSTER}-head-1: container ray-head ended with exit code 0 (Completed)",
            id="a head that ended well",
        ),
        pytest.param([pod(), pod("head", role="worker", created=NOW)], "", id="a new worker of a group called head"),
        pytest.param([pod("head", role="worker")], "the head pod is gone", id="gone, with a worker group called head"),
    ],
)
def test_a_head_is_lost_or_not(pods: list[PodView], expected: str) -> None:
    """Once the cluster was up; more of it in docs/failures.md."""
    assert head_loss(pods, PROVISIONED) == expected


def test_a_head_that_changes_before_the_cluster_was_up_is_not_lost() -> None:
    """Nothing ran on it."""
    assert head_loss([], None) == ""


GRACE = timedelta(minutes=10)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([], "", id="none, as in HTTPMode"),
        pytest.param([failed("submitter", 1, since=ago(minutes=9))], "", id="not long ago"),
        pytest.param([failed("submitter", 1, since=ago(hours=1)), pod("submitter")], "", id="another runs"),
        pytest.param([failed("submitter", 1, since=ago(hours=1), deleted=True)], "", id="one that goes"),
        pytest.param(
            [failed("submitter", 1, since=ago(hours=1))],
            f"submitter pod {CLUSTER}-submitter-1: container ray-job-submitter ended with exit code 1",
            id="failed long ago",
        ),
        pytest.param(
            [failed("submitter", 1, role="worker", since=ago(hours=1))], "", id="a worker of a group called submitter"
        ),
    ],
)
def test_a_submitter_ended_or_not(pods: list[PodView], expected: str) -> None:
    """And no other is on its way."""
    assert submitter_end(pods, NOW, GRACE) == expected


def test_ends_are_told_head_first() -> None:
    """Then the submitter, then workers; what is shut down has not failed."""
    pods = [failed("cpu", 1), failed("submitter", 2), failed("head", 3), failed("cpu", 4, name="p", deleted=True)]
    assert [each.group for each, _ in pod_failures(pods)] == ["head", "submitter", "cpu"]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        pytest.param({"seconds": -5}, "0s", id="a clock that differs"),
        pytest.param({"seconds": 59.9}, "59s", id="seconds"),
        pytest.param({"seconds": 60}, "1m", id="minutes"),
        pytest.param({"hours": 2, "minutes": 5, "seconds": 59}, "2h5m", id="hours"),
        pytest.param({"days": 2}, "48h0m", id="days"),
    ],
)
def test_a_duration_is_short(parts: dict[str, Any], text: str) -> None:
    """Two units at most."""
    assert format_duration(timedelta(**parts)) == text


REASONS = st.sampled_from(["", "ContainerCreating", "ErrImagePull", "CrashLoopBackOff", "InvalidImageName", "Novel"])


@given(st.lists(st.tuples(st.sampled_from(["head", "cpu", "submitter"]), REASONS), max_size=9))
def test_every_pod_that_waits_is_counted(pods: list[tuple[str, str]]) -> None:
    """Once, whatever it waits for."""
    found = waiting_groups([stuck(group, reason, name=f"p{n}") for n, (group, reason) in enumerate(pods)])
    assert sum(each.count for each in found) == len(pods)
