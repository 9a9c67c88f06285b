"""What Flyte and the connector say to each other: the request as the builder takes it, answers, refusals and notes."""

from __future__ import annotations

from flyteidl.core.execution_pb2 import TaskLog
from flytekit.extend.backend.base_connector import Resource
from flytekit.models.literals import LiteralMap
from flytekit.models.task import TaskExecutionMetadata, TaskTemplate

from .. import kube
from ..cluster.fields import in_users_words
from ..cluster.links import Link
from ..cluster.operator import Fitted
from ..errors import KubeRayError, Problem, TaskError, shortened
from ..wire import FlyteTask, Manifest
from .follower import Look
from .metadata import JobMetadata

_LONGEST_NOTES = 500


class UnansweredError(KubeRayError):
    """The RayJob was not created as far as is known, but one answer was lost: it may stand."""


def task_of(
    template: TaskTemplate, output_prefix: str, inputs: LiteralMap | None, execution: TaskExecutionMetadata | None
) -> FlyteTask:
    """The request in flyteidl's own messages, as the builder takes it.

    Raises:
        KubeRayError: It says nothing of its execution.
    """
    if execution is None or not execution.namespace or not output_prefix:
        namespace = execution and execution.namespace
        needed = {"task_execution_metadata.namespace": namespace, "output_prefix": output_prefix}
        missing = " and no ".join(field for field, value in needed.items() if not value)
        raise KubeRayError(
            f"the request has no {missing}, which propeller always sends;"
            " `pyflyte run` is for tasks without a Flyte backend"
        )
    return FlyteTask(
        template.to_flyte_idl(), execution.to_flyte_idl(), output_prefix, inputs.to_flyte_idl() if inputs else None
    )


def refusal_of(error: kube.ApiError, job: Manifest) -> KubeRayError:
    """Why a RayJob was not created, with its fields in the user's words."""
    problems = [
        Problem(in_users_words(field, job), in_users_words(what.replace(f"{field} in body ", ""), job))
        for field, what in (error.causes if isinstance(error, kube.Invalid) else ())
        if field not in ("", "<nil>")  # a webhook's; and one that says only that there may be more
    ]
    if problems:
        return KubeRayError(f"{error.call}: the API server refuses it: {TaskError(problems)}")
    return KubeRayError(in_users_words(str(error), job))


def notes_of(fit: Fitted, created: kube.Created) -> str:
    """What of the task has no effect, and what the API server warned of; cut, for propeller stores it."""
    warnings = (f"API server: {in_users_words(warning, fit.manifest)}" for warning in created.warnings)
    return shortened("; ".join(filter(None, (fit.lost, *warnings))), _LONGEST_NOTES, front=250, mark=" ... ")


def answer_of(metadata: JobMetadata, look: Look) -> Resource:
    """What propeller gets of a look."""
    name = f"{metadata.namespace}/{metadata.name}"
    notes = f" ({metadata.notes})" if metadata.notes else ""
    info = {"rayJob": name, "output_prefix": metadata.output_prefix}
    if look.job is not None:
        info |= {"rayCluster": look.job.cluster, "jobId": look.job.job_id, "dashboardURL": look.job.dashboard}
    info["diagnosis"] = look.diagnosis
    return Resource(
        phase=look.verdict.phase,
        message=f"RayJob {name}: {look.verdict.message}{notes}",
        custom_info={key: value for key, value in info.items() if value},
        log_links=[_task_log(link) for link in look.links],
    )


def _task_log(link: Link) -> TaskLog:
    return TaskLog(
        name=link.name,
        uri=link.uri,
        message_format=link.message_format,  # type: ignore[arg-type]  # the stub wants an enum, flyteidl its number
        ShowWhilePending=link.show_while_pending,
        HideOnceFinished=link.hide_once_finished,
    )
