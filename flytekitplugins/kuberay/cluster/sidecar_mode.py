"""What becomes of a job in SidecarMode while its cluster is not up, which KubeRay does not look at.

The submitter is a container of the head pod and hands the job over when the head is up, not when the workers are. A
head pod with a container that has ended is never ready, so a job that ends before the workers are there leaves its
RayJob Initializing for ever; and a head lost then is made anew, with a submitter that runs the user's code again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flyteidl.core.execution_pb2 import TaskExecution

from .diagnosis import end_of_pod, end_text
from .phase import Results, Verdict, success
from .pods import HEAD, WORKER, ContainerView, PodView
from .status import JobView
from .submitter import SUBMITTER_CONTAINER


def early_end(job: JobView, pods: Sequence[PodView], results: Results, *, has_outputs: bool) -> Verdict | None:
    """How the job ended while its cluster was not up, or the head that ran it; None where neither has.

    Args:
        job: The RayJob.
        pods: The pods of its cluster.
        results: The result files.
        has_outputs: Whether the task declares outputs.
    """
    if job.deployment != "Initializing":
        return None
    for pod, submitter in _heads(pods):
        if lost := _loss(pod, submitter, pods):
            return Verdict(TaskExecution.RETRYABLE_FAILED, f"the job can't go on: {lost}", ours=True)
        if submitter.is_over and submitter.exit_code == 0:
            return replace(success(job, results, has_outputs=has_outputs), ours=True)
        if submitter.is_over:
            how = f"pod {pod.name}: container {SUBMITTER_CONTAINER} ended with {end_text(submitter)}"
            return Verdict(TaskExecution.RETRYABLE_FAILED, f"the Ray job failed: {how}", ours=True)
    return None


def has_begun(job: JobView, pods: Sequence[PodView]) -> bool:
    """Whether the user's code may have begun: the cluster was up, or the submitter did not wait for that."""
    was_submitted = any(submitter.has_started for _, submitter in _heads(pods))
    return job.provisioned is not None or job.started is not None or was_submitted


def _heads(pods: Sequence[PodView]) -> list[tuple[PodView, ContainerView]]:
    """The head pods that have a submitter, with it."""
    heads = [(pod, each) for pod in pods if pod.role == HEAD for each in pod.containers]
    return [(pod, each) for pod, each in heads if each.name == SUBMITTER_CONTAINER]


def _loss(head: PodView, submitter: ContainerView, pods: Sequence[PodView]) -> str:
    """How the job lost its head, in words; "" where it has not.

    KubeRay makes the first head before all workers, so one that is younger than a worker is another one.
    """
    if submitter.has_started and (head.terminating or head.phase == "Failed"):
        return end_of_pod(head) or f"head pod {head.name} is being deleted"
    older = any(pod.created < head.created for pod in pods if pod.role == WORKER)
    return f"pod {head.name} is a new head, the one that may have run the job is gone" if older else ""
