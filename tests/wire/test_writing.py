"""Ray settings into task templates: what a user wrote arrives, and nothing else does."""

import copy
import json
from datetime import timedelta
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest
from flytekit import PodTemplate, Resources
from hypothesis import given, settings
from hypothesis import strategies as st

from flytekitplugins.kuberay.config import (
    AutoscalerOptionsConfig,
    HeadNodeConfig,
    RayJobConfig,
    SubmitterConfig,
    WorkerNodeConfig,
)
from flytekitplugins.kuberay.wire import (
    Extras,
    HeadGroup,
    K8sPod,
    WorkerGroup,
    from_config,
    from_template,
    to_config_entry,
    to_custom,
)
from flyteidl.core.tasks_pb2 import TaskTemplate
from google.protobuf.json_format import ParseDict

RAY = K8sPod({"containers": [{"name": "ray-worker", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}]})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, WorkerGroup("w", 2, 2, 2), id="bounds follow the replicas"),
        pytest.param({"min_replicas": 0, "max_replicas": 9}, WorkerGroup("w", 2, 0, 9), id="bounds as written"),
        pytest.param({"min_replicas": 3, "max_replicas": 4}, WorkerGroup("w", 2, 2, 4), id="the lower one gives way"),
        pytest.param({"max_replicas": 1}, WorkerGroup("w", 2, 2, 2), id="the upper one gives way"),
        pytest.param({"ray_start_params": {}}, WorkerGroup("w", 2, 2, 2, {}), id="an empty map is kept"),
        pytest.param(
            {"requests": Resources(cpu="1")},
            WorkerGroup("w", 2, 2, 2, None, K8sPod(RAY.pod_spec, primary_container_name="primary")),
            id="resources alone: the pod that upstream makes of them",
        ),
        pytest.param(
            {"pod_template": PodTemplate(labels={"a": "b"}, annotations={"c": "d"})},
            WorkerGroup("w", 2, 2, 2, None, K8sPod({"containers": []}, {"a": "b"}, {"c": "d"}, "primary")),
            id="a PodTemplate without a pod spec",
        ),
        pytest.param(
            {"pod_template": {"hostNetwork": None}, "limits": Resources(cpu="1")},
            WorkerGroup("w", 2, 2, 2, None, K8sPod({"hostNetwork": None, **RAY.pod_spec})),
            id="a dict and resources together, its null kept",
        ),
    ],
)
def test_a_worker_group(values: dict[str, Any], expected: WorkerGroup) -> None:
    """What a user wrote of a group, upstream's bounds included."""
    config = RayJobConfig([WorkerNodeConfig("w", 2, **values)])
    assert from_config(config).workers == (expected,)


def test_resources_reach_the_container_called_as_the_tasks_primary() -> None:
    """D2, third rule: the task's own template tells the name."""
    template: Any = {"containers": [{"name": "main", "image": "i"}, {"name": "proxy", "image": "envoy"}]}
    config = RayJobConfig([], HeadNodeConfig(pod_template=template, requests=Resources(cpu="1")))
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    main, proxy = template["containers"]
    assert from_config(config, "main").head == HeadGroup(
        None, K8sPod({"containers": [{**main, "resources": resources}, proxy]})
    )
    assert from_config(config).head == HeadGroup(
        None, K8sPod({"containers": [main, proxy, {"name": "ray-head", "resources": resources}]})
    )


