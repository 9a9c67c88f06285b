"""The platform's link templates in one form, and what they ask of a task, which is kept with its RayJob.

A GetTask brings neither the task template nor the execution, so the values go into an annotation at the create.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..settings import KuberaySettings, LogSettings, RaySettings, Settings, TemplateLogPlugin
from ..settings.templates import TASK_CONFIG, variables_of
from ..wire import FlyteTask
from .names import LINKS, node_id_of

_JSON = 2
_LINK_TYPES = "link_type"
"""The key of a task's config that switches dynamic links on. Source: tasklog/template.go getDynamicLogLinkTypes."""

_KUBERNETES = "/#!/log/{{ .namespace }}/{{ .podName }}/pod?namespace={{ .namespace }}"
_CLOUDWATCH = (
    "https://console.aws.amazon.com/cloudwatch/home?region=%s#logEventViewer:group=%s;"
    "stream=var.log.containers.{{ .podName }}_{{ .namespace }}_{{ .containerName }}-{{ .containerId }}.log"
)
_STACKDRIVER = (
    "https://console.cloud.google.com/logs/viewer?project=%s&angularJsUrl=%%2Flogs%%2Fviewer%%3Fproject%%3D%s"
    "&resource=%s&advancedFilter=resource.labels.pod_name%%3D{{ .podName }}"
)


def log_templates(logs: LogSettings) -> list[TemplateLogPlugin]:
    """All log links that the settings speak of. Source: flyteplugins, logs/logging_utils.go InitializeLogPlugins."""
    return [*_shortcuts(logs), *logs.templates, *(_dynamic(*each) for each in logs.dynamic_log_links.items())]


def _shortcuts(logs: LogSettings) -> Iterator[TemplateLogPlugin]:
    """Those that stand ready by name; none where the settings name no place for it."""
    region, group = logs.cloudwatch_region, logs.cloudwatch_log_group
    project, resource = logs.gcp_project, logs.stackdriver_logresourcename
    kubernetes = logs.kubernetes_template_uri or (logs.kubernetes_url and logs.kubernetes_url + _KUBERNETES)
    cloudwatch = logs.cloudwatch_template_uri or (region and group and _CLOUDWATCH % (region, group))
    stackdriver = logs.stackdriver_template_uri or (project and _STACKDRIVER % (project, project, resource))
    for enabled, name, uri in (
        (logs.kubernetes_enabled, "Kubernetes Logs", kubernetes),
        (logs.cloudwatch_enabled, "Cloudwatch Logs", cloudwatch),
        (logs.stackdriver_enabled, "Stackdriver Logs", stackdriver),
    ):
        if enabled and uri:
            yield TemplateLogPlugin(display_name=name, template_uris=(uri,), message_format=_JSON)


def _dynamic(link_type: str, template: TemplateLogPlugin) -> TemplateLogPlugin:
    return replace(
        template,
        name=link_type,
        template_uris=(),
        dynamic_template_uris=template.template_uris,
        message_format=_JSON,
    )


def dashboard_template(ray: RaySettings) -> TemplateLogPlugin | None:
    """The template of Ray's dashboard, if there is one."""
    template = ray.dashboard_url_template
    return template and replace(template, display_name=template.display_name or "Ray Dashboard")


def history_template(own: KuberaySettings) -> TemplateLogPlugin | None:
    """The template of the history server, if there is one."""
    uri = own.history_server_url_template
    return TemplateLogPlugin(display_name="Ray History Server", template_uris=(uri,)) if uri else None


def uris_of(template: TemplateLogPlugin, values: Mapping[str, str]) -> Sequence[str]:
    """A template's addresses for a task of which these values are known."""
    chosen = template.name and template.name in values.get(_LINK_TYPES, "").split(",")
    return template.template_uris + (template.dynamic_template_uris if chosen else ())


def link_annotation(task: FlyteTask, settings: Settings) -> dict[str, str]:
    """The annotation that keeps what the templates ask of the task; {} where they ask for nothing of it."""
    known = _values_of(task)
    kept = {name: known[name] for name in sorted(_wanted(settings, known)) if known.get(name)}
    return {LINKS: json.dumps(kept, ensure_ascii=False, separators=(",", ":"))} if kept else {}


def _wanted(settings: Settings, known: Mapping[str, str]) -> set[str]:
    """The names of all variables that a link of the task needs."""
    others = dashboard_template(settings.ray), history_template(settings.kuberay)
    templates = [*log_templates(settings.ray.logs), *filter(None, others)]
    texts: Iterable[str] = (text for each in templates for text in (each.display_name, *uris_of(each, known)))
    types = {_LINK_TYPES} if any(each.dynamic_template_uris for each in templates) else set()
    return {name for text in texts for name in variables_of(text)} | types


def _values_of(task: FlyteTask) -> Mapping[str, str]:
    """What the task and its execution say, by the names of variables."""
    of, node = task.execution.task_execution_id, task.execution.task_execution_id.node_execution_id
    identifier, execution = task.template.id, node.execution_id
    config = task.template.config
    return {
        "taskid": identifier.name,
        "taskversion": identifier.version,
        "taskproject": identifier.project,
        "taskdomain": identifier.domain,
        "taskretryattempt": str(of.retry_attempt),
        "nodeid": node_id_of(task),
        "executionname": execution.name,
        "executionproject": execution.project,
        "executiondomain": execution.domain,
        _LINK_TYPES: config.get(_LINK_TYPES, ""),
        **{TASK_CONFIG + key: value for key, value in config.items()},
    }
