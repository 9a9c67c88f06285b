"""A RayJob's fields in the user's words."""

from __future__ import annotations

from copy import deepcopy

import pytest

from flytekitplugins.kuberay.cluster.fields import in_users_words

POD = {"spec": {"containers": [{"name": "ray-worker"}, {"name": "sidecar", "ports": [{"containerPort": 1}]}]}}
JOB = {
    "spec": {
        "rayClusterSpec": {
            "headGroupSpec": {"template": POD},
            "workerGroupSpecs": [{"groupName": "cpu"}, {"groupName": "gpu", "template": POD}],
        },
        "submitterPodTemplate": POD,
    },
}
HEAD, WORKERS, SUBMITTER = "spec.rayClusterSpec.headGroupSpec", "spec.rayClusterSpec.workerGroupSpecs", "spec.submitter"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"{HEAD}.template.spec.x", "head: template.spec.x", id="the head"),
        pytest.param(f"{WORKERS}[0].replicas", "worker group cpu: replicas", id="a worker group by its name"),
        pytest.param(f"{WORKERS}[7].replicas", "worker group 7: replicas", id="one that is not there by its number"),
        pytest.param(f"{SUBMITTER}PodTemplate.spec.x", "submitter: spec.x", id="the submitter"),
        pytest.param(
            f"{WORKERS}[1].template.spec.containers[1].ports[0].name",
            "worker group gpu: template.spec.containers[sidecar].ports[0].name",
            id="a container by its name, a port without one by its number",
        ),
        pytest.param(f"{HEAD}.template.metadata.labels[a/b]", "head: template.metadata.labels[a/b]", id="a label"),
        pytest.param("spec.entrypoint: Invalid", "spec.entrypoint: Invalid", id="a field of the RayJob itself"),
        pytest.param("metadata.name: Invalid", "metadata.name: Invalid", id="its metadata"),
        pytest.param(
            f'is invalid: [{HEAD}.a: no, unknown field "{WORKERS}[1].b"]',
            'is invalid: [head: a: no, unknown field "worker group gpu: b"]',
            id="several within a sentence",
        ),
        pytest.param("the specification. of nothing", "the specification. of nothing", id="a text without any"),
    ],
)
def test_paths_are_told_in_the_users_words(text: str, expected: str) -> None:
    """Part of the task, then the rest of the path with names for numbers; all else stays."""
    before = deepcopy(JOB)
    assert in_users_words(text, JOB) == expected
    assert before == JOB
