"""The pods of head and workers: the task's pod, Ray's own parts, the group's template on top."""

from __future__ import annotations

from typing import Any

import pytest

from flytekitplugins.kuberay.cluster.group import (
    HEAD_ROLE,
    WORKER_ROLE,
    Role,
    build_group_template,
    group_problems,
)
from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.pod.template import PodTemplate
from flytekitplugins.kuberay.settings import Settings
from flytekitplugins.kuberay.wire import FlyteTask, K8sPod, Manifest
from tests.pod.samples import (
    ARGS,
    IMAGE,
    container_task,
    custom,
    pod_task,
    primary,
    settings,
    sidecar,
    task_pod,
)

ON_DEMAND = {"key": "spot", "operator": "DoesNotExist"}
DEVICE = "k8s.amazonaws.com/accelerator"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PORTS = {"redis": 6379, "head": 10001, "dashboard": 8265}


def main(**fields: Any) -> Manifest:
    """The primary container of a built task pod."""
    return {"name": "primary", "image": IMAGE, "args": ARGS, **fields}


def build(
    spec: Manifest,
    pod: Manifest | None = None,
    *,
    role: Role = WORKER_ROLE,
    primary: str = "",
    task: FlyteTask | None = None,
    own: Settings | None = None,
) -> PodTemplate:
    """A group's pod template, of a task pod with `primary` and the group's own pod spec."""
    template = None if pod is None else K8sPod(pod, primary_container_name=primary)
    return build_group_template(task_pod(spec), role, template, task or container_task(), own or settings())


def env_of(container: Manifest) -> dict[str, Any]:
    """A container's variables, each with its value or what it refers to."""
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def names_of(built: PodTemplate, field: str = "containers") -> list[str]:
    """The names of a pod's containers."""
    return [container["name"] for container in built.spec.get(field) or []]


IP = {"fieldRef": {"fieldPath": "status.podIP"}}


def resource(name: str) -> Manifest:
    """What a variable holds that refers to the worker's resources."""
    return {"resourceFieldRef": {"containerName": "ray-worker", "resource": name}}


@pytest.mark.parametrize(
    ("role", "env"),
    [
        pytest.param(HEAD_ROLE, {"FLYTE_FAIL_ON_ERROR": "true", "MY_POD_IP": IP}, id="D14 the head"),
        pytest.param(
            WORKER_ROLE,
            {
                "FLYTE_FAIL_ON_ERROR": "true",
                "RAY_DISABLE_DOCKER_CPU_WARNING": "1",
                "TYPE": "worker",
                "CPU_REQUEST": resource("requests.cpu"),
                "CPU_LIMITS": resource("limits.cpu"),
                "MEMORY_REQUESTS": resource("requests.memory"),
                "MEMORY_LIMITS": resource("limits.memory"),
                "MY_POD_NAME": {"fieldRef": {"fieldPath": "metadata.name"}},
                "MY_POD_IP": IP,
            },
            id="D9 a worker's memory variables tell its memory",
        ),
    ],
)
def test_ray_env(role: Role, env: Manifest) -> None:
    """What Ray's containers are told; D14: the driver fails when the user's code raises."""
    assert env_of(build({"containers": [main()]}, role=role).spec["containers"][0]) == env


def test_ray_container() -> None:
    """The primary becomes the Ray container: its own name, no args, Ray's ports, and `ray stop` on workers."""
    [head], [worker] = (
        build({"containers": [main()]}, role=role).spec["containers"] for role in (HEAD_ROLE, WORKER_ROLE)
    )
    assert [head["name"], worker["name"]] == ["ray-head", "ray-worker"]
    assert ["args" in head, "args" in worker, head["image"]] == [False, False, IMAGE]
    assert {port["name"]: port["containerPort"] for port in head["ports"]} == PORTS
    stop = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}}
    assert [head.get("lifecycle"), worker["lifecycle"]] == [None, stop]


