"""Every exception of this package, the problem they are made of, and what they show of texts.

    KubeRayError                    base of all; its text is made for the person who reads it
    └── ProblemsError               holds the problems found, all at once
        ├── ConfigError             in what the user wrote: RayJobConfig and its parts (a ValueError too)
        ├── SettingsError           in the platform's YAML
        └── TaskError               in a task that therefore can't become a RayJob; trying again does not help

A problem names its place in the reader's terms: `RayJobConfig.worker_node_config[1].replicas` for who writes the
task, `custom.rayCluster.workerGroupSpec[1].replicas` for what came over the wire, `FILE: plugins.k8s.default-cpus`
for the platform's settings. The errors of the Kubernetes API stand in `kube`, which knows nothing of Flyte.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


_MARK = "\n[of {} characters, some are left out here]\n"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what, and what to do about it."""

    path: str
    what: str  # with the value, where showing it helps and it is no secret
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.what}" + (f"; {self.remedy}" if self.remedy else "")


class KubeRayError(Exception):
    """Base of this package's exceptions."""


class ProblemsError(KubeRayError):
    """One or more problems, each with its place and remedy.

    Args:
        problems: At least one, in the order in which a reader meets their places.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)  # what a copy is made of

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        return "\n".join([f"{len(self.problems)} problems:", *(f"  - {problem}" for problem in self.problems)])


class ConfigError(ProblemsError, ValueError):
    """What the user wrote can't be run: `RayJobConfig` or a part of it."""


class SettingsError(ProblemsError):
    """The platform's settings can't be used."""


class TaskError(ProblemsError):
    """The task can't become a RayJob, and will not by trying again."""


def shortened(text: str, longest: int = 2000, front: int = 400, mark: str = _MARK) -> str:
    """The text, its middle cut out where it is long: the first words say what it is, the last lines what happened.

    Args:
        text: Any.
        longest: Characters that come back at most.
        front: So many of them are the text's first.
        mark: Stands for what is cut out, with `{}` for the length of the text.
    """
    if len(text) <= longest:
        return text
    mark = mark.format(len(text))
    return f"{text[:front]}{mark}{text[front + len(mark) - longest :]}"


def up_to_value(text: str) -> str:
    """The text up to a `=`, as an error shows a name: what follows, as in `TOKEN=abc`, may be a secret."""
    name, assigned, _ = text.partition("=")
    return f"{name}=..." if assigned else name
