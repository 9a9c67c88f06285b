"""The whole RayJob of a task, in one pure call; whole manifests stand in tests/golden."""

from __future__ import annotations

import json
import operator
import shlex
from typing import Any

import hypothesis
import pytest
from flytekit import PodTemplate as FlytePodTemplate
from flytekit import Resources
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.cluster import names
from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.config import RayJobConfig, WorkerNodeConfig
from flytekitplugins.kuberay.errors import TaskError
from flytekitplugins.kuberay.settings import Settings
from flytekitplugins.kuberay.wire import FlyteTask, Manifest, from_config, to_custom
from tests.pod.samples import base_template, container_task, custom, pod_task, settings, sidecar


def with_extras(**extras: Any) -> FlyteTask:
    """A task with these settings of our own."""
    return container_task(config={"kuberay": json.dumps({"version": 1, **extras})})


def spec_of(task: FlyteTask, own: Settings | None = None) -> Manifest:
    """A RayJob's spec."""
    spec: Manifest = build_ray_job(task, own or settings())["spec"]
    return spec


def templates_of(job: Manifest) -> dict[str, Manifest]:
    """A RayJob and its pod templates, by what they are."""
    cluster = job["spec"]["rayClusterSpec"]
    return {
        "job": job,
        "head": cluster["headGroupSpec"]["template"],
        **{group["groupName"]: group["template"] for group in cluster["workerGroupSpecs"]},
        "submitter": job["spec"]["submitterPodTemplate"],
    }


def test_smallest() -> None:
    """The RayJob of the smallest task, but for its pods."""
    job = build_ray_job(container_task(), settings())
    for group in (job["spec"]["rayClusterSpec"]["headGroupSpec"], *job["spec"]["rayClusterSpec"]["workerGroupSpecs"]):
        del group["template"]
    del job["spec"]["submitterPodTemplate"], job["metadata"]["labels"], job["metadata"]["annotations"]
    start = {"node-ip-address": "$MY_POD_IP", "disable-usage-stats": "true"}
    assert job == {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": names.job_name(container_task()), "namespace": "p-d"},
        "spec": {
            "entrypoint": "pyflyte-execute train",
            "submissionMode": "K8sJobMode",
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": 3600,
            "rayClusterSpec": {
                "headGroupSpec": {
                    "serviceType": "ClusterIP",
                    "enableIngress": False,
                    "rayStartParams": {"include-dashboard": "true", "dashboard-host": "0.0.0.0", **start},
                },
                "workerGroupSpecs": [
                    {"groupName": "workers", "replicas": 1, "minReplicas": 0, "maxReplicas": 1, "rayStartParams": start}
                ],
                "enableInTreeAutoscaling": False,
            },
        },
    }


HOSTILE = ["train", "a b", "", "it's", "$HOME", "`x`", "$(y)", "a;b", "line\nbreak", '{"k": "v"}']


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode"])
def test_entrypoint(mode: str) -> None:
    """D6 (design): each argument is quoted, so that the driver gets exactly the argv, in every submission mode."""
    task = container_task(
        container={"args": HOSTILE}, config={"kuberay": json.dumps({"version": 1, "submissionMode": mode})}
    )
    assert shlex.split(spec_of(task)["entrypoint"]) == HOSTILE


@pytest.mark.parametrize(
    ("task", "own", "mode", "submitter"),
    [
        pytest.param(container_task(), settings(), "K8sJobMode", True, id="the default"),
        pytest.param(
            container_task(), settings(kuberay={"submission-mode": "HTTPMode"}), "HTTPMode", False, id="the platform's"
        ),
        pytest.param(
            with_extras(submissionMode="SidecarMode"),
            settings(kuberay={"submission-mode": "HTTPMode"}),
            "SidecarMode",
            False,
            id="the task's",
        ),
    ],
)
def test_submission_mode(task: FlyteTask, own: Settings, mode: str, submitter: bool) -> None:
    """A submitter's template is sent only in K8sJobMode: KubeRay refuses it elsewhere."""
    spec = spec_of(task, own)
    assert [spec["submissionMode"], "submitterPodTemplate" in spec] == [mode, submitter]


