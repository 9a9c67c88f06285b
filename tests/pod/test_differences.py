"""What a comparison with Flyte's own Go code brought up: each fact was checked by running that code."""

from __future__ import annotations

import base64
from typing import Any

import msgpack
import pytest
from flyteidl.core.literals_pb2 import Literal
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.errors import TaskError
from flytekitplugins.kuberay.pod.arguments import format_literal
from flytekitplugins.kuberay.pod.environment import with_ordered_env
from flytekitplugins.kuberay.wire import Manifest
from tests.pod import samples

MARK = {"name": "FLYTE_INTERNAL_EXECUTION_ID", "value": "f1"}
SPOT = {"key": "spot", "operator": "In", "values": ["true"]}
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
DISK = {"key": "disk", "operator": "Exists"}
T4 = {"key": "k8s.amazonaws.com/accelerator", "operator": "In", "values": ["T4"]}
GPUS = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
EXEC, HTTP = {"exec": {"command": ["a", "b"]}}, {"httpGet": {"port": 80, "path": "/x"}}


def primitive(**value: Any) -> dict[str, Any]:
    """A literal's protobuf JSON."""
    return {"scalar": {"primitive": value}}


def packed(value: bytes) -> dict[str, Any]:
    """A literal of msgpack data."""
    return {"scalar": {"binary": {"tag": "msgpack", "value": base64.b64encode(value).decode()}}}


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        pytest.param(primitive(datetime="2020-01-02T03:04:50Z"), "2020-01-02T03:04:50Z", id="a whole second"),
        pytest.param(
            primitive(datetime="2020-01-02T03:04:05.120Z"), "2020-01-02T03:04:05.12Z", id="a fraction's zeros go"
        ),
        pytest.param(primitive(duration="90s"), "seconds:90", id="a duration is protobuf's text"),
        pytest.param(primitive(duration="-1.5s"), "seconds:-1 nanos:-500000000", id="a fraction of a duration"),
        pytest.param(primitive(duration="0s"), "", id="no duration is no text"),
        pytest.param(packed(msgpack.packb({10: 1, 2: b"ab"})), "map[2:[97 98] 10:1]", id="numbers as keys go by size"),
    ],
)
def test_literals_read_as_go_writes_them(literal: dict[str, Any], expected: str) -> None:
    """An input in an argument has the text that Flyte's Go code gives it."""
    assert format_literal(ParseDict(literal, Literal())) == expected


@pytest.mark.parametrize(
    "literal",
    [
        pytest.param(packed(b"\x81\x91\x01\x01"), id="a list as a key"),
        pytest.param(packed(b"\x91" * 500 + b"\x01"), id="lists in lists without end"),
        pytest.param(packed(b"\x93\x01"), id="data that end too early"),
        pytest.param({"scalar": {"primitive": {}}}, id="a primitive without a value"),
    ],
)
def test_literals_without_a_text_are_refused(literal: dict[str, Any]) -> None:
    """What Flyte can't put into an argument is a problem at that argument, never another exception."""
    task = samples.container_task(inputs={"x": literal}, container={"args": ["run", "{{.inputs.x}}"]})
    with pytest.raises(TaskError, match=r"container\.args\[1\]: input 'x'"):
        build_ray_job(task, samples.settings())


def test_without_inputs_nothing_is_replaced() -> None:
    """Where no input was sent at all, `{{.inputs.x}}` is the task's own text, as in Flyte."""
    task = samples.container_task(inputs={}, container={"args": ["echo", "{{.inputs.x}}"]})
    assert build_ray_job(task, samples.settings())["spec"]["entrypoint"] == "echo '{{.inputs.x}}'"


