"""What a person sees on standard error of a task on a cluster: one line that lives on a terminal, else plain lines."""

from __future__ import annotations

import io
import sys
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text
from typing_extensions import override

from ..cluster.progress import Progress, line, news_of, plain

_FRAMES = 4.0  # a second


class _Console(Console):
    """A console that nobody has to read, as of `2>&1 | head`, or can: on a full disk, of a terminal that was closed.

    The task goes on, unseen, and its RayJob is looked after.
    """

    @override
    def on_broken_pipe(self) -> None:
        """Goes quiet, where rich's own ends the thread that writes."""
        self.quiet = True

    @override
    def __exit__(self, *failure: object) -> None:
        """Writes, for all of rich's ways to print and for the line that lives."""
        try:
            super().__exit__(*failure)
        except BlockingIOError:  # it passes, as where CI reads slowly; the stream keeps what it has taken
            del self._buffer[:]
        except (OSError, ValueError):  # ValueError: the stream is closed
            self.quiet = True
        except BaseException:  # Ctrl-C, where a reader keeps us waiting: what follows begins on its own
            del self._buffer[:]
            raise


class Display:
    """Shows one task from its creation to its end.

    Args:
        name: The task's.
        stream: Where to; standard error by default.
    """

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        self._name = name
        stream = stream or sys.stderr or io.StringIO()  # Python has none where its process began without one
        self._console = _Console(file=stream, highlight=False)
        # rich calls a file a terminal where FORCE_COLOR is set, as in CI
        self._lives = _is_terminal(stream) and not self._console.is_dumb_terminal
        self._live = Live(console=self._console, refresh_per_second=_FRAMES, transient=True)
        self._news = ""
        self._linked: set[str] = set()

    def __enter__(self) -> Display:
        if self._lives:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, progress: Progress) -> None:
        """Shows the task so from now on; prints a line where nothing can be overwritten."""
        for link in progress.links:
            self._link(link.name, link.uri)
        if self._lives and not progress.ended:
            self._live.update(Spinner("dots", Text(f"{self._name}: {line(progress)}")))
        elif (news := news_of(progress)) != self._news:
            self._news = news
            self.say(line(progress))

    def say(self, text: str) -> None:
        """Prints the text on a line of its own."""
        self._console.print(Text(f"{self._name}: {plain(text)}"), soft_wrap=True)

    def _link(self, name: str, uri: str) -> None:
        if uri not in self._linked:
            self._linked.add(uri)
            self.say(f"{name}: {uri}")


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # it is closed
        return False
