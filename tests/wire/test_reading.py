"""Task templates back to Ray settings: of every SDK, with all faults at once."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flyteidl.core.tasks_pb2 import Resources, TaskTemplate
from flyteidl.plugins.ray_pb2 import AutoscalerOptions as PluginOptions
from flyteidl.plugins.ray_pb2 import RayJob
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.errors import TaskError
from flytekitplugins.kuberay.wire import (
    AutoscalerOptions,
    Extras,
    HeadGroup,
    K8sPod,
    RayTask,
    WorkerGroup,
    from_template,
    read_template,
)
from flytekitplugins.kuberay.wire.raytask import RESOURCE_NAMES, UPSCALING_MODES
from tests.wire.conftest import MakeTemplate

GROUP = {"groupName": "w", "replicas": 1.0, "minReplicas": 1.0, "maxReplicas": 1.0}


SAMPLES = Path(__file__).parent / "samples"
REGISTERED = {
    "kuberay-0.1.0.json": RayTask(
        workers=(
            WorkerGroup(
                "gpu",
                2,
                1,
                4,
                {"num-gpus": "1"},
                K8sPod(
                    {
                        "hostNetwork": None,
                        "containers": [
                            {"name": "ray-worker", "resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}}
                        ],
                    },
                    {"team": "vision"},
                    {},
                    "ray-worker",
                ),
            ),
        ),
        head=HeadGroup({"num-cpus": "0"}),
        enable_autoscaling=True,
        autoscaler_options=AutoscalerOptions(
            "Conservative", 120, "ray:2.40", (("A", "b"),), {"cpu": "1"}, {"cpu": "2"}
        ),
        runtime_env_yaml="pip:\n- numpy\n",
        runtime_env_base64="eyJwaXAiOiBbIm51bXB5Il19",
        shutdown=True,
        ttl=0,
        extras=Extras(
            ttl=0,
            submission_mode="K8sJobMode",
            submitter_resources={"requests": {"cpu": "500m"}},
            start_deadline=600,
            run_deadline=7200,
            queue="gpu-queue",
            backoff_limit=0,
            ray_job_patch={"spec": {"suspend": True}},
        ),
    )
}


@pytest.mark.parametrize(("name", "expected"), [pytest.param(*row, id=row[0]) for row in REGISTERED.items()])
def test_what_a_release_registered_is_read_by_this_one(name: str, expected: RayTask) -> None:
    """A sample of each release, as it stands in Flyte's database, is read without a change for ever."""
    assert from_template(ParseDict(json.loads((SAMPLES / name).read_text()), TaskTemplate())) == expected


def test_every_sample_is_read() -> None:
    """No sample lies unused. Those of flytekitplugins-ray 1.13 to 1.15 are golden cases."""
    assert {path.name for path in SAMPLES.iterdir()} == set(REGISTERED)


