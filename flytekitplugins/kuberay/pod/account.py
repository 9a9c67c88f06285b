"""The service account that a task's pods run as (design D5)."""

from __future__ import annotations

from ..settings import Settings
from ..wire import FlyteTask, Manifest


def with_one_service_account(spec: Manifest) -> Manifest:
    """The pod spec with the deprecated `serviceAccount` read as the `serviceAccountName` that it means."""
    rest = {key: value for key, value in spec.items() if key != "serviceAccount"}
    return (
        {**rest, "serviceAccountName": spec["serviceAccount"]}
        if spec.get("serviceAccount") and not spec.get("serviceAccountName")
        else rest
    )


def service_account(spec: Manifest, task: FlyteTask, settings: Settings) -> str:
    """Who the pods run as. D5 (design): task pod > the task's run_as > the platform's setting > the execution's."""
    own = spec.get("serviceAccountName") or ""
    execution = task.execution.k8s_service_account
    return str(
        (own if own != execution else "")  # an earlier pass of Flyte left the execution's there
        or task.template.security_context.run_as.k8s_service_account
        or settings.ray.service_account
        or task.execution.identity.k8s_service_account
        or execution
    )
