"""The task's own pod as the task defines it."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.pod.target import primary_name, target_problems
from flytekitplugins.kuberay.wire import FlyteTask
from tests.pod.samples import container_task, pod_task, primary, settings, sidecar


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param(pod_task({"containers": [primary(), sidecar()]}), "primary", id="by config"),
        pytest.param(pod_task({"containers": [sidecar(), primary()]}, config={}), "", id="not named, of two"),
        pytest.param(pod_task({"containers": [sidecar()]}, config={}), "sidecar", id="not named, but alone"),
        pytest.param(pod_task({}, config={"primary_container_name": "absent"}), "absent", id="named and not there"),
    ],
)
def test_primary_name(task: FlyteTask, expected: str) -> None:
    """Which container of a K8sPod target runs the task."""
    assert primary_name(task) == expected


def test_primary_name_of_the_pod() -> None:
    """The K8sPod's own word comes before `config`, which flytekit's models keep where they lose that."""
    task = pod_task({"containers": [primary(), sidecar()]})
    task.template.k8s_pod.primary_container_name = "sidecar"
    assert primary_name(task) == "sidecar"


NEEDS = "register the task with flytekit"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param(container_task(), [], id="a container"),
        pytest.param(pod_task(), [], id="a pod"),
        pytest.param(
            container_task(container={"image": "", "args": []}),
            [
                "container.image: the container has no image; set container_image or the image of the workflow",
                f"container.args: the container has no args, so there is nothing to run; {NEEDS}",
            ],
            id="D21 no image, no args",
        ),
        pytest.param(
            container_task(
                container={
                    "env": [{"key": "A=B", "value": "1"}],
                    "resources": {"requests": [{"name": "CPU", "value": "many"}]},
                }
            ),
            [
                "container.resources.requests[0]: 'many' is no Kubernetes quantity; write 500m, 2 or 4Gi",
                "container.env[0].name: 'A=B' is no name of an environment variable; use printable characters but '='",
            ],
            id="D21 a quantity, a variable's name",
        ),
        pytest.param(
            container_task(execution={"labels": {"a b": "x"}}, metadata={"metadata": {"annotations": {"c/d/e": "x"}}}),
            ["execution.labels: 'a b' is no valid key", "metadata.metadata.annotations: 'c/d/e' is no valid key"],
            id="D15 keys of labels and annotations",
        ),
        pytest.param(
            pod_task({"containers": []}),
            ["k8sPod.podSpec.containers: the pod has no container; the primary container is needed"],
            id="D21 no container",
        ),
        pytest.param(
            pod_task({"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]}, config={}),
            ["k8sPod.podSpec: none of its containers a, b is named as the primary one; set primary_container_name"],
            id="D21 no primary named",
        ),
        pytest.param(
            pod_task({}, config={"primary_container_name": "absent"}),
            ["k8sPod.podSpec: no container is called 'absent', the primary_container_name; name one of primary"],
            id="D21 the primary is not there",
        ),
        pytest.param(
            pod_task({"containers": [{"name": "primary", "image": "i"}]}),
            [f"k8sPod.podSpec: container 'primary': has no args, so there is nothing to run; {NEEDS}"],
            id="D21 the primary has no args",
        ),
        pytest.param(
            pod_task({"containers": [primary()], "volumes": [{"name": "v"}, {"name": "v"}]}),
            ["k8sPod.podSpec.volumes[1]: has the same name 'v' as volumes[0]; keep one of them"],
            id="D13 a volume twice",
        ),
        pytest.param(
            pod_task({"containers": [primary(), {"name": "sidecar", "$patch": "delete"}, {"$patch": "replace"}]}),
            [
                "k8sPod.podSpec.containers[1].$patch: takes no container away here; drop it",
                "k8sPod.podSpec.containers[2].$patch: takes no container away here; drop it",
            ],
            id="a directive in place of a container",
        ),
        pytest.param(
            container_task(
                container={"args": ["{{.inputs.x}}"]}, inputs={"y": {"scalar": {"primitive": {"integer": "1"}}}}
            ),
            ["container.args[0]: no input is called 'x'; the task's inputs: y"],
            id="an input that is not there",
        ),
    ],
)
def test_target_problems(task: FlyteTask, expected: list[str]) -> None:
    """What is wrong with the task's own pod, all at once, at wire paths."""
    remedy = "; write [prefix.example.com/]name"
    shown = [str(problem).partition(remedy)[0] for problem in target_problems(task, settings(), None)]
    assert shown == expected


def test_no_target() -> None:
    """A task without a container or a pod has nothing to run."""
    task = container_task()
    task.template.ClearField("container")
    [problem] = target_problems(task, settings(), None)
    assert str(problem) == "taskTemplate: has neither a container nor a k8sPod; a Ray task needs one of them to run"
