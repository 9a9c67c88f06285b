"""Each row of the design's table of differences from Flyte's Go code is tested by name."""

from __future__ import annotations

import re
from pathlib import Path

ROWS = {f"D{number}" for number in range(1, 26)}


def test_each_row_is_named_in_a_test() -> None:
    """Each of them stands in a test's name or docstring, next to what it says."""
    files = [path for folder in ("pod", "cluster") for path in Path(__file__).parent.parent.glob(f"{folder}/test_*.py")]
    facts = re.findall(r'(?:id="|""")(.*)', "\n".join(path.read_text("utf-8") for path in files))
    assert ROWS - {row for fact in facts for row in re.findall(r"\bD\d+\b", fact)} == set()
