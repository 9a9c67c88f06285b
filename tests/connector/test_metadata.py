"""The resource metadata: what propeller keeps of a task, and gives to whatever release runs by then."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.connector.metadata import JobMetadata
from flytekitplugins.kuberay.errors import KubeRayError

FIRST_RELEASE = (
    b'{"namespace":"p-d","name":"f0-n0-0-0a1b2c3d","uid":"4f0c","output_prefix":"s3://b/f0/n0/data/0",'
    b'"has_outputs":true,"notes":"","v":1}'
)
METADATA = JobMetadata("p-d", "f0-n0-0-0a1b2c3d", "4f0c", "s3://b/f0/n0/data/0", has_outputs=True)


@given(st.text(), st.text(), st.text(), st.text(), st.booleans(), st.text())
def test_what_is_encoded_is_decoded(
    namespace: str, name: str, uid: str, prefix: str, has_outputs: bool, notes: str
) -> None:
    """Any text comes back."""
    metadata = JobMetadata(namespace, name, uid, prefix, has_outputs, notes)
    assert JobMetadata.decode(metadata.encode()) == metadata


def test_the_first_release_wrote_this() -> None:
    """Tasks outlive releases: these bytes are read for ever."""
    assert JobMetadata.decode(FIRST_RELEASE) == METADATA
    assert METADATA.encode() == FIRST_RELEASE


def test_what_a_newer_release_adds_is_left_aside() -> None:
    """After a roll-back of the connector its tasks go on."""
    newer = {**json.loads(FIRST_RELEASE), "v": 2, "deadlines": {"start": 5}}
    assert JobMetadata.decode(json.dumps(newer).encode()) == JobMetadata(**{**METADATA.__dict__, "v": 2})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"[1]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"job_id": "j"}', id="another connector's"),
        pytest.param(FIRST_RELEASE.replace(b'"4f0c"', b"1"), id="a field of another type"),
        pytest.param(b"[" * 100_000, id="nested without end"),
    ],
)
def test_what_is_not_ours_is_refused(data: bytes) -> None:
    """With its beginning, who may have made it, and what to do."""
    with pytest.raises(KubeRayError) as caught:
        JobMetadata.decode(data)
    assert str(caught.value) == (
        f"the resource metadata was not made by flytekitplugins-kuberay, got {data[:80]!r}; another connector has"
        " probably created the task: let that one serve it to its end, or abort the execution and start it anew"
    )
