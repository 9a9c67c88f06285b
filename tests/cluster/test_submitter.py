"""The submitter's pod: small, and what of the task's pod it needs (design D7)."""

from __future__ import annotations

from typing import Any

import pytest

from flytekitplugins.kuberay.cluster.submitter import build_submitter, built_submitter_problems, submitter_problems
from flytekitplugins.kuberay.pod.template import PodTemplate
from flytekitplugins.kuberay.wire import Extras, K8sPod, Manifest, RayTask
from tests.pod.samples import ARGS, IMAGE, container_task, settings, sidecar

KUBERAY_OWN = {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DEVICE = "k8s.amazonaws.com/accelerator"
T4 = container_task(extendedResources={"gpuAccelerator": {"device": "t4"}})
T4_NODE = {"key": DEVICE, "operator": "In", "values": ["t4"]}
ZONE = {"key": "zone", "operator": "Exists"}
OWN: Manifest = {
    "serviceAccountName": "runner",
    "imagePullSecrets": [{"name": "registry"}],
    "securityContext": {"runAsUser": 1},
    "schedulerName": "volcano",
    "priorityClassName": "high",
    "dnsPolicy": "Default",
    "dnsConfig": {"searches": ["x"]},
    "nodeSelector": {"pool": "a"},
}


def task_pod(spec: Manifest, **main: Any) -> PodTemplate:
    """A task's pod with labels, annotations and these fields of its primary container."""
    primary = {"name": "primary", "image": IMAGE, "args": ARGS, **main}
    return PodTemplate({"containers": [primary], **spec}, {"l": "task"}, {"a": "task"}, "primary")


def build(pod: PodTemplate, extras: Extras | None = None, k8s: Manifest | None = None) -> PodTemplate:
    """The submitter of a task for a T4."""
    return build_submitter(pod, RayTask(extras=extras or Extras()), T4, settings(k8s=k8s))


def test_the_smallest() -> None:
    """D7 (design): one container with the task's image and KubeRay's own resources, nothing else."""
    built = build(task_pod({}))
    assert built == PodTemplate(
        {
            "restartPolicy": "Never",
            "containers": [{"name": "ray-job-submitter", "image": IMAGE, "resources": KUBERAY_OWN}],
        },
        {"l": "task"},
        {"a": "task"},
        "ray-job-submitter",
    )


def test_what_it_takes() -> None:
    """D7 (design): it pulls the image and is scheduled as the task's own pods are."""
    built = build(task_pod({**OWN, "hostNetwork": True, "hostname": "h"}, imagePullPolicy="Always")).spec
    assert {key: value for key, value in built.items() if key != "containers"} == {**OWN, "restartPolicy": "Never"}
    assert built["containers"][0]["imagePullPolicy"] == "Always"


def test_what_it_does_not_take() -> None:
    """D7 (design): no GPU, sidecar, init container, volume, mount, port, command or secret."""
    main = {
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "ports": [{"containerPort": 1}],
        "command": ["x"],
        "envFrom": [{"secretRef": {"name": "s"}}],
        "env": [{"name": "TOKEN", "value": "t"}],
    }
    pod = task_pod({"volumes": [{"name": "v"}], "initContainers": [sidecar()]}, **main)
    pod.spec["containers"].append(sidecar())
    assert build(pod) == build(task_pod({}))


def test_env() -> None:
    """D7 (design): the platform's variables, and the task's that are for Ray."""
    env = [{"name": "RAY_ADDRESS", "value": "x"}, {"name": "A", "value": "task"}, {"name": "SECRET", "value": "y"}]
    built = build(task_pod({}, env=env), k8s={"default-env-vars": [{"A": "platform"}]})
    assert built.spec["containers"][0]["env"] == [
        {"name": "A", "value": "platform"},
        {"name": "RAY_ADDRESS", "value": "x"},
    ]


def required(*expressions: Manifest) -> Manifest:
    """A required node affinity."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}}


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([{"key": "mine"}], [{"key": "mine"}], id="the task's own"),
        pytest.param([{"key": DEVICE, "value": "t4", "effect": "NoSchedule"}], None, id="not the accelerator's"),
        pytest.param([{"key": "gpu", "operator": "Exists"}], None, id="not those of an extended resource"),
        pytest.param(
            [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}], None, id="not those of the list"
        ),
        pytest.param(
            [{"key": "cpus", "operator": "Exists"}],
            [{"key": "cpus", "operator": "Exists"}],
            id="those of a plain resource",
        ),
    ],
)
def test_tolerations(tolerations: list[Manifest], expected: list[Manifest] | None) -> None:
    """D7 (design): it tolerates what the task's pods do, less what devices brought."""
    k8s: Manifest = {
        "resource-tolerations": {
            "nvidia.com/gpu": [{"key": "gpu", "operator": "Exists"}],
            "cpu": [{"key": "cpus", "operator": "Exists"}],
        },
        "add-tolerations-for-extended-resources": ["nvidia.com/gpu"],
    }
    assert build(task_pod({"tolerations": tolerations}), k8s=k8s).spec.get("tolerations") == expected


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(required(ZONE, T4_NODE), required(ZONE), id="less the accelerator's node"),
        pytest.param(required(T4_NODE), None, id="none where that was all"),
        pytest.param({**required(T4_NODE), "podAffinity": {"x": 1}}, {"podAffinity": {"x": 1}}, id="the rest stays"),
    ],
)
def test_affinity(affinity: Manifest, expected: Manifest | None) -> None:
    """D7 (design): it goes to the task's nodes, but need not be on one with a GPU."""
    assert build(task_pod({"affinity": affinity})).spec.get("affinity") == expected


