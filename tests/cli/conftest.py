"""The command, run in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from flytekitplugins.kuberay.cli import main
from tests.cli.running import Ended, Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `flyte-kuberay render` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLYTE_KUBERAY_CONFIG", raising=False)

    def run(*arguments: str) -> Ended:
        status = main(["render", *arguments])
        return Ended(status, *capsys.readouterr())

    return run