@pytest.mark.parametrize(
    ("template", "own", "shutdown", "ttl"),
    [
        pytest.param({}, {}, True, 3600, id="D12 nothing said: Flyte's default"),
        pytest.param({}, {"ray": {"ttlSecondsAfterFinished": 60}}, True, 60, id="D12 nothing said: the platform's"),
        pytest.param(
            {}, {"ray": {"shutdownAfterJobFinishes": False}}, False, None, id="D12 the platform's may be to keep it"
        ),
        pytest.param(
            {"custom": custom(shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=5)},
            {},
            True,
            5,
            id="D12 the task's, by custom",
        ),
        pytest.param({"custom": custom(shutdownAfterJobFinishes=True)}, {}, True, 0, id="D12 a ttl of 0 can be said"),
        pytest.param({"config": {"kuberay": '{"version": 1, "ttl": 7}'}}, {}, True, 7, id="D12 a ttl alone"),
        pytest.param(
            {"config": {"kuberay": '{"version": 1, "shutdown": false}'}}, {}, True, 86400, id="D12 kept, but bounded"
        ),
        pytest.param(
            {"config": {"kuberay": '{"version": 1, "shutdown": false}'}},
            {"kuberay": {"max-keep-seconds": None}},
            False,
            None,
            id="D12 kept for ever, where the platform allows it: no ttl is sent",
        ),
    ],
)
def test_ending(template: Manifest, own: Manifest, shutdown: bool, ttl: int | None) -> None:
    """D12 (design): when the cluster goes after the job's end."""
    spec = spec_of(container_task(**template), settings(**own))
    assert [spec["shutdownAfterJobFinishes"], spec.get("ttlSecondsAfterFinished")] == [shutdown, ttl]


@pytest.mark.parametrize(
    ("extras", "own", "expected"),
    [
        pytest.param({}, {}, None, id="none"),
        pytest.param({"deadlines": {"start": 60}}, {}, None, id="one of both is no end"),
        pytest.param({"deadlines": {"start": 60, "run": 600}}, {}, 60 + 600 + 600, id="both and ten minutes"),
        pytest.param(
            {"deadlines": {"run": 600}},
            {"start-deadline": "1m", "run-deadline": "1h", "deadline-margin": "1s"},
            60 + 600 + 1,
            id="the task's above the platform's",
        ),
        pytest.param({}, {"start-deadline": "0s", "run-deadline": "1h"}, None, id="0 is no deadline"),
        pytest.param(
            {"deadlines": {"start": 0}},
            {"start-deadline": "1m", "run-deadline": "1h"},
            None,
            id="nor is the task's, which is above the platform's",
        ),
        pytest.param({}, {"start-deadline": "1ms", "run-deadline": "1h"}, 1 + 3600 + 600, id="a short one is one"),
    ],
)
def test_deadline(extras: Manifest, own: Manifest, expected: int | None) -> None:
    """KubeRay's own deadline lies behind both of ours, for where the connector is not asked."""
    assert spec_of(with_extras(**extras), settings(kuberay=own)).get("activeDeadlineSeconds") == expected


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param({}, "ClusterIP", id="D25 nothing said"),
        pytest.param({"serviceType": "NodePort"}, "NodePort", id="D25 the platform's"),
    ],
)
def test_service_type(own: Manifest, expected: str) -> None:
    """D25 (design): Ray's dashboard, which runs code unasked, is not open on every node."""
    head = spec_of(container_task(), settings(ray=own))["rayClusterSpec"]["headGroupSpec"]
    assert head["serviceType"] == expected


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        pytest.param({"replicas": 2, "minReplicas": 1, "maxReplicas": 3}, (2, 1, 3), id="bounds around it"),
        pytest.param(
            {"replicas": 2, "minReplicas": 4, "maxReplicas": 1}, (2, 2, 2), id="bounds that leave it out move to it"
        ),
        pytest.param({"replicas": 2}, (2, 0, 2), id="no bounds: from none to what it is"),
    ],
)
def test_replicas(group: Manifest, expected: tuple[int, int, int]) -> None:
    """KubeRay gets bounds that hold the number of replicas."""
    [built] = spec_of(container_task(custom=custom(group)))["rayClusterSpec"]["workerGroupSpecs"]
    assert (built["replicas"], built["minReplicas"], built["maxReplicas"]) == expected


def test_start_params() -> None:
    """A group's own parameters replace the platform's, which are for groups without; the address is filled in."""
    own = settings(ray={"defaults": {"workerNode": {"startParameters": {"num-cpus": "1"}}}, "enableUsageStats": True})
    groups = spec_of(
        container_task(custom=custom({"groupName": "a", "rayStartParams": {"x": "y"}}, {"groupName": "b"})), own
    )
    assert [group["rayStartParams"] for group in groups["rayClusterSpec"]["workerGroupSpecs"]] == [
        {"node-ip-address": "$MY_POD_IP", "x": "y"},
        {"node-ip-address": "$MY_POD_IP", "num-cpus": "1"},
    ]


