"""Ctrl-C for tasks that another thread than the main one waits for, as those of an eager workflow."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from flytekit.core.context_manager import FlyteContextManager

_log = logging.getLogger(__name__)

_ACTIONS: list[Callable[[], None]] = []


@contextmanager
def heard_elsewhere(action: Callable[[], None]) -> Iterator[None]:
    """In its block, Ctrl-C means the action where this isn't the main thread, the one that an interrupt reaches."""
    if threading.current_thread() is threading.main_thread():
        yield
        return
    _ACTIONS.append(action)
    try:
        yield
    finally:
        with suppress(ValueError):  # there was a Ctrl-C
            _ACTIONS.remove(action)


def _interrupted(number: int, frame: FrameType | None) -> None:
    """Does all actions. While it does, a second Ctrl-C finds none, and flytekit ends the process."""
    actions = list(_ACTIONS)
    _ACTIONS.clear()
    for action in actions:
        try:
            action()
        except Exception:  # noqa: BLE001  # each has a RayJob of its own to look after
            _log.exception("Ctrl-C: one task could not be broken off")


FlyteContextManager.add_signal_handler(_interrupted)
