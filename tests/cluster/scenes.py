"""RayJobs and pods as a cluster shows them, and the scenes of docs/failures.md, at one fixed time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from flyteidl.core.execution_pb2 import TaskExecution

from flytekitplugins.kuberay.cluster.diagnosis import Trouble
from flytekitplugins.kuberay.cluster.phase import Results, UserError, Verdict
from flytekitplugins.kuberay.cluster.pods import HEAD, SUBMITTER, WORKER, PodView, pod_view_of
from flytekitplugins.kuberay.cluster.status import JobView, view_of
from flytekitplugins.kuberay.cluster.verdict import Deadlines, Sight, verdict_of
from flytekitplugins.kuberay.settings import Settings

NOW = datetime(2026, 11, 30, 12, 10, tzinfo=timezone.utc)
CREATED, INITIALIZED, PROVISIONED, STARTED = (
    NOW - timedelta(minutes=10),
    NOW - timedelta(minutes=9, seconds=30),
    NOW - timedelta(minutes=8),
    NOW - timedelta(minutes=7, seconds=55),
)
"""When the RayJob, its cluster, and its job came to be: it was queued 30 s, started within 95 s and runs for 7 m."""

CLUSTER = "train-c1"
FATAL = Results(error=UserError("USER:ValueError", "no luck", recoverable=False))
RECOVERABLE = Results(error=UserError("USER:Recoverable", "later perhaps", recoverable=True))
OUTPUTS = Results(outputs=True)


PHASES = {
    TaskExecution.QUEUED: "QUEUED",
    TaskExecution.WAITING_FOR_RESOURCES: "WAITING_FOR_RESOURCES",
    TaskExecution.INITIALIZING: "INITIALIZING",
    TaskExecution.RUNNING: "RUNNING",
    TaskExecution.SUCCEEDED: "SUCCEEDED",
    TaskExecution.FAILED: "FAILED",
    TaskExecution.RETRYABLE_FAILED: "RETRYABLE_FAILED",
}
"""All that a connector may say of a job: UNDEFINED counts as a failure of its own, ABORTED drops its message."""


def phase_name(phase: TaskExecution.Phase) -> str:
    """As people read it."""
    return PHASES[phase]


def stamp(moment: datetime) -> str:
    """A time as Kubernetes writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(**parts: float) -> datetime:
    """So long before now; `parts` are timedelta's."""
    return NOW - timedelta(**parts)


def job(deployment: str = "Running", status: str = "", reason: str = "", message: str = "", **spec: Any) -> JobView:
    """A RayJob in this state; one that is running or has ended came so far at the usual times."""
    found: dict[str, Any] = {"jobDeploymentStatus": deployment, "jobStatus": status, "reason": reason}
    found |= {"message": message, "rayClusterName": CLUSTER}
    if deployment:
        found["startTime"] = stamp(INITIALIZED)
    if deployment not in ("", "Initializing"):
        condition = {"type": "RayClusterProvisioned", "status": "True", "lastTransitionTime": stamp(PROVISIONED)}
        found["rayClusterStatus"] = {"conditions": [condition]}
    if status:
        found["rayJobInfo"] = {"startTime": stamp(STARTED)}
    metadata = {"uid": "u", "creationTimestamp": stamp(CREATED)}
    return view_of({"metadata": metadata, "spec": spec, "status": found})


STARTING, SUBMITTING = job("Initializing"), replace(job(), started=None)
RUNNING = job(status="RUNNING")


def container(name: str, **state: Any) -> dict[str, Any]:
    """A container's status: `waiting`, `running` (since when) or `terminated`, and `last` for its end before."""
    status: dict[str, Any] = {"name": name, "restartCount": state.pop("restarts", 0)}
    if "last" in state:
        status["lastState"] = {"terminated": state.pop("last")}
    if isinstance(state.get("running"), datetime):
        state["running"] = {"startedAt": stamp(state["running"])}
    return {**status, "state": state}


def waiting(reason: str, message: str = "") -> dict[str, str]:
    """A state of waiting."""
    return {"reason": reason, "message": message}


def ended(code: int, reason: str = "", message: str = "") -> dict[str, Any]:
    """A state of having ended."""
    return {"exitCode": code, "reason": reason or ("Error" if code else "Completed"), "message": message}


