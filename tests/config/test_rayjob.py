"""What a user writes, and what is said about its faults."""

import datetime
import logging
from collections.abc import Callable
from typing import Any

import pytest
from flytekit import PodTemplate, Resources

from flytekitplugins.kuberay.config import (
    AutoscalerOptionsConfig,
    HeadNodeConfig,
    RayJobConfig,
    SubmitterConfig,
    WorkerNodeConfig,
)
from flytekitplugins.kuberay.config.checks import GROUP_NAME_RULE
from flytekitplugins.kuberay.errors import ConfigError


def worker(**values: Any) -> WorkerNodeConfig:
    """The smallest worker group, with what a test changes."""
    return WorkerNodeConfig(**{"group_name": "w", "replicas": 1, **values})


def job(**values: Any) -> RayJobConfig:
    """The smallest Ray task's settings, with what a test changes."""
    return RayJobConfig(**{"worker_node_config": [worker()], **values})


head: Any = HeadNodeConfig
autoscaler: Any = AutoscalerOptionsConfig
"""Given wrong types on purpose, which mypy need not see."""

Theirs = type("HeadNodeConfig", (), {})
"""As flytekitplugins-ray's class of that name."""

LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP

FAULTS = [
    pytest.param(
        lambda: worker(replicas="3"),
        ["WorkerNodeConfig.replicas: is '3' (str); write a whole number: 3, without quotes"],
        id="text for a number",
    ),
    pytest.param(
        lambda: worker(replicas=True), ["WorkerNodeConfig.replicas: is True (bool); write a whole number"], id="bool"
    ),
    pytest.param(
        lambda: worker(replicas=1.5), ["WorkerNodeConfig.replicas: is 1.5 (float); write a whole number"], id="half"
    ),
    pytest.param(
        lambda: worker(replicas=10**5000),
        ["WorkerNodeConfig.replicas: is a number of more than 80 digits; write a number from 0 to 2147483647"],
        id="a number that Python does not write",
    ),
    pytest.param(
        lambda: worker(replicas="\u0663"),
        ["WorkerNodeConfig.replicas: is '\u0663' (str); write a whole number"],
        id="a digit that is no number in code",
    ),
    pytest.param(
        lambda: worker(group_name="\u212a"),
        [f"WorkerNodeConfig.group_name: is '\u212a'; {GROUP_NAME_RULE}"],
        id="a letter that is ASCII only when lower-cased",
    ),
    pytest.param(
        lambda: worker(group_name="x" * 999),
        [f"WorkerNodeConfig.group_name: is '{'x' * 76}...; {GROUP_NAME_RULE}"],
        id="a very long name is cut",
    ),
    pytest.param(
        lambda: head(ray_start_params={"--num-cpus": "0", "num_gpus": "0", "a b": "c", "log-color": "True"}),
        [
            "HeadNodeConfig.ray_start_params['--num-cpus']: is no parameter of ray start; write num-cpus",
            "HeadNodeConfig.ray_start_params['num_gpus']: is no parameter of ray start; write num-gpus",
            "HeadNodeConfig.ray_start_params['a b']: is no parameter of ray start; `ray start --help` lists them",
        ],
        id="names that ray start would refuse",
    ),
    pytest.param(
        lambda: job(head_node_config=Theirs(), autoscaler_options={}),
        [
            "RayJobConfig.head_node_config: is that of tests.config.test_rayjob; "
            "import HeadNodeConfig from flytekitplugins.kuberay",
            "RayJobConfig.autoscaler_options: is a dict; write an AutoscalerOptionsConfig(...)",
        ],
        id="a part of another package",
    ),
    pytest.param(
        lambda: job(ray_job_patch={"kind": "Job", "rayClusterSpec": {}, "metadata": {"name": "x"}, "spec": None}),
        [
            "RayJobConfig.ray_job_patch.kind: is 'Job' (str); leave it out: it is RayJob",
            'RayJobConfig.ray_job_patch.rayClusterSpec: is no field of a RayJob; write it under "spec"',
            "RayJobConfig.ray_job_patch.metadata.name: can't be chosen; leave it out: Flyte finds the job by it",
            "RayJobConfig.ray_job_patch.spec: is None; write a dict",
        ],
        id="a patch that would be lost or spoil the RayJob",
    ),
    pytest.param(
        lambda: worker(replicas=None), ["WorkerNodeConfig.replicas: is None; write its value"], id="None replicas"
    ),
    pytest.param(
        lambda: worker(replicas=-1, min_replicas=-2),
        [
            "WorkerNodeConfig.replicas: is -1; write a number from 0 to 2147483647",
            "WorkerNodeConfig.min_replicas: is -2; write a number from 0 to 2147483647",
        ],
        id="negative numbers, all at once",
    ),
    pytest.param(
        lambda: worker(min_replicas=9, max_replicas=1),
        ["WorkerNodeConfig.min_replicas: is 9, above max_replicas 1; write the smaller one as min_replicas"],
        id="bounds the wrong way round",
    ),
    pytest.param(
        lambda: worker(group_name="gpu group"),
        [
            "WorkerNodeConfig.group_name: is 'gpu group'; use letters, digits and '-', "
            "begin and end with a letter or digit, at most 63"
        ],
        id="a group name that is no DNS label",
    ),
    pytest.param(
        lambda: worker(group_name=""),
        [
            "WorkerNodeConfig.group_name: is ''; use letters, digits and '-', "
            "begin and end with a letter or digit, at most 63"
        ],
        id="an empty group name",
    ),
    pytest.param(
        lambda: worker(group_name=7),
        ["WorkerNodeConfig.group_name: is 7 (int); write text in quotes"],
        id="a number for a group name",
    ),
    pytest.param(
        lambda: worker(ray_start_params={"num-cpus": 2, "block": True, 3: "x"}),
        [
            "WorkerNodeConfig.ray_start_params['num-cpus']: is 2 (int); write text: \"2\"",
            "WorkerNodeConfig.ray_start_params['block']: is True (bool); write text: \"true\"",
            'WorkerNodeConfig.ray_start_params[3]: has the key 3 (int); write the key as text: "3"',
        ],
        id="start parameters that are no text",
    ),
    pytest.param(
        lambda: head(ray_start_params=["num-cpus=0"]),
        ['HeadNodeConfig.ray_start_params: is a list; write a dict of text to text, such as {"key": "value"}'],
        id="a list for a mapping",
    ),
    pytest.param(
        lambda: head(pod_template="head.yaml"),
        ["HeadNodeConfig.pod_template: is a str; write PodTemplate(pod_spec=V1PodSpec(...)), or a dict"],
        id="a template that is none",
    ),
    pytest.param(
        lambda: head(requests=Resources(cpu="four cores"), limits={"cpu": "1"}),
        [
            'HeadNodeConfig.requests.cpu: is \'four cores\' (str), no quantity; write one such as "500m", "2" or "4Gi"',
            'HeadNodeConfig.limits: is a dict; write flytekit.Resources(cpu="1", mem="2Gi")',
        ],
        id="a bad quantity, and a dict for Resources",
    ),
    pytest.param(
        lambda: head(requests=Resources(mem="-1Gi")),
        ['HeadNodeConfig.requests.mem: is \'-1Gi\' (str), no quantity; write one such as "500m", "2" or "4Gi"'],
        id="a negative quantity",
    ),
    pytest.param(
        lambda: head(requests=Resources(cpu=("1", "2"))),
        ["HeadNodeConfig.requests.cpu: is a pair, ('1', '2'); write the first as requests and the second as limits"],
        id="a pair of quantities",
    ),
    pytest.param(
        lambda: head(requests=Resources(gpu="500m")),
        ["HeadNodeConfig.requests.gpu: is '500m' (str); GPUs come whole"],
        id="half a GPU",
    ),
    pytest.param(
        lambda: head(requests=Resources(mem="2Gi"), limits=Resources(mem="2G")),
        ["HeadNodeConfig.requests: asks 2Gi of memory, above the limit of 2G; raise the limit to it"],
        id="a request above its limit",
    ),
    pytest.param(
        lambda: autoscaler(upscaling_mode=True),
        [
            "AutoscalerOptionsConfig.upscaling_mode: is True (bool); "
            "write AutoscalerOptionsConfig.UpscalingMode.UNSPECIFIED, DEFAULT, AGGRESSIVE, CONSERVATIVE"
        ],
        id="a mode that only equals a number",
    ),
    pytest.param(
        lambda: autoscaler(upscaling_mode=2.0),
        [
            "AutoscalerOptionsConfig.upscaling_mode: is 2.0 (float); "
            "write AutoscalerOptionsConfig.UpscalingMode.UNSPECIFIED, DEFAULT, AGGRESSIVE, CONSERVATIVE"
        ],
        id="a fraction for a mode",
    ),
    pytest.param(
        lambda: autoscaler(upscaling_mode="fast", idle_timeout_seconds=-1, env={"A": 1}, image=3),
        [
            "AutoscalerOptionsConfig.upscaling_mode: is 'fast' (str); "
            "write AutoscalerOptionsConfig.UpscalingMode.UNSPECIFIED, DEFAULT, AGGRESSIVE, CONSERVATIVE",
            "AutoscalerOptionsConfig.idle_timeout_seconds: is -1; write a number from 0 to 2147483647",
            "AutoscalerOptionsConfig.env['A']: is an int; write text in quotes",
            "AutoscalerOptionsConfig.image: is 3 (int); write text in quotes",
        ],
        id="autoscaler options",
    ),
    pytest.param(
        lambda: autoscaler(env="TOKEN=abc"),
        ['AutoscalerOptionsConfig.env: is a str; write a dict of text to text, such as {"key": "value"}'],
        id="text for environment variables, which may be secret",
    ),
    pytest.param(
        lambda: autoscaler(env={"TOKEN=abc": None, b"A=b": "c"}),
        [
            "AutoscalerOptionsConfig.env['TOKEN=...']: is None; write text in quotes",
            "AutoscalerOptionsConfig.env[b'A=...]: has the key a bytes; write the key as text: \"b'A=...\"",
        ],
        id="names of environment variables with a value in them",
    ),
    pytest.param(
        lambda: job(worker_node_config=[worker(group_name="A"), worker(group_name="a")]),
        [
            "RayJobConfig.worker_node_config[1].group_name: is 'a', as worker_node_config[0]'s; "
            "give each group a name of its own, case aside"
        ],
        id="two groups of one name, which KubeRay lower-cases",
    ),
    pytest.param(
        lambda: job(worker_node_config=[{"group_name": "w"}], head_node_config=worker()),
        [
            "RayJobConfig.worker_node_config[0]: is a dict; write a WorkerNodeConfig(...)",
            "RayJobConfig.head_node_config: is a WorkerNodeConfig; write a HeadNodeConfig(...)",
        ],
        id="parts of the wrong class",
    ),
    pytest.param(
        lambda: job(worker_node_config=worker()),
        ["RayJobConfig.worker_node_config: is a WorkerNodeConfig; write a list of WorkerNodeConfig"],
        id="one group without its list",
    ),
    pytest.param(
        lambda: job(runtime_env=["numpy"]), ["RayJobConfig.runtime_env: is a list; write a dict"], id="runtime_env list"
    ),
    pytest.param(
        lambda: job(runtime_env={"env_vars": {"TOKEN": b"hunter2"}, 1: float("nan")}),
        [
            "RayJobConfig.runtime_env.env_vars.TOKEN: is a bytes; "
            "write text, numbers, bools, None, lists and dicts of them",
            'RayJobConfig.runtime_env: has the key 1 (int); write the key as text: "1"',
            "RayJobConfig.runtime_env[1]: is nan; JSON knows only finite numbers",
        ],
        id="a runtime_env that JSON can't hold, its values not shown",
    ),
    pytest.param(
        lambda: job(runtime_env=LOOP),
        ["RayJobConfig.runtime_env.self: is nested too deep; does it hold itself?"],
        id="a runtime_env that holds itself",
    ),
    pytest.param(
        lambda: job(enable_autoscaling="yes", shutdown_after_job_finishes=1, ttl_seconds_after_finished=-5),
        [
            "RayJobConfig.enable_autoscaling: is 'yes' (str); write True or False",
            "RayJobConfig.shutdown_after_job_finishes: is 1 (int); write True or False",
            "RayJobConfig.ttl_seconds_after_finished: is -5; write a number from 0 to 2147483647",
        ],
        id="switches and the ttl",
    ),
    pytest.param(
        lambda: job(shutdown_after_job_finishes=False, ttl_seconds_after_finished=60),
        [
            "RayJobConfig.ttl_seconds_after_finished: is set, but shutdown_after_job_finishes=False keeps the cluster; "
            "drop one of the two"
        ],
        id="a ttl for a cluster that stays",
    ),
    pytest.param(
        lambda: job(submission_mode="InteractiveMode"),
        ["RayJobConfig.submission_mode: is 'InteractiveMode' (str); write one of K8sJobMode, HTTPMode, SidecarMode"],
        id="an unknown submission mode",
    ),
    pytest.param(
        lambda: job(submission_mode="HTTPMode", submitter=SubmitterConfig(pod_template=PodTemplate())),
        [
            "RayJobConfig.submitter.pod_template: is set, but HTTPMode starts no submitter pod; "
            "drop it, or write K8sJobMode"
        ],
        id="a submitter's template without a submitter",
    ),
    pytest.param(
        lambda: job(address="ray://head:10001"),
        [
            "RayJobConfig.address: is set, and so are settings of a new cluster; "
            "drop address, or the head, the workers and the autoscaler"
        ],
        id="a running cluster and a new one",
    ),
    pytest.param(
        lambda: job(start_deadline=0, run_deadline="600"),
        [
            "RayJobConfig.start_deadline: is 0; write a number from 1 to 2147483647",
            "RayJobConfig.run_deadline: is '600' (str); "
            "write a datetime.timedelta, or a whole number of seconds: 600, without quotes",
        ],
        id="deadlines",
    ),
    pytest.param(
        lambda: job(queue="my queue", priority=5, backoff_limit=-1, ray_job_patch=[], excludes="data"),
        [
            "RayJobConfig.queue: is 'my queue' (str); "
            "use letters, digits, '-', '_' and '.', begin and end with a letter or digit, at most 63",
            "RayJobConfig.priority: is 5 (int); write text in quotes",
            "RayJobConfig.backoff_limit: is -1; write a number from 0 to 2147483647",
            "RayJobConfig.ray_job_patch: is a list; write a dict",
            "RayJobConfig.excludes: is 'data' (str); write a list of text, such as [\"data/*.bin\"]",
        ],
        id="extras",
    ),
]


