"""Prints what this package costs, as ratios measured in one run; `make bench` runs it, and nothing is asserted.

All is measured in one clean venv, .venv-bench. A plugin under test lies in a folder of its own on PYTHONPATH: ours,
upstream's, or an empty one. So both sides have the same Python, the same packages and the same length of sys.path.
Sides take turns, and medians are compared, since other load on the machine hits both alike.
"""

from __future__ import annotations

import functools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
UV = ROOT / "tools" / "uv"
VENV = ROOT / ".venv-bench"
PYTHON = VENV / "bin" / "python"
UPSTREAM = "flytekitplugins-ray==1.16.31"
EXAMPLE = ROOT / "examples" / "squares.py"

IMPORTS, RUNS = 15, 6


def installed() -> dict[str, Path]:
    """The folders that hold a plugin under test, in a venv that has none of them.

    Raises:
        subprocess.CalledProcessError: uv could not install; its own words were printed.
    """
    folders = {name: VENV / name for name in ("ours", "upstream", "none")}

    def uv(*arguments: str | Path) -> None:
        subprocess.run([UV, *arguments], check=True)

    uv("venv", "--quiet", "--clear", "--python", sys.executable, VENV)
    install = ("pip", "install", "--quiet", "--python", PYTHON, "--compile-bytecode")
    uv(*install, "--requirement", ROOT / "requirements.lock")
    uv("build", "--quiet", "--python", sys.executable, "--out-dir", VENV / "dist", ROOT)
    uv(*install, "--no-deps", "--target", folders["ours"], next(VENV.glob("dist/*.whl")))
    uv(*install, "--no-deps", "--target", folders["upstream"], UPSTREAM)
    folders["none"].mkdir()
    return folders


def seconds(command: list[str | Path], plugin: Path, cwd: Path) -> float:
    """How long a command took, start of Python included, with one plugin to be found.

    Raises:
        subprocess.CalledProcessError: The command failed.
    """
    env = {**os.environ, "PYTHONPATH": str(plugin), "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    start = time.perf_counter()
    subprocess.run(command, check=True, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    return time.perf_counter() - start


def medians(sides: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median seconds of each side; they take turns, in both orders. The first turn, to fill caches, counts not."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, side in list(sides.items())[:: 1 if turn % 2 else -1]:
            took = side()
            if turn:
                taken[name].append(took)
    return {name: statistics.median(each) for name, each in taken.items()}


def bench_import(folders: Mapping[str, Path]) -> None:
    """Prints what the package adds to `import flytekit`."""
    command: list[str | Path] = [PYTHON, "-c", "import flytekit"]
    sides = {name: functools.partial(seconds, command, folders[name], VENV) for name in ("ours", "none")}
    got = medians(sides, IMPORTS)
    ratio, more = got["ours"] / got["none"], (got["ours"] - got["none"]) * 1000
    print(f"import flytekit, with this package / without: {ratio:.3f} ({more:+.0f} ms; goal: at most +15)", flush=True)


def bench_run(folders: Mapping[str, Path]) -> None:
    """Prints what `make demo`'s run takes, beside the same example with upstream's plugin."""
    command: list[str | Path] = ["pyflyte", "run", EXAMPLE.name, "sum_of_squares", "--n", "10"]
    text, sides = EXAMPLE.read_text(encoding="utf-8"), {}
    for name, module in (("ours", "flytekitplugins.kuberay"), ("upstream", "flytekitplugins.ray")):
        (folders[name] / EXAMPLE.name).write_text(text.replace("flytekitplugins.kuberay", module), encoding="utf-8")
        sides[name] = functools.partial(seconds, command, folders[name], folders[name])
    got = medians(sides, RUNS)
    ratio = got["ours"] / got["upstream"]
    print(
        f"pyflyte run {EXAMPLE.name}, this package / {UPSTREAM}: {ratio:.2f} ({got['ours']:.1f} s; goal: at most 1.00)"
    )


def main() -> None:
    """Measures and prints."""
    print(f"bench: installing both plugins into {VENV.name}", flush=True)
    folders = installed()
    bench_import(folders)
    bench_run(folders)


if __name__ == "__main__":
    main()
