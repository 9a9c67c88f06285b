"""Which service account the pods run as: design D5."""

from __future__ import annotations

from typing import Any

import pytest

from flytekitplugins.kuberay.pod.account import service_account, with_one_service_account
from flytekitplugins.kuberay.wire import Manifest
from tests.pod.samples import container_task, settings


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"serviceAccount": "old"}, {"serviceAccountName": "old"}, id="the old field alone counts"),
        pytest.param(
            {"serviceAccount": "old", "serviceAccountName": "new"},
            {"serviceAccountName": "new"},
            id="the new field wins",
        ),
        pytest.param({"serviceAccount": ""}, {}, id="an empty old field says nothing"),
        pytest.param({"serviceAccountName": "new"}, {"serviceAccountName": "new"}, id="the new field alone"),
    ],
)
def test_with_one_service_account(spec: Manifest, expected: Manifest) -> None:
    """Kubernetes' deprecated `serviceAccount` is read as `serviceAccountName`."""
    assert with_one_service_account(spec) == expected


POD = {"serviceAccountName": "pod"}
RUN_AS = {"securityContext": {"runAs": {"k8sServiceAccount": "run-as"}}}
SETTING = {"serviceAccount": "setting"}
IDENTITY = {"identity": {"k8sServiceAccount": "identity"}}


@pytest.mark.parametrize(
    ("spec", "template", "ray", "execution", "expected"),
    [
        pytest.param(POD, RUN_AS, SETTING, IDENTITY, "pod", id="D5 the task pod's beats all below"),
        pytest.param({}, RUN_AS, SETTING, IDENTITY, "run-as", id="D5 then the task's run_as"),
        pytest.param({}, {}, SETTING, IDENTITY, "setting", id="D5 then the platform's setting"),
        pytest.param({}, {}, {}, IDENTITY, "identity", id="D5 then the execution's identity"),
        pytest.param({}, {}, {}, {}, "runner", id="D5 then the execution's service account"),
        pytest.param(
            {"serviceAccountName": "runner"},
            RUN_AS,
            {},
            {},
            "run-as",
            id="D5 a task pod's that is the execution's was put there by Flyte",
        ),
        pytest.param({}, {}, {}, {"k8sServiceAccount": ""}, "", id="none anywhere"),
    ],
)
def test_service_account(spec: Manifest, template: Any, ray: Manifest, execution: Manifest, expected: str) -> None:
    """Task pod > the task's run_as > the platform's setting > the execution's."""
    assert service_account(spec, container_task(execution=execution, **template), settings(ray=ray)) == expected
