"""Calls to the cluster that are tried again after a fault that may pass, within the time of the answer they are for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from .. import kube

T = TypeVar("T")

FIRST_PAUSE = 0.2
"""Seconds before the second try."""

_LONGEST_PAUSE = 2.0
_TRY_SECONDS = 5.0
"""For one try: a connection that died in silence must leave time for another one."""


async def retried(call: Callable[[float], Awaitable[T]], deadline: float) -> T:
    """What the call gives, tried again after a passing fault until the deadline.

    Args:
        call: Takes the seconds of one try.
        deadline: By `time.monotonic`.

    Raises:
        ApiError: One that will not pass, or the last one in time.
    """
    pause = FIRST_PAUSE
    while True:
        try:
            return await call(min(max(deadline - time.monotonic(), FIRST_PAUSE), _TRY_SECONDS))
        except kube.ApiError as error:
            wait = max(error.retry_after or 0.0, pause)
            if not error.transient or time.monotonic() + wait >= deadline:
                raise
        await asyncio.sleep(wait)
        pause = min(pause * 2, _LONGEST_PAUSE)
