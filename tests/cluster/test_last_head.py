"""Which RayJobs end with their head."""

from __future__ import annotations

from typing import Any

import pytest

from flytekitplugins.kuberay.cluster.last_head import ANNOTATION, with_last_head


def job(annotations: dict[str, str] | None = None, **cluster: Any) -> dict[str, Any]:
    """A RayJob with the least that counts here."""
    return {"metadata": {"name": "x", "annotations": annotations or {}}, "spec": {"rayClusterSpec": cluster}}


@pytest.mark.parametrize(
    ("given", "annotations"),
    [
        pytest.param(job(), {ANNOTATION: "true"}, id="most do"),
        pytest.param(job({"a": "b"}), {ANNOTATION: "true", "a": "b"}, id="with what else is annotated"),
        pytest.param(job({ANNOTATION: "false"}), {ANNOTATION: "false"}, id="not against its user's word"),
        pytest.param(
            job(gcsFaultToleranceOptions={"redisAddress": "redis:6379"}), {}, id="not where another head can go on"
        ),
    ],
)
def test_a_head_is_the_last_one(given: dict[str, Any], annotations: dict[str, str]) -> None:
    """The annotation stands, and nothing else has changed, the given RayJob least of all."""
    before = job(given["metadata"]["annotations"], **given["spec"]["rayClusterSpec"])
    assert with_last_head(given) == {**before, "metadata": {"name": "x", "annotations": annotations}}
    assert given == before
