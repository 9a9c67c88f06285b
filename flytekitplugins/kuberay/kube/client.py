"""What can be asked of a cluster: resources, the calls, and what they give.

`KubeClient` is the seam: `api.ApiKubeClient` talks to a real API server, tests give a fake. Manifests are plain
camelCase dicts both ways. Nothing here is tried twice: errors say whether that helps (`ApiError.transient`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import Self

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Resource:
    """One kind of object, as the API's paths and RBAC name it; `group` is empty for the core API."""

    group: str
    version: str
    plural: str

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


RAYJOBS = Resource("ray.io", "v1", "rayjobs")
PODS = Resource("", "v1", "pods")
EVENTS = Resource("", "v1", "events")
SERVICES = Resource("", "v1", "services")
POD_TEMPLATES = Resource("", "v1", "podtemplates")


@dataclass(frozen=True)
class Selector:
    """Which objects a list or watch means, in kubectl's syntax; empty for all."""

    labels: str = ""
    fields: str = ""


ALL = Selector()


@dataclass(frozen=True)
class Created:
    """An object as the server made it, and what the server warned of (unknown fields, deprecations, policies)."""

    manifest: Manifest
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """Part of a list; `continue_from` is empty on the last page. Items may lack apiVersion and kind."""

    items: list[Manifest]
    resource_version: str
    continue_from: str = ""


@dataclass(frozen=True)
class WatchEvent:
    """One line of a watch.

    OPENED is ours: the server has accepted the watch, before any change. A BOOKMARK's manifest holds no more than
    its resource version. An object whose labels stop matching is DELETED too.
    """

    type: Literal["OPENED", "ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    manifest: Manifest


class KubeClient(ABC):
    """Calls to one cluster.

    Every `timeout` is in seconds and covers the whole call. Every call raises `ApiError` and nothing else, but for
    cancellation. A `namespace` of None means all of them (list, watch) or none (a resource without).
    """

    @abstractmethod
    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        manifest: Manifest,
        *,
        timeout: float = 5.0,
    ) -> Created:
        """The object as the server stored it; it drops fields that it does not know, and warns of them.

        Raises:
            ApiError: AlreadyExists, Invalid and Forbidden tell of the object; NotFound of its namespace.
        """

    @abstractmethod
    async def get(self, resource: Resource, namespace: str | None, name: str, *, timeout: float = 5.0) -> Manifest:
        """The object, as it is now.

        Raises:
            ApiError: NotFound is the proof that it is gone.
        """

    @abstractmethod
    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str = "",
        timeout: float = 5.0,
    ) -> None:
        """Has the server delete it; what it owns goes after it, and it may stay until its finalizers are done.

        Args:
            resource: Its kind.
            namespace: Where it is.
            name: Its name.
            uid: When given, only the object with this uid is deleted, not a namesake.
            timeout: Seconds.

        Raises:
            ApiError: NotFound when it is gone already, Conflict when the uid is another.
        """

    @abstractmethod
    async def list_page(
        self,
        resource: Resource,
        namespace: str | None,
        selector: Selector = ALL,
        *,
        limit: int = 500,
        continue_from: str = "",
        timeout: float = 10.0,
    ) -> Page:
        """One page of the objects that match; `pages` and `list` follow the others.

        Raises:
            ApiError: Expired when `continue_from` is too old.
        """

    @abstractmethod
    def watch(
        self,
        resource: Resource,
        namespace: str | None,
        selector: Selector = ALL,
        *,
        resource_version: str,
        seconds: int = 30,
        timeout: float = 10.0,
    ) -> AsyncGenerator[WatchEvent, None]:
        """The changes after `resource_version`, until the server ends the watch. Close it with `aclosing`.

        Args:
            resource: What to watch.
            namespace: Where; None for all.
            selector: Which.
            resource_version: That of a list, or of the last event.
            seconds: When the server ends the watch. Bookmarks come in between, at the latest just before the end.
            timeout: How long opening may take, and how long the end may be overdue.

        Raises:
            ApiError: Expired when the version is too old; DeadlineExceeded when the server fell silent;
                Unavailable when the watch broke off.
        """

    @abstractmethod
    async def read_log(
        self,
        namespace: str,
        pod: str,
        *,
        container: str = "",
        tail_lines: int = 100,
        limit_bytes: int = 65536,
        previous: bool = False,
        timeout: float = 5.0,
    ) -> str:
        """The end of a container's log: at most that many lines and bytes, the newest are kept.

        Raises:
            ApiError: Invalid while the container has no log yet, NotFound when the pod is gone.
        """

    @abstractmethod
    async def schema(self, resource: Resource, kind: str, *, timeout: float = 10.0) -> Manifest:
        """The OpenAPI v3 schema by which the server checks and prunes such objects; whoever may log in may read it.

        It comes with those of the whole group, a megabyte for ray.io: read it seldom, and keep what is needed of it.

        Args:
            resource: The kind's plural.
            kind: Its name.
            timeout: Seconds.

        Raises:
            ApiError: UnknownResource when the server has no schema of it.
        """

    @abstractmethod
    def stream_log(
        self, namespace: str, pod: str, *, container: str = "", follow: bool = False, timeout: float = 10.0
    ) -> AsyncGenerator[bytes, None]:
        """A container's log from its beginning, in pieces as they come. Close it with `aclosing`.

        Args:
            namespace: Where the pod is.
            pod: Its name.
            container: Which of its containers; may be left out where there is one.
            follow: Whether to go on until the container ends.
            timeout: How long the beginning of the answer may take; what follows may take any time.

        Raises:
            ApiError: As `read_log`.
        """

    @abstractmethod
    def stream_service(
        self,
        namespace: str,
        service: str,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        *,
        timeout: float = 10.0,
    ) -> AsyncGenerator[bytes, None]:
        """What a Service answers to a GET through the API server, in pieces as they come. Close it with `aclosing`.

        Args:
            namespace: Where the Service is.
            service: Its name, with a port after a colon.
            path: What to ask it for, as `api/jobs/`.
            query: With it.
            timeout: How long the beginning of the answer may take; what follows may take any time.

        Raises:
            ApiError: NotFound when there is no such Service, Unavailable when nothing is behind it. Of what it refuses
                itself only the HTTP status is known: a 404 is UnknownResource.
        """

    @abstractmethod
    async def close(self) -> None:
        """Closes the connections. Raises nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def pages(
        self,
        resource: Resource,
        namespace: str | None,
        selector: Selector = ALL,
        *,
        limit: int = 500,
        timeout: float = 10.0,
    ) -> AsyncIterator[Page]:
        """All pages of a list, each within its own time-out.

        Raises:
            ApiError: As `list_page`.
        """
        page = await self.list_page(resource, namespace, selector, limit=limit, timeout=timeout)
        yield page
        while page.continue_from:
            page = await self.list_page(
                resource, namespace, selector, limit=limit, continue_from=page.continue_from, timeout=timeout
            )
            yield page

    async def list(
        self, resource: Resource, namespace: str | None, selector: Selector = ALL, *, timeout: float = 10.0
    ) -> list[Manifest]:
        """All objects that match, each page of them within the time-out.

        Raises:
            ApiError: As `list_page`.
        """
        pages = self.pages(resource, namespace, selector, timeout=timeout)
        return [item async for page in pages for item in page.items]