@pytest.mark.parametrize(("make", "expected"), FAULTS)
def test_faults_come_in_one_error_with_place_value_and_remedy(make: Callable[[], Any], expected: list[str]) -> None:
    """Every fault is told, in the user's terms, and a ConfigError is a ValueError as upstream's are."""
    with pytest.raises(ConfigError) as caught:
        make()
    assert [str(problem) for problem in caught.value.problems] == expected
    assert isinstance(caught.value, ValueError)


FINE = [
    pytest.param(lambda: RayJobConfig(), id="nothing at all"),
    pytest.param(lambda: RayJobConfig([], None, False, None, {"pip": ["numpy"]}, "localhost:8265"), id="address alone"),
    pytest.param(
        lambda: worker(replicas=0, min_replicas=2, max_replicas=4), id="replicas below the bounds: upstream clamps"
    ),
    pytest.param(lambda: worker(replicas=9, max_replicas=4), id="replicas above the bounds: upstream clamps"),
    pytest.param(lambda: job(ttl_seconds_after_finished=60), id="a ttl without a shutdown, the platform's default"),
    pytest.param(lambda: job(shutdown_after_job_finishes=True, ttl_seconds_after_finished=0), id="a ttl of 0"),
    pytest.param(
        lambda: job(submission_mode="HTTPMode", submitter=SubmitterConfig(requests=Resources(cpu="1"))),
        id="submitter resources in HTTPMode",
    ),
    pytest.param(lambda: job(start_deadline=datetime.timedelta(minutes=5), run_deadline=3600), id="deadlines"),
    pytest.param(lambda: head(requests=Resources(cpu=0.5, mem=1024, gpu="2")), id="numbers as quantities"),
    pytest.param(lambda: AutoscalerOptionsConfig(upscaling_mode=3), id="an upscaling mode by flyteidl's number"),
]


