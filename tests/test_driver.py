"""Ray's start beside the driver: with which files, and which Ray is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from flytekitplugins.kuberay import KubeRayError
from flytekitplugins.kuberay.driver import DEFAULT_EXCLUDES, init_with_working_dir, refuse_open_ray

OVERRIDE = "RAY_OVERRIDE_JOB_RUNTIME_ENV"


class RecordedInit:
    """In place of `ray.init`: keeps what it was given, and fails as told."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.given: list[dict[str, Any]] = []

    def __call__(self, **given: Any) -> None:
        """Keeps the arguments."""
        self.given.append(given)
        if self.failure:
            raise self.failure


def test_workers_get_the_working_directory_less_the_excludes(tmp_path: Path) -> None:
    """On a cluster, Ray is given the directory and the patterns of what stays."""
    init = RecordedInit()
    init_with_working_dir(init, tmp_path, [*DEFAULT_EXCLUDES, "data"])
    assert init.given == [
        {"address": None, "runtime_env": {"working_dir": str(tmp_path), "excludes": [*DEFAULT_EXCLUDES, "data"]}}
    ]
    assert {"script_mode.tar.gz", "fast*.tar.gz", ".python_history", ".git", ".venv"} <= set(DEFAULT_EXCLUDES)


def test_the_working_directory_stands_above_the_runtime_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray refuses to start where both name one, unless it is told which counts; the user's own word on that counts."""
    monkeypatch.setenv(OVERRIDE, "0")
    init_with_working_dir(RecordedInit(), tmp_path, [])
    assert os.environ[OVERRIDE] == "0"
    monkeypatch.delenv(OVERRIDE)
    init_with_working_dir(RecordedInit(), tmp_path, [])
    assert os.environ[OVERRIDE] == "1"


def test_a_working_directory_above_rays_limit_is_explained(tmp_path: Path) -> None:
    """The error says what is large, less what is excluded, and what to do; Ray's own is its cause."""
    for name, size in (("data/a.bin", 3_000_000), ("data/b.bin", 1_000_000), (".git/x", 9_000_000), ("m.py", 1000)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(size))
    # as Ray 2.60 says it with its limit lowered
    failure = RuntimeError(
        "Failed to set up runtime environment.\nFailed to upload working_dir /x to the Ray cluster: "
        "Package size (2.86MiB) exceeds the maximum size of 1.91MiB. To exclude large files, add them to ..."
    )
    with pytest.raises(KubeRayError) as caught:
        init_with_working_dir(RecordedInit(failure), tmp_path, DEFAULT_EXCLUDES)
    assert str(caught.value) == (
        f"The working directory {tmp_path} is larger than Ray sends to its workers; the largest in it: "
        'data (3.8 MiB), m.py (0.0 MiB). Leave out what workers do not read with RayJobConfig(excludes=["data", ...]) '
        "or a .rayignore file, or keep it in the image or in an object store."
    )
    assert caught.value.__cause__ is failure


def test_other_failures_of_ray_pass_as_they_are(tmp_path: Path) -> None:
    """Nothing but the size limit is told anew."""
    failure = ConnectionError("no cluster")
    with pytest.raises(ConnectionError) as caught:
        init_with_working_dir(RecordedInit(failure), tmp_path, [])
    assert caught.value is failure


def refusal_of_open_ray(version: str, mode: str | None) -> str:
    """Why a task does not run with this Ray; "" where it does."""
    try:
        refuse_open_ray(version, mode)
    except KubeRayError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("version", "mode", "refused"),
    [
        pytest.param("2.52.0", "token", False, id="the first that can"),
        pytest.param("3.0.0.dev0", "token", False, id="a newer one"),
        pytest.param("2.51.1", "token", True, id="the last that can't"),
        pytest.param("2.9.3", "token", True, id="an older one"),
        pytest.param("2.9.3", None, False, id="an old one that is not told to"),
        pytest.param("2.9.3", "disabled", False, id="an old one that is told not to"),
    ],
)
def test_a_ray_that_is_open_though_it_should_not_is_refused(version: str, mode: str | None, refused: bool) -> None:
    """KubeRay can't see what the image holds, and a Ray before 2.52 does not read what it is told."""
    text = (
        "the Ray cluster was to ask for a token (authOptions, plugins.kuberay.ray-auth), but the image's Ray"
        f" {version} can't; use an image with Ray 2.52 or newer"
    )
    assert refusal_of_open_ray(version, mode) == (text if refused else "")
