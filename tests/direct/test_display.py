"""What a person sees of a task that runs on a cluster."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from typing_extensions import override

from flytekitplugins.kuberay.cluster.links import Link
from flytekitplugins.kuberay.cluster.progress import Progress
from flytekitplugins.kuberay.direct.display import Display

WAITING = Progress("INITIALIZING", "worker group w: starting (1s)", 0, 2, timedelta(seconds=1))
DASHBOARD = Link("Ray dashboard", "http://ray.example/abc")


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def shown(stream: io.StringIO, *seen: Progress) -> str:
    """What is written of a task that is seen so, one after the other."""
    with Display("wf.train", stream) as display:
        for progress in seen:
            display.show(progress)
    return stream.getvalue()


def test_elsewhere_each_change_is_a_plain_line() -> None:
    """For how long something waits is none; workers that get ready are one."""
    later = replace(WAITING, why="worker group w: starting (2m5s)", elapsed=timedelta(seconds=125))
    nearer = replace(later, ready=1)
    assert shown(io.StringIO(), WAITING, later, nearer).splitlines() == [
        "wf.train: INITIALIZING 0:01 · workers 0/2 · worker group w: starting (1s)",
        "wf.train: INITIALIZING 2:05 · workers 1/2 · worker group w: starting (2m5s)",
    ]


def test_a_long_line_stays_one_line() -> None:
    """A log file is no terminal of 80 columns."""
    long = replace(WAITING, why="x" * 300)
    assert len(shown(io.StringIO(), long).splitlines()) == 1


def test_on_a_terminal_the_line_lives_and_the_end_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is still visible after the end is the end alone."""
    monkeypatch.setenv("TERM", "xterm")
    end = Progress("SUCCEEDED", "", 0, 0, timedelta(seconds=40), ended=True)
    written = shown(Terminal(), WAITING, end)
    assert "INITIALIZING 0:01" in written
    assert "\x1b[2K" in written  # the line was wiped
    assert "wf.train: SUCCEEDED 0:40" in written


def test_a_link_is_said_once() -> None:
    """As soon as it is known, on a line of its own that can be clicked."""
    linked = replace(WAITING, links=(DASHBOARD,))
    written = shown(io.StringIO(), linked, replace(linked, ready=1))
    assert written.count("wf.train: Ray dashboard: http://ray.example/abc\n") == 1


def test_a_registrys_answer_does_not_steer_the_terminal() -> None:
    """Colours and worse in a reason are left out."""
    assert "\x1b" not in shown(io.StringIO(), replace(WAITING, why="\x1b[2Jpulling"))


def test_a_terminal_that_can_not_overwrite_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell in Emacs: else it would show nothing between beginning and end."""
    monkeypatch.setenv("TERM", "dumb")
    assert shown(Terminal(), WAITING).startswith("wf.train: INITIALIZING 0:01")


def test_a_log_of_ci_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """FORCE_COLOR asks for colours, and a line that lives would be four a second there."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b" not in shown(io.StringIO(), WAITING)


def test_nobody_has_to_read_it() -> None:
    """Where the reader has gone, as of `2>&1 | head`, the task goes on: rich itself would end the thread."""
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w")
    with Display("wf.train", stream) as display:
        display.show(WAITING)
        display.say("more")
    with pytest.raises(BrokenPipeError):
        stream.close()


def test_a_disk_may_be_full() -> None:
    """The task goes on, unseen."""
    stream = open("/dev/full", "w", buffering=1)
    with Display("wf.train", stream) as display:
        display.show(WAITING)
        display.say("more")
    with pytest.raises(OSError, match="No space left"):
        stream.close()


def test_a_reader_may_be_slow() -> None:
    """What a pipe that is full can't take is lost at the most; nothing comes twice."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    filler = b"." * fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ)
    with open(writer, "w", buffering=1) as stream, open(reader, "rb", buffering=0) as end:
        os.write(writer, filler)
        with Display("wf.train", stream) as display:
            display.say("one")
            display.say("two")
            assert end.read(len(filler)) == filler
            display.say("three")
        stream.flush()
        os.set_blocking(reader, False)
        lines = end.read(1000).decode().splitlines()
    assert lines[-1] == "wf.train: three"
    assert sorted(lines) == sorted({*lines})


class Closing(Terminal):
    """A terminal on which writing fails from some moment on."""

    failure: Exception | None = None

    @override
    def write(self, text: str) -> int:
        """Fails, from then on."""
        if self.failure is not None:
            raise self.failure
        return super().write(text)


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(OSError(errno.EIO, "Input/output error"), id="its window was closed"),
        pytest.param(ValueError("I/O operation on closed file."), id="the stream was closed"),
    ],
)
@pytest.mark.parametrize("frames", [pytest.param(0, id="in a line"), pytest.param(2, id="in a frame")])
def test_a_terminal_may_go(failure: Exception, frames: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task goes on, unseen, whichever thread finds out; none ends with a traceback, which pytest would tell."""
    monkeypatch.setenv("TERM", "xterm")
    stream = Closing()
    with Display("wf.train", stream) as display:
        display.show(WAITING)
        stream.failure = failure
        time.sleep(frames / 4)
        display.say("more")
