"""The shared view: what it holds, how it mends itself, and what it says of its own state."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from flytekitplugins.kuberay.kube import (
    PODS,
    RAYJOBS,
    ApiKubeClient,
    Call,
    Expired,
    Forbidden,
    Manifest,
    Page,
    Resource,
    Selector,
)
from flytekitplugins.kuberay.kube.errors import error_of
from flytekitplugins.kuberay.kube.watch import Pace

from .conftest import KubeconfigOf
from .scripted import Reply, ScriptedServer, answer, failure, status_of, stream
from .shown import ShownWatch

FAST = Pace(seconds=1, timeout=0.3, first_pause=0.01, longest_pause=0.05, shortest_watch=0.05)


def job(name: str, phase: str, version: int = 1, namespace: str = "ns") -> Manifest:
    """A RayJob of which only the phase matters."""
    return {
        "metadata": {"namespace": namespace, "name": name, "resourceVersion": str(version)},
        "status": {"phase": phase},
    }


def phase_of(manifest: Manifest) -> str:
    """What the tests keep."""
    return str(manifest["status"]["phase"])


def listed(*items: Manifest, version: int = 1, more: str = "") -> Reply:
    """The answer to a list."""
    return answer({"items": list(items), "metadata": {"resourceVersion": str(version), "continue": more}})


def event(kind: str, manifest: Manifest) -> Manifest:
    """A line of a watch."""
    return {"type": kind, "object": manifest}


EXPIRED = stream(event("ERROR", status_of(410, "Expired", "too old")))


@asynccontextmanager
async def running(client: ApiKubeClient, *namespaces: str, pace: Pace = FAST) -> AsyncIterator[ShownWatch[str]]:
    """A watch of RayJobs that runs."""
    view = ShownWatch(client, RAYJOBS, phase_of, selector=Selector("mine=yes"), namespaces=namespaces, pace=pace)
    view.start()
    try:
        yield view
    finally:
        await view.stop()


async def until(holds: Callable[[], bool]) -> None:
    """Waits until it holds, 30 s at most."""
    for _ in range(3000):
        if holds():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not come to hold within 30 s")


def asked(server: ScriptedServer) -> list[str]:
    """Each request: `list`, or `watch` and the version it starts from."""
    return [f"watch {seen.query['resourceVersion']}" if "watch" in seen.query else "list" for seen in server.seen]


async def test_the_view_is_the_list_and_what_changed_since(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """Added, modified and deleted objects come and go; bookmarks change nothing but the version to go on from."""
    server.replies += [
        listed(job("a", "New"), job("b", "New"), version=5),
        stream(
            event("MODIFIED", job("a", "Running", 6)),
            event("DELETED", job("b", "New", 7)),
            event("ADDED", job("c", "New", 8)),
            {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}},
        ),
    ]
    async with running(scripted) as view:
        await until(lambda: len(server.seen) == 3)
        assert view.items() == {("ns", "a"): "Running", ("ns", "c"): "New"}
        assert (view.get("ns", "a"), view.get("ns", "b")) == ("Running", None)
        assert asked(server) == ["list", "watch 5", "watch 20"]
        assert {seen.query["labelSelector"] for seen in server.seen} == {"mine=yes"}


async def test_a_long_first_list_comes_in_pages_and_counts_from_the_first(
    scripted: ApiKubeClient, server: ScriptedServer
) -> None:
    """Nothing is shown of half a list, and the watch starts at the version that the pages share."""
    server.replies += [listed(job("a", "New"), version=5, more="t"), listed(job("b", "New"), version=6)]
    async with running(scripted) as view:
        assert not view.synced("ns")
        assert await view.wait_synced("ns", 30)
        assert view.items() == {("ns", "a"): "New", ("ns", "b"): "New"}
        await until(lambda: len(server.seen) == 3)
        assert asked(server) == ["list", "list", "watch 5"]


async def test_namespaces_are_watched_one_by_one(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """With a list of namespaces no call needs a right over the whole cluster."""
    server.replies += [listed(job("j", "New", namespace="a"))]
    async with running(scripted, "a", "b"):
        await until(lambda: len(server.seen) == 3)
        assert {seen.path for seen in server.seen} == {f"/apis/ray.io/v1/namespaces/{n}/rayjobs" for n in "ab"}


class Divided(ApiKubeClient):
    """A client that may list and watch one namespace, and not the other."""

    async def list_page(self, resource: Resource, namespace: str | None, *arguments: Any, **options: Any) -> Page:
        """A page with a RayJob.

        Raises:
            Forbidden: In namespace b.
        """
        if namespace == "b":
            raise error_of(Call("list", str(resource), "b"), 403, json.dumps(status_of(403, "Forbidden", NOT_YOU)))
        return Page([job("j", "New", namespace=namespace or "")], "5")


NOT_YOU = 'rayjobs.ray.io is forbidden: User "c" cannot list resource "rayjobs" in the namespace "b"'


async def test_a_namespace_that_may_not_be_watched_hides_no_other(
    server: ScriptedServer, kubeconfig_of: KubeconfigOf, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is synced, old and in error by itself, and the log says which one lacks what."""
    server.replies += [stream(event("ADDED", job("k", "New", 6, namespace="a")), then="hang")]
    pace = replace(FAST, timeout=60)
    async with await Divided.open(kubeconfig_of(server.url)) as client, running(client, "a", "b", pace=pace) as view:
        await until(lambda: view.get("a", "k") == "New" and "fails" in caplog.text)
        assert [view.synced(each) for each in ("a", "b")] == [True, False]
        assert [type(view.error(each)) for each in ("a", "b")] == [type(None), Forbidden]
        assert [view.age(each) < 60 for each in ("a", "b")] == [True, False]
        assert [await view.wait_synced(each, 60) for each in ("a", "b")] == [True, False]
    assert [record.getMessage() for record in caplog.records] == [
        "the watch of rayjobs.ray.io in namespace b fails and is tried on: list rayjobs.ray.io in namespace b: "
        f"{NOT_YOU}; a cluster administrator has to grant it, by a RoleBinding in namespace b or a ClusterRoleBinding"
        " (deploy/rbac.yaml of flytekitplugins-kuberay has the roles)"
    ]


