"""Pod templates of users: as plain data, with resources, and their faults."""

import copy
from typing import Any

import pytest
from flytekit import PodTemplate, Resources
from kubernetes import client

from flytekitplugins.kuberay.config import HeadNodeConfig, WorkerNodeConfig
from flytekitplugins.kuberay.config.podtemplate import pod_spec_of, ray_container_of, with_resources
from flytekitplugins.kuberay.errors import ConfigError

SEE = "see the field in Kubernetes' documentation of a pod"
UNDER_SPEC = "write what stands under its spec; labels go into a PodTemplate"
LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP
SPEC = client.V1PodSpec(
    node_selector={"pool": "gpu"},
    host_network=False,
    termination_grace_period_seconds=0,
    containers=[
        client.V1Container(
            name="ray-worker",
            env=[client.V1EnvVar(name="A", value="")],
            resources=client.V1ResourceRequirements(limits={"cpu": "2"}),
            liveness_probe=client.V1Probe(http_get=client.V1HTTPGetAction(port=8080)),
        )
    ],
)


def test_models_become_what_the_kubernetes_client_would_send() -> None:
    """A V1PodSpec is written as the client writes it, without loading the client."""
    assert pod_spec_of(PodTemplate(pod_spec=SPEC)) == client.ApiClient().sanitize_for_serialization(SPEC)


def test_a_dict_stays_as_it_is_with_nulls_false_and_zero() -> None:
    """Explicit nulls, False, 0 and empty values of a dict say something and are kept; models in it are written."""
    spec = {"hostNetwork": False, "priority": 0, "nodeSelector": None, "tolerations": (), "containers": SPEC.containers}
    plain = client.ApiClient().sanitize_for_serialization(SPEC.containers)
    expected = {"hostNetwork": False, "priority": 0, "nodeSelector": None, "tolerations": [], "containers": plain}
    assert pod_spec_of(spec) == expected
    any_spec: Any = spec
    assert pod_spec_of(PodTemplate(pod_spec=any_spec)) == expected


@pytest.mark.parametrize(
    ("containers", "primary", "expected"),
    [
        pytest.param([{"name": "x", "image": "i"}, {"name": "trainer"}], "trainer", 1, id="the one named"),
        pytest.param([{"name": "x"}, {"name": "ray-head"}], "primary", 1, id="else the one with Ray's name"),
        pytest.param([{"name": "x"}, {"name": "main"}], "primary", 1, id="else the task's primary"),
        pytest.param([{"name": "x"}], "primary", 0, id="else the only one, without an image"),
        pytest.param([{"name": "x", "image": "i"}], "primary", None, id="an only one with an image is a sidecar"),
        pytest.param([{"name": "logs"}], "primary", None, id="an only one that is called as a sidecar of the task"),
        pytest.param([{"$patch": "replace"}, {"name": "x"}], "", 1, id="a directive is no container"),
        pytest.param([{"$patch": "replace"}, {"name": "x", "image": "i"}], "", None, id="nor one without an image"),
        pytest.param([{"name": "x"}, {"name": "y"}], "primary", None, id="two unknown ones are sidecars"),
        pytest.param([], "primary", None, id="no containers"),
    ],
)
def test_ray_container(containers: list[Any], primary: str, expected: int | None) -> None:
    """D2: the Ray container of a group's template is found by four rules in their order."""
    assert ray_container_of({"containers": containers}, (primary, "ray-head", "main"), ["main", "logs"]) == expected


ONE = {"containers": [{"name": "ray-head", "image": "i", "resources": {"limits": {"cpu": "4", "memory": "8Gi"}}}]}


@pytest.mark.parametrize(
    ("spec", "index", "requests", "limits", "expected"),
    [
        pytest.param(
            ONE,
            0,
            Resources(cpu="1", gpu=1),
            Resources(cpu="2"),
            {"requests": {"cpu": "1", "nvidia.com/gpu": 1}, "limits": {"cpu": "2", "memory": "8Gi"}},
            id="both sides: they win for their keys, the template keeps its memory",
        ),
        pytest.param(
            ONE,
            0,
            Resources(cpu="1", ephemeral_storage="1Gi"),
            None,
            {
                "requests": {"cpu": "1", "ephemeral-storage": "1Gi"},
                "limits": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "1Gi"},
            },
            id="one side stands for both, but not against the template",
        ),
        pytest.param(
            {},
            None,
            None,
            Resources(mem="1Gi"),
            {"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}},
            id="no template: as flytekit's pod_spec_from_resources",
        ),
        pytest.param({}, None, Resources(), None, {}, id="Resources that say nothing"),
    ],
)
def test_resources_are_merged_into_the_ray_container(
    spec: dict[str, Any], index: int | None, requests: Resources, limits: Resources, expected: dict[str, Any]
) -> None:
    """D17: explicit resources win for their keys, all else of the template stays, and nothing is changed in place."""
    before = copy.deepcopy(spec)
    container = spec.get("containers", [{"name": "ray-head"}])[0]
    assert with_resources(spec, index, "ray-head", requests, limits) == {
        "containers": [{**container, "resources": expected}]
    }
    assert spec == before


