"""Where pods may run: tolerations and node requirements, from settings, resources and accelerators."""

from __future__ import annotations

from typing import Any

import pytest

from flytekitplugins.kuberay.pod import scheduling
from flytekitplugins.kuberay.wire import FlyteTask, Manifest
from tests.pod.samples import container_task, settings

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DEVICE_KEY = "k8s.amazonaws.com/accelerator"
SIZE_KEY = "k8s.amazonaws.com/gpu-partition-size"
ON_DEMAND = {"key": "spot", "operator": "DoesNotExist"}
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
DISK = {"key": "disk", "operator": "Exists"}
TAINT = {"key": "team", "operator": "Exists"}


def affinity(*terms: Manifest, **rest: Any) -> Manifest:
    """A pod's affinity with these required terms."""
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}, **rest}}


def term(*expressions: Manifest) -> Manifest:
    """A node selector term."""
    return {"matchExpressions": list(expressions)}


def equal(key: str, value: str) -> Manifest:
    """A toleration as Flyte writes one for an accelerator."""
    return {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}


def accelerated(**accelerator: Any) -> FlyteTask:
    """A task for an accelerator."""
    return container_task(extendedResources={"gpuAccelerator": accelerator})


@pytest.mark.parametrize(
    ("spec", "requirements", "expected"),
    [
        pytest.param({}, [ON_DEMAND], affinity(term(ON_DEMAND)), id="without terms one is made"),
        pytest.param(
            affinity(term(ZONE), term(DISK)),
            [ON_DEMAND],
            affinity(term(ZONE, ON_DEMAND), term(DISK, ON_DEMAND)),
            id="D11 every term gets it, since terms are alternatives",
        ),
        pytest.param(
            affinity(term(ZONE, ON_DEMAND)),
            [ON_DEMAND],
            affinity(term(ZONE, ON_DEMAND)),
            id="D11 a term that has it gets it once",
        ),
        pytest.param(
            affinity({"matchFields": [DISK]}),
            [ON_DEMAND],
            affinity({"matchFields": [DISK], "matchExpressions": [ON_DEMAND]}),
            id="fields of a term stay",
        ),
        pytest.param(
            affinity(term(ZONE), podAffinity={"x": 1}),
            [ON_DEMAND],
            affinity(term(ZONE, ON_DEMAND), podAffinity={"x": 1}),
            id="other affinity stays",
        ),
        pytest.param({"affinity": None}, [ON_DEMAND], affinity(term(ON_DEMAND)), id="a null affinity is none"),
        pytest.param(affinity(term(ZONE)), [], affinity(term(ZONE)), id="nothing is required, nothing changes"),
    ],
)
def test_with_requirements(spec: Manifest, requirements: list[Manifest], expected: Manifest) -> None:
    """Platform requirements stand in each required term, and doing so twice is doing so once."""
    once = scheduling.with_requirements(spec, requirements)
    assert [once, scheduling.with_requirements(once, requirements)] == [expected, expected]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(affinity(term(ZONE, ON_DEMAND)), affinity(term(ZONE)), id="the expression goes, the others stay"),
        pytest.param(affinity(term(ON_DEMAND)), {"affinity": {}}, id="so does what it leaves empty"),
        pytest.param(affinity(term(ZONE)), affinity(term(ZONE)), id="nothing to take away"),
        pytest.param({}, {}, id="no affinity"),
    ],
)
def test_without_requirements(spec: Manifest, expected: Manifest) -> None:
    """D7 (design): what an accelerator asks of a node is taken out for a pod that has none."""
    assert scheduling.without_requirements(spec, [ON_DEMAND]) == expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([term(ZONE, ON_DEMAND, DISK)], [term(ZONE)], id="from the end of a term"),
        pytest.param(
            [term(ON_DEMAND, DISK, ZONE)], [term(ON_DEMAND, DISK, ZONE)], id="not from its front, which is the user's"
        ),
        pytest.param([term(ON_DEMAND, ON_DEMAND, DISK)], [term(ON_DEMAND)], id="each once"),
        pytest.param([term(ZONE), term(ON_DEMAND, DISK)], [term(ZONE)], id="a term of nothing else goes"),
    ],
)
def test_without_last_requirements(terms: list[Manifest], expected: list[Manifest]) -> None:
    """What an earlier pass put at the end of each term is taken off again."""
    assert scheduling.without_last_requirements(affinity(*terms), [ON_DEMAND, DISK]) == affinity(*expected)


