"""A connector in this process, as the connector's own tests have it."""

from tests.connector.conftest import caller, seam

__all__ = ["caller", "seam"]
