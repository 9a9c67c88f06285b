"""What a direct run leaves where it is not known whether its RayJob was created, over a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from flytekit import task
from flytekit.core.context_manager import FlyteContextManager
from flytekit.models.literals import LiteralMap
from typing_extensions import override

from flytekitplugins.kuberay import KubeRayError, RayJobConfig
from flytekitplugins.kuberay.direct.run import run_on
from flytekitplugins.kuberay.kube import (
    ApiError,
    Call,
    Created,
    DeadlineExceeded,
    Forbidden,
    KubeClient,
    Manifest,
    Resource,
)
from tests.connector.seam import Seam
from tests.connector.serving import IMPATIENT

from .cluster import interrupt_when
from .conftest import Direct, cluster_of

RUNNING = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
CREATE = Call("create", "rayjobs.ray.io")
QUOTA = Forbidden(CREATE, "exceeded quota: one")


@task(task_config=RayJobConfig(worker_node_config=[]))
def doubled(x: int) -> int:
    """Never runs here."""
    return -1


class Unheard(Seam):
    """A cluster that carries the first create out, after so long, and whose answers to all are lost."""

    seconds = 0.0
    lost: ApiError = DeadlineExceeded(CREATE, "no answer from the API server within 5 s")
    then = lost
    _first: asyncio.Task[Created] | None = None

    @override
    async def create(self, resource: Resource, namespace: str | None, manifest: Manifest, **options: Any) -> Created:
        if self._first is None:
            self._first = asyncio.create_task(self._carried_out(resource, namespace, manifest))
            await asyncio.sleep(0 if self.seconds else 0.2)
            raise self.lost
        raise self.then

    async def _carried_out(self, resource: Resource, namespace: str | None, manifest: Manifest) -> Created:
        await asyncio.sleep(self.seconds)
        return await super().create(resource, namespace, manifest)


class UnheardAndLate(Unheard):
    """It is still at it when nobody waits any more, for which IMPATIENT takes less than two seconds."""

    seconds = 2.0


class UnheardThenFull(Unheard):
    """What nothing was heard of fills a quota."""

    then = QUOTA


class OfAnother(Unheard):
    """Somebody else's RayJob has the name meanwhile."""

    @override
    async def create(self, resource: Resource, namespace: str | None, manifest: Manifest, **options: Any) -> Created:
        metadata = {**manifest["metadata"], "labels": {}}
        return await super().create(resource, namespace, {**manifest, "metadata": metadata}, **options)


class UnheardOnceAndAway(Unheard):
    """It is away after that."""

    @override
    def reached(self, verb: str) -> KubeClient:
        self.away = "create" in self.calls
        return super().reached(verb)


@pytest.mark.parametrize(
    "kind", [pytest.param(Unheard, id="by then"), pytest.param(UnheardAndLate, id="a moment later")]
)
def test_a_create_that_was_not_answered_leaves_nothing(direct: Direct, kind: type[Seam]) -> None:
    """It may have been carried out: what stands then goes, before the user reads why the task did not run."""
    pods = direct.playing(lambda job: (RUNNING,))
    with cluster_of(kind, direct, IMPATIENT) as (seam, cluster), pytest.raises(KubeRayError, match="no answer from"):
        run_on(cluster, doubled, LiteralMap({}), FlyteContextManager.current_context())
    assert (seam.calls.count("delete"), pods.left(within=0)) == (1, [])


def test_a_refusal_after_a_lost_answer_leaves_nothing(direct: Direct) -> None:
    """For the last answer says nothing of the first one."""
    pods = direct.playing(lambda job: (RUNNING,))
    with (
        cluster_of(UnheardThenFull, direct, IMPATIENT) as (seam, cluster),
        pytest.raises(KubeRayError, match="exceeded quota"),
    ):
        run_on(cluster, doubled, LiteralMap({}), FlyteContextManager.current_context())
    assert (seam.calls.count("delete"), pods.left(within=0)) == (1, [])


def test_ctrl_c_deletes_what_is_being_created(direct: Direct) -> None:
    """Though its creation is never answered."""
    pods = direct.playing(lambda job: (RUNNING,))
    with cluster_of(Unheard, direct, IMPATIENT) as (seam, cluster):
        interrupt_when(lambda: bool(pods.jobs))
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            run_on(cluster, doubled, LiteralMap({}), FlyteContextManager.current_context())
    assert (seam.calls.count("delete"), pods.left(within=0)) == (1, [])


def test_what_may_stand_is_told_where_that_can_not_be_found_out(
    direct: Direct, capfd: pytest.CaptureFixture[str]
) -> None:
    """In one line, with the command that ends it."""
    pods = direct.playing(lambda job: (RUNNING,))
    with (
        cluster_of(UnheardOnceAndAway, direct, IMPATIENT) as (_, cluster),
        pytest.raises(KubeRayError, match="no answer from"),
    ):
        run_on(cluster, doubled, LiteralMap({}), FlyteContextManager.current_context())
    (name,) = pods.left(within=0)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.endswith(f"refused; its RayJob may stand: flyte-kuberay delete {direct.namespace}/{name}")


def test_what_somebody_else_made_is_left_alone(direct: Direct) -> None:
    """Its name alone says nothing."""
    pods = direct.playing(lambda job: (RUNNING,))
    with (
        cluster_of(OfAnother, direct, IMPATIENT) as (_, cluster),
        pytest.raises(KubeRayError, match="no answer from"),
    ):
        run_on(cluster, doubled, LiteralMap({}), FlyteContextManager.current_context())
    assert len(pods.left(within=0)) == 1


def test_after_a_plain_refusal_nothing_is_looked_for(direct: Direct, capfd: pytest.CaptureFixture[str]) -> None:
    """Who may not create often may not read either, and would be told of a RayJob that never was."""
    with cluster_of(Seam, direct) as (seam, cluster), pytest.raises(KubeRayError, match="exceeded quota"):
        seam.faults["create"] = [QUOTA]
        run_on(cluster, doubled, LiteralMap({}), FlyteContextManager.current_context())
    assert (seam.calls, capfd.readouterr().err) == (["create"], "")