@pytest.mark.parametrize(
    ("present", "added", "expected"),
    [
        pytest.param(None, [TAINT], [TAINT], id="none before"),
        pytest.param([TAINT], [TAINT, TAINT], [TAINT], id="none twice"),
        pytest.param(
            [{"key": "a", "value": "b"}],
            [{"key": "a", "operator": "Equal", "value": "b"}],
            [{"key": "a", "value": "b"}],
            id="an absent operator is Equal",
        ),
        pytest.param(
            [{"key": "a", "operator": "Exists", "value": ""}],
            [{"key": "a", "operator": "Exists"}],
            [{"key": "a", "operator": "Exists", "value": ""}],
            id="an empty value says nothing",
        ),
        pytest.param(
            [TAINT],
            [{**TAINT, "effect": "NoSchedule"}],
            [TAINT, {**TAINT, "effect": "NoSchedule"}],
            id="another effect",
        ),
    ],
)
def test_with_tolerations(present: list[Manifest] | None, added: list[Manifest], expected: list[Manifest]) -> None:
    """Tolerations are added that do not stand there yet in other words."""
    spec = {} if present is None else {"tolerations": present}
    assert scheduling.with_tolerations(spec, added)["tolerations"] == expected


@pytest.mark.parametrize(
    ("interruptible", "expected"),
    [
        pytest.param(False, [{"key": "all", "operator": "Exists"}], id="any task"),
        pytest.param(
            True,
            [{"key": "spot", "operator": "Exists"}, {"key": "all", "operator": "Exists"}],
            id="an interruptible one",
        ),
    ],
)
def test_default_tolerations(interruptible: bool, expected: list[Manifest]) -> None:
    """The platform's tolerations for all pods, and for those that may be taken away."""
    own = settings(
        k8s={
            "default-tolerations": [{"key": "all", "operator": "Exists"}],
            "interruptible-tolerations": [{"key": "spot", "operator": "Exists"}],
        }
    )
    task = container_task(metadata={"interruptible": interruptible})
    assert scheduling.default_tolerations(task, own) == expected


@pytest.mark.parametrize(
    ("interruptible", "expected"),
    [pytest.param(False, [ON_DEMAND], id="not interruptible"), pytest.param(True, [DISK], id="interruptible")],
)
def test_interruptible_requirements(interruptible: bool, expected: list[Manifest]) -> None:
    """What the platform asks of the node of either kind of task."""
    own = settings(
        k8s={"non-interruptible-node-selector-requirement": ON_DEMAND, "interruptible-node-selector-requirement": DISK}
    )
    task = container_task(metadata={"interruptible": interruptible})
    assert scheduling.interruptible_requirements(task, own) == expected


@pytest.mark.parametrize(
    ("task", "label", "expected"),
    [
        pytest.param(True, None, True, id="without a label the task's word"),
        pytest.param(False, None, False, id="nothing said"),
        pytest.param(True, "false", False, id="the last attempt of an interruptible task"),
        pytest.param(False, "true", True, id="an execution that was started so"),
        pytest.param(True, "maybe", True, id="a label of somebody else"),
    ],
)
def test_is_interruptible(task: bool, label: str | None, expected: bool) -> None:
    """Propeller's label beats the task's own word: it knows the execution's, the node's and the attempts so far."""
    execution = {"labels": {"interruptible": label}} if label else {}
    assert (
        scheduling.is_interruptible(container_task(metadata={"interruptible": task}, execution=execution)) is expected
    )


