"""Twice is once (design 5.2): a pod that Flyte's Go code has processed gives the RayJob of the raw one.

`tests/golden/processed/` holds what propeller 1.16.8 sends for each golden case with a K8sPod target;
`tools/processed_cases.py` writes it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flyteidl.core.tasks_pb2 import TaskTemplate
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.errors import TaskError
from flytekitplugins.kuberay.pod.processed import is_processed, unmerged
from flytekitplugins.kuberay.pod.target import target_problems
from flytekitplugins.kuberay.wire import Manifest
from flytekitplugins.kuberay.wire.protojson import has_field
from tests.golden.case import FILES, FOLDER, Case, read_case
from tests.golden.compare import canonical
from tests.pod.samples import base_template, pod_task, primary, settings, sidecar

PROCESSED = sorted((FOLDER / "processed").glob("*.json"))

# What a field says by being false, 0 or empty is lost in Go's pass: its merge takes the base PodTemplate's value.
# Lost too, in no golden case: nulls; whose cpu and memory a container has where the base PodTemplate has some (Go takes
# those of one base container, `primary` for sidecars too, and fills the rest); a base container that is called as the
# task's primary, which Go leaves out, so that what `default` said looks like the task's own.
LOST: dict[str, Manifest] = {
    "base-template-turned-off-by-task": {
        "automountServiceAccountToken": True,
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "terminationGracePeriodSeconds": 90,
        "containers": {"tty": True},
    },
    "pod-host-network-false-over-template-true": {
        "automountServiceAccountToken": True,
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
    },
}


GO_REFUSES = {"pod-primary-is-only-container", "pod-primary-named-only-in-k8s-pod"}
"""Flyte's Go code finds the primary container by `config` alone, so no propeller sends these processed."""


def outcome(case: Case) -> Manifest:
    """The RayJob that we build of a case in canonical form, or the error that refuses it."""
    try:
        return canonical(case.build())
    except TaskError as error:
        return {"error": str(error)}


def with_lost(job: Manifest, lost: Manifest) -> Manifest:
    """The RayJob with the values that Go's pass leaves, on head and workers."""
    cluster = job["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        spec = group["template"]["spec"]
        spec["containers"][0].update(lost.get("containers", {}))
        spec.update({key: value for key, value in lost.items() if key != "containers"})
    return job


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PROCESSED])
def test_twice_is_once(path: Path) -> None:
    """A processed task gives what the raw one gives, be it a refusal, but for what Go's pass has lost."""
    case = read_case(FOLDER / "cases" / path.name)
    template = ParseDict(json.loads(path.read_text("utf-8")), TaskTemplate())
    twice = outcome(replace(case, task=replace(case.task, template=template)))
    expected = outcome(case) if path.stem not in LOST else with_lost(outcome(case), LOST[path.stem])
    assert twice == expected


def test_all_cases_are_there() -> None:
    """Each golden case with a K8sPod target that is no refusal has its processed form."""
    cases = [path for path in FILES if not path.stem.startswith(("connector-wire-", "bad-"))]
    raw = {path.stem for path in cases if has_field(read_case(path).task.template, "k8s_pod")}
    assert raw - {path.stem for path in PROCESSED} == GO_REFUSES


MARK = {"name": "FLYTE_INTERNAL_EXECUTION_ID", "value": "f1"}


def marked(**fields: Any) -> Manifest:
    """The primary container as an earlier pass leaves it."""
    own: list[Manifest] = fields.get("env", [])
    return primary(**{**fields, "env": [*own, MARK]})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [primary()]}, False, id="a raw pod"),
        pytest.param({"containers": [marked()]}, True, id="this execution's identity in a container"),
        pytest.param({"containers": [primary(), {"name": "sidecar", "env": [MARK]}]}, True, id="in any of them"),
        pytest.param(
            {"containers": [primary(env=[{**MARK, "value": "f2"}])]}, False, id="another execution's is the user's own"
        ),
        pytest.param({"containers": [{"env": "x"}, None]}, False, id="what is no pod"),
        pytest.param({}, False, id="no container"),
    ],
)
def test_is_processed(spec: Manifest, expected: bool) -> None:
    """Only a propeller can have put the execution's identity into a container."""
    assert is_processed(spec, pod_task()) is expected


