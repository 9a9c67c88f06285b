"""Where a task of `pyflyte run` runs: on Ray in this process, or on a cluster, straight.

`FLYTE_KUBERAY_RUN=local|cluster` decides. Unset, it is a cluster where the outputs go to an object store
(`--raw-output-data-prefix s3://...`) and a cluster that serves RayJobs can be reached.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flytekit.core.data_persistence import FileAccessProvider

from ..errors import KubeRayError
from ..settings import Settings, load_settings
from .background import Background

if TYPE_CHECKING:  # loads kubernetes: only where a cluster is looked for
    from ..connector.service import RayJobService

VARIABLE = "FLYTE_KUBERAY_RUN"
_LOCAL, _CLUSTER = "local", "cluster"
_PROBE_SECONDS = 5.0


@dataclass(frozen=True)
class Cluster:
    """A cluster that takes RayJobs, and this process's way to it."""

    source: str  # context and kubeconfig, for a person
    namespace: str
    service: RayJobService
    background: Background


class Choice:
    """Decides for each task; the cluster is looked for once in a process, and said in one line then."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._looking = threading.Lock()  # the tasks of an eager workflow ask from threads of their own
        self._found: Cluster | None = None
        self._unusable: Exception | None = None

    def cluster_for(self, store: FileAccessProvider, *, has_address: bool) -> Cluster | None:
        """The cluster for a task; None where it runs in this process.

        Args:
            store: Where the run's data go.
            has_address: Whether the task names a Ray cluster itself, which is for runs in this process.

        Raises:
            KubeRayError: FLYTE_KUBERAY_RUN is none of its words, or says cluster and there is no way to one.
        """
        wanted = self._environ.get(VARIABLE, "")
        if wanted not in ("", _LOCAL, _CLUSTER):
            raise KubeRayError(f"{VARIABLE}: is {wanted!r}; write {_LOCAL} or {_CLUSTER}, or leave it unset")
        is_remote = store.is_remote(store.raw_output_prefix)
        if wanted == _LOCAL or (not wanted and (has_address or not is_remote)):
            return None
        if not is_remote:
            raise KubeRayError(
                f"{VARIABLE}={_CLUSTER}: pods can't read {store.raw_output_prefix};"
                " name an object store that they reach: pyflyte run --raw-output-data-prefix s3://BUCKET/FOLDER"
            )
        return self._cluster(store, required=wanted == _CLUSTER)

    def _cluster(self, store: FileAccessProvider, *, required: bool) -> Cluster | None:
        with self._looking:
            self._look(store, required=required)
        if self._unusable is not None and required:
            raise KubeRayError(f"{VARIABLE}={_CLUSTER}: {self._unusable}")
        return self._found

    def _look(self, store: FileAccessProvider, *, required: bool) -> None:
        if self._found is None and self._unusable is None:
            settings = load_settings()
            try:
                self._found = _connected(store, settings)
                _say(
                    f"Ray tasks run on the cluster: {self._found.source}, namespace {self._found.namespace}"
                    f" ({VARIABLE}={_LOCAL} runs them in this process)"
                )
            except (KubeRayError, ImportError) as error:
                self._unusable = error
                if not required:
                    _say(f"Ray tasks run in this process, there is no cluster for them: {error}")


def _connected(store: FileAccessProvider, settings: Settings) -> Cluster:
    """The cluster of the settings or of the usual kubeconfig, which serves RayJobs to this user.

    Raises:
        ImportError: kubernetes is too old, or not there.
        KubeRayError: There is no way to a cluster, or it does not serve RayJobs.
    """
    from .. import kube
    from ..cluster.names import MANAGER
    from ..connector.results import ResultFiles
    from ..connector.service import RayJobService

    background, own = Background(), settings.kuberay

    async def connect() -> Cluster:
        client = await kube.ApiKubeClient.open(own.kubeconfig or "", own.context or "", user_agent=f"{MANAGER}-direct")
        namespace = client.access.namespace
        try:
            await client.list_page(kube.RAYJOBS, namespace, limit=1, timeout=_PROBE_SECONDS)
        except BaseException:
            await client.close()
            raise
        # a user may see one namespace only
        mine = replace(settings, kuberay=replace(own, namespaces=(namespace,)))
        service = RayJobService(client, mine, ResultFiles(store))
        service.watch()
        return Cluster(client.access.source, namespace, service, background)

    return background.run(connect())


def _say(text: str) -> None:
    if sys.stderr is not None:  # else print would take standard output
        with suppress(OSError, ValueError):  # as in a task's display: nobody has to be able to read it
            print(text, file=sys.stderr, flush=True)


_CHOICE = Choice()


def cluster_for(store: FileAccessProvider, *, has_address: bool) -> Cluster | None:
    """`Choice.cluster_for` of this process.

    Raises:
        KubeRayError: As there.
    """
    return _CHOICE.cluster_for(store, has_address=has_address)
