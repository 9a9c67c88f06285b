"""Which KubeRay the cluster has, read in the background: no create waits long for it, and none fails for want of it."""

from __future__ import annotations

import asyncio
import logging
import time

from .. import kube
from ..cluster.job import KIND
from ..cluster.operator import Operator, operator_of

_log = logging.getLogger(__name__)


class InstalledOperator:
    """The operator of a cluster, as the schema of its RayJobs shows it.

    Args:
        client: The cluster.
        patience: Seconds that a create waits for the first reading.
        lasts: Seconds for which a reading is good.
        pause: Seconds between two at least: a server that can't answer, or always warns, is not asked at each create.
    """

    def __init__(
        self, client: kube.KubeClient, *, patience: float = 2.0, lasts: float = 600.0, pause: float = 60.0
    ) -> None:
        self._client, self._patience, self._lasts, self._pause = client, patience, lasts, pause
        self._seen: Operator | None = None
        self._due = self._not_before = 0.0
        self._reading: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Begins a reading, where one is due."""
        if time.monotonic() >= max(self._due, self._not_before) and (self._reading is None or self._reading.done()):
            self._not_before = time.monotonic() + self._pause
            self._reading = asyncio.create_task(self._read())

    async def known(self) -> Operator:
        """The operator as it was last seen; the unknown one where it never was. Raises nothing."""
        self.look()
        if self._seen is None and self._reading is not None:
            await asyncio.wait([self._reading], timeout=self._patience)
        return self._seen or Operator()

    def doubt(self) -> None:
        """Has the next look read anew: a field was not known, and the CRD may be another by now."""
        self._due = 0.0

    async def stop(self) -> None:
        """Ends a reading that goes on."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            self._seen = operator_of(await self._client.schema(kube.RAYJOBS, KIND))
            self._due = time.monotonic() + self._lasts
        except kube.ApiError as error:
            _log.warning("Fields that the cluster's KubeRay does not know are sent to it all the same: %s", error)
