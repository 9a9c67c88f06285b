"""What becomes of a job in SidecarMode while its cluster is not up, which KubeRay does not look at.

The submitter is a container of the head pod and hands the job over when the head is up, not when the workers are. A
head pod with a container that has ended is never ready, so a job that ends before the workers are there leaves its
RayJob Initializing for ever; and a head lost then is made anew, with a submitter that runs the user's code again.
"""

from __future__ import annotations

from collections.abc import Sequence

from flyteidl.core.execution_pb2 import TaskExecution

from .diagnosis import end_of_pod, end_text
from .phase import Verdict
from .pods import HEAD, SUBMITTER, ContainerView, PodView
from .status import JobView
from .submitter import SUBMITTER_CONTAINER


def early_end(job: JobView, pods: Sequence[PodView], *, has_outputs: bool) -> Verdict | None:
    """How the job ended while its cluster was not up, or the head that ran it; None where neither has.

    Args:
        job: The RayJob.
        pods: The pods of its cluster.
        has_outputs: Whether the task declares outputs.
    """
    if job.deployment != "Initializing":
        return None
    handed_over = [(pod, submitter) for pod in pods if pod.group == HEAD and (submitter := _submitter(pod))]
    for pod, submitter in handed_over:
        if lost := _loss(pod, submitter, pods):
            return Verdict(TaskExecution.RETRYABLE_FAILED, f"the job can't go on: {lost}", ours=True)
        if submitter.is_over:
            return _end(pod, submitter, has_outputs=has_outputs)
    return None


def _submitter(pod: PodView) -> ContainerView | None:
    return next((each for each in pod.containers if each.name == SUBMITTER_CONTAINER), None)


def _loss(head: PodView, submitter: ContainerView, pods: Sequence[PodView]) -> str:
    """How the job lost its head, in words; "" where it has not.

    KubeRay makes the first head before all workers, so one that is younger than a worker is another one.
    """
    began = submitter.running is not None or submitter.exit_code is not None
    if began and (head.terminating or head.phase == "Failed"):
        return end_of_pod(head) or f"head pod {head.name} is being deleted"
    older = any(pod.created < head.created for pod in pods if pod.group not in (HEAD, SUBMITTER))
    return f"pod {head.name} is a new head, the one that may have run the job is gone" if older else ""


def _end(head: PodView, submitter: ContainerView, *, has_outputs: bool) -> Verdict:
    """The end as its submitter tells it, who waits for the job and fails with it."""
    if submitter.exit_code != 0:
        text = f"the Ray job failed: pod {head.name}: container {SUBMITTER_CONTAINER} ended with {end_text(submitter)}"
        return Verdict(TaskExecution.RETRYABLE_FAILED, text, ours=True)
    if has_outputs:
        return Verdict(TaskExecution.RETRYABLE_FAILED, "the Ray job has succeeded but wrote no outputs", ours=True)
    return Verdict(TaskExecution.SUCCEEDED, "the Ray job has succeeded", ours=True)