def test_extras() -> None:
    """What flyteidl has no field for reaches the RayJob: queue, priority, back-off, autoscaling."""
    task = with_extras(queue="q", priority="p", backoffLimit=0)
    job = build_ray_job(task, settings(kuberay={"queue": "default", "priority-label": "example.com/priority"}))
    labels = job["metadata"]["labels"]
    assert [labels["kueue.x-k8s.io/queue-name"], labels["example.com/priority"], job["spec"]["backoffLimit"]] == [
        "q",
        "p",
        0,
    ]
    assert "kueue.x-k8s.io/queue-name" not in templates_of(job)["head"]["metadata"]["labels"]


def test_patches() -> None:
    """The platform's patch, then the task's, go on top of all: the way to a field that we do not know."""
    own = settings(kuberay={"ray-job-patch": {"spec": {"suspend": True, "managedBy": "platform"}}})
    spec = spec_of(with_extras(rayJobPatch={"spec": {"managedBy": "task", "ttlSecondsAfterFinished": None}}), own)
    assert [spec["suspend"], spec["managedBy"], "ttlSecondsAfterFinished" in spec] == [True, "task", False]


def submitter_of(task: FlyteTask, own: Settings | None = None) -> Manifest:
    """The submitter's container."""
    container: Manifest = spec_of(task, own)["submitterPodTemplate"]["spec"]["containers"][0]
    return container


def test_hostile_arguments() -> None:
    """D6 (design): where KubeRay's command line would spoil the arguments, the submitter has a command of its own."""
    container = submitter_of(container_task(container={"args": ["train", "a;b"]}))
    assert [container["command"][0], container["args"]] == ["python", ["train 'a;b'", "{}"]]


@pytest.mark.parametrize(
    ("args", "patch", "expected"),
    [
        pytest.param(
            ["train", "a;b"],
            {"entrypointNumGpus": 1, "entrypointNumCpus": 0.5},
            ["train 'a;b'", {"entrypoint_num_gpus": 1, "entrypoint_num_cpus": 0.5, "runtime_env": {"pip": ["own"]}}],
            id="what the platform reserves for hostile arguments",
        ),
        pytest.param(
            ["train", "a;b"],
            {"runtimeEnvYAML": "pip: [patched]"},
            ["train 'a;b'", {"runtime_env": {"pip": ["patched"]}}],
            id="another runtime environment",
        ),
        pytest.param(
            ["train"],
            {"runtimeEnvYAML": "env_vars: {A: $HOME}"},
            ["train", {"runtime_env": {"env_vars": {"A": "$HOME"}}}],
            id="a runtime environment that bash would read",
        ),
        pytest.param(
            ["train", "a;b"],
            {"entrypoint": "python a.py $(nproc)"},
            ["python a.py $$(nproc)", {"runtime_env": {"pip": ["own"]}}],
            id="another entrypoint",
        ),
    ],
)
def test_the_submitters_command_says_what_patches_say(args: list[str], patch: Manifest, expected: list[Any]) -> None:
    """The submitter's own command hands over the RayJob as it is created."""
    task = container_task(container={"args": args}, custom=custom(runtimeEnvYaml="pip: [own]"))
    entrypoint, options = submitter_of(task, settings(kuberay={"ray-job-patch": {"spec": patch}}))["args"]
    assert [entrypoint, json.loads(options)] == expected


def test_a_submitter_of_the_users_keeps_its_command() -> None:
    """Whether a template brings it or a patch: nothing of ours is mixed into it."""
    own = {"containers": [{"name": "x", "command": ["mine"]}]}
    patch = {"submitterPodTemplate": {"spec": {"containers": [{"name": "ray-job-submitter", "command": ["mine"]}]}}}
    for extras in ({"submitter": {"template": {"podSpec": own}}}, {"rayJobPatch": {"spec": patch}}):
        config = {"kuberay": json.dumps({"version": 1, **extras})}
        container = submitter_of(container_task(container={"args": ["train", "a;b"]}, config=config))
        assert [container["command"], "args" in container] == [["mine"], False]


