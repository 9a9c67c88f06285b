"""How far a task is, in one line for a person who waits for it: pure, from its verdict and its RayJob."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from flyteidl.core.execution_pb2 import TaskExecution

from .diagnosis import end_of_pod, waiting_groups
from .links import Link
from .phase import ENDS, Verdict
from .pods import PodView
from .status import JobView

_SEPARATOR = " · "
_LONGEST = 500
_AGE = re.compile(r" \((?:\d+[hms])+\)")
"""How long something waits already, as `(3m)`: of itself no news."""

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f]")
"""What logs and registries may say to a terminal: colours, or worse."""


@dataclass(frozen=True)
class Progress:
    """What there is to show of a task at one moment."""

    phase: str  # its name, as RUNNING
    why: str  # what it waits for, or how it ended; may have several lines
    ready: int  # workers
    wanted: int  # workers; 0 where there are none, or where they do not matter any more
    elapsed: timedelta
    links: tuple[Link, ...] = ()
    ended: bool = False


def progress_of(
    verdict: Verdict,
    job: JobView | None,
    links: Iterable[Link] = (),
    *,
    now: datetime,
    begun: datetime | None = None,
) -> Progress:
    """The progress that a verdict and the RayJob tell.

    Args:
        verdict: The task's phase and reason.
        job: The RayJob; None where it is not known, or is gone.
        links: To show with it.
        now: The time, aware of its zone.
        begun: Since when the task is waited for; by default since its RayJob was created.
    """
    ended = verdict.phase in ENDS
    begin = begun or (job.created if job else None) or now
    end = (job.ended if job and ended else None) or now
    return Progress(
        phase=TaskExecution.Phase.Name(verdict.phase),  # type: ignore[attr-defined]  # stubs lack it
        why=verdict.message,
        ready=job.workers_ready if job and not ended else 0,
        wanted=job.workers_wanted if job and not ended else 0,
        elapsed=max(end - begin, timedelta(0)),
        links=tuple(links),
        ended=ended,
    )


def line(progress: Progress) -> str:
    """`INITIALIZING 0:42 · workers 1/2 · worker group w: 0/4 nodes are available (30s)`: one line, cut if long."""
    workers = f"workers {progress.ready}/{progress.wanted}" if progress.wanted else ""
    first, *rest = plain(progress.why).splitlines() or [""]
    why = f"{first[:_LONGEST].rstrip()} ..." if rest or len(first) > _LONGEST else first
    return _SEPARATOR.join(filter(None, (f"{progress.phase} {_clock(progress.elapsed)}", workers, why)))


def news_of(progress: Progress) -> str:
    """What has to change for another line to be worth it."""
    return _AGE.sub("", f"{progress.phase} {progress.ready}/{progress.wanted} {progress.why}")


def state_of(pod: PodView, *, ended: bool = False) -> str:
    """Why a pod is not up, or how it ended; "" where there is nothing to tell.

    Args:
        pod: The pod.
        ended: Whether its task has ended, after which nobody waits for it to be up.
    """
    if pod.terminating:
        return "being deleted"
    waiting = [] if ended else waiting_groups([pod])
    return (waiting[0].text if waiting else end_of_pod(pod)).removeprefix(f"pod {pod.name}: ")


def plain(text: str) -> str:
    """The text less what would steer a terminal, and without space around it."""
    return _ESCAPE.sub("", text).strip()


def _clock(elapsed: timedelta) -> str:
    """`0:42`, `1:02:03`."""
    minutes, seconds = divmod(int(elapsed.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