def pod(
    group: str = "head",
    *containers: dict[str, Any],
    phase: str = "Running",
    created: datetime = INITIALIZED,
    since: datetime | None = None,
    ready: bool | None = None,
    **parts: Any,
) -> PodView:
    """A pod of this group; `parts` are role, name, cluster, policy, inits, gates, conditions, deleted, or status's."""
    role = parts.pop("role", group if group in (HEAD, SUBMITTER) else WORKER)
    name = parts.pop("name", f"{CLUSTER}-{group}-1")
    labels = {"ray.io/cluster": parts.pop("cluster", CLUSTER), "ray.io/group": group, "ray.io/node-type": role}
    main = f"ray-{role}"
    if role == SUBMITTER:
        labels, main = {}, "ray-job-submitter"
    shown = list(containers) or [container(main, running=created)]
    inits: Sequence[Mapping[str, Any]] = parts.pop("inits", [])
    conditions = {"Ready": phase == "Running" if ready is None else ready, **parts.pop("conditions", {})}
    metadata: dict[str, Any] = {"name": name, "uid": name, "labels": labels, "creationTimestamp": stamp(created)}
    if parts.pop("deleted", False):
        metadata["deletionTimestamp"] = stamp(NOW)
    return pod_view_of(
        {
            "metadata": metadata,
            "spec": {
                "restartPolicy": parts.pop("policy", "Never"),
                "containers": [{"name": each["name"]} for each in shown],
                "initContainers": [{k: each[k] for k in ("name", "restartPolicy") if k in each} for each in inits],
                "schedulingGates": [{"name": gate} for gate in parts.pop("gates", ())],
            },
            "status": {
                "phase": phase,
                "conditions": [_condition(kind, said, since or created) for kind, said in conditions.items()],
                "containerStatuses": sorted(shown, key=lambda each: str(each["name"])),
                "initContainerStatuses": list(inits),
                **parts,
            },
        }
    )


def _condition(kind: str, said: bool | tuple[bool, str, str], since: datetime) -> dict[str, str]:
    status, reason, message = said if isinstance(said, tuple) else (said, "", "")
    times = {"lastTransitionTime": stamp(since)}
    return {"type": kind, "status": str(status), "reason": reason, "message": message, **times}


def unschedulable(group: str, text: str, **parts: Any) -> PodView:
    """A pod that has no node."""
    conditions = {"Ready": False, "PodScheduled": (False, "Unschedulable", text)}
    return replace(pod(group, phase="Pending", conditions=conditions, **parts), containers=())


def stuck(group: str, reason: str, message: str = "", *, main: str = "", **parts: Any) -> PodView:
    """A pod whose container waits."""
    name = main or ("ray-head" if group == "head" else "ray-worker")
    return pod(group, container(name, waiting=waiting(reason, message)), phase="Pending", **parts)


def failed(group: str, code: int, reason: str = "", message: str = "", **parts: Any) -> PodView:
    """A pod whose container has ended."""
    name = "ray-head" if group == "head" else "ray-worker" if group != "submitter" else "ray-job-submitter"
    return pod(group, container(name, terminated=ended(code, reason, message)), phase="Failed", **parts)


EVICTED: dict[str, Any] = {"reason": "Evicted", "message": "The node was low on resource: memory."}
SHUT_DOWN: dict[str, Any] = {
    "reason": "Terminated",
    "message": "Pod was terminated in response to imminent node shutdown.",
}
PREEMPTED = {"DisruptionTarget": (True, "PreemptionByScheduler", "preempting to accommodate a higher priority pod")}
RATE_LIMIT = (
    'Back-off pulling image "example/train:1": ErrImagePull: 429 Too Many Requests - Server message: toomanyrequests: '
    "You have reached your unauthenticated pull rate limit"
)
NOT_FOUND = 'Back-off pulling image "example/train:1": ErrImagePull: example/train:1: not found'
UP = (pod("head"), pod("cpu"))
LONG = Trouble(ago(minutes=4), NOW)


