"""This package's own settings: `plugins.kuberay`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ..config import SUBMISSION_MODES, checks
from .durations import DURATION, duration
from .kinds import DATA, INTEGER, TEXT, Kind, Place, choice, optional, setting, whole_number
from .objects import RESOURCES
from .templates import TEMPLATE
from .texts import LABEL_KEY, LABEL_VALUE, NAMESPACE, NAMESPACES

_SUBMITTER = {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
"""Source: KubeRay v1.6.2, ray-operator/controllers/ray/common/job.go, GetDefaultSubmitterContainer."""


def _read_patch(value: Any, place: Place) -> Any:
    place.problems.extend(checks.ray_job_patch(str(place), DATA.read(value, place)))
    return value


@dataclass(frozen=True)
class KuberaySettings:
    """`plugins.kuberay`. A deadline that is None or 0 is none: nothing ends by it."""

    submission_mode: str = setting(
        "submission-mode",
        choice(*SUBMISSION_MODES),
        "K8sJobMode",
        "How KubeRay hands the job to the cluster, where the task does not say; see submission-modes.md.",
    )
    health_probes: str | None = setting(
        "health-probes",
        choice("quick", "operator"),
        None,
        "What finds Ray ready and alive: `quick` finds it ready within half a second and needs Bash; `operator` are"
        " KubeRay's own probes, which first look after 10 s and need `wget`. A template's own probes stay. Unset, the"
        " connector takes `quick`, and `render` the operator's.",
    )
    ray_auth: str | None = setting(
        "ray-auth",
        choice("token", "disabled"),
        None,
        "Whether Ray asks for a token: `authOptions.mode` of each RayCluster. `token` needs KubeRay 1.5 and images with"
        " Ray 2.52; see security.md.",
    )
    platform_resources: Mapping[str, Any] = setting(
        "platform-resources",
        RESOURCES,
        {},
        "Flyteadmin's task resources, which propeller hands to no connector: `requests` where a task says none,"
        " `limits` as caps.",
    )
    platform_namespace: str = setting(
        "platform-namespace",
        NAMESPACE,
        "flyte",
        "Where PodTemplates are looked up after the task's namespace; if unset, the environment's `POD_NAMESPACE`.",
    )
    max_keep_seconds: int | None = setting(
        "max-keep-seconds",
        optional(INTEGER, "kept for ever"),
        86400,
        "Seconds for which a cluster stands after a job that says shutdown_after_job_finishes=False.",
    )
    start_deadline: timedelta | None = setting(
        "start-deadline",
        DURATION,
        None,
        "Time from the moment KubeRay takes the RayJob up until the job runs, counted anew after a suspension; past it"
        " the task fails and may be tried again. 0 is none.",
    )
    run_deadline: timedelta | None = setting(
        "run-deadline", DURATION, None, "Time for which the job may run; past it the task fails. 0 is none."
    )
    deadline_margin: timedelta = setting(
        "deadline-margin",
        DURATION,
        timedelta(minutes=10),
        "Added to the sum of both deadlines for KubeRay's own deadline, which acts while nobody asks the connector. It"
        " is sent only where both are set.",
    )
    log_tail_lines: int = setting("log-tail-lines", INTEGER, 200, "Lines of a log's end that are read for a diagnosis.")
    log_tail_bytes: int = setting(
        "log-tail-bytes", whole_number(1), 65536, "Bytes of a log's end that are read at most."
    )
    queue_label: str = setting("queue-label", LABEL_KEY, "kueue.x-k8s.io/queue-name", "Label for a task's queue.")
    priority_label: str = setting(
        "priority-label", LABEL_KEY, "kueue.x-k8s.io/priority-class", "Label for a task's priority."
    )
    queue: str | None = setting("queue", LABEL_VALUE, None, "Queue of a task that names none.")
    submitter_resources: Mapping[str, Any] = setting(
        "submitter-resources", RESOURCES, _SUBMITTER, "Resources of the submitter, where the task does not say."
    )
    ray_job_patch: Mapping[str, Any] = setting(
        "ray-job-patch",
        Kind(DATA.name, _read_patch),
        {},
        "Part of a RayJob that is merged over each one, under the task's own patch.",
    )
    kubeconfig: str | None = setting(
        "kubeconfig",
        TEXT,
        None,
        "Path of a kubeconfig; unset, `KUBECONFIG`, else the pod's service account, else `~/.kube/config`.",
    )
    context: str | None = setting("context", TEXT, None, "Context of the kubeconfig; unset, its current one.")
    history_server_url_template: str | None = setting(
        "history-server-url-template",
        TEMPLATE,
        None,
        "Link to what a history server keeps of a cluster, shown once the task has ended; a template of a log link.",
    )
    namespaces: tuple[str, ...] = setting(
        "namespaces", NAMESPACES, (), "Namespaces that are watched; empty, the whole cluster."
    )
    keep_finished: timedelta | None = setting(
        "keep-finished",
        DURATION,
        None,
        "How long `flyte-kuberay sweep` leaves a RayJob that has ended, where --older-than does not say. What the"
        " connector deletes itself is in failures.md, column RayJob.",
    )
    api_timeout: timedelta = setting(
        "api-timeout",
        duration(timedelta(seconds=1)),
        timedelta(seconds=8),
        "Time for one call of the connector, all tries included.",
    )
