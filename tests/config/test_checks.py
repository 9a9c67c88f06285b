"""Quantities as Kubernetes reads them."""

from decimal import Decimal

import pytest

from flytekitplugins.kuberay.config.checks import amount


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        pytest.param("500m", Decimal("0.5"), id="thousandths"),
        pytest.param("1.5Gi", Decimal(1610612736), id="powers of 1024"),
        pytest.param("2k", Decimal(2000), id="powers of 1000, small k"),
        pytest.param("1E", Decimal(10) ** 18, id="E alone is a suffix"),
        pytest.param("1e3", Decimal(1000), id="e with digits is an exponent"),
        pytest.param(".5", Decimal("0.5"), id="no digit before the point"),
        pytest.param(2048, Decimal(2048), id="a number"),
        pytest.param("2K", None, id="a large K alone is no suffix"),
        pytest.param("-1", None, id="negative"),
        pytest.param("1 Gi", None, id="a blank"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="None"),
    ],
)
def test_amount(quantity: object, expected: Decimal | None) -> None:
    """A quantity has the size that Kubernetes gives it; what is none has none."""
    assert amount(quantity) == expected