@dataclass(frozen=True)
class Scene:
    """What is known of a task at one moment."""

    job: JobView | None
    pods: Sequence[PodView] | None = UP
    results: Results = Results()
    events: Sequence[str] = ()
    trouble: Trouble | None = None
    has_outputs: bool = True
    deadlines: Deadlines = Deadlines()
    settings: Settings = field(default_factory=Settings)

    def verdict(self) -> Verdict:
        """What is said of it."""
        return verdict_of(
            Sight(self.job, self.pods, self.results, self.events, self.trouble),
            has_outputs=self.has_outputs,
            deadlines=self.deadlines,
            settings=self.settings,
            now=NOW,
        )


def at_start(*pods: PodView, **parts: Any) -> Scene:
    """A cluster that does not come up, for longer than any grace."""
    return Scene(STARTING, pods, trouble=parts.pop("trouble", LONG), **parts)


def lost(*pods: PodView, **parts: Any) -> Scene:
    """A job that runs, and its pods now."""
    return Scene(RUNNING, (*pods, pod("cpu")), **parts)


def beside(name: str = f"{CLUSTER}-head-1", created: datetime = INITIALIZED, **state: Any) -> PodView:
    """A head in SidecarMode, whose submitter is in this state."""
    ray, submitter = container("ray-head", running=created), container("ray-job-submitter", **state)
    return pod("head", ray, submitter, ready="terminated" not in state, name=name, created=created)


APP_FAILED = job("Failed", "FAILED", "AppFailed", "Job entrypoint command failed with exit code 1")
NEW_HEAD = pod(name=f"{CLUSTER}-head-2", created=ago(minutes=1))

