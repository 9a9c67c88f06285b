"""An event loop in a thread of its own: code without a loop waits for coroutines, and Ctrl-C reaches the waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Runs coroutines in a daemon thread, which ends with the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="kuberay-direct", daemon=True).start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """What the coroutine will give; it goes on though nobody waits."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the coroutine gives.

        Raises:
            BaseException: What it raises; or what interrupts the wait, as KeyboardInterrupt: then it is cancelled.
        """
        future = self.start(work)
        try:
            return future.result()
        finally:
            future.cancel()