UNPARTITIONED = {
    "gpu-unpartitioned-node-selector-requirement": {"key": "whole", "operator": "Exists"},
    "gpu-unpartitioned-toleration": {"key": "whole", "operator": "Exists"},
}


@pytest.mark.parametrize(
    ("accelerator", "k8s", "tolerations", "requirements"),
    [
        pytest.param({}, {}, [], [], id="none"),
        pytest.param(
            {"device": "t4"},
            {},
            [equal(DEVICE_KEY, "t4")],
            [{"key": DEVICE_KEY, "operator": "In", "values": ["t4"]}],
            id="a device",
        ),
        pytest.param(
            {"device": "a100", "partitionSize": "1g.5gb"},
            {"gpu-device-node-label": "gpu", "gpu-partition-size-node-label": "size"},
            [equal("gpu", "a100"), equal("size", "1g.5gb")],
            [
                {"key": "gpu", "operator": "In", "values": ["a100"]},
                {"key": "size", "operator": "In", "values": ["1g.5gb"]},
            ],
            id="a partition, with the platform's node labels",
        ),
        pytest.param(
            {"unpartitioned": True},
            {},
            [],
            [{"key": SIZE_KEY, "operator": "DoesNotExist"}],
            id="a whole GPU asks for no size label",
        ),
        pytest.param(
            {"unpartitioned": True},
            UNPARTITIONED,
            [{"key": "whole", "operator": "Exists"}],
            [{"key": "whole", "operator": "Exists"}],
            id="a whole GPU by the platform's own rules",
        ),
    ],
)
def test_accelerators(
    accelerator: Manifest, k8s: Manifest, tolerations: list[Manifest], requirements: list[Manifest]
) -> None:
    """An accelerator tolerates its taint and asks for its node."""
    template, own = accelerated(**accelerator).template, settings(k8s=k8s)
    assert scheduling.accelerator_tolerations(template, own) == tolerations
    assert scheduling.accelerator_requirements(template, own) == requirements


GPU_RULES = settings(
    k8s={
        "resource-tolerations": {"nvidia.com/gpu": [{"key": "gpu", "operator": "Exists"}]},
        "add-tolerations-for-extended-resources": ["example.com/fpga", "nvidia.com/gpu"],
    }
)


@pytest.mark.parametrize(
    ("resources", "keys"),
    [
        pytest.param({"requests": {"cpu": "1"}}, [], id="neither"),
        pytest.param(
            {"limits": {"nvidia.com/gpu": "1"}}, ["gpu", DEVICE_KEY], id="a limit: resource and accelerator rules"
        ),
        pytest.param(
            {"requests": {"nvidia.com/gpu": "1"}}, ["gpu", "nvidia.com/gpu"], id="a request: resource and list rules"
        ),
        pytest.param({"requests": {"example.com/fpga": "1"}}, ["example.com/fpga"], id="another extended resource"),
    ],
)
def test_what_resources_bring(resources: Manifest, keys: list[str]) -> None:
    """Tolerations follow what the pod's containers ask for; the accelerator's come with a GPU limit."""
    spec = {"containers": [{"name": "c", "resources": resources}]}
    got = scheduling.with_platform_scheduling(spec, accelerated(device="t4"), GPU_RULES)
    assert [toleration["key"] for toleration in got.get("tolerations", [])] == keys


def test_init_containers_bring_extended_tolerations() -> None:
    """The list of extended resources counts for init containers, resource-tolerations do not: both as in Flyte."""
    spec = {"containers": [], "initContainers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
    template = container_task().template
    assert scheduling.resource_tolerations(spec, GPU_RULES) == []
    assert [each["key"] for each in scheduling.extended_resource_tolerations(spec, GPU_RULES)] == ["nvidia.com/gpu"]
    assert [each["key"] for each in scheduling.device_tolerations(template, GPU_RULES)] == [
        "gpu",
        "example.com/fpga",
        "nvidia.com/gpu",
    ]
