"""The links beside a task, from the platform's templates: its pods' logs, Ray's dashboard, the history server.

What becomes of them decides much here. Propeller passes links on only with another phase, so each answer has all that
are known. Flyteadmin keeps the links it has, unless a new one has the same name or address; while a task is queued or
starts it drops those without `show_while_pending`, at the end those with `hide_once_finished`.
Source: Flyte v1.16.8, flyteadmin: transformers/task_execution.go mergeLogs, filterLogsByPhase.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from itertools import chain, islice, zip_longest

from flyteidl.core.execution_pb2 import TaskExecution

from ..settings import Settings, TemplateLogPlugin
from ..settings.templates import POD_VARIABLES, filled, variables_of
from .diagnosis import ray_container
from .link_templates import dashboard_template, history_template, log_templates, uris_of
from .phase import FAILURES
from .pods import HEAD, SUBMITTER, ContainerView, PodView
from .status import JobView

_PENDING = frozenset({TaskExecution.QUEUED, TaskExecution.WAITING_FOR_RESOURCES, TaskExecution.INITIALIZING})
_ENDS = frozenset({TaskExecution.SUCCEEDED, *FAILURES})
_MOST_WORKERS = 10
_OPEN_END = timedelta(days=1)
"""How far ahead a link's time window reaches while the task runs: no other link follows before the end."""

_OF_PODS = frozenset(name.lower() for name in POD_VARIABLES)
_SUBMITTER_CONTAINER = "ray-job-submitter"
"""Beside the head, in SidecarMode. Source: KubeRay v1.6.2, ray-operator/controllers/ray/utils/constant.go."""


@dataclass(frozen=True)
class Link:
    """One link, under the same name in each phase."""

    name: str
    url: str
    message_format: int = 0  # flyteidl's TaskLog.MessageFormat
    show_while_pending: bool = False
    hide_once_finished: bool = False


@dataclass(frozen=True)
class _Source:
    """Where logs come from."""

    name: str  # head, submitter, or a worker's group and the end of its pod's name
    pod: PodView
    container: ContainerView | None


def links_of(
    job: JobView | None, pods: Sequence[PodView], phase: TaskExecution.Phase, settings: Settings, now: datetime
) -> list[Link]:
    """The links that can be known of a task now, Ray's dashboard or what is kept of it first.

    Args:
        job: The RayJob; None where it is not known, or is gone.
        pods: All pods of the attempt.
        phase: The task's phase.
        settings: The platform's settings, which hold the templates.
        now: The time, aware of its zone.
    """
    if job is None:
        return []
    sources = list(_sources(job, pods))
    values = {
        **job.link_values,
        "namespace": job.namespace,
        "generatedname": job.name,
        "rayclustername": job.cluster,
        "rayjobid": job.job_id,
        "rayheadservice": job.head_service,
        **_times(job.created, phase, now),
    }
    links = [*_dashboard(job, sources, phase, settings, values), *_history(phase, settings, values)]
    for template in log_templates(settings.ray.logs):
        if _is_shown(template, phase):
            links += _logs(template, sources, values, phase, now)
    return list({link.url: link for link in reversed(links)}.values())[::-1]


def _is_shown(template: TemplateLogPlugin, phase: TaskExecution.Phase) -> bool:
    """Whether its links belong to the phase, as flyteadmin has it."""
    if phase in _PENDING:
        return template.show_while_pending
    return not (phase in _ENDS and template.hide_once_finished)


def _dashboard(
    job: JobView, sources: Sequence[_Source], phase: TaskExecution.Phase, settings: Settings, values: Mapping[str, str]
) -> Iterator[Link]:
    """Ray's dashboard while the head is up; it is hidden at the end, for then it leads nowhere."""
    template, head = dashboard_template(settings.ray), next((each for each in sources if each.name == HEAD), None)
    is_up = head.pod.ready if head is not None else bool(job.dashboard) and phase == TaskExecution.RUNNING
    if template is None or phase in _ENDS or not is_up:
        return
    known = values if head is None else {**values, **_pod_values(head)}
    for link in _links(template, template.template_uris, known):
        yield replace(link, show_while_pending=phase in _PENDING, hide_once_finished=True)


