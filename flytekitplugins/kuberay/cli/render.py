"""`render`: the RayJob that a task becomes, from files alone."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from flyteidl.admin.agent_pb2 import TaskExecutionMetadata
from flyteidl.core.identifier_pb2 import NodeExecutionIdentifier, TaskExecutionIdentifier, WorkflowExecutionIdentifier
from flyteidl.core.literals_pb2 import LiteralMap
from flyteidl.core.tasks_pb2 import TaskTemplate

from .files import read_message, read_pod_templates, read_task_template, shown
from ..cluster.job import build_ray_job
from ..errors import Problem, ProblemsError, TaskError
from ..pod.base import base_template_name, base_template_namespaces, find_base_template
from ..settings import Settings, load_settings
from ..wire import FlyteTask, Manifest

PROJECT, DOMAIN, EXECUTION, NODE, VERSION = "flytesnacks", "development", "example", "n0", "example"
"""Placeholders, fixed so that the same task always gives the same output; project and domain are pyflyte's defaults."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


def render(arguments: argparse.Namespace) -> Manifest:
    """The RayJob of the task that the arguments of `render` describe.

    Raises:
        ProblemsError: A file or the task can't be used; the problems of all files at once.
    """
    if problems := list(_option_problems(arguments)):
        raise ProblemsError(problems)
    errors: list[ProblemsError] = []
    paths = [Path(name) for name in arguments.config] if arguments.config else None
    settings = _or_noted(errors, Settings(), lambda: load_settings(paths))
    template = _or_noted(errors, TaskTemplate(), lambda: _template(arguments))
    execution = _or_noted(errors, TaskExecutionMetadata(), lambda: _execution(arguments.execution, template))
    inputs = _or_noted(errors, None, lambda: _inputs(arguments.inputs))
    none: list[Manifest] = []
    pod_templates = _or_noted(errors, none, lambda: read_pod_templates(arguments.pod_template, execution.namespace))
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ProblemsError(problem for error in errors for problem in error.problems) from errors[0]
    task = FlyteTask(template, execution, arguments.output_prefix or default_output_prefix(execution), inputs)
    return _built(task, settings, find_base_template(pod_templates, task, settings))


def _option_problems(arguments: argparse.Namespace) -> Iterator[Problem]:
    if arguments.task_template and arguments.image:
        yield Problem("--image", "counts for MODULE.py only", "leave it out")
    files = [arguments.task_template, arguments.execution, arguments.inputs, *arguments.pod_template]
    if files.count("-") > 1:
        yield Problem("-", "stands for more than one file", "read one from standard input, and name the others")


def placeholder_execution(template: TaskTemplate) -> TaskExecutionMetadata:
    """An execution of the task that is the same each time."""
    run = WorkflowExecutionIdentifier(project=PROJECT, domain=DOMAIN, name=EXECUTION)
    node = NodeExecutionIdentifier(node_id=NODE, execution_id=run)
    identifier = TaskExecutionIdentifier(task_id=template.id, node_execution_id=node)
    return TaskExecutionMetadata(task_execution_id=identifier, namespace=f"{PROJECT}-{DOMAIN}")


def default_output_prefix(execution: TaskExecutionMetadata) -> str:
    """Where Flyte would put the execution's outputs, in a bucket called `bucket`."""
    identifier = execution.task_execution_id
    run = identifier.node_execution_id.execution_id
    place = f"{run.project}-{run.domain}-{run.name}/{identifier.node_execution_id.node_id}"
    return f"s3://bucket/metadata/propeller/{place}/data/{identifier.retry_attempt}"


def _or_noted(errors: list[ProblemsError], instead: T, read: Callable[[], T]) -> T:
    """What `read` gives, or something else with its error noted, so that the other files are looked at too."""
    try:
        return read()
    except ProblemsError as error:
        errors.append(error)
        return instead


def _template(arguments: argparse.Namespace) -> TaskTemplate:
    if arguments.task_template:
        return read_task_template(arguments.task_template)
    from .module import task_template

    return task_template(arguments.module, arguments.image, PROJECT, DOMAIN, VERSION)


def _execution(name: str | None, template: TaskTemplate) -> TaskExecutionMetadata:
    if not name:
        return placeholder_execution(template)
    execution = read_message(name, TaskExecutionMetadata)
    if not execution.namespace:
        _log.warning("%s: says no namespace, so the RayJob has none; a connector always gets one", shown(name))
    return execution


def _inputs(name: str | None) -> LiteralMap | None:
    return read_message(name, LiteralMap) if name else None


def _built(task: FlyteTask, settings: Settings, base: Manifest | None) -> Manifest:
    """The RayJob; what is said about PodTemplates names the option that they come by.

    Raises:
        TaskError: The task can't become a RayJob.
    """
    wanted = base_template_name(task, settings)
    try:
        job = build_ray_job(task, settings, base)
    except TaskError as error:
        raise TaskError(_with_option(problem) for problem in error.problems) from error
    if wanted and base is None:
        namespaces = " or ".join(namespace for namespace in base_template_namespaces(task, settings) if namespace)
        text = "no --pod-template holds %r for namespace %s: rendered as on a cluster that has no such PodTemplate"
        _log.warning(text, wanted, namespaces)
    return job


def _with_option(problem: Problem) -> Problem:
    if problem.path != "metadata.podTemplateName":
        return problem
    return replace(problem, remedy=f"{problem.remedy}, and give its file here with --pod-template FILE")