@pytest.mark.parametrize("role", [pytest.param(HEAD_ROLE, id="head"), pytest.param(WORKER_ROLE, id="worker")])
def test_ray_container_is_first(role: Role) -> None:
    """D8 (design): KubeRay takes container 0 as the Ray container, wherever the task's primary stood."""
    assert names_of(build({"containers": [sidecar(), main()]}, role=role)) == [role.container, "sidecar"]


def test_ray_container_stays_first() -> None:
    """D8 (design): a group's directive that empties the list does not put the Ray container behind."""
    pod = {"containers": [{"$patch": "replace"}, sidecar(), {"name": "ray-worker", "image": "x"}]}
    assert names_of(build({"containers": [main()]}, pod)) == ["ray-worker", "sidecar"]


@pytest.mark.parametrize(
    ("pod", "containers", "init"),
    [
        pytest.param(
            {"containers": [{"name": "ray-worker"}, {"name": "b", "image": "b"}, {"name": "a", "image": "a"}]},
            ["ray-worker", "sidecar", "b", "a"],
            ["setup"],
            id="D1 sidecars of the group alone, in its order",
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": "a"}, {"name": "ray-worker"}]},
            ["ray-worker", "sidecar", "a"],
            ["setup"],
            id="D1 sidecars that stand before the Ray container",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "i"}, {"name": "setup", "command": ["x"]}]},
            ["ray-worker", "sidecar"],
            ["setup", "i"],
            id="D1 init containers of the group alone, after the task's",
        ),
    ],
)
def test_containers_of_a_group(pod: Manifest, containers: list[str], init: list[str]) -> None:
    """D1 (design): containers that stand only in a group's template are kept."""
    spec = {"containers": [main(), sidecar()], "initContainers": [{"name": "setup", "image": "s"}]}
    built = build(spec, pod)
    assert [names_of(built), names_of(built, "initContainers")] == [containers, init]


@pytest.mark.parametrize(
    ("containers", "primary", "tty"),
    [
        pytest.param(
            [{"name": "mine", "image": "i", "tty": True}, {"name": "other", "image": "i"}],
            "mine",
            ["ray-worker"],
            id="D2 (1) named as primary",
        ),
        pytest.param([{"name": "ray-worker", "tty": True}], "absent", ["ray-worker"], id="D2 (2) called as Ray's"),
        pytest.param([{"name": "primary", "tty": True}], "", ["ray-worker"], id="D2 (3) called as the task's primary"),
        pytest.param([{"name": "any", "tty": True}], "", ["ray-worker"], id="D2 (4) alone and without an image"),
        pytest.param(
            [{"name": "any", "image": "i", "tty": True}], "", ["any"], id="D2 alone with an image is a sidecar"
        ),
        pytest.param(
            [{"name": "sidecar", "tty": True}], "", ["sidecar"], id="D2 called as a sidecar of the task is that one"
        ),
        pytest.param(
            [{"name": "a", "image": "i", "tty": True}, {"name": "b", "image": "i"}], "", ["a"], id="D2 of two, neither"
        ),
    ],
)
def test_ray_container_of_a_group(containers: list[Manifest], primary: str, tty: list[str]) -> None:
    """D2 (design): which container of a group's template goes over the Ray container."""
    built = build({"containers": [main(), sidecar()]}, {"containers": containers}, primary=primary)
    assert [container["name"] for container in built.spec["containers"] if container.get("tty")] == tty


def test_group_over_task() -> None:
    """The group's template wins by the one merge: D3 lists by key, D4 false and null, D10 its variables highest."""
    spec = {
        "hostNetwork": True,
        "hostname": "task",
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [main(env=[{"name": "A", "value": "task"}, {"name": "TYPE", "value": "task"}], command=["task"])],
    }
    pod = {
        "hostNetwork": False,
        "hostname": None,
        "volumes": [{"name": "v", "hostPath": {"path": "/x"}}],
        "containers": [{"name": "ray-worker", "env": [{"name": "TYPE", "value": "group"}], "args": ["x"]}],
    }
    built = build(spec, pod).spec
    assert {key: value for key, value in built.items() if key != "containers"} == {
        "hostNetwork": False,
        "volumes": [{"name": "v", "hostPath": {"path": "/x"}}],
    }
    container = built["containers"][0]
    env = env_of(container)
    assert [container["command"], container["args"], env["A"], env["TYPE"]] == [["task"], ["x"], "task", "group"]


