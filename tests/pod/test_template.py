"""From a task template to the one pod that all pods of its cluster start from."""

from __future__ import annotations

from typing import Any

import pytest

from flytekitplugins.kuberay.pod.template import build_task_pod
from flytekitplugins.kuberay.settings import Settings
from flytekitplugins.kuberay.wire import FlyteTask, Manifest
from tests.pod.samples import ARGS, IMAGE, base_template, container_task, pod_task, primary, settings, sidecar

AMOUNTS = {"cpu": "1000m", "memory": "1024Mi"}
ON_DEMAND = {"key": "spot", "operator": "DoesNotExist"}
SPOT_OK = {"key": "spot", "operator": "Exists"}


def spec_of(task: FlyteTask, own: Settings | None = None, base: Manifest | None = None) -> Manifest:
    """The pod spec of a task."""
    return build_task_pod(task, own or settings(), base).spec


def fields_of(spec: Manifest, *names: str) -> list[Any]:
    """Some fields of a pod spec or container."""
    return [spec.get(name) for name in names]


def test_container_target() -> None:
    """A container target is a pod of one container, with the platform's defaults and Flyte's identity."""
    task = container_task(
        execution={"taskExecutionId": {}}, container={"command": ["c"], "env": [{"key": "A", "value": "1"}]}
    )
    assert spec_of(task, settings(k8s={"image-pull-policy": "Always"})) == {
        "restartPolicy": "Never",
        "serviceAccountName": "runner",
        "containers": [
            {
                "name": "flyte-task",
                "image": IMAGE,
                "command": ["c"],
                "args": ARGS,
                "env": [{"name": "A", "value": "1"}],
                "resources": {"requests": AMOUNTS, "limits": AMOUNTS},
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "imagePullPolicy": "Always",
            }
        ],
    }


def test_k8s_pod_target() -> None:
    """A K8sPod target keeps all that it brings, init containers and sidecars included."""
    task = pod_task(
        {
            "containers": [sidecar(), primary(command=[], env=[], tty=True)],
            "initContainers": [{"name": "setup", "image": "s"}],
            "hostname": "h",
        },
        execution={"taskExecutionId": {}},
    )
    spec = spec_of(task)
    assert fields_of(spec, "hostname", "restartPolicy") == ["h", "Never"]
    assert spec["containers"][1] == {
        "name": "primary",
        "image": IMAGE,
        "args": ARGS,
        "tty": True,
        "resources": {"requests": AMOUNTS, "limits": AMOUNTS},
    }
    zero = {"cpu": "0", "memory": "0"}
    assert [c["resources"] for c in (spec["containers"][0], *spec["initContainers"])] == [
        {"requests": zero, "limits": zero},
        {"requests": AMOUNTS, "limits": AMOUNTS},
    ]


def test_whole_numbers() -> None:
    """D22 (design): a Struct holds doubles; whole ones are integers again, whatever their size."""
    spec = spec_of(
        pod_task({"priority": 12_000_000_000_000.0, "containers": [primary(ports=[{"containerPort": 80.0}])]})
    )
    shown = [spec["priority"], spec["containers"][0]["ports"][0]["containerPort"]]
    assert repr(shown) == "[12000000000000, 80]"


@pytest.mark.parametrize(
    ("resources", "k8s", "expected"),
    [
        pytest.param(
            {"requests": [{"name": "GPU", "value": "2"}]}, {}, {"nvidia.com/gpu": "2"}, id="Flyte's default name"
        ),
        pytest.param(
            {"limits": [{"name": "GPU", "value": "2"}]},
            {"gpu-resource-name": "amd.com/gpu"},
            {"amd.com/gpu": "2"},
            id="D24 the configured name",
        ),
    ],
)
def test_gpus_of_a_container_target(resources: Manifest, k8s: Manifest, expected: Manifest) -> None:
    """A container target's GPU takes the platform's name, on both sides."""
    got = spec_of(container_task(container={"resources": resources}), settings(k8s=k8s))["containers"][0]["resources"]
    assert got == {"requests": {**AMOUNTS, **expected}, "limits": {**AMOUNTS, **expected}}


