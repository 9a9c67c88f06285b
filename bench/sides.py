"""The ways in which one and the same task comes to a cluster: by this connector, by hand, by Flyte's Go plugin."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from flyteidl.admin.agent_pb2 import TaskExecutionMetadata
from flyteidl.core.execution_pb2 import TaskExecution
from flyteidl.core.literals_pb2 import LiteralMap
from flyteidl.core.tasks_pb2 import TaskTemplate
from google.protobuf.json_format import ParseDict

from bench.timeline import Timeline
from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.config import SUBMISSION_MODES
from flytekitplugins.kuberay.kube import PODS, RAYJOBS, KubeClient
from flytekitplugins.kuberay.settings import parse_settings
from flytekitplugins.kuberay.wire import FlyteTask, Manifest
from tests.connector.serving import Caller
from tests.e2e.node import BUCKET, NAMESPACE, ROOT, SHARED, STORE, Node
from tests.e2e.propeller import CODE, case_of, template_of
from tools.start_up import BY_HAND, GO, OURS

_POLL = 0.5
_LONGEST, _ANSWERED_LONGEST = 120.0, 20.0
"""Seconds to wait for Complete, which in SidecarMode may never come; less where the connector has answered."""
_SETTINGS = {
    "plugins": {
        "k8s": {"default-env-vars": [{name: value} for name, value in STORE.items()]},
        "kuberay": {"submitter-resources": {"requests": {"cpu": "50m", "memory": "100Mi"}}},
    }
}
"""Of the node's connector those that reach a pod."""
_WAITING = {
    TaskExecution.QUEUED: "QUEUED",
    TaskExecution.WAITING_FOR_RESOURCES: "WAITING_FOR_RESOURCES",
    TaskExecution.INITIALIZING: "INITIALIZING",
    TaskExecution.RUNNING: "RUNNING",
}

SERIES = [(side, mode) for mode in SUBMISSION_MODES for side in (OURS, BY_HAND)] + [(GO, "K8sJobMode")]
"""What is compared; Go's plugin knows one submission mode."""

Seconds = Mapping[str, float]
Start = Callable[[Timeline], Awaitable[None]]


class Bench:
    """Runs the task, once at a time, with a head and a worker.

    Args:
        node: The node, in whose network this process runs.
        client: Its API server.
        caller: Its connector.
    """

    def __init__(self, node: Node, client: KubeClient, caller: Caller) -> None:
        self._node, self._client, self._caller = node, client, caller
        self._names = (f"bench{number}" for number in itertools.count())
        sys.path.insert(0, str(ROOT / "tests" / "e2e" / "workflows"))
        module = import_module("first_run")
        self._template = template_of(module.squares)
        self._case = json.dumps(case_of("NAME", module.squares, self._template, {"n": 5}))
        self._settings = parse_settings(_SETTINGS)
        with tarfile.open(self._stored(CODE), "w:gz") as archive:
            archive.add(str(module.__file__), "first_run.py")

    async def run(self, side: str, mode: str) -> Seconds:
        """The seconds from the call that creates the task to each stage that it came to; nothing is left of it."""
        start = self._prepared(side, mode)
        async with Timeline(self._client, NAMESPACE) as timeline:
            await start(timeline)
            await timeline.until("Complete", _ANSWERED_LONGEST if side == OURS else _LONGEST)
        await self._emptied()
        return timeline.seconds

    def _prepared(self, side: str, mode: str) -> Start:
        """What creates a new task, with nothing left to do but the call."""
        if side == OURS:
            return partial(self._by_connector, self._task(mode))
        job = self._go_job() if side == GO else build_ray_job(self._task(mode), self._settings)
        return partial(self._by_hand, job)

    async def _by_connector(self, task: FlyteTask, timeline: Timeline) -> None:
        """The task, created and asked after as propeller does it, but every half second."""
        metadata = await self._caller.create(task)
        while (resource := await self._caller.get(metadata)).phase in _WAITING:
            timeline.stamp(f"answered {_WAITING[resource.phase]}")
            await asyncio.sleep(_POLL)
        assert resource.phase == TaskExecution.SUCCEEDED, resource.message
        timeline.stamp("answered SUCCEEDED")

    async def _by_hand(self, job: Manifest, timeline: Timeline) -> None:
        await self._client.create(RAYJOBS, NAMESPACE, job, timeout=20)

    async def _emptied(self) -> None:
        """Nothing; the RayJob and its pods are gone."""
        for job in await self._client.list(RAYJOBS, NAMESPACE):
            await self._client.delete(RAYJOBS, NAMESPACE, job["metadata"]["name"])
        while await self._client.list(PODS, NAMESPACE) or await self._client.list(RAYJOBS, NAMESPACE):
            await asyncio.sleep(0.2)

    def _task(self, mode: str) -> FlyteTask:
        """A new task that says its submission mode, with its inputs in the object store."""
        case, name = self._new_case()
        extras = json.loads(self._template.get("config", {}).get("kuberay", '{"version": 1}'))
        case["task_template"].setdefault("config", {})["kuberay"] = json.dumps(extras | {"submissionMode": mode})
        folder = f"metadata/{name}/n0/data"
        inputs = self._with_inputs(case, f"{folder}/inputs.pb")
        execution = ParseDict(case["task_execution_metadata"], TaskExecutionMetadata(), ignore_unknown_fields=True)
        template = ParseDict(case["task_template"], TaskTemplate())
        return FlyteTask(template, execution, f"s3://{BUCKET}/{folder}/0", inputs)

    def _go_job(self) -> Manifest:
        """The RayJob that Flyte's Go plugin makes of it."""
        case, name = self._new_case()
        self._with_inputs(case, "meta/inputs.pb")  # where ../shared/oracle says that they are
        case["task_execution_metadata"]["generated_name"] = f"{name}-n0-0"
        case["settings"] = {"plugins": {"k8s": _SETTINGS["plugins"]["k8s"]}}  # the oracle takes no other section
        oracle = subprocess.run([SHARED / "oracle" / "build"], capture_output=True, text=True, check=True)
        command = [oracle.stdout.strip(), "build"]
        built = json.loads(
            subprocess.run(command, input=json.dumps(case), capture_output=True, text=True, check=True).stdout
        )
        metadata = {key: built["object_metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
        return {**built["rayjob"], "metadata": metadata}

    def _new_case(self) -> tuple[dict[str, Any], str]:
        name = next(self._names)
        return json.loads(self._case.replace("NAME", name)), name

    def _with_inputs(self, case: Mapping[str, Any], key: str) -> LiteralMap:
        inputs: LiteralMap = ParseDict(case["inputs"], LiteralMap())
        self._stored(key).write_bytes(inputs.SerializeToString())
        return inputs

    def _stored(self, key: str) -> Path:
        """The file of an object, its folder made."""
        path = self._node.store / BUCKET / key
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