async def test_of_a_namespace_that_nobody_watches_nothing_is_known(scripted: ApiKubeClient) -> None:
    """And nobody waits for it."""
    async with running(scripted, "a") as view:
        known = (view.synced("b"), view.error("b"), view.age("b"), await view.wait_synced("b", 60))
        assert known == (False, None, float("inf"), False)


async def test_a_list_of_one_namespace_leaves_the_others(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """What is gone is told by the list of its own namespace only."""
    server.replies += [listed(job("j", "New", namespace="a")), listed(job("j", "New", namespace="b"))]
    async with running(scripted, "a", "b") as view:
        assert [await view.wait_synced(each, 30) for each in ("a", "b")] == [True, True]
        assert sorted(view.items()) == [("a", "j"), ("b", "j")]


async def test_a_long_list_holds_nobody_up(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """The event loop goes on between two objects of it, each of which may take milliseconds to read."""
    turns: list[int] = []
    loop_turns = 0

    async def turn() -> None:
        nonlocal loop_turns
        while True:
            loop_turns += 1
            await asyncio.sleep(0)

    def keep(manifest: Manifest) -> str:
        turns.append(loop_turns)
        return ""

    server.replies += [listed(*(job(f"j{number}", "New") for number in range(50)))]
    view = ShownWatch(scripted, RAYJOBS, keep, pace=FAST)
    turning = asyncio.create_task(turn())
    view.start()
    assert await view.wait_synced("ns", 30)
    await view.stop()
    turning.cancel()
    assert len(set(turns)) == 50


async def test_after_410_it_lists_anew(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """What went meanwhile is gone, what changed is changed, without a gap in what is shown."""
    server.replies += [
        listed(job("a", "New"), job("b", "New"), version=5),
        EXPIRED,
        listed(job("a", "Running"), version=9),
    ]
    async with running(scripted) as view:
        await until(lambda: asked(server) == ["list", "watch 5", "list", "watch 9"])
        assert view.items() == {("ns", "a"): "Running"}


async def test_after_a_break_it_goes_on_where_it_was(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """No list is needed, and what it knew stays readable."""
    server.replies += [
        listed(job("a", "New"), version=5),
        stream(event("MODIFIED", job("a", "Running", 6)), then="break"),
        stream('{"type": "MODIF', then="break"),
    ]
    async with running(scripted) as view:
        await until(lambda: len(server.seen) == 4)
        assert asked(server) == ["list", "watch 5", "watch 6", "watch 6"]
        assert view.get("ns", "a") == "Running"


async def test_silence_is_noticed(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """A watch that outlives its own end without a word is dropped; meanwhile the view grows old."""
    server.replies += [listed(version=5), stream(then="hang"), stream(event("ADDED", job("a", "New", 6)), then="hang")]
    async with running(scripted, pace=Pace(seconds=0, timeout=1, first_pause=0.01, longest_pause=0.01)) as view:
        await until(lambda: 0.5 < view.age("ns") < 60)
        await until(lambda: view.get("ns", "a") == "New")
        await until(lambda: view.age("ns") < 0.5)


async def test_age_is_infinite_before_the_first_list(scripted: ApiKubeClient) -> None:
    """Nobody takes an empty view for an empty cluster."""
    async with running(scripted) as view:
        assert view.age("ns") == float("inf")
        assert not view.synced("ns")


async def test_failures_come_with_longer_pauses_and_one_warning(
    scripted: ApiKubeClient, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A missing right is in `error` and once in the log; when it is granted, once more, and the error is gone."""
    server.replies += [failure(403, "Forbidden", "cannot list")] * 6
    with caplog.at_level(logging.INFO, logger="flytekitplugins.kuberay"):
        async with running(scripted) as view:
            await until(lambda: len(server.seen) == 6)
            assert isinstance(view.error("ns"), Forbidden)
            server.replies += [listed(job("a", "New"), version=5), stream(event("ADDED", job("b", "New", 6)))]
            await until(lambda: view.get("ns", "b") == "New")
            assert view.error("ns") is None
    assert [record.getMessage() for record in caplog.records] == [
        "the watch of rayjobs.ray.io fails and is tried on: list rayjobs.ray.io: cannot list",
        "the watch of rayjobs.ray.io follows again",
    ]


async def test_a_server_that_always_says_410_is_not_asked_in_a_loop(
    scripted: ApiKubeClient, server: ScriptedServer
) -> None:
    """A list that succeeds does not reset the pauses as long as no watch holds."""
    pace = Pace(seconds=1, timeout=1, first_pause=0.1, longest_pause=10)
    for _ in range(20):
        server.replies += [listed(version=5), EXPIRED]
    async with running(scripted, pace=pace) as view:
        await until(lambda: isinstance(view.error("ns"), Expired))
        await asyncio.sleep(1.2)
        assert len(server.seen) <= 14  # it was about 10, and 34 with the first pause each time


async def test_a_server_that_ends_each_watch_at_once_is_not_asked_in_a_loop(
    scripted: ApiKubeClient, server: ScriptedServer
) -> None:
    """An end without a word, within moments, counts as a failure."""
    pace = Pace(seconds=1, timeout=1, first_pause=0.1, longest_pause=10)
    server.replies += [listed(version=5), *([stream()] * 20)]
    async with running(scripted, pace=pace) as view:
        await until(lambda: str(view.error("ns")) == "watch rayjobs.ray.io: the server ended it at once")
        await asyncio.sleep(1.2)
        assert len(server.seen) <= 8  # it was about 5, and 17 with the first pause each time


async def test_a_busy_server_is_given_the_time_it_asks_for(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """Retry-After stands above our own pause, up to the longest."""
    busy = answer(status_of(429, "TooManyRequests", "later"), 429, [("Retry-After", "1")])
    server.replies += [busy, listed()]
    pace = Pace(timeout=5, first_pause=0.01, longest_pause=0.4)
    async with running(scripted, pace=pace) as view:
        assert not await view.wait_synced("ns", 0.3)
        assert await view.wait_synced("ns", 30)


@pytest.mark.parametrize(
    ("failures", "longest"),
    [
        pytest.param(1, 0.5, id="half a second at first"),
        pytest.param(4, 4.0, id="doubled each time"),
        pytest.param(1000, 10.0, id="never more than 10 s"),
    ],
)
def test_pauses_double_and_half_of_each_is_chance(failures: int, longest: float) -> None:
    """Replicas that lost the server at the same moment don't come back at the same moment."""
    pauses = [Pace().pause(failures) for _ in range(200)]
    assert longest / 2 <= min(pauses) < max(pauses) <= longest
    assert max(pauses) - min(pauses) > longest / 4


async def test_an_object_that_cannot_be_understood_hides_no_other(
    scripted: ApiKubeClient, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left out, listed or changed, and named in the log."""
    odd = {"metadata": {"namespace": "ns", "name": "odd", "resourceVersion": "6"}}
    server.replies += [
        listed(odd, job("a", "New"), job("b", "New"), version=5),
        stream(event("MODIFIED", {"metadata": {**odd["metadata"], "name": "b"}}), event("ADDED", job("c", "New", 7))),
    ]
    async with running(scripted) as view:
        await until(lambda: view.get("ns", "c") == "New")
        assert view.items() == {("ns", "a"): "New", ("ns", "c"): "New"}
    assert "rayjobs.ray.io ns/odd can't be understood and is left out" in caplog.text


class Odd(ApiKubeClient):
    """A client with a fault in its first list."""

    faults = 1

    async def list_page(self, *arguments: Any, **options: Any) -> Page:
        """A page, but for the first time."""
        if self.faults:
            self.faults = 0
            raise ZeroDivisionError
        return await super().list_page(*arguments, **options)


async def test_a_fault_of_our_own_does_not_end_it(server: ScriptedServer, kubeconfig_of: KubeconfigOf) -> None:
    """One watch serves all tasks: it goes on with a fresh list, whatever was raised."""
    server.replies += [listed(job("a", "New"), version=5)]
    async with await Odd.open(kubeconfig_of(server.url)) as client, running(client) as view:
        assert await view.wait_synced("ns", 30)
        assert view.get("ns", "a") == "New"


async def test_stopping_leaves_no_task_and_a_readable_view(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """Whatever it was at: a watch that is open, a pause, an answer that is awaited."""
    server.replies += [listed(job("a", "New"), version=5), stream(then="hang")]
    view = ShownWatch(scripted, RAYJOBS, phase_of, pace=FAST)
    view.start()
    view.start()
    await view.wait_synced("ns", 30)
    await view.stop()
    own = {task for task in asyncio.all_tasks() if "Watch" in str(task.get_coro())}
    assert (own, view.get("ns", "a")) == (set(), "New")


async def test_two_watches_share_one_client(scripted: ApiKubeClient, server: ScriptedServer) -> None:
    """A second watch, of other objects, is just another one."""
    server.replies += [listed(job("a", "New"), version=5), stream(then="hang"), listed(job("p", "Pending"), version=7)]
    async with running(scripted, pace=Pace()) as view:
        await until(lambda: len(server.seen) == 2)
        pods = ShownWatch(scripted, PODS, phase_of)
        pods.start()
        assert await pods.wait_synced("ns", 30)
        await pods.stop()
        assert (view.items(), pods.items()) == ({("ns", "a"): "New"}, {("ns", "p"): "Pending"})