CUSTOMS = [
    pytest.param({"rayCluster": {}}, RayTask(), id="an empty cluster"),
    pytest.param(
        {"rayCluster": {"workerGroupSpec": [{"groupName": "w", "replicas": "2"}]}},
        RayTask(workers=(WorkerGroup("w", 2, 0, 0),)),
        id="numbers as text, bounds unset",
    ),
    pytest.param(
        {"ray_cluster": {"worker_group_spec": [{"group_name": "w", "max_replicas": 3}], "enable_autoscaling": True}},
        RayTask(workers=(WorkerGroup("w", 0, 0, 3),), enable_autoscaling=True),
        id="snake_case",
    ),
    pytest.param(
        {"rayCluster": {"headGroupSpec": {}, "workerGroupSpec": [{**GROUP, "rayStartParams": {}}]}},
        RayTask(head=HeadGroup(), workers=(WorkerGroup("w", 1, 1, 1, ray_start_params={}),)),
        id="an empty map of start parameters is not the same as none",
    ),
    pytest.param(
        {
            "rayCluster": {
                "headGroupSpec": {
                    "rayStartParams": {"num-cpus": "0"},
                    "k8sPod": {
                        "metadata": {"labels": {"a": ""}, "annotations": {"b": "c"}},
                        "podSpec": {
                            "hostNetwork": False,
                            "priority": 0,
                            "nodeSelector": None,
                            "x": [],
                            "y": "",
                            "z": {},
                        },
                        "primaryContainerName": "trainer",
                    },
                }
            }
        },
        RayTask(
            head=HeadGroup(
                {"num-cpus": "0"},
                K8sPod(
                    {"hostNetwork": False, "priority": 0, "nodeSelector": None, "x": [], "y": "", "z": {}},
                    {"a": ""},
                    {"b": "c"},
                    "trainer",
                ),
            )
        ),
        id="a pod keeps nulls, false, 0 and empty values, and its primary container's name",
    ),
    pytest.param(
        {"rayCluster": {"workerGroupSpec": [{**GROUP, "k8sPod": {"podSpec": {"n": 12345678901234.0, "f": 0.5}}}]}},
        RayTask(workers=(WorkerGroup("w", 1, 1, 1, k8s_pod=K8sPod({"n": 12345678901234, "f": 0.5})),)),
        id="whole numbers come out of a Struct as integers (D22)",
    ),
    pytest.param(
        {"rayCluster": {"autoscalerOptions": {"resources": {}}}},
        RayTask(autoscaler_options=AutoscalerOptions()),
        id="autoscaler options without any",
    ),
    pytest.param(
        {
            "rayCluster": {
                "autoscalerOptions": {
                    "upscalingMode": 2,
                    "idleTimeoutSeconds": 0,
                    "image": "i",
                    "env": [{"key": "A", "value": "1"}, {"key": "B"}],
                    "resources": {
                        "requests": [{"name": "CPU", "value": "1"}],
                        "limits": [{"name": "GPU", "value": "2"}],
                    },
                }
            }
        },
        RayTask(
            autoscaler_options=AutoscalerOptions(
                "Aggressive", 0, "i", (("A", "1"), ("B", "")), {"cpu": "1"}, {"nvidia.com/gpu": "2"}
            )
        ),
        id="autoscaler options, the mode by its number",
    ),
    pytest.param(
        {"rayCluster": {"autoscalerOptions": {"upscalingMode": "UPSCALING_MODE_UNSPECIFIED"}}},
        RayTask(autoscaler_options=AutoscalerOptions()),
        id="an unspecified mode is none",
    ),
    pytest.param(
        {"rayCluster": {}, "shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 20},
        RayTask(shutdown=True, ttl=20),
        id="a ttl with a shutdown",
    ),
    pytest.param(
        {"rayCluster": {}, "shutdownAfterJobFinishes": False, "ttlSecondsAfterFinished": 20},
        RayTask(),
        id="a ttl without one never counted, and False can't be told from unset",
    ),
    pytest.param(
        {"rayCluster": {"reusePolicy": {"replicas": 1}}, "runtimeEnvYaml": None, "new": 1},
        RayTask(),
        id="unknown keys and nulls",
    ),
    pytest.param(
        {"rayCluster": {}, "runtimeEnv": "not read", "runtimeEnvYaml": "a: 1\n"},
        RayTask(runtime_env_yaml="a: 1\n", runtime_env_base64="not read"),
        id="YAML wins over base64",
    ),
    pytest.param({"rayCluster": {}, "runtimeEnvYaml": "# nothing\n"}, RayTask(), id="YAML without content"),
    pytest.param(
        {"rayCluster": {}, "runtimeEnv": "eyJuIjogMS4wLCAiYiI6IDEyMzQ1Njc4OTAxMjM0fQ=="},
        RayTask(
            runtime_env_yaml="b: 12345678901234\n'n': 1\n",
            runtime_env_base64="eyJuIjogMS4wLCAiYiI6IDEyMzQ1Njc4OTAxMjM0fQ==",
        ),
        id="base64 alone becomes YAML with whole numbers whole",
    ),
]


@pytest.mark.parametrize(("custom", "expected"), CUSTOMS)
def test_custom_is_read(custom: dict[str, Any], expected: RayTask, template: MakeTemplate) -> None:
    """`custom` in the shapes that SDKs and other clients write."""
    assert from_template(template(custom)) == expected


NO_CLUSTER = "custom.rayCluster: is missing; register the task anew, with a RayJobConfig"
NAME_RULE = "use letters, digits and '-', begin and end with a letter or digit, at most 63"
FAULTS = [
    pytest.param(None, ["custom: is missing; register the task anew, with a RayJobConfig"], id="no custom"),
    pytest.param({}, [NO_CLUSTER], id="no cluster"),
    pytest.param({"rayCluster": []}, ["custom.rayCluster: is a list; it has to be a map"], id="a list for the cluster"),
    pytest.param(
        {
            "ray_cluster": {
                "worker_group_spec": [GROUP, {**GROUP, "group_name": "x", "replicas": -3, "groupName": None}]
            }
        },
        ["custom.rayCluster.workerGroupSpec[1].replicas: is -3; it has to be from 0 to 2147483647"],
        id="negative replicas: the path is camelCase",
    ),
    pytest.param(
        {"rayCluster": {"workerGroupSpec": [{**GROUP, "replicas": 1.5, "minReplicas": True, "maxReplicas": "many"}]}},
        [
            "custom.rayCluster.workerGroupSpec[0].replicas: is 1.5; it has to be a whole number",
            "custom.rayCluster.workerGroupSpec[0].minReplicas: is True; it has to be a whole number",
            "custom.rayCluster.workerGroupSpec[0].maxReplicas: is 'many'; it has to be a whole number",
        ],
        id="numbers that are none",
    ),
    pytest.param(
        {
            "rayCluster": {
                "workerGroupSpec": [{**GROUP, "replicas": "--5", "minReplicas": "-5", "maxReplicas": "9" * 5000}]
            }
        },
        [
            "custom.rayCluster.workerGroupSpec[0].replicas: is '--5'; it has to be a whole number",
            "custom.rayCluster.workerGroupSpec[0].minReplicas: is '-5'; it has to be from 0 to 2147483647",
            f"custom.rayCluster.workerGroupSpec[0].maxReplicas: is '{'9' * 79}; it has to be a whole number",
        ],
        id="numbers as text that are none, or too long for Python",
    ),
    pytest.param(
        {"rayCluster": {"workerGroupSpec": [GROUP, {**GROUP, "groupName": "W"}, {**GROUP, "groupName": "a_b"}, {}, 3]}},
        [
            "custom.rayCluster.workerGroupSpec[4]: is 3; it has to be a map",
            "custom.rayCluster.workerGroupSpec[1].groupName: is 'W', as workerGroupSpec[0]'s; "
            "give each group a name of its own, case aside",
            f"custom.rayCluster.workerGroupSpec[2].groupName: is 'a_b'; {NAME_RULE}",
            f"custom.rayCluster.workerGroupSpec[3].groupName: is empty; {NAME_RULE}",
        ],
        id="group names twice, invalid and empty",
    ),
    pytest.param(
        {"rayCluster": {"headGroupSpec": {"rayStartParams": {"num-cpus": 1}, "k8sPod": {"podSpec": "x"}}}},
        [
            "custom.rayCluster.headGroupSpec.rayStartParams[num-cpus]: is 1; it has to be text",
            "custom.rayCluster.headGroupSpec.k8sPod.podSpec: is 'x'; it has to be a map",
        ],
        id="wrong types in the head group",
    ),
    pytest.param(
        {"rayCluster": {"enableAutoscaling": "true", "autoscalerOptions": {"upscalingMode": "FAST"}}},
        [
            "custom.rayCluster.enableAutoscaling: is 'true'; it has to be true or false",
            "custom.rayCluster.autoscalerOptions.upscalingMode: is 'FAST'; it has to be one of "
            "UPSCALING_MODE_UNSPECIFIED, UPSCALING_MODE_DEFAULT, UPSCALING_MODE_AGGRESSIVE, "
            "UPSCALING_MODE_CONSERVATIVE",
        ],
        id="an unknown enum value",
    ),
    pytest.param(
        {"rayCluster": {}, "ttlSecondsAfterFinished": -5, "runtimeEnvYaml": "- a\n"},
        [
            "custom.ttlSecondsAfterFinished: is -5; it has to be from 0 to 2147483647",
            "custom.runtimeEnvYaml: is not a mapping; register the task anew, with a mapping as runtime_env",
        ],
        id="a negative ttl and a runtime environment that is a list",
    ),
    pytest.param(
        {"rayCluster": {}, "runtimeEnvYaml": "a: hunter2\nb: [hunter2"},
        ["custom.runtimeEnvYaml: is no YAML (line 2); register the task anew, with a mapping as runtime_env"],
        id="no YAML, and its text, which may hold a secret, is not shown",
    ),
    pytest.param(
        {"rayCluster": {}, "runtimeEnv": "not base64 !!"},
        ["custom.runtimeEnv: is not base64 of JSON; register the task anew, with a mapping as runtime_env"],
        id="no base64",
    ),
    pytest.param(
        {"rayCluster": {}, "runtimeEnv": "WzFd"},
        ["custom.runtimeEnv: is a list, not a mapping; register the task anew, with a mapping as runtime_env"],
        id="base64 of a list",
    ),
    pytest.param(
        {"rayCluster": {}, "ray_cluster": {}},
        ["custom.rayCluster: is given twice; drop ray_cluster"],
        id="one field by both its names",
    ),
]


@pytest.mark.parametrize(("custom", "expected"), FAULTS)
def test_faults_of_custom_come_in_one_error(
    custom: dict[str, Any] | None, expected: list[str], template: MakeTemplate
) -> None:
    """All that can't be is told at once, by wire paths (D21)."""
    with pytest.raises(TaskError) as caught:
        from_template(template(custom))
    assert [str(problem) for problem in caught.value.problems] == expected


def test_what_can_be_read_comes_with_the_faults(template: MakeTemplate) -> None:
    """A reader that looks for more faults gets all that can be read, each group at its own index."""
    good = {"groupName": "b", "replicas": 2, "minReplicas": 1, "maxReplicas": 3}
    ray, problems = read_template(template({"rayCluster": {"workerGroupSpec": [7, {"replicas": "x"}, good]}}))
    assert [ray.workers[2], len(ray.workers)] == [WorkerGroup("b", 2, 1, 3), 3]
    assert [problem.path.removeprefix("custom.rayCluster.workerGroupSpec") for problem in problems] == [
        "[0]",
        "[1].replicas",
        "[1].groupName",
    ]


def test_extras_of_version_1(template: MakeTemplate) -> None:
    """Every key of `config["kuberay"]` is read; the extras' shutdown and ttl win over custom's."""
    entry = {
        "version": 1,
        "shutdown": False,
        "ttl": 0,
        "submissionMode": "SidecarMode",
        "submitter": {
            "resources": {"requests": {"cpu": "1"}, "limits": {}},
            "template": {"podSpec": {"a": None}, "metadata": {"labels": {"l": "v"}}, "primaryContainerName": "p"},
        },
        "deadlines": {"start": 60, "run": 3600},
        "queue": "q",
        "priority": "high",
        "backoffLimit": 0,
        "rayJobPatch": {"spec": {"suspend": None}},
    }
    custom = {"rayCluster": {}, "shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 20}
    assert from_template(template(custom, kuberay=json.dumps(entry))) == RayTask(
        shutdown=False,
        ttl=0,
        extras=Extras(
            shutdown=False,
            ttl=0,
            submission_mode="SidecarMode",
            submitter_resources={"requests": {"cpu": "1"}, "limits": {}},
            submitter_template=K8sPod({"a": None}, {"l": "v"}, {}, "p"),
            start_deadline=60,
            run_deadline=3600,
            queue="q",
            priority="high",
            backoff_limit=0,
            ray_job_patch={"spec": {"suspend": None}},
        ),
    )


def test_unknown_extras_are_left_aside_with_a_warning(template: MakeTemplate, caplog: pytest.LogCaptureFixture) -> None:
    """A key that this release does not know changes nothing else, and is told in the log."""
    entry = json.dumps({"version": 1, "queue": "q", "colour": "red", "deadlines": {"lunch": 1}})
    with caplog.at_level(logging.WARNING):
        task = from_template(template({"rayCluster": {}}, kuberay=entry, other="x"))
    assert task == RayTask(extras=Extras(queue="q"))
    assert caplog.messages == [
        'config["kuberay"].colour is not known to this release and is left aside',
        'config["kuberay"].deadlines.lunch is not known to this release and is left aside',
    ]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param(
            '{"version": 2, "queue": 7}',
            [
                'config["kuberay"].version: is 2, newer than this connector; '
                "it reads up to 1: update flytekitplugins-kuberay where the connector runs"
            ],
            id="a newer version, one sentence and nothing of its content",
        ),
        pytest.param(
            '{"version": 2.0, "queue": 7}',
            [
                'config["kuberay"].version: is 2, newer than this connector; '
                "it reads up to 1: update flytekitplugins-kuberay where the connector runs"
            ],
            id="a newer version as a fraction",
        ),
        pytest.param("[]", ['config["kuberay"]: is a list; it has to be a map'], id="a list"),
        pytest.param(
            '{"a":',
            ['config["kuberay"]: is no JSON (Expecting value: line 1 column 6 (char 5)); register the task anew'],
            id="no JSON",
        ),
        pytest.param(
            '{"version": "1.0", "ttl": -1, "submissionMode": "X",'
            ' "submitter": {"resources": {"requests": {"cpu": 1}}}}',
            [
                "config[\"kuberay\"].version: is '1.0'; it has to be a whole number",
                'config["kuberay"].ttl: is -1; it has to be from 0 to 2147483647',
                "config[\"kuberay\"].submissionMode: is 'X'; it has to be one of K8sJobMode, HTTPMode, SidecarMode",
                'config["kuberay"].submitter.resources.requests[cpu]: is 1; it has to be text',
            ],
            id="wrong types and values",
        ),
        pytest.param(
            '{"address": "ray://head:10001"}',
            [
                'config["kuberay"].address: names a cluster of your own, but Flyte starts one for each Ray task; '
                "use a plain @task that calls ray.init(address=...) itself, or drop address"
            ],
            id="a running cluster can't serve a task on Flyte",
        ),
    ],
)
def test_faults_of_the_extras(entry: str, expected: list[str], template: MakeTemplate) -> None:
    """Extras that can't be are told as `custom` is."""
    with pytest.raises(TaskError) as caught:
        from_template(template({"rayCluster": {}}, kuberay=entry))
    assert [str(problem) for problem in caught.value.problems] == expected


