"""What is kept of a failed task when its pods go: a bounded text with states, events and the ends of logs, no secrets.

Pure: the connector reads logs and events and puts the text beside the outputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .phase import FAILURES, Verdict
from .pods import HEAD, SUBMITTER, ContainerView, PodView
from .redaction import redacted, redacted_values
from .submitter import SUBMITTER_CONTAINER

FILE = "kuberay-diagnosis.txt"
"""Its name below the output prefix."""

LONGEST = 256 * 1024
"""Bytes of the whole text. Its parts have their own, so that none pushes the verdict or another out."""

_PART = 32 * 1024
_MOST_LOGS = 4
_CUT = "[... cut here: {} bytes left out ...]\n"
_CUT_ROOM = 64
_FIRST_PART = "\n\n## Pods\n"


@dataclass(frozen=True)
class LogSource:
    """Whose log is read; `previous` that of the run before, where the container waits to start again."""

    pod: str
    container: str
    previous: bool = False


@dataclass(frozen=True)
class LogTail:
    """The end of one container's log, or why it could not be read."""

    source: LogSource
    text: str
    was_read: bool = True


def place_of(output_prefix: str) -> str:
    """Where an attempt's capsule lies."""
    return f"{output_prefix.rstrip('/')}/{FILE}"


def logs_to_read(pods: Sequence[PodView]) -> list[LogSource]:
    """Whose logs tell most: containers that failed, then the submitter's, which is the job's own, then the head's."""
    ranked = sorted(pods, key=lambda pod: (not _has_failed(pod), pod.role != SUBMITTER, pod.role != HEAD, pod.name))
    found = [source for pod in ranked for source in _sources(pod)]
    return list(dict.fromkeys(found))[:_MOST_LOGS]


def format_capsule(
    verdict: str,
    status: Mapping[str, Any],
    pods: Sequence[PodView],
    events: Sequence[str],
    logs: Sequence[LogTail],
    *,
    secrets: frozenset[str] = frozenset(),
) -> str:
    """The capsule's text, of at most `LONGEST` bytes; of each part the end is kept, and a cut is marked.

    Args:
        verdict: The phase and its reason, as they are answered.
        status: The RayJob's last status.
        pods: Its pods.
        events: One line each, oldest first.
        logs: The ends of their logs.
        secrets: What must not be in it; taken out before a cut, which could leave half of one.
    """
    state = json.dumps(redacted_values(status, secrets), indent=1, sort_keys=True, default=str, ensure_ascii=False)
    pod_lines = [line for pod in pods for line in _pod_lines(pod)]
    parts = [
        f"# {tail(redacted(verdict, secrets), _PART)}{_FIRST_PART}{_section(pod_lines, secrets, _PART)}",
        f"## Events\n{_section(events, secrets, _PART)}",
        f"## Status of the RayJob\n{_section([state], secrets, 2 * _PART)}",
    ]
    titles = [f"## Log of {log.source.pod}, container {log.source.container}\n" for log in logs]
    used = sum(len(part.encode(errors="replace")) + 1 for part in (*parts, *titles))
    room = max(LONGEST - used, 0) // max(len(logs), 1)
    parts += [title + _section([log.text], secrets, room) for title, log in zip(titles, logs, strict=True)]
    return "\n".join(parts)


def _section(lines: Sequence[str], secrets: frozenset[str], longest: int) -> str:
    return tail("".join(f"{redacted(line, secrets)}\n" for line in lines), longest)


def declared_in(capsule: str) -> Verdict | None:
    """The verdict that a capsule begins with; None where it begins with none."""
    phase, colon, message = capsule.partition(_FIRST_PART)[0].removeprefix("# ").partition(": ")
    phases = {name: each for each, name in FAILURES.items()}
    return Verdict(phases[phase], message) if colon and phase in phases else None


def tail(text: str, longest: int) -> str:
    """The end of a text, at most so many bytes, from the start of a line where it was cut."""
    encoded = text.encode(errors="replace")  # a log may hold what UTF-8 does not
    if len(encoded) <= longest:
        return encoded.decode()
    room = longest - _CUT_ROOM
    if room <= 0:
        return ""
    kept = encoded[-room:].decode(errors="ignore")
    kept = kept.partition("\n")[2] or kept
    return _CUT.format(len(encoded) - len(kept.encode())) + kept


def _pod_lines(pod: PodView) -> Iterator[str]:
    state = " ".join(part for part in (pod.phase, pod.reason, pod.message or pod.unscheduled, pod.disrupted) if part)
    yield f"{pod.group}: {pod.name}: {state}{', being deleted' if pod.terminating else ''}"
    for container in pod.containers:
        yield f"  {'init ' if container.init else ''}container {container.name}: {_state_of(container)}"


def _state_of(container: ContainerView) -> str:
    text = f"waiting: {container.waiting} {container.message}".rstrip() if container.waiting else "running"
    if container.exit_code is not None:
        ended = f"exit code {container.exit_code} {container.reason} {container.message}".rstrip()
        text = f"{container.waiting} after {ended}" if container.waiting else ended
    return text + (f", {container.restarts} restarts" if container.restarts else "")


def _sources(pod: PodView) -> Iterator[LogSource]:
    """A pod's logs that tell: of containers that failed, then of the job's own, then of Ray."""
    failed = [each for each in pod.containers if each.exit_code not in (None, 0)]
    yield from (LogSource(pod.name, each.name, previous=bool(each.waiting)) for each in failed)
    if pod.role in (HEAD, SUBMITTER):
        started = [each for each in pod.containers if not each.init and each.has_started]
        sidecar = [each for each in started if each.name == SUBMITTER_CONTAINER]
        yield from (LogSource(pod.name, each.name) for each in (*sidecar, *started[:1]))


def _has_failed(pod: PodView) -> bool:
    return pod.phase == "Failed" or any(each.exit_code not in (None, 0) for each in pod.containers)