def test_ray_env_over_the_tasks() -> None:
    """D10 (design): Ray's variables stand above the task's own."""
    [container] = build({"containers": [main(env=[{"name": "TYPE", "value": "task"}])]}).spec["containers"]
    assert env_of(container)["TYPE"] == "worker"


@pytest.mark.parametrize(
    ("spec", "pod", "expected"),
    [
        pytest.param(
            {"serviceAccountName": "task"}, {"serviceAccountName": "group"}, "group", id="D5 the group's wins"
        ),
        pytest.param(
            {"serviceAccountName": "task"}, {"serviceAccount": "group"}, "group", id="D5 in the old field too"
        ),
        pytest.param({"serviceAccountName": "task"}, {}, "task", id="D5 else the task's pod's"),
    ],
)
def test_service_account_of_a_group(spec: Manifest, pod: Manifest, expected: str) -> None:
    """D5 (design): a group may run as somebody else."""
    assert build({"containers": [main()], **spec}, pod).spec["serviceAccountName"] == expected


def test_references_follow_the_new_name() -> None:
    """D18 (design): resource references to the primary, in task and group, name the Ray container."""

    def cpu(name: str) -> Manifest:
        return {"valueFrom": {"resourceFieldRef": {"containerName": name, "resource": "limits.cpu"}}}

    spec = {"containers": [main(env=[{"name": "T", **cpu("primary")}])]}
    pod = {"containers": [{"name": "mine", "env": [{"name": "G", **cpu("mine")}, {"name": "P", **cpu("primary")}]}]}
    env = env_of(build(spec, pod, primary="mine").spec["containers"][0])
    assert [env[name]["resourceFieldRef"]["containerName"] for name in "TGP"] == ["ray-worker"] * 3


@pytest.mark.parametrize(
    ("task", "group", "expected"),
    [
        pytest.param(
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            {"requests": {"cpu": "4"}},
            {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}},
            id="D19 a request above the task's limit",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
            {"limits": {"gpu": "2"}},
            {"requests": {"cpu": "1", "amd.com/gpu": "2"}, "limits": {"cpu": "1", "amd.com/gpu": "2"}},
            id="D19, D24 a GPU gets the configured name and both sides",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
            {"limits": None},
            {"requests": {"cpu": "1"}},
            id="D4 a side taken away",
        ),
    ],
)
def test_resources_of_a_group(task: Manifest, group: Manifest, expected: Manifest) -> None:
    """A group's amounts go over the task's, and both sides fit together."""
    own = settings(k8s={"gpu-resource-name": "amd.com/gpu"})
    built = build(
        {"containers": [main(resources=task)]}, {"containers": [{"name": "ray-worker", "resources": group}]}, own=own
    )
    assert built.spec["containers"][0]["resources"] == expected


STOP = {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}
HTTP = {"httpGet": {"port": 1}}


@pytest.mark.parametrize(
    ("task", "group", "expected"),
    [
        pytest.param({"preStop": HTTP}, None, {"preStop": STOP}, id="D20 `ray stop` replaces a task's own"),
        pytest.param(
            {"postStart": HTTP}, None, {"postStart": HTTP, "preStop": STOP}, id="D20 another handler of the task stays"
        ),
        pytest.param({}, {"preStop": HTTP}, {"preStop": HTTP}, id="D20 a group's own replaces it whole"),
        pytest.param({}, {"preStop": None}, {}, id="D4 a group takes it away"),
    ],
)
def test_pre_stop(task: Manifest, group: Manifest | None, expected: Manifest) -> None:
    """D20 (design): one handler each, never a mixture."""
    pod = None if group is None else {"containers": [{"name": "ray-worker", "lifecycle": group}]}
    assert build({"containers": [main(lifecycle=task)]}, pod).spec["containers"][0]["lifecycle"] == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param({"hostNetwork": True}, "ClusterFirstWithHostNet", id="D23 a pod on the host's network"),
        pytest.param({"hostNetwork": True, "dnsPolicy": "Default"}, "Default", id="D23 its own policy stays"),
        pytest.param({}, None, id="D23 any other pod"),
    ],
)
def test_dns_policy(pod: Manifest, expected: str | None) -> None:
    """D23 (design): on the host's network pods still resolve each other."""
    assert build({"containers": [main()]}, pod).spec.get("dnsPolicy") == expected