BASE: Manifest = {
    "volumes": [{"name": "v", "emptyDir": {}}],
    "tolerations": [{"key": "base", "operator": "Exists"}],
    "hostname": "base",
    "dnsPolicy": "ClusterFirst",
    "serviceAccountName": "base",
    "containers": [
        {
            "name": "default",
            "env": [{"name": "A", "value": "default"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        },
        {"name": "primary", "env": [{"name": "B", "value": "primary"}], "command": ["base"]},
    ],
}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"volumes": [*BASE["volumes"], {"name": "v", "hostPath": {"path": "/x"}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
            id="the base's entries stand in front of the task's own",
        ),
        pytest.param(
            {"tolerations": BASE["tolerations"]}, {}, id="a list of the base's alone says nothing of the task's"
        ),
        pytest.param(
            {"tolerations": [{"key": "mine"}]}, {"tolerations": [{"key": "mine"}]}, id="a list of the task's alone"
        ),
        pytest.param({"hostname": "base"}, {"hostname": "base"}, id="a value equal to the base's does no harm"),
        pytest.param(
            {"dnsPolicy": "ClusterFirst", "serviceAccountName": "base"},
            {"serviceAccountName": "base"},
            id="but for one that would count for less as the base's; the account can't be, the execution has one",
        ),
    ],
)
def test_unmerged(spec: Manifest, expected: Manifest) -> None:
    """What the base PodTemplate brought to a pod is taken off again, to be merged by our rules."""
    whole = {"containers": [marked()], **spec}
    got = unmerged(whole, pod_task(), settings(), base_template(BASE), "primary")
    assert {key: value for key, value in got.items() if key != "containers"} == expected


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        pytest.param({"command": ["base", "mine"]}, {"command": ["mine"]}, id="a plain list appended to the base's"),
        pytest.param(
            {"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/v"}]},
            {"volumeMounts": [{"name": "w", "mountPath": "/v"}]},
            id="mounts of the base's",
        ),
        pytest.param(
            {
                "env": [
                    {"name": "A", "value": "default"},
                    {"name": "B", "value": "primary"},
                    {"name": "C", "value": "task"},
                    {"name": "C", "value": "execution"},
                    {"name": "P", "value": "platform"},
                    {"name": "C", "value": "platform"},
                ]
            },
            {"env": [{"name": "C", "value": "task"}]},
            id="D10 variables behind the task's own",
        ),
        pytest.param(
            {"env": [{"name": "C", "value": "execution"}, {"name": "C", "value": "execution"}]},
            {"env": [{"name": "C", "value": "execution"}]},
            id="D10 each once: the task may have said the same",
        ),
    ],
)
def test_unmerged_container(container: Manifest, expected: Manifest) -> None:
    """What base PodTemplate, execution and platform brought to a container is taken off again."""
    task = pod_task(execution={"environmentVariables": {"C": "execution"}})
    own = settings(k8s={"default-env-vars": [{"P": "platform"}, {"C": "platform"}]})
    [got] = unmerged({"containers": [marked(**container)]}, task, own, base_template(BASE), "primary")["containers"]
    assert got == primary(**expected)


def entry(name: str, value: str) -> Manifest:
    """A variable."""
    return {"name": name, "value": value}


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param(
            [entry("A", "task"), MARK, entry("C", "execution"), entry("A", "platform")],
            [entry("A", "task")],
            id="D10 a default of propeller's that our settings lack is below the task's",
        ),
        pytest.param(
            [entry("A", "default"), entry("B", "primary"), MARK, entry("A", "platform")],
            [],
            id="and below the base PodTemplate's",
        ),
        pytest.param(
            [entry("B", "task"), MARK, entry("X", "platform"), entry("C", "execution")],
            [entry("B", "task"), entry("X", "platform")],
            id="where nobody else has one it stays",
        ),
        pytest.param(
            [entry("A", "environment"), entry("B", "task"), entry("A", "pod"), MARK],
            [entry("B", "task"), entry("A", "pod")],
            id="of two of the task's own the last counts, as in Kubernetes",
        ),
    ],
)
def test_variables_twice(env: list[Manifest], expected: list[Manifest]) -> None:
    """A processed pod has each variable once, whatever SDK and propeller put together: its user can't mend it."""
    task = pod_task(execution={"environmentVariables": {"C": "execution"}})
    spec = {"containers": [primary(env=env)]}
    assert unmerged(spec, task, settings(), base_template(BASE), "primary")["containers"] == [
        primary(**({"env": expected} if expected else {}))
    ]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param([], ["has the same name 'A' as env[0]"], id="a raw pod"),
        pytest.param([MARK], [], id="a processed one"),
    ],
)
def test_variables_twice_in_a_raw_pod(env: list[Manifest], expected: list[str]) -> None:
    """D13 (design): in a pod as it was written they are a mistake."""
    task = pod_task({"containers": [primary(env=[entry("A", "1"), entry("A", "2"), *env])]})
    assert [problem.what for problem in target_problems(task, settings(), None)] == expected


