"""One task on a cluster, from its request to its outputs: attempts, what is seen meanwhile, Ctrl-C, the clean-up."""

from __future__ import annotations

import itertools
import tempfile
import time
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

from flyteidl.core.execution_pb2 import TaskExecution
from flyteidl.core.literals_pb2 import LiteralMap as LiteralMapMessage
from flytekit.core.context_manager import FlyteContext
from flytekit.core.python_function_task import PythonFunctionTask
from flytekit.core.utils import load_proto_from_file
from flytekit.models.literals import LiteralMap
from typing_extensions import override

from ..cluster.names import job_name
from ..cluster.phase import FAILURES, Verdict
from ..cluster.progress import progress_of
from ..connector.follower import Look
from ..connector.messages import UnansweredError
from ..connector.metadata import JobMetadata
from ..errors import KubeRayError
from ..wire import FlyteTask, from_template
from .choice import Cluster
from .display import Display
from .interrupt import heard_elsewhere
from .remote_error import remote_error
from .request import Request, request_of

_POLL_SECONDS = 0.5  # a look costs no call
_NODES = itertools.count()


@dataclass(frozen=True)
class _End:
    """How an attempt ended: SUCCEEDED, or a failure with what to raise for it."""

    phase: TaskExecution.Phase
    error: KubeRayError | None = None
    ours: bool = False  # KubeRay knows of no end: its job goes on, and no ttl begins


@dataclass(frozen=True)
class _Attempt:
    """One attempt, and what is known of its RayJob; its text is the RayJob's place and name."""

    task: FlyteTask
    creation: Future[JobMetadata]

    @override
    def __str__(self) -> str:
        return f"{self.task.execution.namespace}/{job_name(self.task)}"


def run_on(cluster: Cluster, task: PythonFunctionTask[Any], inputs: LiteralMap, context: FlyteContext) -> LiteralMap:
    """The outputs of a task that ran on the cluster.

    Raises:
        RemoteTaskError: What its code raised.
        KubeRayError: It could not be run, or failed otherwise; the text says why.
    """
    request = request_of(task, inputs, context, node=f"n{next(_NODES)}", namespace=cluster.namespace)
    with Display(task.name) as display:
        if request.template.security_context.secrets:
            display.say("its secrets come only if Flyte's pod webhook serves this namespace")
        return _Run(cluster, task, request, context, display).outputs()


