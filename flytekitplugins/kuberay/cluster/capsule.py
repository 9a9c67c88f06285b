"""What is kept of a failed task when its pods go: a bounded text with states, events and the ends of logs, no secrets.

Pure: the connector reads logs and events and puts the text beside the outputs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..wire import Manifest
from .phase import FAILURES, Verdict
from .pods import HEAD, SUBMITTER, ContainerView, PodView

FILE = "kuberay-diagnosis.txt"
"""Its name below the output prefix."""

_LONGEST = 256 * 1024  # bytes
_CUT = "[... cut here: {} bytes left out ...]\n"
_SHORTEST_SECRET = 6
_SECRET_NAME = re.compile(r"(?i)(secret|token|passw|credential|private|api_?key|access_?key|auth)")
_SECRET_TEXT = re.compile(
    r"(?i)\b(?:bearer|basic)\s+[\w.~+/=-]{8,}"  # authorization headers
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"  # AWS access keys
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON web tokens
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"  # user and password of a URL
    r"|(?:(?<=password=)|(?<=token=)|(?<=secret=))[^\s&'\"]+"
)
_REDACTED = "[redacted]"


@dataclass(frozen=True)
class LogTail:
    """The end of one container's log, or why it could not be read."""

    pod: str
    container: str
    text: str


def pods_to_read(pods: Sequence[PodView], most: int = 4) -> list[tuple[PodView, str]]:
    """Whose logs tell most, each with the container: head, submitter, then workers that failed."""
    ranked = sorted(pods, key=lambda pod: (pod.group != HEAD, pod.group != SUBMITTER, not _has_failed(pod), pod.name))
    wanted = [pod for pod in ranked if pod.group in (HEAD, SUBMITTER) or _has_failed(pod)]
    return [(pod, _main_container(pod)) for pod in wanted[:most] if _has_started(pod)]


def secrets_of(manifest: Manifest) -> frozenset[str]:
    """The values in a RayJob that are likely secrets: of variables whose names say so, in pods and runtime_env."""
    return frozenset(value for name, value in _named_values(manifest) if _is_secret(name, value))


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, and without what looks like one."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _REDACTED)
    return _SECRET_TEXT.sub(_REDACTED, text)


def format_capsule(
    verdict: str, status: Mapping[str, object], pods: Sequence[PodView], events: Sequence[str], logs: Sequence[LogTail]
) -> str:
    """The capsule's text; of each log the end is kept, and a cut is marked.

    Args:
        verdict: The phase and its reason.
        status: The RayJob's last status.
        pods: Its pods.
        events: One line each, oldest first.
        logs: The ends of their logs.
    """
    parts = [f"# {verdict}\n", "## Pods\n" + "".join(f"{line}\n" for pod in pods for line in _pod_lines(pod))]
    parts += ["## Events\n" + "".join(f"{line}\n" for line in events)] if events else []
    parts.append("## Status of the RayJob\n" + json.dumps(status, indent=1, sort_keys=True, default=str) + "\n")
    room = max(_LONGEST - sum(len(part.encode()) for part in parts), 0) // max(len(logs), 1)
    parts += [f"## Log of {log.pod}, container {log.container}\n{tail(log.text, room)}\n" for log in logs]
    return tail("\n".join(parts), _LONGEST + 1024 * len(logs))


def declared_in(capsule: str) -> Verdict | None:
    """The verdict that a capsule begins with; None where it begins with none."""
    phase, colon, message = capsule.partition("\n\n")[0].removeprefix("# ").partition(": ")
    phases = {name: each for each, name in FAILURES.items()}
    return Verdict(phases[phase], message.strip()) if colon and phase in phases else None


def tail(text: str, longest: int) -> str:
    """The end of a text, at most so many bytes, from the start of a line where it was cut."""
    encoded = text.encode()
    if len(encoded) <= longest:
        return text
    kept = encoded[-longest:].decode(errors="ignore") if longest > 0 else ""
    kept = kept.partition("\n")[2] or kept
    return _CUT.format(len(encoded) - len(kept.encode())) + kept


def _pod_lines(pod: PodView) -> Iterator[str]:
    state = " ".join(part for part in (pod.phase, pod.reason, pod.message or pod.unscheduled) if part)
    yield f"{pod.group}: {pod.name}: {state}"
    for container in pod.containers:
        yield f"  {'init ' if container.init else ''}container {container.name}: {_state_of(container)}"


def _state_of(container: ContainerView) -> str:
    if container.exit_code is not None:
        text = f"exit code {container.exit_code} {container.reason} {container.message}".rstrip()
    else:
        text = f"waiting: {container.waiting} {container.message}".rstrip() if container.waiting else "running"
    return text + (f", {container.restarts} restarts" if container.restarts else "")


def _has_failed(pod: PodView) -> bool:
    return pod.phase == "Failed" or any(c.exit_code not in (None, 0) for c in pod.containers)


def _has_started(pod: PodView) -> bool:
    return any(c.exit_code is not None or not c.waiting for c in pod.containers)


def _main_container(pod: PodView) -> str:
    """The container that tells most: a failed one, else the Ray container, which is the first."""
    failed = [c.name for c in pod.containers if c.exit_code not in (None, 0)]
    return (failed or [c.name for c in pod.containers if not c.init] or [""])[0]


def _is_secret(name: str, value: str) -> bool:
    return len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name) is not None


def _named_values(value: object) -> Iterator[tuple[str, str]]:
    """Names with their texts, of `{name:, value:}` entries and of maps, at any depth."""
    if isinstance(value, Mapping):
        if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
            yield value["name"], value["value"]
        for key, entry in value.items():
            if isinstance(entry, str):
                yield str(key), entry
            else:
                yield from _named_values(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _named_values(entry)