@pytest.mark.parametrize(
    ("spec", "base", "expected"),
    [
        pytest.param({"hostNetwork": False}, {"hostNetwork": True}, False, id="D4 false"),
        pytest.param({"hostNetwork": None}, {"hostNetwork": True}, None, id="D4 an explicit null removes"),
        pytest.param({}, {"hostNetwork": True}, True, id="nothing said"),
    ],
)
def test_over_the_base(spec: Manifest, base: Manifest, expected: Any) -> None:
    """The task's pod wins over the base PodTemplate."""
    assert spec_of(pod_task(spec), base=base_template(base)).get("hostNetwork") is expected


def test_resources_of_the_base() -> None:
    """The base PodTemplate's amounts come before the platform's defaults, and after the task's own."""
    base = base_template(
        {"containers": [{"name": "primary", "resources": {"limits": {"cpu": "4", "memory": "4Gi", "gpu": "1"}}}]}
    )
    task = pod_task({"containers": [primary(resources={"limits": {"cpu": "2"}})]})
    amounts = {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}
    assert spec_of(task, base=base)["containers"][0]["resources"] == {"requests": amounts, "limits": amounts}


CONFIGURED: Manifest = {
    "scheduler-name": "volcano",
    "default-pod-security-context": {"runAsUser": 1},
    "default-security-context": {"readOnlyRootFilesystem": True},
    "default-pod-dns-config": {"nameservers": ["1.1.1.1"]},
    "default-node-selector": [{"pool": "default"}, {"disk": "ssd"}],
    "interruptible-node-selector": [{"pool": "spot"}],
    "default-affinity": {"nodeAffinity": {}},
    "default-tolerations": [{"key": "all", "operator": "Exists"}],
    "interruptible-tolerations": [SPOT_OK],
}
OWN = {
    "schedulerName": "mine",
    "securityContext": {"runAsUser": 2},
    "dnsConfig": {"searches": ["x"]},
    "restartPolicy": "OnFailure",
    "affinity": {"podAffinity": {}},
}


def test_platform_defaults() -> None:
    """Where the task says nothing, its pod is as the platform is configured; sidecars get no security context."""
    spec = spec_of(pod_task({"containers": [primary(), sidecar()]}), settings(k8s=CONFIGURED))
    assert fields_of(
        spec, "schedulerName", "securityContext", "dnsConfig", "nodeSelector", "affinity", "tolerations"
    ) == [
        "volcano",
        {"runAsUser": 1},
        {"nameservers": ["1.1.1.1"]},
        {"pool": "default", "disk": "ssd"},
        {"nodeAffinity": {}},
        [{"key": "all", "operator": "Exists"}],
    ]
    assert [c.get("securityContext") for c in spec["containers"]] == [{"readOnlyRootFilesystem": True}, None]


def test_task_over_platform_defaults() -> None:
    """What the task says stands in place of the platform's default, whole."""
    spec = spec_of(
        pod_task({**OWN, "containers": [primary(securityContext={"privileged": False})]}), settings(k8s=CONFIGURED)
    )
    assert {key: spec[key] for key in OWN} == OWN
    assert spec["containers"][0]["securityContext"] == {"privileged": False}


def test_interruptible() -> None:
    """An interruptible task's selector stands above the task's own, its tolerations beside the others."""
    task = pod_task({"nodeSelector": {"pool": "mine", "zone": "a"}}, metadata={"interruptible": True})
    spec = spec_of(task, settings(k8s=CONFIGURED))
    assert fields_of(spec, "nodeSelector", "tolerations") == [
        {"pool": "spot", "disk": "ssd", "zone": "a"},
        [SPOT_OK, {"key": "all", "operator": "Exists"}],
    ]


def test_default_affinity() -> None:
    """The platform's affinity counts only where neither the task nor the base PodTemplate has one (design 5.1)."""
    own = settings(k8s=CONFIGURED)
    mine, theirs = {"podAffinity": {"a": 1}}, base_template({"affinity": {"podAntiAffinity": {"b": 2}}})
    assert [spec_of(pod_task(), own, theirs)["affinity"], spec_of(pod_task({"affinity": mine}), own)["affinity"]] == [
        {"podAntiAffinity": {"b": 2}},
        mine,
    ]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [pytest.param(None, True, id="unset"), pytest.param(False, False, id="off"), pytest.param(True, True, id="on")],
)
def test_host_network(setting: bool | None, expected: bool) -> None:
    """The platform's word on the host's network is the last one, as in Flyte."""
    own = settings(k8s={"enable-host-networking-pod": setting})
    assert spec_of(pod_task({"hostNetwork": True}), own)["hostNetwork"] is expected


