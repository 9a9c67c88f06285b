"""A view of the objects that match a selector, kept up to date by one list and one watch for all who read it.

Reading it costs no call. It says of each namespace how old it is (`age`), and what is wrong when something is
(`error`): one that may not be watched hides no other. Whoever needs more than it knows asks the API server. It mends
itself after broken watches, silence, 410 and restarts.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from .client import ALL, KubeClient, Manifest, Resource, Selector, WatchEvent
from .errors import ApiError, Call, Expired, Unavailable

T = TypeVar("T")
Key = tuple[str, str]  # namespace, name

_log = logging.getLogger(__name__)
_FAILURES_TO_WARN_OF = 3  # a single break is a routine event: a load balancer's time-out, a restart


@dataclass(frozen=True)
class Pace:
    """How a watch spends its time, in seconds.

    An idle view is proved fresh when the server ends a watch (`seconds`), so `age` stays just above it at most.
    """

    seconds: int = 10  # until the server ends a watch, and the next begins
    timeout: float = 10.0  # until the answer to a list or a watch begins; an overdue end of a watch is silence
    first_pause: float = 0.5
    longest_pause: float = 10.0
    shortest_watch: float = 1.0  # one that ends sooner, without a word, is a failure

    def pause(self, failures: int) -> float:
        """How long to wait after that many failures in a row: doubled each time, and half of it by chance.

        Raises:
            Nothing.
        """
        full = min(self.first_pause * 2.0 ** min(failures - 1, 20), self.longest_pause)
        return full * random.uniform(0.5, 1.0)  # spreads replicas, guards nothing


@dataclass
class _Scope:
    """One namespace, or with None all of them, and how its watch fares."""

    namespace: str | None
    version: str = ""  # to watch from; empty when a list is due
    proved_at: float = float("-inf")
    failures: int = 0
    error: Exception | None = None
    listed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def place(self) -> str:
        """Where that is, for the end of a text."""
        return f" in namespace {self.namespace}" if self.namespace else ""


class Watch(Generic[T]):
    """What `keep` makes of each object that matches, by namespace and name.

    Args:
        client: The cluster; it outlives the watch.
        resource: What to watch.
        keep: Makes of an object what is worth remembering; an object for which it fails is left out.
        selector: Which objects.
        namespaces: Where; empty for the whole cluster.
        index: What `indexed` finds kept objects by; None for no index.
        pace: For tests.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        keep: Callable[[Manifest], T],
        *,
        selector: Selector = ALL,
        namespaces: Sequence[str] = (),
        index: Callable[[T], str] | None = None,
        pace: Pace = Pace(),
    ) -> None:
        self._client, self._resource, self._keep = client, resource, keep
        self._selector, self._pace = selector, pace
        self._scopes = {namespace: _Scope(namespace) for namespace in (namespaces or (None,))}
        self._objects: dict[Key, T] = {}
        self._index_of = index
        self._index: dict[str, set[Key]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    def start(self) -> None:
        """Begins to fill the view, in the running event loop. A second call changes nothing.

        Raises:
            RuntimeError: No event loop is running.
        """
        if not self._tasks:
            self._stopping = False
            self._tasks = [asyncio.create_task(self._follow(scope)) for scope in self._scopes.values()]

    async def stop(self) -> None:
        """Ends its tasks and connections. The view stays as it was. Raises nothing."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    def synced(self, namespace: str) -> bool:
        """Whether all of the namespace was listed once, so that an absent object was absent then. Raises nothing."""
        scope = self._scope_of(namespace)
        return scope is not None and scope.listed.is_set()

    def error(self, namespace: str) -> Exception | None:
        """What keeps the view from following that namespace now, or None. Raises nothing."""
        scope = self._scope_of(namespace)
        return scope.error if scope is not None else None

    def age(self, namespace: str) -> float:
        """Seconds since the server last proved that the view of it is up to date; infinite before the first list.

        Raises:
            Nothing.
        """
        scope = self._scope_of(namespace)
        return time.monotonic() - scope.proved_at if scope is not None else float("inf")

    def get(self, namespace: str, name: str) -> T | None:
        """What was kept of that object, or None when the view does not hold it. Raises nothing."""
        return self._objects.get((namespace, name))

    def indexed(self, value: str) -> list[T]:
        """The kept objects for which `index` gives the value, by name. Raises nothing."""
        return [self._objects[key] for key in sorted(self._index.get(value, ()))]

    async def wait_synced(self, namespace: str, timeout: float) -> bool:
        """Whether the namespace is `synced`, at the latest after that many seconds.

        At once where waiting won't help: nobody watches the namespace, or the server refuses to list it.

        Raises:
            Nothing, but for cancellation.
        """
        scope = self._scope_of(namespace)
        if scope is None or (isinstance(scope.error, ApiError) and not scope.error.transient):
            return self.synced(namespace)
        try:
            await asyncio.wait_for(scope.listed.wait(), timeout)
        except asyncio.TimeoutError:
            return False
        return True

    def _scope_of(self, namespace: str) -> _Scope | None:
        """The one that covers a namespace; None where nobody watches it."""
        return self._scopes.get(namespace, self._scopes.get(None))

    async def _follow(self, scope: _Scope) -> None:
        while not self._stopping:
            try:
                if not scope.version:
                    await self._list(scope)
                await self._watch(scope)
                continue
            except ApiError as error:
                if isinstance(error, Expired):
                    scope.version = ""
                self._failed(scope, error)
            except Exception as error:  # noqa: BLE001  # whatever it is, one watch serves all, and must outlive it
                scope.version = ""
                self._failed(scope, error)
            await asyncio.sleep(self._pause(scope))

    async def _list(self, scope: _Scope) -> None:
        version = ""
        found: dict[Key, T] = {}
        async for page in self._client.pages(self._resource, scope.namespace, self._selector):
            version = version or page.resource_version  # all pages show the state of the first
            for item in page.items:
                found.update(self._kept(item))
                await asyncio.sleep(0)  # `keep` may take milliseconds, and all tasks are answered in this loop
        gone = [key for key in self._objects if scope.namespace in (None, key[0]) and key not in found]
        for key in gone:
            self._drop(key)
        for key, value in found.items():
            self._put(key, value)
        scope.version = version
        self._proved(scope)
        scope.listed.set()

    async def _watch(self, scope: _Scope) -> None:
        pace, started, heard = self._pace, time.monotonic(), False
        stream = self._client.watch(
            self._resource,
            scope.namespace,
            self._selector,
            resource_version=scope.version,
            seconds=pace.seconds,
            timeout=pace.timeout,
        )
        async with aclosing(stream) as events:
            async for event in events:
                if self._stopping:  # wait_for of Python before 3.12 may swallow a cancellation
                    return
                self._proved(scope)
                scope.error = None
                if event.type != "OPENED":  # an accepted watch may still end in 410 at once, again and again
                    heard = True
                    self._recovered(scope)
                    self._apply(event)
                    scope.version = event.manifest["metadata"]["resourceVersion"]
        if not heard and time.monotonic() - started < pace.shortest_watch:
            raise Unavailable(Call("watch", str(self._resource), scope.namespace or ""), "the server ended it at once")
        self._proved(scope)
        self._recovered(scope)

    def _apply(self, event: WatchEvent) -> None:
        if event.type == "BOOKMARK":
            return
        if event.type == "DELETED":
            self._drop(_key(event.manifest))
            return
        kept = self._kept(event.manifest)
        if not kept:
            self._drop(_key(event.manifest))  # better not known than known wrong
        for key, value in kept:
            self._put(key, value)

    def _kept(self, manifest: Manifest) -> list[tuple[Key, T]]:
        try:
            return [(_key(manifest), self._keep(manifest))]
        except Exception:  # noqa: BLE001  # one odd object must not hide all others
            metadata = manifest.get("metadata", {})
            _log.warning(
                "%s %s/%s can't be understood and is left out",
                self._resource,
                metadata.get("namespace"),
                metadata.get("name"),
                exc_info=True,
            )
            return []

    def _put(self, key: Key, value: T) -> None:
        self._unindex(key)
        self._objects[key] = value
        if self._index_of is not None:
            self._index.setdefault(self._index_of(value), set()).add(key)

    def _drop(self, key: Key) -> None:
        if key in self._objects:
            self._unindex(key)
            del self._objects[key]

    def _unindex(self, key: Key) -> None:
        if self._index_of is None or key not in self._objects:
            return
        value = self._index_of(self._objects[key])
        self._index[value].discard(key)
        if not self._index[value]:
            del self._index[value]

    def _proved(self, scope: _Scope) -> None:
        scope.proved_at = time.monotonic()

    def _recovered(self, scope: _Scope) -> None:
        if scope.failures >= _FAILURES_TO_WARN_OF:
            _log.warning("the watch of %s%s follows again", self._resource, scope.place)
        scope.failures, scope.error = 0, None

    def _failed(self, scope: _Scope, error: Exception) -> None:
        scope.failures += 1
        scope.error = error
        if scope.failures == _FAILURES_TO_WARN_OF:
            _log.warning("the watch of %s%s fails and is tried on: %s", self._resource, scope.place, error)

    def _pause(self, scope: _Scope) -> float:
        asked = scope.error.retry_after if isinstance(scope.error, ApiError) else None
        return max(self._pace.pause(scope.failures), min(asked or 0.0, self._pace.longest_pause))


def _key(manifest: Manifest) -> Key:
    metadata = manifest["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
