"""What a call to the Kubernetes API can end with, and how it is told from the answer.

    KubeRayError
    ├── AccessError             no way to the cluster was found, or its kubeconfig can't be used
    └── ApiError                a call failed; its text names verb, resource, place and cause
        ├── NotFound            404: the object, or the namespace to create it in, is not there
        ├── UnknownResource     404: the server does not serve the resource at all (no proof of a deletion)
        ├── AlreadyExists       409 of a create
        ├── Conflict            409 otherwise: a precondition does not hold, or somebody else was faster
        ├── Forbidden           403: RBAC, a quota, an admission rule
        ├── Invalid             422 with the fields, and every other 4xx: asking again does not help
        ├── Unauthorized        401, transient: credentials are renewed
        ├── Expired             410, transient: the resource version or continue token is too old
        ├── TooManyRequests     429, transient
        ├── Unavailable         5xx, connection, TLS or DNS trouble, half an answer; transient
        └── DeadlineExceeded    no answer in time, the call may have been carried out; transient

Texts stay under 2 kB and hold no header and no body: of an answer only the `message` of its Status is told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import KubeRayError

_LONGEST_TEXT = 1500  # bytes


@dataclass(frozen=True)
class Call:
    """What was asked of the API server."""

    verb: str
    resource: str  # as RBAC names it: rayjobs.ray.io, pods/log
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        named = f"{self.verb} {self.resource}" + (f" {self.name}" if self.name else "")
        return named + (f" in namespace {self.namespace}" if self.namespace else "")


class AccessError(KubeRayError):
    """There is no usable way to a cluster."""


class ApiError(KubeRayError):
    """A call that failed.

    Args:
        call: What was asked.
        what: Why it failed; cut when it is long.
        retry_after: Seconds that the server asked to wait, if it did.
    """

    transient: ClassVar[bool] = False  # whether the same call may succeed later

    def __init__(self, call: Call, what: str, *, retry_after: float | None = None) -> None:
        self.call = call
        self.retry_after = retry_after
        super().__init__(f"{call}: {_short(what)}")


class NotFound(ApiError):
    """The object is not there, or the namespace that it was to be created in."""


class UnknownResource(ApiError):
    """The server does not serve the resource: its CustomResourceDefinition is missing, or what answered is no API."""


class AlreadyExists(ApiError):
    """An object of that name is there, perhaps still terminating."""


class Conflict(ApiError):
    """A precondition does not hold, or the object or a quota changed meanwhile."""


class Forbidden(ApiError):
    """The API server refuses the call to this identity, or an admission rule or quota refuses the object."""


class Invalid(ApiError):
    """The request is refused for what it says.

    Args:
        causes: (field, message) of each field that the server names; may be empty.
    """

    def __init__(self, call: Call, what: str, *, causes: tuple[tuple[str, str], ...] = ()) -> None:
        self.causes = causes
        super().__init__(call, what)


class Unauthorized(ApiError):
    """The server does not know who asks: a token that ended, until a new one is read."""

    transient = True


class Expired(ApiError):
    """The resource version or the continue token is too old: list anew."""

    transient = True


class TooManyRequests(ApiError):
    """The server is busy; `retry_after` says for how long."""

    transient = True


class Unavailable(ApiError):
    """No proper answer: the server is away, restarting or unwell, or the way to it is broken."""

    transient = True


class DeadlineExceeded(ApiError):
    """No answer in time; whether the call was carried out is not known."""

    transient = True


def error_of(call: Call, code: int, body: str, retry_after: str = "") -> ApiError:
    """The error that an answer other than 2xx, or an ERROR event of a watch, means.

    Args:
        call: What was asked.
        code: The HTTP status, or the `code` of the Status.
        body: The answer's body: a Status as JSON, or whatever stands between us and the server said.
        retry_after: The header Retry-After; only seconds count.

    Raises:
        Nothing.
    """
    status = _status_of(body)
    message = str(status.get("message") or f"the answer was HTTP {code} without a Kubernetes Status")
    wait = float(retry_after) if retry_after.isdecimal() else None
    if code == 403 and " cannot " in message:  # RBAC's words; what admission refuses reads otherwise
        narrow = f"a RoleBinding in namespace {call.namespace} or " if call.namespace else ""
        message += (
            f"; a cluster administrator has to grant it, by {narrow}a ClusterRoleBinding"
            " (deploy/rbac.yaml of flytekitplugins-kuberay has the roles)"
        )
    if code == 429 and wait is None:
        wait = 1.0
    kind = _kind_of(code, status)
    if kind is UnknownResource:
        message = "the API server does not serve this resource; is its CustomResourceDefinition installed?"
    if kind is Invalid:
        return Invalid(call, message, causes=_causes(status))
    return kind(call, message, retry_after=wait)


def _kind_of(code: int, status: dict[str, Any]) -> type[ApiError]:
    if code == 404:
        # The Status of a missing object names it; that of a missing resource has no name, or is plain text.
        return NotFound if _details(status).get("name") else UnknownResource
    if code == 409:
        return AlreadyExists if status.get("reason") == "AlreadyExists" else Conflict
    return _BY_CODE.get(code, Invalid if 400 <= code < 500 else Unavailable)


_BY_CODE: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    408: DeadlineExceeded,
    410: Expired,
    429: TooManyRequests,
    504: DeadlineExceeded,
}


def _status_of(body: str) -> dict[str, Any]:
    try:
        status = json.loads(body)
    except ValueError:
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}


def _details(status: dict[str, Any]) -> dict[str, Any]:
    return status.get("details") or {}


def _causes(status: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    causes = _details(status).get("causes") or []
    return tuple((str(cause.get("field", "")), _short(str(cause.get("message", "")))) for cause in causes)


def _short(text: str) -> str:
    line = " ".join(text.split()).encode(errors="replace")
    if len(line) <= _LONGEST_TEXT:
        return line.decode()
    return f"{line[:_LONGEST_TEXT].decode(errors='ignore')}... ({len(line) - _LONGEST_TEXT} bytes more)"