def test_a_container_for_the_resources_is_added_after_the_sidecars() -> None:
    """Where all containers of a template are sidecars, the resources get a container of Ray's name."""
    sidecar = {"name": "proxy", "image": "envoy"}
    assert with_resources({"containers": [sidecar]}, None, "ray-worker", Resources(cpu="1"), None) == {
        "containers": [
            sidecar,
            {"name": "ray-worker", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}},
        ]
    }


def template(spec: Any, **values: Any) -> PodTemplate:
    """A PodTemplate with a dict, which flytekit's types do not know."""
    return PodTemplate(pod_spec=spec, **values)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            template({"containers": [{"name": "a", "image": "i"}]}, primary_container_name="trainer"),
            [
                ".pod_template.primary_container_name: is 'trainer', but the containers are a; "
                "name one of them, or call Ray's container ray-head"
            ],
            id="a primary container that is not there",
        ),
        pytest.param(
            {"kind": "Pod", "spec": {}},
            [f".pod_template: is a whole Pod or PodTemplate, with spec; {UNDER_SPEC}"],
            id="a whole Pod",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": "b"}}, "containers": []},
            [f".pod_template: is a whole Pod or PodTemplate, with metadata; {UNDER_SPEC}"],
            id="labels beside the pod spec, which would be lost",
        ),
        pytest.param(
            {"node_selector": {"a_b": "c"}, "containers": [{"name": "ray-head", "volumeMount": []}]},
            [
                ".pod_template.node_selector: is no field of Kubernetes; write nodeSelector",
                ".pod_template.containers[0].volumeMount: is no field of Kubernetes; write volumeMounts",
            ],
            id="Python's names in a dict, and misspelt ones",
        ),
        pytest.param(
            {"containers": {"name": "ray-head"}, "initContainers": ["busybox"], "nodeSelector": {"a": 5}},
            [
                f".pod_template.containers: must be a list, got a value of type dict; {SEE}",
                f".pod_template.initContainers[0]: must be a mapping, got a value of type str; {SEE}",
                f".pod_template.nodeSelector[a]: must be text, got 5; {SEE}",
            ],
            id="wrong types",
        ),
        pytest.param(
            template({"containers": [{"image": object()}]}, labels={"a": 1, "b c": "d/e"}, annotations=["b"]),
            [
                ".pod_template.labels['a']: is 1 (int); write text: \"1\"",
                ".pod_template.labels['b c']: is no key of Kubernetes; write [prefix.example.com/]name",
                ".pod_template.labels['b c']: is 'd/e' (str); "
                "use letters, digits, '-', '_' and '.', begin and end with a letter or digit, at most 63",
                '.pod_template.annotations: is a list; write a dict of text to text, such as {"key": "value"}',
                ".pod_template.pod_spec.containers[0].image: is an object; "
                "write text; Flyte builds an ImageSpec only for the task's own container_image",
            ],
            id="odd labels, annotations and image",
        ),
        pytest.param(LOOP, [".pod_template: is nested too deep; does it hold itself?"], id="a dict that holds itself"),
        pytest.param(
            {"tolerations": [{"key": {1, 2}}]},
            [".pod_template.tolerations[0].key: is a set; write text, numbers, bools, None, lists and dicts of them"],
            id="what JSON can't hold",
        ),
        pytest.param(
            SPEC,
            [".pod_template: is a V1PodSpec; write PodTemplate(pod_spec=V1PodSpec(...)), or a dict"],
            id="a V1PodSpec without its PodTemplate",
        ),
    ],
)
def test_faults_of_a_template(given: Any, expected: list[str]) -> None:
    """What can't be a group's template is told with its place in it."""
    with pytest.raises(ConfigError) as caught:
        HeadNodeConfig(pod_template=given)
    assert [str(problem) for problem in caught.value.problems] == [f"HeadNodeConfig{text}" for text in expected]


def test_gpus_have_one_amount() -> None:
    """Kubernetes takes a request of an extended resource only with a limit that is equal; of others, with a larger."""
    with pytest.raises(ConfigError) as caught:
        HeadNodeConfig(requests=Resources(cpu="1", gpu="1"), limits=Resources(cpu="2", gpu="2"))
    what = "asks 1 of nvidia.com/gpu, below the limit of 2; write the same: it can't be shared"
    assert str(caught.value) == f"HeadNodeConfig.requests: {what}"


def test_a_request_above_the_templates_limit() -> None:
    """Resources and template are checked together too."""
    with pytest.raises(ConfigError) as caught:
        WorkerNodeConfig("w", 1, pod_template=PodTemplate(pod_spec=SPEC), requests=Resources(cpu="3"))
    assert str(caught.value) == "WorkerNodeConfig.requests: asks 3 of cpu, above the limit of 2; raise the limit to it"


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(PodTemplate(primary_container_name="ray-worker"), id="no containers at all"),
        pytest.param(
            template({"containers": [{"name": "a", "image": "i"}]}), id="sidecars only, nobody named a primary"
        ),
        pytest.param(template({"containers": [{"name": "a"}]}, primary_container_name="b"), id="an only container"),
        pytest.param(
            template({"containers": [{"name": "ray-head", "image": "i"}]}, primary_container_name="b"), id="Ray's name"
        ),
    ],
)
def test_a_primary_container_that_can_be_found_is_fine(given: PodTemplate) -> None:
    """PodTemplate's primary_container_name has a default and need not fit where the Ray container is known without."""
    assert HeadNodeConfig(pod_template=given).pod_template is given
