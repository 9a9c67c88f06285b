"""What the KubeRay of a cluster knows of a RayJob, and the RayJob that fits it.

Its version is told by the fields that its CRD has. What the CRD lacks an API server drops with no more than a warning,
so it is left out here, and told; what a task can't do without is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..errors import Problem, TaskError
from ..wire import Manifest
from .auth import has_token_auth
from .fields import in_users_words

T = TypeVar("T")

Fields = Mapping[str, "Fields | None"]
"""The fields of an object, or of the objects in a list; None where every field is taken."""

_OLDEST = "1.3"
_MARKS = {
    "1.6": "preRunningDeadlineSeconds",
    "1.5": "rayClusterSpec.authOptions",
    "1.4": "rayClusterSpec.autoscalerOptions.version",
}
"""By which field a version is known, newest first."""
_NEWEST = next(iter(_MARKS))

SINCE = {
    "autoscalerOptions.version": "1.4",
    "lifecycle.stopSignal": "1.4",
    "spec.deletionStrategy": "1.5",
    "rayClusterSpec.authOptions": "1.5",
    "headGroupSpec.labels": "1.5",
    "headGroupSpec.resources": "1.5",
    "workerGroupSpecs.labels": "1.5",
    "workerGroupSpecs.resources": "1.5",
    "valueFrom.fileKeyRef": "1.5",
    "containers.restartPolicyRules": "1.5",
    "initContainers.restartPolicyRules": "1.5",
    "ephemeralContainers.restartPolicyRules": "1.5",
    "spec.hostnameOverride": "1.5",
    "sources.podCertificate": "1.5",
    "spec.preRunningDeadlineSeconds": "1.6",
    "condition.jobDeploymentStatus": "1.6",
    "authOptions.enableK8sTokenAuth": "1.6",
    "authOptions.secretName": "1.6",
    "rayClusterSpec.upgradeStrategy": "1.6",
    "podCertificate.userAnnotations": "1.6",
    "spec.workloadRef": "1.6",
}
"""The first version that has a field, by the end of its path."""

UNTIL = {"spec.deletionPolicy": "1.4"}
"""The last version that has it."""

_MODES_SINCE = {"SidecarMode": "1.5"}
"""The first version that knows a submission mode; one that does not know it takes it, and never submits the job."""


@dataclass(frozen=True)
class Operator:
    """The KubeRay of a cluster; by default one of which nothing is known, and which is taken to know all.

    Args:
        version: Its version's first two numbers, "" where they are not known.
        fields: What it knows of a RayJob's spec.
    """

    version: str = ""
    fields: Fields | None = None


@dataclass(frozen=True)
class Fitted:
    """A RayJob as an operator knows it; `lost` tells in the user's words what of it has no effect there."""

    manifest: Manifest
    lost: str = ""


def operator_of(schema: Manifest) -> Operator:
    """The operator whose CRD has this schema.

    Args:
        schema: The OpenAPI v3 schema of a RayJob, as an API server serves it.
    """
    fields = _fields_of((schema.get("properties") or {}).get("spec") or {})
    if not _has(fields, "rayClusterSpec.headGroupSpec"):  # cut, as some do with so large a CRD
        return Operator(fields=fields)
    return Operator(next((version for version, mark in _MARKS.items() if _has(fields, mark)), _OLDEST), fields)


def fitted(job: Manifest, operator: Operator) -> Fitted:
    """The RayJob with nothing that the operator does not know.

    Raises:
        TaskError: The task can't do without it; with all such fields at once.
    """
    lost = list(_lost(job["spec"], operator.fields, "spec"))
    problems = [*_mode_problems(job, operator), *_lost_problems(lost, job, operator)]
    if problems:
        raise TaskError(problems)
    told = ", ".join(in_users_words(path, job) + _when(path) for path in lost)
    told = f"without effect, since {_name(operator)} does not know it: {told}" if told else ""
    return Fitted({**job, "spec": _known_part(job["spec"], operator.fields)}, told)