@pytest.mark.parametrize(
    ("request_", "limit", "lent"),
    [
        pytest.param("0", "2", True, id="as many as the base's `primary` has"),
        pytest.param("0", "1", False, id="its own"),
        pytest.param("2", "2", False, id="its own, for Go requests none of what it hands on"),
    ],
)
def test_gpus_of_a_sidecar(request_: str, limit: str, lent: bool) -> None:
    """Go hands the GPUs of the base PodTemplate's `primary` to sidecars too: each pod would ask for twice as many."""
    base = {"containers": [{"name": "primary", "resources": {"limits": {"gpu": 2}}}]}
    amounts = {"requests": {"cpu": "0", "nvidia.com/gpu": request_}, "limits": {"cpu": "1", "nvidia.com/gpu": limit}}
    spec = {"containers": [marked(resources=amounts), sidecar(resources=amounts)]}
    got = unmerged(spec, pod_task(), settings(), base_template(base), "primary")["containers"]
    without = {"requests": {"cpu": "0"}, "limits": {"cpu": "1"}}
    assert [got[0]["resources"], got[1]["resources"]] == [amounts, without if lent else amounts]


@pytest.mark.parametrize(
    ("own", "of_base"), [pytest.param(None, 2, id="the sidecar's"), pytest.param("2", None, id="the base's")]
)
def test_null_amounts(own: str | None, of_base: int | None) -> None:
    """A null is no amount: nothing comes of it here, and nothing goes."""
    base = {"containers": [{"name": "primary", "resources": {"limits": {"nvidia.com/gpu": of_base}}}]}
    spec = {"containers": [marked(), sidecar(resources={"limits": {"nvidia.com/gpu": own}})]}
    got = unmerged(spec, pod_task(), settings(), base_template(base), "primary")["containers"]
    assert got[1]["resources"] == {"limits": {"nvidia.com/gpu": own}}


MINE: Manifest = {"key": "mine"}


@pytest.mark.parametrize(
    ("amount", "own", "expected"),
    [
        pytest.param("1", [MINE], {"tolerations": [MINE]}, id="GPUs"),
        pytest.param("0", [MINE], {"tolerations": [MINE]}, id="0 of them, which are some for Flyte"),
        pytest.param("1", [], {}, id="an empty list would take the base's away"),
    ],
)
def test_tolerations_of_devices(amount: str, own: list[Manifest], expected: Manifest) -> None:
    """What an earlier pass tolerates for the pod's GPUs is taken off, as a group may have none of them."""
    k8s = {"add-tolerations-for-extended-resources": ["nvidia.com/gpu"]}
    device = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    gpus = {side: {"nvidia.com/gpu": amount} for side in ("requests", "limits")}
    spec = {"containers": [marked(resources=gpus)], "tolerations": [*BASE["tolerations"], *own, device]}
    got = unmerged(spec, pod_task(), settings(k8s=k8s), base_template(BASE), "primary")
    assert {key: value for key, value in got.items() if key != "containers"} == expected


def test_a_raw_pod_stays() -> None:
    """A pod that no propeller has processed keeps all that it holds, be it equal to the base PodTemplate's."""
    spec = {"containers": [primary(command=["base"])], "hostname": "base", "volumes": BASE["volumes"]}
    assert unmerged(spec, pod_task(), settings(), base_template(BASE), "primary") == spec
