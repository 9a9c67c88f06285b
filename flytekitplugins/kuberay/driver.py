"""Ray's start in the pod where the task's function runs as the driver: which Ray, and which files its workers get.

`import ray` happens only when a task runs: registering needs no Ray.
"""

from __future__ import annotations

import fnmatch
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .errors import KubeRayError

DEFAULT_EXCLUDES = (
    # what Flyte's fast registration leaves behind
    "script_mode.tar.gz",
    "fast*.tar.gz",
    ".python_history",
    # version control
    ".git",
    ".hg",
    ".svn",
    # virtual environments: the workers' image has its own
    ".venv",
    "venv",
    ".conda",
    ".tox",
    ".nox",
    "node_modules",
    # caches
    "__pycache__",
    ".cache",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".ipynb_checkpoints",
    # large and never read by workers: core dumps, and the records of experiment trackers
    "core.[0-9]*",
    "mlruns",
    "wandb",
)
"""What workers do not get of the working directory, as .gitignore patterns; `excludes=["!wandb"]` takes one back.

Data files are not among them: workers may read them.
"""

_TOO_LARGE = ("exceeds the maximum size", "larger than max", "resource_exhausted")
_MIB = 2**20


def installed_ray() -> Any:
    """The module `ray`.

    Raises:
        KubeRayError: Ray is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        remedy = "install flytekitplugins-kuberay[ray] here, or the Ray of the cluster's images"
        raise KubeRayError(f"Ray is not installed, and the task can't run without it; {remedy}") from error


def refuse_open_ray(version: str, auth_mode: str | None) -> None:
    """Refuses a Ray that does not ask for a token though KubeRay told it to.

    Args:
        version: Ray's, which nobody outside the image knows.
        auth_mode: RAY_AUTH_MODE, to which a Ray before 2.52 is deaf.

    Raises:
        KubeRayError: This Ray is too old to ask for one: everybody in the cluster's network could run code in it.
    """
    if auth_mode == "token" and tuple(map(int, version.split(".")[:2])) < (2, 52):
        raise KubeRayError(
            "the Ray cluster was to ask for a token (authOptions, plugins.kuberay.ray-auth), but the image's Ray"
            f" {version} can't; use an image with Ray 2.52 or newer"
        )


def init_with_working_dir(
    init: Callable[..., Any], directory: Path, excludes: Sequence[str], address: str | None = None
) -> None:
    """Starts Ray with the directory for its workers.

    Args:
        init: `ray.init`.
        directory: What the workers find as their working directory.
        excludes: Patterns, as in .gitignore, of what stays here.
        address: Of the cluster; None takes the one that the job runs on.

    Raises:
        KubeRayError: The directory is larger than Ray takes; the text says what is large and what helps.
    """
    runtime_env = {"working_dir": str(directory), "excludes": list(excludes)}
    # Where RayJobConfig.runtime_env has a working_dir, this directory is it, with the task's code added to it
    os.environ.setdefault("RAY_OVERRIDE_JOB_RUNTIME_ENV", "1")
    try:
        init(address=address, runtime_env=runtime_env)
    except Exception as error:  # noqa: BLE001  # Ray has no class for this; anything else goes on as it is
        if not any(words in str(error).lower() for words in _TOO_LARGE):
            raise
        raise KubeRayError(_too_large(directory, excludes)) from error


def _too_large(directory: Path, excludes: Sequence[str]) -> str:
    sizes: dict[str, int] = {}
    for path, size in _files(directory, excludes):
        top = path.relative_to(directory).parts[0]
        sizes[top] = sizes.get(top, 0) + size
    largest = sorted(sizes.items(), key=lambda item: item[1], reverse=True)[:5]
    listed = ", ".join(f"{name} ({size / _MIB:.1f} MiB)" for name, size in largest)
    return (
        f"The working directory {directory} is larger than Ray sends to its workers; the largest in it: {listed}. "
        'Leave out what workers do not read with RayJobConfig(excludes=["data", ...]) or a .rayignore file, '
        "or keep it in the image or in an object store."
    )


def _files(directory: Path, excludes: Sequence[str]) -> Iterator[tuple[Path, int]]:
    for folder, folders, names in os.walk(directory):
        folders[:] = [name for name in folders if not _is_excluded(name, excludes)]
        for name in names:
            path = Path(folder, name)
            if not _is_excluded(name, excludes) and path.is_file():
                yield path, path.stat().st_size


def _is_excluded(name: str, excludes: Sequence[str]) -> bool:
    """Whether a plain name pattern fits; enough to tell what is large, Ray alone knows what it sends."""
    return any(fnmatch.fnmatch(name, pattern.strip("/")) for pattern in excludes)
