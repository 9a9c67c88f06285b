"""Calls that are tried again: which faults are worth it, and for how long."""

from __future__ import annotations

import math
import time

import pytest

from flytekitplugins.kuberay.connector.retry import retried
from flytekitplugins.kuberay.kube import ApiError, Call, Forbidden, Unavailable

CALL = Call("get", "pods", "ns", "p")
PASSING, LASTING = Unavailable(CALL, "it is away"), Forbidden(CALL, "no right")


class Scripted:
    """A call that fails as it is told, then succeeds; `seconds` holds what each try was given."""

    def __init__(self, *faults: ApiError) -> None:
        self._faults = list(faults)
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> str:
        """What it gives."""
        self.seconds.append(seconds)
        if self._faults:
            raise self._faults.pop(0)
        return "done"


async def test_a_passing_fault_is_got_over() -> None:
    """The call is tried again, each try with five seconds of its own while there is time."""
    call = Scripted(PASSING, PASSING)
    assert await retried(call, math.inf) == "done"
    assert call.seconds == [5.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("fault", "left"),
    [
        pytest.param(LASTING, math.inf, id="one that will not pass"),
        pytest.param(PASSING, 0.0, id="one that may pass, where no time is left"),
        pytest.param(Unavailable(CALL, "later", retry_after=60.0), 30.0, id="one that may pass, but not in time"),
    ],
)
async def test_a_fault_that_stays_is_raised(fault: ApiError, left: float) -> None:
    """The call is made once."""
    call = Scripted(fault)
    with pytest.raises(ApiError) as caught:
        await retried(call, time.monotonic() + left)
    assert caught.value is fault
    assert len(call.seconds) == 1