@pytest.mark.parametrize(
    ("values", "custom", "entry"),
    [
        pytest.param({}, {}, None, id="nothing set, nothing added"),
        pytest.param(
            {"shutdown_after_job_finishes": True, "ttl_seconds_after_finished": 20},
            {"shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 20},
            None,
            id="what flyteidl can say needs no extras",
        ),
        pytest.param({"shutdown_after_job_finishes": False}, {}, {"shutdown": False}, id="an explicit False (D12)"),
        pytest.param(
            {"shutdown_after_job_finishes": True, "ttl_seconds_after_finished": 0},
            {"shutdownAfterJobFinishes": True},
            {"ttl": 0},
            id="an explicit 0 (D12)",
        ),
        pytest.param(
            {"ttl_seconds_after_finished": 20},
            {"ttlSecondsAfterFinished": 20},
            {"ttl": 20},
            id="a ttl that Go does not hear without a shutdown",
        ),
        pytest.param(
            {
                "submission_mode": "K8sJobMode",
                "submitter": SubmitterConfig(Resources(cpu=1), None, {"nodeSelector": {"a": "b"}}),
                "start_deadline": timedelta(seconds=90, milliseconds=1),
                "run_deadline": 60,
                "queue": "q",
                "priority": "p",
                "backoff_limit": 0,
                "ray_job_patch": {"spec": {"suspend": None}},
                "excludes": ["data"],
            },
            {},
            {
                "submissionMode": "K8sJobMode",
                "submitter": {
                    "resources": {"requests": {"cpu": "1"}},
                    "template": {"metadata": {}, "podSpec": {"nodeSelector": {"a": "b"}}},
                },
                "deadlines": {"start": 91, "run": 60},
                "queue": "q",
                "priority": "p",
                "backoffLimit": 0,
                "rayJobPatch": {"spec": {"suspend": None}},
            },
            id="all that is ours; excludes stay where the task runs",
        ),
        pytest.param({"address": "ray://h"}, {}, {"address": "ray://h"}, id="an address, for the connector to refuse"),
    ],
)
def test_what_flyteidl_can_not_say_goes_into_the_config(
    values: dict[str, Any], custom: dict[str, Any], entry: dict[str, Any] | None
) -> None:
    """`custom` stays pure flyteidl; `config["kuberay"]` is there only when something needs it."""
    task = from_config(RayJobConfig(**values))
    assert to_custom(task) == {"rayCluster": {}, **custom}
    expected = {} if entry is None else {"kuberay": {"version": 1, **entry}}
    assert {key: json.loads(text) for key, text in to_config_entry(task).items()} == expected


# --- properties -------------------------------------------------------------------------------------------------------

words = st.text(alphabet="abz09-", min_size=1, max_size=8).map(lambda word: f"a{word}z")
maps = st.dictionaries(words, st.text(max_size=8), max_size=3)
numbers = st.integers(0, 2**31 - 1)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
# Of fields that this release knows, the types are checked: what they may hold is told by other tests
pod_specs = st.dictionaries(st.sampled_from(["future", "later"]), json_values, max_size=2)
containers = st.lists(
    st.fixed_dictionaries({"name": words}, optional={"image": words, "tty": st.booleans(), "future": json_values}),
    max_size=2,
)
specs = st.builds(lambda spec, found: {**spec, "containers": found}, pod_specs, containers)
labels = st.dictionaries(words, words, max_size=3)
templates = st.none() | specs | st.builds(PodTemplate, specs, st.just("primary"), labels, maps)
requests = st.none() | st.builds(Resources, cpu=st.sampled_from([None, "1", 0.5]), gpu=st.sampled_from([None, 1]))
group = {"ray_start_params": st.none() | maps, "pod_template": templates, "requests": requests}
workers = st.builds(
    lambda name, bounds, **rest: WorkerNodeConfig(name, bounds[1], bounds[0], bounds[2], **rest),
    words,
    st.lists(numbers, min_size=3, max_size=3).map(sorted),
    **group,
)
options = st.builds(
    AutoscalerOptionsConfig,
    upscaling_mode=st.none() | st.sampled_from(AutoscalerOptionsConfig.UpscalingMode),
    idle_timeout_seconds=st.none() | numbers,
    env=st.none() | maps,
    image=st.none() | words,
    requests=requests,
)
shutdowns = st.sampled_from([(None, None), (None, 5), (True, 0), (True, 5), (False, None)])
configs = st.builds(
    lambda ends, **rest: RayJobConfig(shutdown_after_job_finishes=ends[0], ttl_seconds_after_finished=ends[1], **rest),
    shutdowns,
    worker_node_config=st.lists(workers, max_size=3, unique_by=lambda worker: worker.group_name),
    head_node_config=st.none() | st.builds(HeadNodeConfig, **group),
    enable_autoscaling=st.booleans(),
    autoscaler_options=st.none() | options,
    runtime_env=st.none() | st.dictionaries(words, json_values, max_size=3),
    submission_mode=st.sampled_from([None, "K8sJobMode"]),
    submitter=st.none() | st.builds(SubmitterConfig, requests=requests, pod_template=templates),
    start_deadline=st.none() | st.integers(1, 10**6) | st.timedeltas(timedelta(seconds=1), timedelta(days=9)),
    queue=st.none() | words,
    priority=st.none() | words,
    backoff_limit=st.none() | numbers,
    ray_job_patch=st.none() | st.fixed_dictionaries({"spec": st.dictionaries(words, json_values, max_size=3)}),
)


def template_of(custom: dict[str, Any], config: dict[str, str]) -> TaskTemplate:
    """The template as it comes from Flyte: through protobuf and back."""
    made: TaskTemplate = ParseDict({"custom": custom, "config": config}, TaskTemplate())
    read = TaskTemplate()
    read.ParseFromString(made.SerializeToString())
    return read


@settings(deadline=None)  # CI's machines are slow at times
@given(configs)
def test_what_is_written_is_read_back(config: RayJobConfig) -> None:
    """Ray settings survive the template, all of them, and come out the same each time they are written."""
    task = from_config(config)
    assert from_template(template_of(to_custom(task), to_config_entry(task))) == task
    assert (to_custom(task), to_config_entry(task)) == (to_custom(from_config(config)), to_config_entry(task))


@settings(deadline=None)  # CI's machines are slow at times
@given(configs)
def test_nothing_that_a_user_passed_is_changed(config: RayJobConfig) -> None:
    """Writing a task leaves the user's values alone, and shares none of them with the result."""
    before = copy.deepcopy(config)
    task = from_config(config)
    for worker in task.workers:
        if worker.k8s_pod:
            worker.k8s_pod.pod_spec["edited"] = True
    assert config == before
    assert config.ray_job_patch is None or task.extras.ray_job_patch is not config.ray_job_patch


def test_a_runtime_environment_may_be_any_mapping() -> None:
    """A mapping that is no dict, with tuples and text enums in it, is written as plain JSON and YAML."""

    class Package(str, Enum):
        NUMPY = "numpy"

    task = from_config(RayJobConfig(runtime_env=MappingProxyType({"pip": (Package.NUMPY,)})))
    assert task.runtime_env_yaml == "pip:\n- numpy\n"


def test_a_task_that_says_nothing_has_no_extras() -> None:
    """Extras are all unset by default."""
    assert from_config(RayJobConfig()).extras == Extras()