def test_metadata_of_all_objects() -> None:
    """D15 (design): RayJob, head, workers and submitter carry the task's labels, with ours above them."""
    labels = {"team": "a b", names.ATTEMPT: "99"}
    task = pod_task(pod_metadata={"labels": labels, "annotations": {"note": "a b"}})
    for template in templates_of(build_ray_job(task, settings())).values():
        metadata = template["metadata"]
        assert {key: metadata["labels"][key] for key in ("team", names.ATTEMPT, names.ATTEMPT_KEY)} == {
            "team": "a-b",
            names.ATTEMPT: "0",
            names.ATTEMPT_KEY: names.attempt_key(task.output_prefix),
        }
        assert [metadata["annotations"]["note"], metadata["annotations"]["kuberay.flyte.org/node"]] == ["a b", "n0"]


def test_secrets() -> None:
    """Secrets are marked on the RayJob and the cluster's pods, above the user's value, not on the submitter."""
    task = container_task(
        securityContext={"secrets": [{"key": "k"}]}, execution={"labels": {"inject-flyte-secrets": "false"}}
    )
    shown = {
        name: [
            template["metadata"]["labels"]["inject-flyte-secrets"],
            "flyte.secrets/s0" in template["metadata"]["annotations"],
        ]
        for name, template in templates_of(build_ray_job(task, settings())).items()
    }
    both = ["true", True]
    assert shown == {"job": both, "head": both, "workers": both, "submitter": ["false", False]}


def test_requests_and_template() -> None:
    """D17 (design): a group's resources and its pod template are merged; the explicit resources win for their keys."""
    pod: Any = {
        "containers": [
            {"name": "ray-worker", "tty": True, "resources": {"limits": {"cpu": "4", "memory": "1Gi"}}},
            sidecar(),
        ]
    }
    config = RayJobConfig(
        [WorkerNodeConfig("workers", 1, pod_template=FlytePodTemplate(pod_spec=pod), requests=Resources(cpu="3"))]
    )
    ray_task = from_config(config)
    built = build_ray_job(container_task(custom=to_custom(ray_task)), settings())
    container, other = templates_of(built)["workers"]["spec"]["containers"]
    assert [container["tty"], container["resources"]["requests"]["cpu"], other["name"]] == [True, "3", "sidecar"]
    assert container["resources"]["limits"]["memory"] == "1Gi"


def test_service_accounts() -> None:
    """D5 (design): the head's own service account is the head's alone; the others run as the task's pod says."""
    task = pod_task({"serviceAccountName": "task"}, custom=custom(head={"podSpec": {"serviceAccountName": "head"}}))
    built = templates_of(build_ray_job(task, settings(ray={"serviceAccount": "platform"})))
    accounts = {name: built[name]["spec"]["serviceAccountName"] for name in ("head", "workers", "submitter")}
    assert accounts == {"head": "head", "workers": "task", "submitter": "task"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"custom": custom({"replicas": -1}), "container": {"image": ""}},
            ["custom.rayCluster.workerGroupSpec[0].replicas", "container.image"],
            id="D21 settings and target",
        ),
        pytest.param(
            {
                "container": {"image": "", "args": []},
                "custom": custom({"k8sPod": {"podSpec": {"hostname": 5}}}, head={"podSpec": {"priority": "x"}}),
                "config": {"kuberay": '{"version": 1, "submitter": {"resources": {"limits": {"cpu": "x"}}}}'},
            },
            [
                "container.image",
                "container.args",
                "custom.rayCluster.headGroupSpec.k8sPod.podSpec.priority",
                "custom.rayCluster.workerGroupSpec[0].k8sPod.podSpec.hostname",
                'config["kuberay"].submitter.resources.limits[cpu]',
            ],
            id="D21 target, groups and submitter",
        ),
        pytest.param(
            {
                "custom": {
                    "rayCluster": {
                        "headGroupSpec": {"k8sPod": {"podSpec": {"priority": "x"}}, "rayStartParams": {"block": True}},
                        "workerGroupSpec": [3, {"groupName": "w", "k8sPod": {"podSpec": {"hostname": 5}}}],
                        "autoscalerOptions": {"env": [{"key": 1, "value": "v"}]},
                    }
                },
                "config": {"kuberay": '{"version": 1, "submitter": {"resources": {"limits": {"cpu": 1}}}}'},
            },
            [
                "custom.rayCluster.headGroupSpec.rayStartParams[block]",
                "custom.rayCluster.workerGroupSpec[0]",
                "custom.rayCluster.autoscalerOptions.env[0].key",
                'config["kuberay"].submitter.resources.limits[cpu]',
                "custom.rayCluster.headGroupSpec.k8sPod.podSpec.priority",
                "custom.rayCluster.workerGroupSpec[1].k8sPod.podSpec.hostname",
            ],
            id="D21 what can't be read, and within what can, each fault once",
        ),
        pytest.param(
            {
                "custom": custom(
                    {"k8sPod": {"podSpec": {"containers": [{"name": "a"}, {"name": "b"}]}}},
                    head={"podSpec": {"containers": [{"name": "ray-head", "volumeMounts": [{"name": "v"}]}]}},
                ),
            },
            [
                "custom.rayCluster.headGroupSpec.k8sPod: container 'ray-head' mounts None",
                "custom.rayCluster.workerGroupSpec[0].k8sPod: container 'a'",
                "custom.rayCluster.workerGroupSpec[0].k8sPod: container 'b'",
            ],
            id="D13 what only the merged pods show",
        ),
    ],
)
def test_all_problems_at_once(changes: Any, expected: list[str]) -> None:
    """D21 (design): what is wrong is told in one error, each with its path."""
    with pytest.raises(TaskError) as caught:
        build_ray_job(container_task(**changes), settings())
    assert [problem.path for problem in caught.value.problems] == expected


