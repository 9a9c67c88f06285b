"""What an answer of the API server means."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.kube.errors import (
    AlreadyExists,
    ApiError,
    Call,
    Conflict,
    DeadlineExceeded,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnknownResource,
    error_of,
)

from .scripted import status_of

CALL = Call("create", "rayjobs.ray.io", "flytesnacks-development", "f1-n0-0")
RBAC = (
    'rayjobs.ray.io is forbidden: User "system:serviceaccount:flyte:c" cannot create resource "rayjobs" in API group'
    ' "ray.io" in the namespace "flytesnacks-development"'
)


def error(code: int, reason: str = "", message: str = "because", **details: object) -> ApiError:
    """The error of a Status."""
    return error_of(CALL, code, json.dumps(status_of(code, reason, message, **details)))


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        pytest.param(error(400), Invalid, id="400 is about the request"),
        pytest.param(error(401), Unauthorized, id="401"),
        pytest.param(error(403), Forbidden, id="403"),
        pytest.param(error(404, "NotFound", name="f1-n0-0"), NotFound, id="404 that names the object: it is gone"),
        pytest.param(error(404, "NotFound"), UnknownResource, id="404 that names nothing: the resource is unknown"),
        pytest.param(
            error_of(CALL, 404, "404 page not found\n"), UnknownResource, id="404 of a server without the CRD"
        ),
        pytest.param(error(409, "AlreadyExists", name="f1"), AlreadyExists, id="409 of a namesake"),
        pytest.param(error(409, "Conflict", name="q"), Conflict, id="409 of a quota that changed meanwhile"),
        pytest.param(error(410, "Expired"), Expired, id="410"),
        pytest.param(error(413, "RequestEntityTooLarge"), Invalid, id="413: the object is too large"),
        pytest.param(error(422, "Invalid"), Invalid, id="422"),
        pytest.param(error(429, "TooManyRequests"), TooManyRequests, id="429"),
        pytest.param(error(500, "InternalError"), Unavailable, id="500: a webhook that does not answer"),
        pytest.param(error(503, "ServiceUnavailable"), Unavailable, id="503"),
        pytest.param(error(504, "Timeout"), DeadlineExceeded, id="504: it may have been done"),
        pytest.param(error_of(CALL, 502, "<html>secret</html>"), Unavailable, id="502 of a load balancer"),
        pytest.param(error_of(CALL, 302, ""), Unavailable, id="a redirect is no answer of an API server"),
    ],
)
def test_a_code_and_a_reason_make_the_class(got: ApiError, expected: type[ApiError]) -> None:
    """The class tells what happened; the caller needs no codes."""
    assert type(got) is expected


def test_only_passing_faults_are_transient() -> None:
    """What the server decided stays decided; everything else may go well later."""
    kinds: set[type[ApiError]] = {AlreadyExists, Conflict, DeadlineExceeded, Expired, Forbidden, Invalid, NotFound}
    kinds |= {TooManyRequests, Unauthorized, Unavailable, UnknownResource}
    transient = {Unauthorized, Expired, TooManyRequests, Unavailable, DeadlineExceeded}
    assert {kind for kind in kinds if kind.transient} == transient


@pytest.mark.parametrize(
    ("call", "binding"),
    [
        pytest.param(
            CALL, "a RoleBinding in namespace flytesnacks-development or a ClusterRoleBinding", id="in a namespace"
        ),
        pytest.param(Call("list", "rayjobs.ray.io"), "a ClusterRoleBinding", id="in the whole cluster"),
    ],
)
def test_a_missing_permission_names_verb_resource_namespace_and_remedy(call: Call, binding: str) -> None:
    """Who reads it knows what to grant, how, and where that stands."""
    expected = (
        f"{call}: {RBAC}; a cluster administrator has to grant it, by {binding}"
        " (deploy/rbac.yaml of flytekitplugins-kuberay has the roles)"
    )
    assert str(error_of(call, 403, json.dumps(status_of(403, "Forbidden", RBAC)))) == expected


def test_an_exceeded_quota_is_no_matter_of_permissions() -> None:
    """A 403 of admission is told as it is."""
    text = str(error(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q, requested: cpu=2'))
    assert text == f'{CALL}: pods "x" is forbidden: exceeded quota: q, requested: cpu=2'


def test_invalid_holds_each_field() -> None:
    """A caller can say each field in its reader's words."""
    causes = [
        {"reason": "FieldValueInvalid", "message": "Invalid value: -1", "field": "spec.ttlSecondsAfterFinished"},
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.entrypoint"},
    ]
    got = error(422, "Invalid", "RayJob is invalid", causes=causes)
    assert isinstance(got, Invalid)
    assert got.causes == (
        ("spec.ttlSecondsAfterFinished", "Invalid value: -1"),
        ("spec.entrypoint", "Required value"),
    )


@pytest.mark.parametrize(
    ("code", "header", "expected"),
    [
        pytest.param(429, "7", 7.0, id="the header's seconds"),
        pytest.param(429, "", 1.0, id="a second without a header"),
        pytest.param(429, "Wed, 21 Oct 2026 07:28:00 GMT", 1.0, id="a second for a date, which no API server sends"),
        pytest.param(503, "3", 3.0, id="a server that shuts down says it too"),
        pytest.param(503, "", None, id="nothing said"),
    ],
)
def test_how_long_the_server_asks_to_wait(code: int, header: str, expected: float | None) -> None:
    """`retry_after` is what the header Retry-After says."""
    assert error_of(CALL, code, "", header).retry_after == expected


def test_a_body_that_is_no_status_is_not_shown() -> None:
    """What a proxy says may hold anything."""
    assert (
        str(error_of(CALL, 502, "<html>password</html>"))
        == f"{CALL}: the answer was HTTP 502 without a Kubernetes Status"
    )


@given(st.integers(300, 599), st.text(max_size=10000), st.text(max_size=5))
def test_any_answer_gives_a_short_error(code: int, message: str, header: str) -> None:
    """No text is 2 kB long, whatever the server says."""
    for body in (message, json.dumps(status_of(code, "x", message)), json.dumps({"kind": "Status", "details": None})):
        assert len(str(error_of(CALL, code, body, header)).encode()) < 2000