def required(*terms: list[Manifest]) -> Manifest:
    """An affinity of these terms."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def head_spec(spec: Manifest, base: Manifest, default_affinity: Manifest | None = None) -> Manifest:
    """The head's pod of a task for a T4 on interruptible nodes, over a base PodTemplate."""
    extended = {"gpuAccelerator": {"device": "T4"}}
    task = samples.pod_task(spec, metadata={}, extendedResources=extended)
    task.template.metadata.interruptible = True
    task.template.metadata.pod_template_name = "base"
    k8s = {"interruptible-node-selector-requirement": SPOT, "default-affinity": default_affinity or {}}
    job = build_ray_job(task, samples.settings(k8s=k8s), samples.base_template(base))
    built: Manifest = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    return built


@pytest.mark.parametrize(
    ("raw", "base", "default", "processed"),
    [
        pytest.param({}, required([ZONE]), {}, required([ZONE], [SPOT]), id="the base's alone"),
        pytest.param(
            required([DISK]), required([ZONE]), {}, required([ZONE], [DISK, SPOT]), id="the task's after the base's"
        ),
        pytest.param(
            required([SPOT], [ZONE]), {}, {}, required([SPOT, SPOT], [ZONE, SPOT]), id="the task's own, twice"
        ),
        pytest.param({}, {}, required([ZONE]), required([ZONE, SPOT]), id="the platform's default"),
        pytest.param(
            {},
            required([DISK]),
            required([ZONE]),
            required([DISK], [ZONE, SPOT]),
            id="the platform's beside the base's",
        ),
    ],
)
@pytest.mark.parametrize("resources", [pytest.param({}, id="no GPU"), pytest.param(GPUS, id="a GPU")])
def test_affinity_of_processed_pods(
    raw: Manifest, base: Manifest, default: Manifest, processed: Manifest, resources: Manifest
) -> None:
    """A pod whose affinity propeller has merged and ruled already gets the same as one that comes raw (design 5.2)."""
    if resources:
        terms = processed["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        processed = required(*([*term["matchExpressions"], T4] for term in terms))
    expected = head_spec(
        {"containers": [samples.primary(resources=resources)], **({"affinity": raw} if raw else {})},
        {"containers": [], **({"affinity": base} if base else {})},
        default,
    )
    got = head_spec(
        {"containers": [samples.primary(resources=resources, env=[MARK])], "affinity": processed},
        {"containers": [], **({"affinity": base} if base else {})},
        default,
    )
    assert got["affinity"] == expected["affinity"]


@pytest.mark.parametrize(
    ("raw", "base", "processed"),
    [
        pytest.param(None, EXEC, EXEC, id="the base's alone"),
        pytest.param(HTTP, EXEC, {**EXEC, **HTTP}, id="another handler of the task, which Go puts beside it"),
    ],
)
def test_handlers_of_processed_pods(raw: Manifest | None, base: Manifest, processed: Manifest) -> None:
    """A probe that propeller has merged already is whole and has one handler."""
    below = {"containers": [{"name": "default", "image": "x", "livenessProbe": base}]}
    probe = {} if raw is None else {"livenessProbe": raw}
    expected = head_spec({"containers": [samples.primary(**probe)]}, below)["containers"][0]["livenessProbe"]
    merged = head_spec({"containers": [samples.primary(livenessProbe=processed, env=[MARK])]}, below)
    assert merged["containers"][0]["livenessProbe"] == expected == (raw or base)


def test_empty_affinity_is_one() -> None:
    """A task's empty affinity says that it wants none, so the platform's default does not count, as in Flyte."""
    got = head_spec({"containers": [samples.primary()], "affinity": {}}, {"containers": []}, required([ZONE]))
    assert got["affinity"] == required([SPOT])


def test_empty_objects_are_said() -> None:
    """A task's empty security contexts and DNS config say that it wants none, so no default counts, as in Flyte."""
    task = samples.pod_task(
        {"containers": [samples.primary(securityContext={})], "securityContext": {}, "dnsConfig": {}}
    )
    user = {"runAsUser": 1}
    k8s = {"default-pod-security-context": user, "default-security-context": user, "default-pod-dns-config": {"a": 1}}
    spec = build_ray_job(task, samples.settings(k8s=k8s))["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    got = [spec["securityContext"], spec["dnsConfig"], spec["containers"][0]["securityContext"]]
    assert got == [{}, {}, {}]


def test_empty_start_parameters_are_said() -> None:
    """A group's empty start parameters stand in for the platform's, as in Flyte."""
    task = samples.container_task(custom=samples.custom({"rayStartParams": {}}))
    ray = {"defaults": {"workerNode": {"startParameters": {"num-cpus": "2"}}}}
    job = build_ray_job(task, samples.settings(ray=ray))
    assert "num-cpus" not in job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["rayStartParams"]


def test_an_empty_list_of_a_sidecar_replaces() -> None:
    """The SDK writes an empty command into the primary container alone; in a sidecar it is the user's own word."""
    base = {"containers": [{"name": "default", "image": "x", "command": ["sh"]}]}
    spec = head_spec({"containers": [samples.primary(command=[]), samples.sidecar(command=[])]}, base)
    assert [container.get("command") for container in spec["containers"]] == [["sh"], []]


def test_a_gpu_of_the_base_is_renamed() -> None:
    """A base PodTemplate's `gpu` takes the platform's name for it, as a task's does; Kubernetes knows no `gpu`."""
    base = {"containers": [{"name": "default", "image": "x", "resources": {"limits": {"gpu": "1"}}}]}
    amounts = head_spec({"containers": [samples.primary()]}, base)["containers"][0]["resources"]
    assert [amounts[side].get("gpu") for side in ("requests", "limits")] == [None, None]
    assert [amounts[side]["nvidia.com/gpu"] for side in ("requests", "limits")] == ["1", "1"]


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        pytest.param(
            {"ports": [{"name": "head", "containerPort": 9}]},
            r"2 ports called 'head'",
            id="a port called as one of Ray's",
        ),
        pytest.param(
            {"ports": [{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]},
            r"2 ports called 'a'",
            id="two ports of one name",
        ),
    ],
)
def test_pods_that_the_cluster_refuses(container: Manifest, expected: str) -> None:
    """KubeRay's pods would be refused one after the other, in silence; the task is refused instead."""
    with pytest.raises(TaskError, match=expected):
        build_ray_job(samples.pod_task({"containers": [samples.primary(**container)]}), samples.settings())


def test_a_group_that_requests_too_much() -> None:
    """A group that says a request above its own limit is refused: no side can follow."""
    amounts = {"requests": {"cpu": "2"}, "limits": {"cpu": "500m"}}
    group = {"k8sPod": {"podSpec": {"containers": [{"name": "ray-worker", "resources": amounts}]}}}
    with pytest.raises(TaskError, match="requests 2 of cpu, above its limit of 500m"):
        build_ray_job(samples.pod_task(custom=samples.custom(group)), samples.settings())


@pytest.mark.parametrize(
    ("spec", "group"),
    [
        pytest.param(
            {"containers": [samples.primary(), samples.sidecar(name="ray-worker")]},
            {"containers": [{"name": "primary"}]},
            id="a sidecar of the task has the Ray container's name",
        ),
        pytest.param(
            {},
            {"containers": [{"name": "primary", "image": "x"}, {"name": "ray-worker", "image": "y"}]},
            id="the group's primary container stands beside one of the Ray container's name",
        ),
    ],
)
def test_no_container_is_lost_under_another(spec: Manifest, group: Manifest) -> None:
    """Two containers that would both be the Ray container are refused, not merged into one in silence."""
    pod = {"podSpec": group, "primaryContainerName": "primary"}
    task = samples.pod_task(spec, custom=samples.custom({"k8sPod": pod}))
    with pytest.raises(TaskError, match="2 containers of the pod are called 'ray-worker'"):
        build_ray_job(task, samples.settings())


def entries(**values: str) -> list[Manifest]:
    """Environment variables."""
    return [{"name": name, "value": value} for name, value in values.items()]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param(entries(B="2", A="1"), ["B", "A"], id="no references, no change"),
        pytest.param(entries(A="$(B)/x", B="2", C="3"), ["B", "A", "C"], id="what is referred to comes first"),
        pytest.param(entries(A="$(B)$(C)", B="$(C)", C="3"), ["C", "B", "A"], id="a chain"),
        pytest.param(entries(A="$(A):$(B)", B="$(A)"), ["B", "A"], id="a circle, and itself"),
        pytest.param(entries(A="$(HOME)"), ["A"], id="what stands elsewhere"),
        pytest.param(
            entries(**{f"N{i}": f"$(N{i + 1})" for i in range(3000)}),
            [f"N{i}" for i in range(2999, -1, -1)],
            id="depth",
        ),
    ],
)
def test_with_ordered_env(env: list[Manifest], expected: list[str]) -> None:
    """Kubernetes resolves `$(NAME)` only by what stands before."""
    ordered = with_ordered_env({"containers": [{"name": "c", "env": env}]})["containers"][0]["env"]
    assert [entry["name"] for entry in ordered] == expected


