"""Environment variables: design D10's order, and references that follow a container's new name."""

from __future__ import annotations

from typing import Any

import pytest

from flytekitplugins.kuberay.pod.environment import (
    execution_env,
    identity_env,
    merge_env,
    platform_env,
    with_container_renamed,
    with_flyte_env,
)
from flytekitplugins.kuberay.settings import parse_settings
from flytekitplugins.kuberay.wire import Manifest
from tests.pod.samples import container_task, settings


def var(name: str, value: str) -> Manifest:
    """A variable."""
    return {"name": name, "value": value}


def test_merge_env() -> None:
    """D10 (design): one entry a name, the highest layer's, at the place of the first."""
    by_field = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    merged = merge_env([var("A", "1"), var("B", "1")], [var("C", "2"), by_field], [var("B", "3"), var("B", "4")])
    assert merged == [by_field, var("B", "4"), var("C", "2")]


def test_merge_env_shares_nothing() -> None:
    """The entries are copies, so that a change of one pod reaches no other."""
    layer: list[dict[str, Any]] = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    merge_env(layer)[0]["valueFrom"]["fieldRef"]["fieldPath"] = "changed"
    assert layer[0]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"


def test_platform_env() -> None:
    """The platform's variables: fixed ones, and those that the connector's own environment holds."""
    k8s = {"default-env-vars": [{"A": "1"}], "default-env-vars-from-env": [{"CLOUD_REGION": "REGION"}]}
    own = parse_settings({"plugins": {"k8s": k8s}}, environ={"REGION": "eu"})
    assert platform_env(own) == [var("A", "1"), var("CLOUD_REGION", "eu")]


def test_execution_env() -> None:
    """The variables that the execution was started with."""
    task = container_task(execution={"environmentVariables": {"A": "1"}})
    assert execution_env(task.execution) == [var("A", "1")]


def test_identity_env() -> None:
    """Who the code is: execution, attempt and task, as Flyte names them."""
    assert identity_env(container_task().execution) == [
        var("FLYTE_INTERNAL_EXECUTION_ID", "f1"),
        var("FLYTE_INTERNAL_EXECUTION_PROJECT", "p"),
        var("FLYTE_INTERNAL_EXECUTION_DOMAIN", "d"),
        var("FLYTE_ATTEMPT_NUMBER", "0"),
        var("FLYTE_INTERNAL_TASK_PROJECT", "p"),
        var("FLYTE_INTERNAL_TASK_DOMAIN", "d"),
        var("FLYTE_INTERNAL_TASK_NAME", "tasks.train"),
        var("FLYTE_INTERNAL_TASK_VERSION", "v1"),
    ]


@pytest.mark.parametrize(
    "task_execution_id",
    [
        pytest.param({}, id="nothing is known"),
        pytest.param({"taskId": {"name": "tasks.train"}}, id="only the task is known"),
        pytest.param({"nodeExecutionId": {"nodeId": "n0"}}, id="only the node is known"),
    ],
)
def test_identity_env_without_an_execution(task_execution_id: Manifest) -> None:
    """Where there is no execution, there is no identity, as in Flyte."""
    assert identity_env(container_task(execution={"taskExecutionId": task_execution_id}).execution) == []


def test_with_flyte_env() -> None:
    """D10 (design): platform defaults < the container's own < the execution's < Flyte's identity."""
    own = settings(k8s={"default-env-vars": [{"A": "platform", "B": "platform", "P": "platform"}]})
    execution = container_task(
        execution={"environmentVariables": {"B": "execution", "FLYTE_ATTEMPT_NUMBER": "execution"}}
    ).execution
    container = {"name": "c", "env": [var("A", "task"), var("B", "task"), var("FLYTE_INTERNAL_EXECUTION_ID", "task")]}
    env = {entry["name"]: entry["value"] for entry in with_flyte_env(container, execution, own)["env"]}
    assert {key: env[key] for key in ("A", "B", "P", "FLYTE_ATTEMPT_NUMBER", "FLYTE_INTERNAL_EXECUTION_ID")} == {
        "A": "task",
        "B": "execution",
        "P": "platform",
        "FLYTE_ATTEMPT_NUMBER": "0",
        "FLYTE_INTERNAL_EXECUTION_ID": "f1",
    }


def test_with_flyte_env_sources() -> None:
    """The platform's secrets and config maps come after the container's own sources, optional, and none twice."""
    own = settings(k8s={"default-env-from-secrets": ["s"], "default-env-from-configmaps": ["m"]})
    mine = {"configMapRef": {"name": "mine"}}
    secret = {"secretRef": {"name": "s", "optional": True}}
    execution = container_task().execution
    expected = [mine, secret, {"configMapRef": {"name": "m", "optional": True}}]
    once = with_flyte_env({"name": "c", "envFrom": [mine, secret]}, execution, own)
    assert [once["envFrom"], with_flyte_env(once, execution, own)["envFrom"]] == [expected, expected]


def resource(name: str) -> Manifest:
    """A reference to a container's own resources."""
    return {"resourceFieldRef": {"containerName": name, "resource": "limits.cpu"}}


def spec_of(name: str) -> Manifest:
    """A pod spec that refers to a container by name wherever it can."""
    env = [{"name": "CPU", "valueFrom": resource(name)}, {"name": "X", "value": name}]
    items = [{"path": "cpu", **resource(name)}, {"path": "ip", "fieldRef": {"fieldPath": "status.podIP"}}]
    return {
        "containers": [{"name": "c", "env": env}],
        "initContainers": [{"name": "i", "env": env}],
        "volumes": [
            {"name": "a", "downwardAPI": {"items": items}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "s"}}, {"downwardAPI": {"items": items}}]}},
            {"name": "c", "emptyDir": {}},
        ],
    }


def test_with_container_renamed() -> None:
    """D18 (design): resource references in env and downward API volumes follow the new name, and nothing else does."""
    renamed = with_container_renamed(spec_of("primary"), "primary", "ray-head")
    expected = spec_of("ray-head")
    for container in (*expected["containers"], *expected["initContainers"]):
        container["env"][1] = {"name": "X", "value": "primary"}
    assert renamed == expected


def test_with_another_container_renamed() -> None:
    """References to other containers stay."""
    assert with_container_renamed(spec_of("sidecar"), "primary", "ray-head") == spec_of("sidecar")