TAINT = {"key": "base", "operator": "Exists"}
BASE: Manifest = {
    "tolerations": [TAINT],
    "nodeSelector": {"pool": "base", "zone": "base"},
    "securityContext": {"runAsGroup": 2},
    "dnsConfig": {"searches": ["base"]},
    "containers": [
        {
            "name": "primary",
            "securityContext": {"privileged": True},
            "resources": {"limits": {"gpu": "1", "cpu": "4"}},
        }
    ],
}


@pytest.mark.parametrize(
    ("spec", "fields", "expected"),
    [
        pytest.param({}, ["tolerations"], [[TAINT, *CONFIGURED["default-tolerations"]]], id="nothing said"),
        pytest.param({"tolerations": []}, ["tolerations"], [CONFIGURED["default-tolerations"]], id="no tolerations"),
        pytest.param(
            {"nodeSelector": None}, ["nodeSelector"], [{"pool": "default", "disk": "ssd"}], id="no node selector"
        ),
        pytest.param(
            {"nodeSelector": {}},
            ["nodeSelector"],
            [{"pool": "default", "zone": "base", "disk": "ssd"}],
            id="an empty node selector, which says nothing",
        ),
        pytest.param(
            {"securityContext": None, "dnsConfig": None},
            ["securityContext", "dnsConfig"],
            [{"runAsUser": 1}, {"nameservers": ["1.1.1.1"]}],
            id="no security context, no DNS config",
        ),
    ],
)
def test_nothing_of_the_base_where_the_task_wants_none(spec: Manifest, fields: list[str], expected: list[Any]) -> None:
    """D4 (design): a null, or an empty list, takes the base PodTemplate's away; what the platform has for all stays."""
    got = spec_of(pod_task(spec), settings(k8s=CONFIGURED), base_template(BASE))
    assert fields_of(got, *fields) == expected


@pytest.mark.parametrize(
    ("container", "resources", "context"),
    [
        pytest.param(
            {"resources": None, "securityContext": None},
            {"requests": AMOUNTS, "limits": AMOUNTS},
            {"readOnlyRootFilesystem": True},
            id="none at all",
        ),
        pytest.param(
            {"resources": {"limits": {"gpu": None}}, "securityContext": {}},
            {"requests": {**AMOUNTS, "cpu": "4"}, "limits": {**AMOUNTS, "cpu": "4"}},
            {"privileged": True},
            id="no GPU, on either side; an empty map says nothing",
        ),
        pytest.param(
            {"resources": {"$patch": "replace", "limits": {"cpu": "2"}}, "securityContext": {"$patch": "replace"}},
            {"requests": {**AMOUNTS, "cpu": "2"}, "limits": {**AMOUNTS, "cpu": "2"}},
            {},
            id="what a directive leaves",
        ),
        pytest.param(
            {"$patch": "replace", "resources": {"limits": {"cpu": "2"}}},
            {"requests": {**AMOUNTS, "cpu": "2"}, "limits": {**AMOUNTS, "cpu": "2"}},
            {"readOnlyRootFilesystem": True},
            id="what a directive for the whole container leaves",
        ),
    ],
)
def test_nothing_of_the_bases_container(container: Manifest, resources: Manifest, context: Manifest) -> None:
    """D4 (design): the same of a container's fields."""
    [got] = spec_of(pod_task({"containers": [primary(**container)]}), settings(k8s=CONFIGURED), base_template(BASE))[
        "containers"
    ]
    assert fields_of(got, "resources", "securityContext") == [resources, context]


def test_labels_and_annotations() -> None:
    """D15 (design): the task's pod carries the labels and annotations of all layers."""
    built = build_task_pod(pod_task(pod_metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}}), settings(), None)
    assert [built.labels, built.annotations["c"], built.primary] == [{"a": "b"}, "d", "primary"]