NAMES = ["primary", "ray-head", "ray-worker", "ray-job-submitter", "sidecar", "default"]
MARKS = st.sampled_from(["replace", "delete", "merge"])
AMOUNTS = st.sampled_from([None, {}, {"cpu": 1}, {"cpu": None}, {"gpu": "1"}, {"cpu": "2"}])
LISTS = st.sampled_from([None, [], [{"$patch": "replace"}], [{"name": "a"}], [{"name": "a", "$patch": "delete"}]])
NAME = operator.itemgetter("name")
CONTAINERS = st.fixed_dictionaries(
    {"name": st.sampled_from(NAMES), "image": st.sampled_from(["i", "j", None]), "args": st.just(["a"])},
    optional={
        "env": LISTS,
        "resources": st.fixed_dictionaries({}, optional={"requests": AMOUNTS, "limits": AMOUNTS, "$patch": MARKS}),
        "volumeMounts": st.sampled_from([None, [{"name": "a", "mountPath": "/a"}], [{"$patch": "replace"}]]),
        "lifecycle": st.sampled_from([None, {}, {"preStop": None}, {"$patch": "delete"}]),
        "$patch": MARKS,
    },
)
TERMS: list[list[Manifest] | None] = [None, [], [{}], [{"matchExpressions": None}], [{"$patch": "delete"}]]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "containers": st.none() | st.lists(CONTAINERS, max_size=3, unique_by=NAME) | st.just([{"$patch": "replace"}]),
        "initContainers": st.none() | st.lists(CONTAINERS, max_size=1) | st.just([{"$patch": "replace"}]),
        "volumes": LISTS,
        "imagePullSecrets": LISTS,
        "tolerations": st.sampled_from([None, [], [{"key": "a"}], [{"key": "a", "$patch": "delete"}]]),
        "affinity": st.sampled_from([{"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}} for terms in TERMS]),
        "hostNetwork": st.sampled_from([None, True, False]),
        "serviceAccount": st.sampled_from([None, "", "x"]),
        "$patch": MARKS,
    },
)
PLATFORM = settings(
    k8s={
        "default-pod-template-name": "base",
        "non-interruptible-node-selector-requirement": {"key": "k", "operator": "Exists"},
        "default-affinity": {"podAffinity": {}},
    },
    ray={"logsSidecar": {"name": "logs", "image": "l"}},
)


@hypothesis.settings(deadline=None, max_examples=200)
@given(st.none() | SPECS, st.none() | SPECS, st.none() | SPECS, st.none() | SPECS, st.none() | SPECS)
def test_a_ray_job_or_a_refusal(
    target: Manifest | None, head: Manifest | None, worker: Manifest | None, own: Manifest | None, base: Manifest | None
) -> None:
    """Whatever the pods hold, a task is built or refused by our error; what is built has no directive and no null."""
    task = pod_task(
        target,
        custom=custom({"k8sPod": {"podSpec": worker or {}}}, head={"podSpec": head or {}}),
        config={
            "primary_container_name": "primary",
            "kuberay": json.dumps({"version": 1, "submitter": {"template": {"podSpec": own or {}}}}),
        },
    )
    try:
        built = json.dumps(build_ray_job(task, PLATFORM, base and base_template(base)))
    except TaskError:
        return
    assert ["$patch" in built, "null" in built] == [False, False]
