"""Kubernetes quantities: the rows are facts of apimachinery's quantity.go, the property is decimal arithmetic."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.quantity import is_quantity, parse_quantity

NANO = Fraction(1, 10**9)
POWERS = {
    **{
        suffix: Decimal(1000) ** power
        for power, suffix in enumerate(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"], -3)
    },
    **{suffix: Decimal(1024) ** power for power, suffix in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], 1)},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0", Fraction(0), id="zero"),
        pytest.param("100m", Fraction(1, 10), id="thousandths"),
        pytest.param("1u", Fraction(1, 10**6), id="millionths"),
        pytest.param("1n", NANO, id="nano, the smallest"),
        pytest.param("1k", Fraction(1000), id="a thousand is a small k"),
        pytest.param("1Ki", Fraction(1024), id="binary"),
        pytest.param("1.5Gi", Fraction(3 * 2**29), id="a fraction of a binary unit"),
        pytest.param("1E", Fraction(10**18), id="E alone is exa"),
        pytest.param("1Ei", Fraction(2**60), id="Ei is exbi"),
        pytest.param("1E3", Fraction(1000), id="E before a number is an exponent"),
        pytest.param("1e3", Fraction(1000), id="so is e"),
        pytest.param("1e-3", Fraction(1, 1000), id="a negative exponent"),
        pytest.param("1e+3", Fraction(1000), id="an exponent with its sign"),
        pytest.param(".5", Fraction(1, 2), id="nothing before the point"),
        pytest.param("5.", Fraction(5), id="nothing after the point"),
        pytest.param("5.Mi", Fraction(5 * 2**20), id="nothing between point and suffix"),
        pytest.param("+1", Fraction(1), id="a plus sign"),
        pytest.param("-1", Fraction(-1), id="negative"),
        pytest.param("00012", Fraction(12), id="leading zeros"),
        pytest.param("0.0000000001", NANO, id="less than a nano is a nano"),
        pytest.param("-0.0000000001", -NANO, id="away from zero on the negative side too"),
        pytest.param("1.0000000001", 1 + NANO, id="more digits than nano are rounded up"),
        pytest.param("8Ei", Fraction(2**63 - 1), id="a binary quantity is cut to 63 bits"),
        pytest.param("-9Ei", Fraction(1 - 2**63), id="a negative one too"),
        pytest.param("9223372036854775808", Fraction(2**63), id="a decimal quantity is not"),
        pytest.param("1e30", Fraction(10**30), id="nor is a large exponent"),
        pytest.param(2, Fraction(2), id="a YAML integer"),
        pytest.param(0.5, Fraction(1, 2), id="a YAML float"),
    ],
)
def test_parse_quantity(text: Any, expected: Fraction) -> None:
    """A quantity is its exact amount."""
    assert parse_quantity(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("Gi", id="a suffix alone"),
        pytest.param(".", id="a point alone"),
        pytest.param("1 Gi", id="a blank between"),
        pytest.param(" 1", id="a blank before"),
        pytest.param("1\n", id="a newline behind"),
        pytest.param("--1", id="two signs"),
        pytest.param("1.2.3", id="two points"),
        pytest.param("1GB", id="a unit of bytes"),
        pytest.param("1K", id="a capital K is none"),
        pytest.param("1ki", id="a small ki is none"),
        pytest.param("1mi", id="mebi is written Mi"),
        pytest.param("1e", id="an exponent without a number"),
        pytest.param("1e3Ki", id="exponent and suffix"),
        pytest.param("1e3.5", id="a fraction as an exponent"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("1_000", id="an underscore"),
        pytest.param("١", id="a digit that is not ASCII"),
        pytest.param("inf", id="infinity"),
        pytest.param("nan", id="not a number"),
        pytest.param("1e999999999", id="an exponent that no machine can hold"),
        pytest.param(True, id="a YAML boolean"),
        pytest.param(None, id="null"),
        pytest.param([], id="a list"),
    ],
)
def test_no_quantity(text: Any) -> None:
    """Any other text is refused, and the error shows it."""
    with pytest.raises(ValueError) as caught:
        parse_quantity(text)
    assert [repr(text) in str(caught.value), is_quantity(text)] == [True, False]


@hypothesis.settings(deadline=None)
@given(st.decimals(-(10**6), 10**6, places=12), st.sampled_from(sorted(POWERS)))
def test_parse_quantity_is_decimal_arithmetic(number: Decimal, suffix: str) -> None:
    """The number times its suffix's power, rounded away from zero to the nano, a binary one cut to 63 bits."""
    with localcontext() as context:
        context.prec = 60
        amount = (number * POWERS[suffix]).quantize(Decimal("1e-9"), ROUND_UP)
        largest = Decimal(2**63 - 1) if suffix.endswith("i") else amount.copy_abs()
        expected = min(amount.copy_abs(), largest).copy_sign(amount)
    assert parse_quantity(f"{number:f}{suffix}") == Fraction(expected)


@hypothesis.settings(deadline=None)
@given(st.decimals(0, 10**6, places=3), st.integers(-9, 9), st.sampled_from("eE"))
def test_exponents_are_powers_of_ten(number: Decimal, exponent: int, letter: str) -> None:
    """A decimal exponent moves the point, in either letter case."""
    expected = number.scaleb(exponent).quantize(Decimal("1e-9"), ROUND_UP)
    assert parse_quantity(f"{number:f}{letter}{exponent}") == Fraction(expected)
