"""Options and fixtures of all tests."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --golden, which writes golden files anew in place of comparing with them."""
    parser.addoption("--golden", action="store_true", help="write golden files anew; CI never does")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written anew."""
    return bool(request.config.getoption("--golden"))
