"""SIGTERM for a connector's process: what it is asked at that moment is answered first, what it deletes is deleted.

`pyflyte serve connector` leaves SIGTERM to Python, which ends at once, and as a container's first process not at all. A
CreateTask that is cut off costs the user an attempt, a GetTask is one of the few that a task is forgiven. And of a
deletion that was answered nobody reminds the next process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable

_LONGEST_SECONDS = 10.0  # propeller's deadline for a call
_PAUSE_SECONDS = 0.2  # for the answer to leave after the call's end


class Calls:
    """The calls that run: `with calls:` around each of them."""

    def __init__(self) -> None:
        self._running = 0
        self._ending: asyncio.Task[None] | None = None
        self._hurry: Callable[[], bool] = bool

    def __enter__(self) -> None:
        self._running += 1

    def __exit__(self, *failure: object) -> None:
        self._running -= 1

    def finish_at_sigterm(self, hurry: Callable[[], bool]) -> None:
        """Lets SIGTERM end this process as soon as no call runs, where nobody else has a word in that.

        Args:
            hurry: Makes haste with what is done beside the calls, and tells whether there is any.
        """
        self._hurry = hurry
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end_soon)

    def _end_soon(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())

    def _is_idle(self) -> bool:
        return not self._hurry() and not self._running

    async def _end(self) -> None:
        for _ in range(int(_LONGEST_SECONDS / _PAUSE_SECONDS)):
            was_idle = self._is_idle()
            await asyncio.sleep(_PAUSE_SECONDS)
            if was_idle and self._is_idle():
                break
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(128 + signal.SIGTERM)  # the kernel keeps process 1 from its own signals
