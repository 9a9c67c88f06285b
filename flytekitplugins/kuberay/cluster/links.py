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
from .phase import ENDS
from .pods import HEAD, SUBMITTER, ContainerView, PodView
from .status import JobView
from .submitter import SUBMITTER_CONTAINER

_PENDING = frozenset({TaskExecution.QUEUED, TaskExecution.WAITING_FOR_RESOURCES, TaskExecution.INITIALIZING})
_MOST_WORKERS = 10
_LAST_LINES = timedelta(minutes=1)
"""For which pods may still log after the job's end."""

_OF_PODS = frozenset(name.lower() for name in POD_VARIABLES)


@dataclass(frozen=True)
class Link:
    """One link, under the same name in each phase."""

    name: str
    uri: str
    message_format: int = 0  # flyteidl's TaskLog.MessageFormat
    show_while_pending: bool = False
    hide_once_finished: bool = False


@dataclass(frozen=True)
class _Source:
    """A pod, or a container of it, that has logs of its own."""

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
    of_ray = history_template(settings.kuberay) if phase in ENDS else dashboard_template(settings.ray)
    of_logs = [template for template in log_templates(settings.ray.logs) if _is_shown(template, phase)]
    if job is None or not (of_ray or of_logs):
        return []
    sources, end = list(_sources(job, pods)), _window_end(job, phase, now)
    values = _job_values(job, end)
    each_pod = {source.name: {**values, **_pod_values(source, end)} for source in sources}
    links: list[Link] = []
    if phase in ENDS:
        links += _links(of_ray, values)
    elif _is_head_up(job, phase, sources):
        links += _while_head_is_up(_links(of_ray, each_pod.get(HEAD, values)), phase)
    for template in of_logs:
        links += _log_links(template, values, each_pod)
    return list({link.uri: link for link in reversed(links)}.values())[::-1]


def _is_shown(template: TemplateLogPlugin, phase: TaskExecution.Phase) -> bool:
    """Whether the template's links belong to the phase."""
    if phase in _PENDING:
        return template.show_while_pending
    return not (phase in ENDS and template.hide_once_finished)


def _is_head_up(job: JobView, phase: TaskExecution.Phase, sources: Iterable[_Source]) -> bool:
    """Whether Ray's dashboard answers: KubeRay has spoken to that of a job which runs."""
    if phase == TaskExecution.RUNNING and job.dashboard:
        return True
    return any(source.pod.ready for source in sources if source.name == HEAD)


def _while_head_is_up(links: Iterable[Link], phase: TaskExecution.Phase) -> Iterator[Link]:
    """The links with the marks by which flyteadmin drops them when the head goes, at the end or by a suspension."""
    return (replace(link, show_while_pending=phase in _PENDING, hide_once_finished=True) for link in links)


def _log_links(
    template: TemplateLogPlugin, values: Mapping[str, str], each_pod: Mapping[str, Mapping[str, str]]
) -> Iterator[Link]:
    """The links of one template: one of the job, or one of each pod where it asks for something of a pod's."""
    asked = {name for text in (template.display_name, *uris_of(template, values)) for name in variables_of(text)}
    if asked.isdisjoint(_OF_PODS):
        return _links(template, values)
    return chain.from_iterable(_links(template, known, source) for source, known in each_pod.items())


def _links(template: TemplateLogPlugin | None, values: Mapping[str, str], source: str = "") -> Iterator[Link]:
    """A template's links; none where something that a link needs is not known."""
    if template is None:
        return
    named = template.display_name or template.name or "Logs"
    if source and _OF_PODS.isdisjoint(variables_of(named)):
        named += f" ({source})"
    name = filled(named, values)
    for uri in filter(None, (filled(each, values) for each in uris_of(template, values))):
        if name:
            yield Link(name, uri, template.message_format, template.show_while_pending, template.hide_once_finished)


def _sources(job: JobView, pods: Iterable[PodView]) -> Iterator[_Source]:
    """The head and the submitter that count now, then some workers, of all groups in turn."""
    groups: dict[tuple[str, str], list[PodView]] = {}
    for pod in sorted(pods, key=lambda pod: (pod.created, pod.name)):
        if pod.cluster in ("", job.cluster):
            groups.setdefault((pod.role, pod.group), []).append(pod)
    for kind in (HEAD, SUBMITTER):
        if found := groups.pop((kind, kind), []):
            yield from _main_sources(kind, max(found, key=lambda pod: (not pod.terminating, pod.created)))
    workers = filter(None, chain.from_iterable(zip_longest(*groups.values())))
    for pod in islice(workers, _MOST_WORKERS):
        yield _Source(f"{pod.group}-{pod.name.rpartition('-')[2]}", pod, ray_container(pod))


def _main_sources(kind: str, pod: PodView) -> Iterator[_Source]:
    """A head or submitter, and the submitter that runs beside a head."""
    yield _Source(kind, pod, ray_container(pod))
    beside = (each for each in pod.containers if each.name == SUBMITTER_CONTAINER)
    yield from (_Source(SUBMITTER, pod, container) for container in beside)


def _job_values(job: JobView, end: datetime) -> Mapping[str, str]:
    """The variables of a RayJob, by their names in lower case."""
    return {
        **job.link_values,
        "namespace": job.namespace,
        "generatedname": job.name,  # in Flyte's own plugin the RayJob has the generated name
        "rayclustername": job.cluster,
        "rayjobid": job.job_id,
        "rayheadservice": job.head_service,
        **_window(job.created, end),
    }


def _pod_values(source: _Source, end: datetime) -> Mapping[str, str]:
    """The variables of a pod."""
    pod, container = source.pod, source.container
    return {
        "podname": pod.name,
        "poduid": pod.uid,
        "hostname": pod.hostname,
        "nodename": pod.node,
        "containername": container.name if container else pod.first,  # its status comes a moment after its pod
        "containerid": container.id.rpartition("://")[2] if container else "",
        "logname": source.name,
        **_window(pod.created, end),
    }


def _window_end(job: JobView, phase: TaskExecution.Phase, now: datetime) -> datetime:
    """When what a link shows ends: of a task that runs, past tomorrow, for no other link comes before its end."""
    if phase in ENDS:
        return job.ended + _LAST_LINES if job.ended else now
    return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=2)


def _window(start: datetime | None, end: datetime) -> Mapping[str, str]:
    """The variables of the time in which there are logs."""
    moments = {"start": start, "finish": end}
    known = {key: moment.astimezone(timezone.utc) for key, moment in moments.items() if moment}
    return {
        **{f"podrfc3339{key}time": moment.strftime("%Y-%m-%dT%H:%M:%SZ") for key, moment in known.items()},
        **{f"podunix{key}time": str(int(moment.timestamp())) for key, moment in known.items()},
    }
