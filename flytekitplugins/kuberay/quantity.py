"""Kubernetes quantities, exactly: `100m`, `1.5Gi`, `2e3`.

Source: k8s.io/apimachinery/pkg/api/resource/quantity.go (ParseQuantity): no more than nano precision, rounded away
from zero; with a binary suffix, values beyond 2**63-1 are cut to it.
"""

from __future__ import annotations

import functools
import math
import re
from fractions import Fraction
from typing import Any

_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")  # from 10**-9, by thousands
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")  # from 2**10, by 1024
_SUFFIXES = {suffix: Fraction(1000) ** (index - 3) for index, suffix in enumerate(_DECIMAL)}
_SUFFIXES |= {suffix: Fraction(1024) ** (index + 1) for index, suffix in enumerate(_BINARY)}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,9})|([a-zA-Z]{0,2}))", re.ASCII)
_NANO = 10**9
_LARGEST = Fraction(2**63 - 1)


def parse_quantity(text: Any) -> Fraction:
    """The amount of a quantity, exact to the nano.

    Args:
        text: Kubernetes' form; numbers, as YAML and protobuf Structs give them, are read as their text.

    Raises:
        ValueError: The text is no quantity.
    """
    if isinstance(text, bool):
        raise ValueError(f"{text!r} is no Kubernetes quantity such as 500m, 2 or 4Gi")
    return _parsed(str(text))


@functools.lru_cache(maxsize=1024)  # a platform knows few amounts, and asks for each many times
def _parsed(text: str) -> Fraction:
    found = _QUANTITY.fullmatch(text)
    number, exponent, suffix = found.groups() if found else ("", None, None)
    if found is None or (exponent is None and suffix not in _SUFFIXES):
        raise ValueError(f"{text!r} is no Kubernetes quantity such as 500m, 2 or 4Gi")
    if exponent is not None and abs(int(exponent)) > 30:
        raise ValueError(f"{text!r} is out of a Kubernetes quantity's range")
    amount = Fraction(number) * (Fraction(10) ** int(exponent) if exponent is not None else _SUFFIXES[suffix or ""])
    rounded = Fraction(math.ceil(abs(amount) * _NANO), _NANO)
    cut = min(rounded, _LARGEST) if suffix in _BINARY else rounded
    return -cut if amount < 0 else cut


def is_quantity(text: Any) -> bool:
    """Whether `parse_quantity` takes it."""
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True
