"""Threads that nobody waits for at a process's end."""

from __future__ import annotations

import threading

import pytest

from flytekitplugins.kuberay.connector.threads import DaemonThreads


def test_a_call_gives_what_it_returns_or_raises() -> None:
    """In a thread that does not keep the process."""
    threads = DaemonThreads(2, "t")
    assert threads.submit(lambda: threading.current_thread().daemon).result()
    with pytest.raises(ValueError, match="invalid literal"):
        threads.submit(int, "x").result()
    threads.shutdown()


def test_there_are_no_more_than_that() -> None:
    """The other calls wait for their turn."""
    threads = DaemonThreads(2, "t")
    together = threading.Barrier(2, timeout=60)
    seen = [threads.submit(lambda: (together.wait(), threading.current_thread().name)[1]) for _ in range(6)]
    assert {each.result() for each in seen} == {"t-0", "t-1"}
    threads.shutdown()


def test_a_call_that_was_given_up_is_not_made() -> None:
    """Whoever waited for it has gone."""
    threads, goes_on, made = DaemonThreads(1, "t"), threading.Event(), list[str]()
    first = threads.submit(goes_on.wait)
    second = threads.submit(made.append, "second")
    assert second.cancel()
    goes_on.set()
    third = threads.submit(made.append, "third")
    third.result()
    assert (first.result(), made) == (True, ["third"])
    threads.shutdown()


def test_after_the_shutdown_none_is_taken() -> None:
    """What was submitted before is done."""
    threads = DaemonThreads(1, "t")
    last = threads.submit(int, "7")
    threads.shutdown()
    assert last.result() == 7
    with pytest.raises(RuntimeError, match="shut down"):
        threads.submit(int, "7")
