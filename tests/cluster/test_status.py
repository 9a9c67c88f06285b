"""What is read of a RayJob: each field, and its message without what is secret in it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.cluster.names import LINKS
from flytekitplugins.kuberay.cluster.status import JobView, read_time, view_of
from flytekitplugins.kuberay.errors import shortened

RECORDED = Path(__file__).parents[1] / "statuses" / "k8sjob-success.json"
EMPTY = view_of({"metadata": {}})


def test_a_recorded_status_is_read() -> None:
    """Of a real operator, at the end of a success: each moment, and the names."""
    steps = json.loads(RECORDED.read_text(encoding="utf-8"))["steps"]
    view = view_of(
        {"metadata": {"uid": "u", "creationTimestamp": "2026-11-30T10:00:00Z"}, "status": steps[-1]["status"]}
    )
    status = steps[-1]["status"]
    moments = [view.initialized, view.provisioned, view.started, view.ended]
    assert None not in moments
    assert moments == sorted(moment for moment in moments if moment)
    assert (view.uid, view.deployment, view.job) == ("u", "Complete", "SUCCEEDED")
    assert (view.cluster, view.job_id, view.dashboard) == (
        status["rayClusterName"],
        status["jobId"],
        status["dashboardURL"],
    )
    assert (view.workers_ready, view.workers_wanted) == (1, 1)


def test_an_empty_rayjob_is_read() -> None:
    """Of which nothing is known yet."""
    assert EMPTY == JobView(
        namespace="", name="", uid="", version=0, deployment="", job="", retries=False, reason="", message="",
        cluster="", dashboard="", job_id="", head_service="", link_values={},
        suspended=False, going=False, elsewhere=False, outlives_head=False,
        workers_ready=0, workers_wanted=0,
        created=None, initialized=None, provisioned=None, started=None, ended=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        pytest.param({"spec": {"suspend": True}}, "suspended", id="suspended"),
        pytest.param({"metadata": {"deletionTimestamp": "2026-11-30T10:00:00Z"}}, "going", id="being deleted"),
        pytest.param({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}, "elsewhere", id="run by another controller"),
        pytest.param({"spec": {"backoffLimit": 1}}, "retries", id="started anew by KubeRay"),
        pytest.param(
            {"spec": {"rayClusterSpec": {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}}},
            "outlives_head",
            id="whose memory is outside",
        ),
    ],
)
def test_what_a_spec_says_is_read(parts: dict[str, Any], field: str) -> None:
    """Each changes what follows from a status."""
    changed: dict[str, Any] = {field: True}
    assert view_of({"metadata": {}, **parts}) == replace(EMPTY, **changed)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"suspend": False, "backoffLimit": 0, "managedBy": "ray.io/kuberay-operator"}, id="defaults"),
        pytest.param({"suspend": None, "backoffLimit": None, "managedBy": None, "rayClusterSpec": None}, id="nulls"),
    ],
)
def test_a_spec_that_says_the_usual_changes_nothing(spec: dict[str, Any]) -> None:
    """As it says nothing."""
    assert view_of({"metadata": {}, "spec": spec}) == EMPTY


def test_a_cluster_that_is_not_provisioned_has_no_time_for_it() -> None:
    """The condition stands from the beginning, as False."""
    condition = {"type": "RayClusterProvisioned", "status": "False", "lastTransitionTime": "2026-11-30T10:00:00Z"}
    assert view_of({"metadata": {}, "status": {"rayClusterStatus": {"conditions": [condition]}}}) == EMPTY


def test_a_job_without_an_end_ended_with_its_rayjob() -> None:
    """As one that was never submitted."""
    view = view_of({"metadata": {}, "status": {"endTime": "2026-11-30T10:00:00Z"}})
    assert view.ended == datetime(2026, 11, 30, 10, tzinfo=timezone.utc)


@pytest.mark.parametrize("text", ["2026-11-30T10:00:00Z", "2026-11-30T10:00:00+00:00"])
def test_times_are_read(text: str) -> None:
    """With Go's Z, which Python 3.10 does not know."""
    assert read_time(text) == datetime(2026, 11, 30, 10, tzinfo=timezone.utc)


@pytest.mark.parametrize("text", ["", None])
def test_no_time_is_none(text: str | None) -> None:
    """Kubernetes leaves out what has not come."""
    assert read_time(text) is None


@pytest.mark.parametrize("after", range(1450, 1600, 10))
def test_a_failed_jobs_message_is_redacted_before_it_is_cut(after: int) -> None:
    """It ends with the job's log; a cut through a secret, as with one of these lengths, would leave half of it."""
    env = [{"name": "API_TOKEN", "value": "s3cr3t" * 10}]
    spec = {"rayClusterSpec": {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "h", "env": env}]}}}}}
    status = {"jobStatus": "FAILED", "message": "failed:\n" + "y" * 4000 + "s3cr3t" * 10 + "x" * after}
    assert "s3cr3t" not in view_of({"metadata": {}, "spec": spec, "status": status}).message


def test_a_view_holds_no_more_than_it_needs() -> None:
    """Thousands are held: a message is cut before it is kept."""
    assert len(view_of({"metadata": {}, "status": {"message": "x" * 20_000}}).message) == 2000


@given(st.text(), st.integers(600, 5000))
def test_a_short_text_stays(text: str, longest: int) -> None:
    """As it is."""
    assert shortened(text[:longest], longest) == text[:longest]


@given(st.integers(601, 30_000), st.integers(600, 5000))
def test_a_long_text_keeps_both_ends(length: int, longest: int) -> None:
    """The first words say what it is, the last lines what happened."""
    text = "".join(chr(97 + number % 26) for number in range(length + longest))
    short = shortened(text, longest)
    assert len(short) == longest
    assert short.startswith(text[:400])
    assert short.endswith(text[-100:])
    assert f"of {len(text)} characters" in short


def test_the_heads_service_is_read() -> None:
    """Which KubeRay names once it has made it."""
    status = {"rayClusterStatus": {"head": {"serviceIP": "10.1.2.3", "serviceName": "c-head-svc"}}}
    assert view_of({"metadata": {}, "status": status}) == replace(EMPTY, head_service="c-head-svc")


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param('{"taskid":"t","nodeid":"n0"}', {"taskid": "t", "nodeid": "n0"}, id="what the create kept"),
        pytest.param('{"taskid":1,"nodeid":"n0"}', {"nodeid": "n0"}, id="a value of another kind"),
        pytest.param("[]", {}, id="something else"),
        pytest.param("{", {}, id="no JSON"),
        pytest.param("[" * 100_000, {}, id="JSON without end"),
        pytest.param("", {}, id="nothing"),
    ],
)
def test_what_links_need_is_read(annotation: str, expected: dict[str, str]) -> None:
    """Anybody may write an annotation: what can't be used is left aside."""
    metadata = {"namespace": "team", "name": "j", "annotations": {LINKS: annotation}}
    assert view_of({"metadata": metadata}) == replace(EMPTY, namespace="team", name="j", link_values=expected)