class _Run:
    def __init__(
        self,
        cluster: Cluster,
        task: PythonFunctionTask[Any],
        request: Request,
        context: FlyteContext,
        display: Display,
    ) -> None:
        self._cluster, self._task, self._request, self._display = cluster, task, request, display
        self._store = context.file_access
        ray = from_template(request.template)
        self._is_broken_off = False
        self._stays = ray.shutdown is not None or ray.ttl is not None  # the task says itself how long

    def outputs(self) -> LiteralMap:
        """The task's outputs, of the first attempt that succeeds.

        Raises:
            KubeRayError: None of them did, or none can be made.
        """
        attempts = self._task.metadata.retries + 1
        for number in range(attempts):
            end = self._attempt(number)
            if end.error is None:
                return self._outputs(number)
            failure = end.error
            if end.phase != TaskExecution.RETRYABLE_FAILED or self._is_broken_off:
                break
            if number + 1 < attempts:
                self._display.say(f"attempt {number + 1} of {attempts} has failed, the next one begins")
        raise failure

    def _attempt(self, number: int) -> _End:
        """How one attempt ended; its RayJob is gone then, unless the task says how long it stays after its end.

        Raises:
            KubeRayError: There was none: its RayJob was not created.
        """
        task = self._request.attempt(number)
        attempt = _Attempt(task, self._cluster.background.start(self._cluster.service.submit(task)))
        try:
            with heard_elsewhere(partial(self._break_off, attempt)):
                return self._seen_through(attempt)
        except KubeRayError as error:  # pyflyte would print where in our own code that was found
            raise error.with_traceback(None) from None
        except BaseException:  # Ctrl-C, of which flytekit makes a SystemExit; and whatever else
            self._break_off(attempt)
            raise

    def _seen_through(self, attempt: _Attempt) -> _End:
        try:
            job = attempt.creation.result()
            self._display.say(f"RayJob {job.namespace}/{job.name}" + (f" ({job.notes})" if job.notes else ""))
            end = self._end_of(job)
        except KubeRayError:
            self._remove(attempt)
            raise
        if end.ours or not self._stays:
            self._remove(attempt)
        return end

    def _break_off(self, attempt: _Attempt) -> None:
        """Removes the RayJob that is being created, or stands; no attempt follows."""
        self._is_broken_off = True
        try:
            self._display.say(
                f"its RayJob is being deleted; Ctrl-C once more leaves it as it is: flyte-kuberay delete {attempt}"
            )
        finally:
            self._remove(attempt)

    def _remove(self, attempt: _Attempt) -> None:
        """Deletes the attempt's RayJob, if there is one; where that is not sure, it says how to end it."""
        try:
            removal, doubt = self._cluster.service.remove(attempt.creation.result()), "it stays"
        except UnansweredError:
            removal, doubt = self._cluster.service.withdraw(attempt.task), "its RayJob may stand"
        except KubeRayError:  # it was not created
            return
        try:
            self._cluster.background.run(removal)
        except KubeRayError as error:
            self._display.say(f"{error}; {doubt}: flyte-kuberay delete {attempt}")

    def _end_of(self, job: JobMetadata) -> _End:
        """How the attempt ended; shown from here, for a reader of standard error may keep who writes waiting."""
        begun = datetime.now(timezone.utc)
        while True:
            look = self._cluster.background.run(self._cluster.service.look(job))
            now = datetime.now(timezone.utc)
            end = self._ended(look) or self._timed_out(now - begun)
            why = str(end.error or "").removeprefix(f"{self._task.name}: ") if end else ""
            verdict = Verdict(end.phase, why) if end else look.verdict
            self._display.show(progress_of(verdict, look.job, look.links, now=now, begun=begun))
            if end is not None:
                if look.diagnosis not in str(end.error):  # the user's own exception does not name it
                    self._display.say(f"diagnosis: {look.diagnosis}")
                return end
            time.sleep(_POLL_SECONDS)

    def _ended(self, look: Look) -> _End | None:
        """The end that was seen, None where it is none; what the user's code left decides."""
        verdict, left = look.verdict, look.results.error
        if verdict.phase not in (TaskExecution.SUCCEEDED, *FAILURES):
            return None
        if left is not None:
            phase = TaskExecution.RETRYABLE_FAILED if left.recoverable else TaskExecution.FAILED
            return _End(phase, remote_error(left, self._task.name), verdict.ours)
        if verdict.phase == TaskExecution.SUCCEEDED:
            return _End(verdict.phase, ours=verdict.ours)
        return _End(verdict.phase, KubeRayError(f"{self._task.name}: {verdict.message}"), verdict.ours)

    def _timed_out(self, elapsed: timedelta) -> _End | None:
        """The end by the task's own timeout, which holds for each attempt, and after which Flyte tries again."""
        timeout = self._task.metadata.timeout
        if not timeout or not isinstance(timeout, timedelta) or elapsed < timeout:
            return None
        error = KubeRayError(f"{self._task.name}: timed out after {timeout}")
        return _End(TaskExecution.RETRYABLE_FAILED, error, ours=True)

    def _outputs(self, number: int) -> LiteralMap:
        if not self._task.interface.outputs:
            return LiteralMap({})
        with tempfile.TemporaryDirectory(prefix="flyte-kuberay-") as folder:
            local = str(Path(folder, "outputs.pb"))
            self._store.get_data(f"{self._request.output_prefix(number)}/outputs.pb", local)
            outputs: LiteralMap = LiteralMap.from_flyte_idl(load_proto_from_file(LiteralMapMessage, local))
        return outputs