def test_references_of_merged_env_resolve() -> None:
    """The task's variable takes the base's place, yet stays behind the one that it refers to."""
    base = {"containers": [{"name": "default", "image": "x", "env": entries(LIBS="/base")}]}
    container = samples.primary(env=entries(CUDA="/cuda", LIBS="$(CUDA)/lib"))
    names = [entry["name"] for entry in head_spec({"containers": [container]}, base)["containers"][0]["env"]]
    assert names.index("CUDA") < names.index("LIBS")


def test_requirements_stand_in_every_term() -> None:
    """D11 (design): what the platform asks of a node binds each alternative of the task and of the base PodTemplate."""
    base = {"containers": [], "affinity": required([ZONE], [DISK])}
    assert head_spec({}, base)["affinity"] == required([ZONE, SPOT], [DISK, SPOT])


def test_no_required_terms_is_no_requirement() -> None:
    """A group takes the task's node affinity away with an empty list, which alone would be an invalid pod."""
    group = {"k8sPod": {"podSpec": {"affinity": required()}}}
    task = samples.pod_task({"affinity": {**required([ZONE]), "podAffinity": {}}}, custom=samples.custom(group))
    worker = build_ray_job(task, samples.settings())["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    assert worker["template"]["spec"]["affinity"] == {"nodeAffinity": {}, "podAffinity": {}}


@pytest.mark.parametrize(
    "template",
    [
        pytest.param([], id="no template"),
        pytest.param({"metadata": {"labels": {"a": 1}}}, id="a label that is no text"),
        pytest.param({"spec": {"containers": "x"}}, id="containers that are none"),
    ],
)
def test_a_base_of_the_wrong_shape(template: object) -> None:
    """A PodTemplate that is none is a problem with its name, never another exception."""
    with pytest.raises(TaskError, match="PodTemplate base: template"):
        build_ray_job(samples.pod_task(), samples.settings(), {"metadata": {"name": "base"}, "template": template})


@pytest.mark.parametrize(
    ("execution", "expected"),
    [
        pytest.param("runner", "base", id="the execution has one, so it is the task's own"),
        pytest.param("", "run-as", id="the execution has none, so it is the base's, which comes last"),
    ],
)
def test_service_account_of_processed_pods(execution: str, expected: str) -> None:
    """The base PodTemplate's account reaches a processed pod only where neither task nor execution has one."""
    task = samples.pod_task(
        {"containers": [samples.primary(env=[MARK])], "serviceAccountName": "base"},
        execution={"k8sServiceAccount": execution},
        securityContext={"runAs": {"k8sServiceAccount": "run-as"}},
    )
    base = samples.base_template({"containers": [], "serviceAccountName": "base"})
    head = build_ray_job(task, samples.settings(), base)["spec"]["rayClusterSpec"]["headGroupSpec"]
    assert head["template"]["spec"]["serviceAccountName"] == expected
