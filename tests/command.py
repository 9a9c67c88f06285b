"""Commands that tests run as a user would."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def output_of(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """What the command printed; its error text stands in pytest's report when it fails."""
    done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stdout}"
    return done.stdout
