"""The task runner's list of its targets."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = re.findall(r"^([^\s:.]+):(?!=)", MAKEFILE, re.MULTILINE)


def test_help_lists_every_target() -> None:
    """`make help` has a line for each target, in the Makefile's order."""
    listed = subprocess.run(["make", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^  (\S+)  ", listed, re.MULTILINE) == TARGETS


def test_no_target_is_a_file() -> None:
    """Each target is phony: a file or folder of its name, such as docs/, changes nothing."""
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None
    assert sorted(phony[1].split()) == sorted(TARGETS)
