"""What is said of a RayJob that an API server or a webhook refuses, and the notes of one that it takes."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.cluster.operator import Fitted
from flytekitplugins.kuberay.connector.messages import notes_of, refusal_of
from flytekitplugins.kuberay.kube import ApiError, Call, Created, Forbidden, Invalid

CALL = Call("create", "rayjobs.ray.io", "ns", "j")
ASKED = "create rayjobs.ray.io j in namespace ns"
HEAD = "spec.rayClusterSpec.headGroupSpec.template"
MORE = ("<nil>", "Invalid value: some validation rules were not checked")


def invalid(*causes: tuple[str, str]) -> Invalid:
    """A 422 with these causes."""
    return Invalid(CALL, f"RayJob is invalid: {HEAD}: no", causes=causes)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(
            invalid((HEAD, "Required value"), MORE),
            f"{ASKED}: the API server refuses it: head: template: Required value",
            id="the field",
        ),
        pytest.param(
            invalid((HEAD, "Required value"), ("spec.ttl", "Invalid value"), ("", "no team label")),
            f"{ASKED}: the API server refuses it: 2 problems:\n  - head: template: Required value\n"
            "  - spec.ttl: Invalid value",
            id="the fields alone, where there are any",
        ),
        pytest.param(
            invalid(MORE), f"{ASKED}: RayJob is invalid: head: template: no", id="only that there may be more"
        ),
        pytest.param(
            invalid(("", "no team label")),
            f"{ASKED}: RayJob is invalid: head: template: no",
            id="a webhook's cause without a field",
        ),
        pytest.param(invalid(), f"{ASKED}: RayJob is invalid: head: template: no", id="no cause"),
        pytest.param(Forbidden(CALL, "exceeded quota"), f"{ASKED}: exceeded quota", id="another refusal"),
    ],
)
def test_a_refusal_says_what_is_wrong(error: ApiError, expected: str) -> None:
    """By the fields that are named, else by the message, which an API server makes of all causes."""
    assert str(refusal_of(error, {})) == expected


def test_long_notes_keep_their_beginning_and_their_end() -> None:
    """And a mark where they are cut."""
    notes = notes_of(Fitted({}, lost="lost"), Created({}, warnings=(f"first{'x' * 1000}last",)))
    assert (notes[:27], " ... " in notes, notes[-5:], len(notes)) == ("lost; API server: firstxxxx", True, "xlast", 500)
