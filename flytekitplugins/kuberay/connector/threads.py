"""Threads for calls that may hang: the end of the process waits for none of them.

Those of a ThreadPoolExecutor are joined at exit whatever its `shutdown` was told, so one call that hangs would keep the
process for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import ParamSpec, TypeVar

from typing_extensions import override

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads(Executor):
    """A few threads, begun as they are needed; the calls are submitted by one thread.

    Args:
        most: How many at most.
        name: What their names begin with.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._is_shut = False

    @override
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """What the call will give.

        Raises:
            RuntimeError: They are shut down.
        """
        if self._is_shut:
            raise RuntimeError("the threads are shut down")
        future: Future[T] = Future()
        self._calls.put(partial(_settle, future, partial(fn, *args, **kwargs)))
        if len(self._threads) < self._most:
            self._threads.append(Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True))
            self._threads[-1].start()
        return future

    @override
    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Lets each thread end as soon as no call is left for it. Whatever is asked, it waits for none."""
        self._is_shut = True
        for _ in self._threads:
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is for who waits
        future.set_exception(error)
