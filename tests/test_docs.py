"""What tools/docs.py writes into the documentation."""

import pytest

from tools.docs import PAGE, with_tables


def test_the_documentation_is_up_to_date() -> None:
    """docs/settings.md holds the tables that the code gives; `make docs` writes them."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text


def test_tables_need_their_marks() -> None:
    """A document without the marks is refused, not overwritten."""
    with pytest.raises(ValueError, match="must hold the lines"):
        with_tables("# Settings\n")