def _fields_of(schema: Manifest) -> Fields | None:
    if "items" in schema:
        return _fields_of(schema["items"])
    open_ended = schema.get("additionalProperties") or schema.get("x-kubernetes-preserve-unknown-fields")
    if open_ended or not schema.get("properties"):
        return None
    return {name: _fields_of(field) for name, field in schema["properties"].items()}


def _has(fields: Fields | None, path: str) -> bool:
    """Whether the field is among the known ones."""
    name, _, rest = path.partition(".")
    if fields is None or name not in fields:
        return False
    return _has(fields[name], rest) if rest else True


def _lost(value: Any, fields: Fields | None, path: str) -> Iterator[str]:
    """The paths of what is not among the fields."""
    if fields is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _lost(item, fields, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            at = f"{path}.{name}"
            yield from _lost(entry, fields[name], at) if name in fields else [at]


def _known_part(value: Any, fields: Fields | None) -> Any:
    """The value without what is not among the fields."""
    if fields is not None and isinstance(value, list):
        return [_known_part(item, fields) for item in value]
    if fields is not None and isinstance(value, Mapping):
        return {name: _known_part(entry, fields[name]) for name, entry in value.items() if name in fields}
    return value


def _of(table: Mapping[str, T], path: str, otherwise: T) -> T:
    """The entry of a table whose key is the end of the path, the numbers of list items left out."""
    plain = "." + re.sub(r"\[\d+\]", "", path)
    return next((entry for end, entry in table.items() if plain.endswith(f".{end}")), otherwise)


def _when(path: str) -> str:
    since, until = _of(SINCE, path, ""), _of(UNTIL, path, "")
    return f" (since KubeRay {since})" if since else f" (until KubeRay {until})" if until else ""


def _name(operator: Operator) -> str:
    beyond = {_OLDEST: " or older", _NEWEST: " or newer"}.get(operator.version, "")
    return f"this cluster's KubeRay {operator.version}{beyond}".rstrip()


def _never_ends(job: Manifest) -> bool:
    """Whether nothing but a rule of its own deletes the cluster."""
    return not job["spec"].get("shutdownAfterJobFinishes")


def _always(job: Manifest) -> bool:
    return True


_NEEDED: Mapping[str, tuple[Callable[[Manifest], bool], str]] = {
    "rayClusterSpec.authOptions": (
        has_token_auth,
        "everybody in the cluster's network could run code on the Ray cluster; have KubeRay upgraded, or take back"
        " plugins.kuberay.ray-auth or what ray_job_patch says",
    ),
    "spec.deletionStrategy": (_never_ends, "nothing would end the Ray cluster; set shutdownAfterJobFinishes"),
    "spec.deletionPolicy": (_never_ends, "nothing would end the Ray cluster; write deletionStrategy"),
    "condition.jobDeploymentStatus": (_always, "the rule has no condition; write jobStatus"),
    "valueFrom.fileKeyRef": (_always, "the pod can't be made; have KubeRay upgraded"),
    "sources.podCertificate": (_always, "the pod can't be made; have KubeRay upgraded"),
}
"""When a task needs a field, and what without it; by the end of its path."""


def _lost_problems(lost: Iterable[str], job: Manifest, operator: Operator) -> Iterator[Problem]:
    for path in lost:
        needed, without = _of(_NEEDED, path, (None, ""))
        if needed is not None and needed(job):
            what = f"is not known to {_name(operator)}{_when(path)}"
            yield Problem(in_users_words(path, job), what, f"without it {without}")


def _mode_problems(job: Manifest, operator: Operator) -> Iterator[Problem]:
    mode = job["spec"].get("submissionMode", "")
    since = _MODES_SINCE.get(mode)
    if since and operator.version and _numbers(operator.version) < _numbers(since):
        what = f"is {mode}, which {_name(operator)} does not know (since KubeRay {since})"
        remedy = "write K8sJobMode or HTTPMode as submission_mode or plugins.kuberay.submission-mode"
        yield Problem("spec.submissionMode", what, remedy)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))
