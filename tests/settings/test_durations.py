"""Durations: sums of parts, and whose bare number counts what."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.settings import parse_settings

from .documents import kuberay


@given(
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["h", "m", "s", "ms", "us"])), min_size=1, max_size=5),
)
def test_durations_are_sums_of_their_parts(parts: list[tuple[int, str]]) -> None:
    """A duration counts its parts as Go does, in any order and number."""
    unit = {
        "h": timedelta(hours=1),
        "m": timedelta(minutes=1),
        "s": timedelta(seconds=1),
        "ms": timedelta(milliseconds=1),
        "us": timedelta(microseconds=1),
    }
    text = "".join(f"{amount}{name}" for amount, name in parts)
    expected = sum((amount * unit[name] for amount, name in parts), timedelta())
    assert parse_settings(kuberay(run_deadline=text)).kuberay.run_deadline == expected