@pytest.mark.parametrize("make", FINE)
def test_what_upstream_takes_and_means_something_is_fine(make: Callable[[], Any]) -> None:
    """These are no faults: a value equal to what another call makes comes back."""
    assert make() == make()


def test_arguments_stand_in_upstreams_order() -> None:
    """Positional arguments mean what they mean in flytekitplugins-ray; what is ours comes by keyword only."""
    head, options, params = HeadNodeConfig({"a": "b"}), AutoscalerOptionsConfig(3, 60, {"A": "b"}, "i"), {"x": "y"}
    group = WorkerNodeConfig("w", 2, 1, 3, params, None, Resources(cpu="1"), Resources(cpu="2"))
    assert group == WorkerNodeConfig(
        group_name="w",
        replicas=2,
        min_replicas=1,
        max_replicas=3,
        ray_start_params=params,
        requests=Resources(cpu="1"),
        limits=Resources(cpu="2"),
    )
    assert RayJobConfig([group], head, True, options, {"pip": []}, None, True, 5) == RayJobConfig(
        worker_node_config=[group],
        head_node_config=head,
        enable_autoscaling=True,
        autoscaler_options=options,
        runtime_env={"pip": []},
        shutdown_after_job_finishes=True,
        ttl_seconds_after_finished=5,
    )
    nine: Any = [[], None, False, None, None, None, None, None, "K8sJobMode"]
    with pytest.raises(TypeError, match="positional"):
        RayJobConfig(*nine)


def test_an_underscore_in_a_group_name_passes_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """flytekitplugins-ray's own examples have some; they register, and the connector refuses them."""
    with caplog.at_level(logging.WARNING):
        worker(group_name="test_group")
    what = "is 'test_group', which no pod can be called: the task runs here, not on a cluster; write test-group"
    assert caplog.messages == [f"WorkerNodeConfig.group_name: {what}"]