FAILURES: Mapping[str, Scene] = {
    "user-error": Scene(job(status="FAILED"), results=FATAL),
    "recoverable-user-error": Scene(job(status="FAILED"), results=RECOVERABLE),
    "user-error-without-outputs": Scene(job(status="FAILED"), results=FATAL, has_outputs=False),
    "recoverable-user-error-without-outputs": Scene(job(status="FAILED"), results=RECOVERABLE, has_outputs=False),
    "process-died": Scene(APP_FAILED),
    "process-died-with-its-head": Scene(APP_FAILED, (failed("head", 137, "OOMKilled"),)),
    "no-outputs": Scene(job("Complete", "SUCCEEDED")),
    "stopped": Scene(job("Complete", "STOPPED")),
    "head-replaced": lost(NEW_HEAD),
    "head-gone": lost(),
    "head-being-deleted": lost(pod(deleted=True)),
    "head-out-of-memory": lost(failed("head", 137, "OOMKilled")),
    "head-evicted": lost(pod(phase="Failed", **EVICTED)),
    "head-preempted": lost(pod(deleted=True, conditions=PREEMPTED)),
    "head-node-shut-down": lost(pod(phase="Failed", **SHUT_DOWN)),
    "head-restarted": lost(pod("head", container("ray-head", running=ago(minutes=1), restarts=1), policy="Always")),
    "head-lost-after-the-outputs": lost(NEW_HEAD, results=OUTPUTS),
    "head-lost-after-an-error": lost(NEW_HEAD, results=FATAL, has_outputs=False),
    "head-not-found": Scene(job("Failed", "RUNNING", "AppFailed", "Ray head pod not found."), ()),
    "autoscaler-ended": lost(
        pod("head", container("ray-head", running=INITIALIZED), container("autoscaler", terminated=ended(1)))
    ),
    "sidecar-mode-ended-early": at_start(beside(terminated=ended(0)), stuck("cpu", ""), results=OUTPUTS),
    "sidecar-mode-failed-early": at_start(beside(terminated=ended(1)), stuck("cpu", "")),
    "sidecar-mode-new-head": at_start(
        beside(running=ago(minutes=1), name=NEW_HEAD.name, created=NEW_HEAD.created), stuck("cpu", "")
    ),
    "submitter-has-no-image": Scene(
        SUBMITTING,
        (*UP, stuck("submitter", "ImagePullBackOff", NOT_FOUND, main="ray-job-submitter", created=PROVISIONED)),
        trouble=LONG,
    ),
    "submitter-ended": Scene(
        job(status="PENDING"),
        (
            *UP,
            pod(
                "submitter",
                container("ray-job-submitter", terminated=ended(0)),
                phase="Succeeded",
                created=PROVISIONED,
                since=ago(minutes=11),
            ),
        ),
    ),
    "not-submitted": Scene(
        job("Failed", "", "SubmissionFailed", "Job submission has failed. Reason: BackoffLimitExceeded."),
        (*UP, failed("submitter", 2, "", "sh: ray: not found")),
    ),
    "submitter-lost-while-the-job-ran": Scene(
        job(
            "Failed",
            "RUNNING",
            "SubmissionFailed",
            "Ray head pod container ray-job-submitter terminated with exit code 1: Error",
        )
    ),
    "head-gone-before-kuberay-ended-it": Scene(
        job("Failed", "RUNNING", "SubmissionFailed", "Job submission has failed. Reason: BackoffLimitExceeded."),
        (pod("cpu"), failed("submitter", 1)),
    ),
    "end-forced-by-kuberay": Scene(
        job("Failed", "FAILED", "JobDeploymentStatusTransitionGracePeriodExceeded", "The RayJob submitter finished")
    ),
    "deadline-of-kuberay": Scene(
        job("Failed", "RUNNING", "DeadlineExceeded", "The RayJob has passed the activeDeadlineSeconds.")
    ),
    "start-deadline-of-kuberay": Scene(
        replace(
            job("Failed", "", "PreRunningDeadlineExceeded", "The RayJob has passed the preRunningDeadlineSeconds."),
            provisioned=None,
        ),
        (stuck("head", "ImagePullBackOff", NOT_FOUND),),
    ),
    "start-deadline": Scene(
        STARTING,
        (unschedulable("head", "0/4 nodes are available: 4 Insufficient nvidia.com/gpu"),),
        deadlines=Deadlines(start=timedelta(minutes=5)),
    ),
    "not-handed-over": Scene(SUBMITTING, deadlines=Deadlines(start=timedelta(minutes=5))),
    "not-handed-over-for-a-quota": Scene(
        SUBMITTING,
        deadlines=Deadlines(start=timedelta(minutes=5)),
        events=['FailedCreate: Error creating: pods "train-abcde" is forbidden: exceeded quota: team'],
    ),
    "not-handed-over-by-a-sidecar": Scene(
        SUBMITTING, (beside(running=PROVISIONED),), deadlines=Deadlines(start=timedelta(minutes=5))
    ),
    "run-deadline-unseen": Scene(
        SUBMITTING, (*UP, pod("submitter", since=PROVISIONED)), deadlines=Deadlines(run=timedelta(minutes=5))
    ),
    "run-deadline": Scene(RUNNING, deadlines=Deadlines(run=timedelta(minutes=5))),
    "refused": Scene(
        replace(job("ValidationFailed", "", "ValidationFailed", "The RayJob spec is invalid: no"), provisioned=None), ()
    ),
    "refused-while-it-ran": Scene(
        job("ValidationFailed", "RUNNING", "ValidationFailed", "The RayJob spec is invalid: no")
    ),
    "deleted": Scene(None, None),
    "deleted-and-unreadable": Scene(None, None, Results(unreadable="PermissionError: denied")),
    "no-image": at_start(stuck("head", "ImagePullBackOff", NOT_FOUND)),
    "registry-rate-limit": at_start(pod("head"), stuck("cpu", "ImagePullBackOff", RATE_LIMIT)),
    "no-image-name": at_start(
        stuck("head", "InvalidImageName", 'couldn\'t parse image name "a b": invalid reference format')
    ),
    "no-config": at_start(pod("head"), stuck("cpu", "CreateContainerConfigError", 'secret "token" not found')),
    "not-created": at_start(stuck("head", "RunContainerError", 'exec: "raay": executable file not found in $PATH')),
    "crash-loop": at_start(
        pod(
            "head",
            container(
                "ray-head",
                waiting=waiting("CrashLoopBackOff", "back-off 40s"),
                last=ended(1, "Error", "ModuleNotFoundError: No module named 'ray'"),
                restarts=4,
            ),
            policy="Always",
            ready=False,
        )
    ),
    "crash": at_start(failed("head", 1, "Error", "ModuleNotFoundError: No module named 'ray'")),
    "sidecar-ended": at_start(
        pod("head", container("ray-head", running=INITIALIZED), container("proxy", terminated=ended(0)), ready=False)
    ),
    "autoscaler-ended-at-the-start": at_start(
        pod(
            "head",
            container("ray-head", running=INITIALIZED),
            container("autoscaler", terminated=ended(1)),
            ready=False,
        )
    ),
}
"""By the ids of docs/failures.md."""