def _history(phase: TaskExecution.Phase, settings: Settings, values: Mapping[str, str]) -> Iterator[Link]:
    """What is kept of Ray's dashboard, after the end."""
    template = history_template(settings.kuberay)
    if template is not None and phase in _ENDS:
        yield from _links(template, template.template_uris, values)


def _logs(
    template: TemplateLogPlugin,
    sources: Sequence[_Source],
    values: Mapping[str, str],
    phase: TaskExecution.Phase,
    now: datetime,
) -> Iterator[Link]:
    """The links of one template: one of the job, or one of each pod where it asks for something of a pod's."""
    for uri in uris_of(template, values):
        if _OF_PODS.isdisjoint(variables_of(uri + template.display_name)):
            yield from _links(template, [uri], values)
            continue
        for source in sources:
            known = {**values, **_pod_values(source), **_times(source.pod.created, phase, now)}
            yield from _links(template, [uri], known, source.name)


def _links(
    template: TemplateLogPlugin, uris: Iterable[str], values: Mapping[str, str], source: str = ""
) -> Iterator[Link]:
    """The links to some addresses; none where something that a link needs is not known."""
    named = template.display_name or template.name or "Logs"
    if source and _OF_PODS.isdisjoint(variables_of(named)):
        named += f" ({source})"
    name = filled(named, values)
    for url in (filled(uri, values) for uri in uris):
        if name and url:
            flags = template.show_while_pending, template.hide_once_finished
            yield Link(name, url, template.message_format, *flags)


def _sources(job: JobView, pods: Iterable[PodView]) -> Iterator[_Source]:
    """The head and the submitter that count now, then some workers, of all groups in turn."""
    groups: dict[str, list[PodView]] = {HEAD: [], SUBMITTER: []}
    for pod in sorted(pods, key=lambda pod: (pod.terminating, pod.created, pod.name)):
        if pod.cluster in ("", job.cluster):
            groups.setdefault(pod.group, []).append(pod)
    for kind in (HEAD, SUBMITTER):
        if found := groups.pop(kind):
            yield from _main_sources(kind, max(found, key=lambda pod: (not pod.terminating, pod.created)))
    workers = filter(None, chain.from_iterable(zip_longest(*groups.values())))
    for pod in islice(workers, _MOST_WORKERS):
        yield _Source(f"{pod.group} {pod.name.rpartition('-')[2]}", pod, ray_container(pod))


def _main_sources(kind: str, pod: PodView) -> Iterator[_Source]:
    """A head or submitter, and the submitter that runs beside a head."""
    yield _Source(kind, pod, ray_container(pod))
    beside = (each for each in pod.containers if kind == HEAD and each.name == _SUBMITTER_CONTAINER)
    yield from (_Source(SUBMITTER, pod, container) for container in beside)


def _pod_values(source: _Source) -> Mapping[str, str]:
    """The variables of a pod, by their names in lower case."""
    pod, container = source.pod, source.container
    return {
        "podname": pod.name,
        "poduid": pod.uid,
        "hostname": pod.hostname,
        "nodename": pod.node,
        "containername": container.name if container else "",
        "containerid": container.id.rpartition("://")[2] if container else "",
        "logname": source.name,
    }


def _times(start: datetime | None, phase: TaskExecution.Phase, now: datetime) -> Mapping[str, str]:
    """The variables of a time window that holds all that is logged until the next link comes."""
    moments = {"start": start, "finish": now if phase in _ENDS else now + _OPEN_END}
    known = {key: moment.astimezone(timezone.utc) for key, moment in moments.items() if moment}
    return {
        **{f"podrfc3339{key}time": moment.strftime("%Y-%m-%dT%H:%M:%SZ") for key, moment in known.items()},
        **{f"podunix{key}time": str(int(moment.timestamp())) for key, moment in known.items()},
    }
