"""Ctrl-C for tasks of other threads than the main one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from flytekitplugins.kuberay.direct.interrupt import heard_elsewhere


@contextmanager
def waiting(*actions: Callable[[], None]) -> Iterator[None]:
    """In its block, a thread for each action stands where Ctrl-C means that."""
    over, entered = threading.Event(), threading.Barrier(len(actions) + 1)

    def wait(action: Callable[[], None]) -> None:
        with heard_elsewhere(action):
            entered.wait(5)
            over.wait(5)

    threads = [threading.Thread(target=wait, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    entered.wait(5)
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_all_are_done_whatever_one_of_them_raises(caplog: pytest.LogCaptureFixture) -> None:
    """Each has a RayJob to look after; then the process ends as ever, and the log has what was raised."""
    done: list[str] = []

    def fail() -> None:
        done.append("failed")
        raise RuntimeError("no more")

    with waiting(fail, lambda: done.append("second"), fail), pytest.raises((KeyboardInterrupt, SystemExit)):
        signal.raise_signal(signal.SIGINT)
    assert sorted(done) == ["failed", "failed", "second"]
    assert caplog.text.count("RuntimeError: no more") == 2


def test_a_second_ctrl_c_stops_them_all() -> None:
    """Who gives it twice waits for none."""
    done: list[str] = []

    def slow() -> None:
        done.append("begun")
        signal.raise_signal(signal.SIGINT)

    with waiting(slow, slow), pytest.raises((KeyboardInterrupt, SystemExit)):
        signal.raise_signal(signal.SIGINT)
    assert done == ["begun"]