READ = {
    "RayJob": {"ray_cluster", "runtime_env", "shutdown_after_job_finishes", "ttl_seconds_after_finished"}
    | {"runtime_env_yaml"},
    "RayCluster": {"head_group_spec", "worker_group_spec", "enable_autoscaling", "autoscaler_options"},
    "HeadGroupSpec": {"ray_start_params", "k8s_pod"},
    "WorkerGroupSpec": {"group_name", "replicas", "min_replicas", "max_replicas", "ray_start_params", "k8s_pod"},
    "AutoscalerOptions": {"upscaling_mode", "idle_timeout_seconds", "env", "image", "resources"},
    "K8sPod": {"metadata", "pod_spec", "primary_container_name"} | {"data_config"},  # Flyte's Ray plugin ignores it too
    "K8sObjectMetadata": {"labels", "annotations"},
    "Resources": {"requests", "limits"},
    "ResourceEntry": {"name", "value"},
    "KeyValuePair": {"key", "value"},
}


def messages(descriptor: Any) -> Iterator[Any]:
    """A message's descriptor and those of the messages in it, less protobuf's own."""
    yield descriptor
    for field in descriptor.fields:
        inner = field.message_type
        if inner is not None and inner.file.package.startswith("flyteidl") and not inner.GetOptions().map_entry:
            yield from messages(inner)


def test_every_field_of_flyteidls_message_is_read() -> None:
    """A field that a newer flyteidl adds fails here until it is read, or left aside with a reason."""
    found = {message.name: {field.name for field in message.fields} for message in messages(RayJob.DESCRIPTOR)}
    del found["DataLoadingConfig"], found["IOStrategy"]  # of data_config
    assert found == READ


def enum_names(message: Any, enum: str) -> list[str]:
    """The names of an enum's values, in the order of their numbers."""
    return [value.name for value in message.DESCRIPTOR.enum_types_by_name[enum].values]


def test_the_tables_of_flyteidls_enums_are_complete() -> None:
    """Every value of an enum has its row, in flyteidl's order: it may come as a number."""
    assert list(RESOURCE_NAMES) == enum_names(Resources, "ResourceName")
    assert list(UPSCALING_MODES) == enum_names(PluginOptions, "UpscalingMode")