def test_platform_rules_after_the_group() -> None:
    """D11 (design): a group's own terms replace the task's, and the platform's requirement binds each of them."""
    zone, disk = ({"key": key, "operator": "Exists"} for key in ("zone", "disk"))

    def affinity(*terms: list[Manifest]) -> Manifest:
        selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
        return {"affinity": {"nodeAffinity": {REQUIRED: selector}}}

    own = settings(k8s={"non-interruptible-node-selector-requirement": ON_DEMAND})
    spec = {"containers": [main()], **affinity([disk, ON_DEMAND])}
    got = build(spec, affinity([zone], [disk]), own=own).spec["affinity"]
    assert got == affinity([zone, ON_DEMAND], [disk, ON_DEMAND])["affinity"]


def test_accelerator_of_a_group() -> None:
    """A GPU that only the group asks for brings the accelerator's node and toleration."""
    task = container_task(extendedResources={"gpuAccelerator": {"device": "t4"}})
    pod = {"containers": [{"name": "ray-worker", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
    with_gpu, without = (build({"containers": [main()]}, each, task=task).spec for each in (pod, None))
    key = "k8s.amazonaws.com/accelerator"
    assert with_gpu["tolerations"] == [{"key": key, "operator": "Equal", "value": "t4", "effect": "NoSchedule"}]
    terms = with_gpu["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": key, "operator": "In", "values": ["t4"]}]}]
    assert ["tolerations" in without, "affinity" in without] == [False, False]


@pytest.mark.parametrize(
    ("task", "amounts", "tolerations", "terms"),
    [
        pytest.param({}, {}, ["mine", "gpu", DEVICE, "nvidia.com/gpu"], 1, id="a head like the task"),
        pytest.param({}, {"requests": {"gpu": "0"}}, ["mine"], 0, id="a head without GPU over a task with one"),
        pytest.param({}, {"limits": {"gpu": None}}, ["mine"], 0, id="one that takes it away"),
        pytest.param({"limits": {"gpu": "0"}}, {}, ["mine"], 0, id="a task that writes a 0"),
    ],
)
def test_a_head_without_gpus(task: Manifest, amounts: Manifest, tolerations: list[str], terms: int) -> None:
    """A group goes to a node with GPUs for those that it has itself; Go goes by the task's, and takes 0 for some."""
    k8s: Manifest = {
        "resource-tolerations": {"nvidia.com/gpu": [{"key": "gpu", "operator": "Exists"}]},
        "add-tolerations-for-extended-resources": ["nvidia.com/gpu"],
    }
    spec = {"containers": [primary(resources=task or {"limits": {"gpu": "1"}})], "tolerations": [{"key": "mine"}]}
    head = {"podSpec": {"containers": [{"name": "ray-head", "resources": amounts}]}}
    extended = {"gpuAccelerator": {"device": "A100"}}
    job = build_ray_job(pod_task(spec, custom=custom(head=head), extendedResources=extended), settings(k8s=k8s))
    got = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    required = (got.get("affinity") or {}).get("nodeAffinity", {}).get(REQUIRED, {"nodeSelectorTerms": []})
    assert {each["key"] for each in got["tolerations"]} == set(tolerations)
    assert len(required["nodeSelectorTerms"]) == terms


def test_labels_of_a_group() -> None:
    """D15 (design): the group's labels and annotations stand above the task's."""
    pod = PodTemplate({"containers": [main()]}, {"a": "task", "b": "task"}, {"c": "task"}, "primary")
    template = K8sPod({}, labels={"b": "group"}, annotations={"d": "group"})
    built = build_group_template(pod, HEAD_ROLE, template, container_task(), settings())
    assert [built.labels, built.annotations] == [{"a": "task", "b": "group"}, {"c": "task", "d": "group"}]