@pytest.mark.parametrize(
    ("extras", "expected"),
    [
        pytest.param(Extras(), KUBERAY_OWN, id="KubeRay's own"),
        pytest.param(
            Extras(submitter_resources={"limits": {"cpu": "2"}}),
            {**KUBERAY_OWN, "limits": {"cpu": "2", "memory": "1Gi"}},
            id="an amount that the task says replaces KubeRay's",
        ),
        pytest.param(
            Extras(submitter_resources={"requests": {"cpu": "4"}}),
            {"requests": {"cpu": "4", "memory": "200Mi"}, "limits": {"cpu": "4", "memory": "1Gi"}},
            id="D19 the limit follows a request above it",
        ),
        pytest.param(
            Extras(
                submitter_template=K8sPod({"containers": [{"name": "x", "resources": {"limits": {"cpu": "100m"}}}]})
            ),
            {"requests": {"cpu": "100m", "memory": "200Mi"}, "limits": {"cpu": "100m", "memory": "1Gi"}},
            id="D19 so does a request, under a template's limit",
        ),
    ],
)
def test_resources(extras: Extras, expected: Manifest) -> None:
    """D7 (design): it passes a quota: requests and limits are always there."""
    assert build(task_pod({}), extras).spec["containers"][0]["resources"] == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param(
            K8sPod({"containers": [{"name": "any", "tty": True}]}), ["ray-job-submitter"], id="a container alone"
        ),
        pytest.param(
            K8sPod({"containers": [sidecar(), {"name": "main", "tty": True}]}, primary_container_name="main"),
            ["ray-job-submitter", "sidecar"],
            id="the one named as primary",
        ),
        pytest.param(
            K8sPod({"containers": [sidecar(), {"name": "ray-job-submitter", "tty": True}]}),
            ["ray-job-submitter", "sidecar"],
            id="the one called as the submitter",
        ),
    ],
)
def test_template(template: K8sPod, expected: list[str]) -> None:
    """The user's template goes on top: its main container over the submitter's, the others beside it."""
    built = build(task_pod({}), Extras(submitter_template=template))
    assert [container["name"] for container in built.spec["containers"]] == expected
    assert [container.get("tty") for container in built.spec["containers"]][0] is True


def test_template_over_the_tasks() -> None:
    """The user's template wins: pod fields, labels and annotations."""
    template = K8sPod({"serviceAccountName": "s", "schedulerName": None}, {"l": "own"}, {"b": "own"})
    built = build(task_pod(OWN), Extras(submitter_template=template))
    assert [built.spec["serviceAccountName"], "schedulerName" in built.spec] == ["s", False]
    assert [built.labels, built.annotations] == [{"l": "own"}, {"a": "task", "b": "own"}]


@pytest.mark.parametrize(
    ("extras", "expected"),
    [
        pytest.param(Extras(), [], id="nothing asked for"),
        pytest.param(
            Extras(submitter_resources={"limits": {"cpu": "lots"}}),
            ['config["kuberay"].submitter.resources.limits[cpu]'],
            id="no quantity",
        ),
        pytest.param(
            Extras(submitter_resources={"requests": {"$patch": "replace"}}),
            ['config["kuberay"].submitter.resources.requests.$patch'],
            id="a directive, where nothing is merged",
        ),
        pytest.param(
            Extras(submitter_template=K8sPod({"containers": [{"name": "A"}]}, {"a b": "c"})),
            [
                'config["kuberay"].submitter.template.podSpec.containers[0].name',
                'config["kuberay"].submitter.template.metadata.labels',
            ],
            id="names and labels of the template",
        ),
    ],
)
def test_submitter_problems(extras: Extras, expected: list[str]) -> None:
    """What is wrong with what the task asks for, at wire paths."""
    assert [problem.path for problem in submitter_problems(extras)] == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}]},
            ["container 'a'", "container 'b'"],
            id="sidecars without an image",
        ),
        pytest.param(
            {"containers": [{"name": "ray-job-submitter", "$patch": "delete"}]},
            ["has no container 'ray-job-submitter' left"],
            id="no container",
        ),
    ],
)
def test_built_submitter_problems(spec: Manifest, expected: list[str]) -> None:
    """What is wrong with the submitter after its template was merged."""
    problems = [
        str(each) for each in built_submitter_problems(build(task_pod({}), Extras(submitter_template=K8sPod(spec))))
    ]
    assert [text in problem for problem, text in zip(problems, expected, strict=True)] == [True] * len(expected)


def test_a_template_says_the_rest() -> None:
    """The user's template is read as a group's: the old `serviceAccount` is its account, `gpu` the platform's GPU."""
    container = {"name": "x", "resources": {"limits": {"gpu": "1"}}}
    pod = K8sPod({"serviceAccount": "me", "containers": [container]})
    spec = build(task_pod({}), Extras(submitter_template=pod)).spec
    assert [spec.get("serviceAccount"), spec["serviceAccountName"]] == [None, "me"]
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_resource_references_follow() -> None:
    """D18 (design): a `RAY_*` variable that reads the primary container's amount reads the submitter's own."""
    reference = {"resourceFieldRef": {"containerName": "primary", "resource": "limits.cpu"}}
    env = [{"name": "RAY_CPUS", "valueFrom": reference}]
    spec = {"containers": [{"name": "primary", "image": "i", "args": ["x"], "env": env}]}
    got = build(task_pod(spec), Extras()).spec["containers"][0]["env"]
    named = {**reference["resourceFieldRef"], "containerName": "ray-job-submitter"}
    assert got == [{"name": "RAY_CPUS", "valueFrom": {"resourceFieldRef": named}}]
