"""Durations as Go writes them, `90s` or `1h30m`: kinds for Flyte's settings and for ours."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

from .kinds import Kind, Place

_MAX = 2**63 - 1  # nanoseconds
_MICRO, _MINUTE = 10**3, 60 * 10**9
_UNITS = {
    "ns": 1,
    "us": _MICRO,
    "µs": _MICRO,
    "μs": _MICRO,
    "ms": 10**6,
    "s": 10**9,
    "m": _MINUTE,
    "h": 60 * _MINUTE,
}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_REMEDY = "write it with units, as 90s, 3m or 1h30m"


def duration(least: timedelta = timedelta()) -> Kind:
    """A duration of ours: a bare number tells no unit, so that only 0 may be one."""
    wanted = f"a duration of {least.total_seconds():g}s or more" if least else "a duration"

    def read(value: Any, place: Place) -> timedelta:
        length = _parsed("0" if value == 0 and not isinstance(value, bool) else value)
        if length is None or length < least:
            place.refuse(wanted, value, _REMEDY)
        return length or timedelta()

    return Kind("a duration", read)


def _read_flyte_duration(value: Any, place: Place) -> timedelta:
    """As Flyte: empty text is 0, a bare number counts nanoseconds, and it may be negative."""
    text = f"{value}ns" if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    length = _parsed("0" if text == "" else text)
    if length is None:
        place.refuse("a duration", value, _REMEDY)
    return length or timedelta()


def _parsed(value: Any) -> timedelta | None:
    """The duration that a text says; None where it says none. Source: Go, time.ParseDuration."""
    text = value if isinstance(value, str) else ""
    number = text[1:] if text.startswith(("-", "+")) else text
    parts = _PART.findall(number)
    nanoseconds = sum(int(Decimal(amount) * _UNITS[unit]) for amount, unit in parts)
    is_complete = number == "0" or (parts and "".join(amount + unit for amount, unit in parts) == number)
    if not is_complete or nanoseconds > _MAX:
        return None
    return timedelta(microseconds=nanoseconds // 1000) * (-1 if text.startswith("-") else 1)


FLYTE_DURATION = Kind("a duration", _read_flyte_duration)
DURATION = duration()