LOGS = {"name": "logs", "image": "l", "volumeMounts": [{"name": "own", "mountPath": "/own"}]}


@pytest.mark.parametrize(
    ("mounts", "volumes"),
    [
        pytest.param([], [{"name": "system-ray-state", "emptyDir": {}}], id="a volume is made"),
        pytest.param(
            [{"name": "mine", "mountPath": "/tmp/ray"}], [{"name": "mine", "emptyDir": {}}], id="the task's own is read"
        ),
    ],
)
def test_logs_sidecar(mounts: list[Manifest], volumes: list[Manifest]) -> None:
    """The platform's log sidecar stands last in the head and reads what Ray writes; workers have none."""
    spec = {"containers": [main(volumeMounts=mounts), sidecar()], "volumes": volumes if mounts else []}
    own = settings(ray={"logsSidecar": LOGS})
    head = build(spec, role=HEAD_ROLE, own=own).spec
    mount = {"name": volumes[0]["name"], "mountPath": "/tmp/ray"}
    assert [head["volumes"], head["containers"][0]["volumeMounts"]] == [volumes, [mount]]
    assert head["containers"][2] == {**LOGS, "volumeMounts": [*LOGS["volumeMounts"], {**mount, "readOnly": True}]}
    assert names_of(build(spec, own=own)) == ["ray-worker", "sidecar"]


def test_a_volume_called_as_the_logs() -> None:
    """D13 (design): a volume of the task's with the name of the log sidecar's would be in the pod twice."""
    volumes = [{"name": "system-ray-state", "emptyDir": {}}]
    spec = {"containers": [main(volumeMounts=[{"name": "system-ray-state", "mountPath": "/x"}])], "volumes": volumes}
    head = build(spec, role=HEAD_ROLE, own=settings(ray={"logsSidecar": LOGS}))
    [problem, _] = group_problems(head, container_task(), "head")
    assert str(problem) == "head.volumes[1]: has the same name 'system-ray-state' as volumes[0]; keep one of them"


SHARED = container_task(extendedResources={"sharedMemory": {"mountName": "shm", "mountPath": "/dev/shm"}})


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"containers": [{"name": "ray-worker", "image": None}]},
            ["worker: container 'ray-worker': has no image"],
            id="D21 its image taken away",
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b", "image": "i"}]},
            ["worker: container 'a': has no image"],
            id="D21 a sidecar without an image",
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": "i", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}]},
            ["worker: container 'a' mounts '/x': no volume is called 'x'"],
            id="D13 a mount without a volume",
        ),
        pytest.param(
            {
                "containers": [{"name": "ray-worker", "volumeMounts": [{"name": "x", "mountPath": "/dev/shm"}]}],
                "volumes": [{"name": "x", "emptyDir": {}}],
            },
            [
                "worker: container 'ray-worker' mounts 'x' at '/dev/shm': uses the path or the volume as the task's "
                "shared memory (extendedResources.sharedMemory, /dev/shm) does"
            ],
            id="D13 shared memory's path",
        ),
        pytest.param(
            {"containers": [{"name": "ray-worker", "$patch": "delete"}]},
            ["worker: has no container 'ray-worker' left"],
            id="D21 the Ray container taken away",
        ),
        pytest.param(
            {"containers": None}, ["worker: has no container 'ray-worker' left"], id="D21 all containers taken away"
        ),
    ],
)
def test_group_problems(pod: Manifest, expected: list[str]) -> None:
    """What is wrong with a group's pod after all merges."""
    mount = {"name": "shm", "mountPath": "/dev/shm"}
    spec = {
        "containers": [main(volumeMounts=[mount])],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    built = build(spec, pod, task=SHARED)
    assert [f"{problem.path}: {problem.what}" for problem in group_problems(built, SHARED, "worker")] == expected
