"""Measures how long a task takes on a real node, and writes docs/start-up.json; `make bench-cluster` runs it.

In one run: through this connector, by hand (the RayJob that `flyte-kuberay render` prints, created as it is), and as
Flyte's Go plugin makes it. Sides take turns. The first round after the node's start is cold, of the others the median
counts. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from bench.sides import SERIES, Bench, Seconds
from flytekitplugins.kuberay.config import SUBMISSION_MODES
from flytekitplugins.kuberay.kube import ApiKubeClient
from tests.connector.serving import calling
from tests.e2e.node import CLUSTER, ROOT, Node, flyte, what_is_missing
from tools.start_up import BY_HAND, GO, OURS, RECORD

STAGES = (
    "created",
    "head ready",
    "worker ready",
    "cluster ready",
    "RUNNING",
    "SUCCEEDED",
    "Complete",
    "answered SUCCEEDED",
)
_SEEN = {"initializing": "INITIALIZING", "cluster ready": "RUNNING", "SUCCEEDED": "SUCCEEDED"}
"""What a RayJob's status makes of the task's phase."""

Runs = dict[tuple[str, str], list[Seconds]]


async def measured(folder: Path, rounds: int, modes: list[str]) -> Runs:
    """The seconds to each stage by side and mode, of each round; this process runs in the node's network."""
    node = Node(folder / "node", folder)
    runs: Runs = defaultdict(list)
    async with await ApiKubeClient.open(os.environ["KUBECONFIG"]) as client, calling(node.connector) as caller:
        bench = Bench(node, client, caller)
        for number in range(rounds + 1):
            for side, mode in SERIES:
                if mode not in modes:
                    continue
                seconds = await bench.run(side, mode)
                runs[side, mode].append(seconds)
                shown = ", ".join(f"{stage} {seconds[stage]:.1f}" for stage in STAGES if stage in seconds)
                print(f"round {number}, {side}, {mode}, load {os.getloadavg()[0]:.0f}: {shown}", flush=True)
    return runs


def medians(runs: list[Seconds]) -> dict[str, float]:
    """The median second of each stage."""
    return {
        stage: round(statistics.median(run[stage] for run in runs if stage in run), 1)
        for stage in {stage: None for run in runs for stage in run}
    }


def print_ratios(warm: Mapping[tuple[str, str], Seconds]) -> None:
    """Prints what is aimed at, for each mode."""
    for (side, mode), ours in warm.items():
        if side != OURS:
            continue
        end = ours["answered SUCCEEDED"]
        for other, key, goal in ((BY_HAND, (BY_HAND, mode), "1"), (GO, (GO, "K8sJobMode"), "0.5")):
            if "Complete" in warm.get(key, {}):
                theirs = warm[key]["Complete"]
                print(
                    f"{mode}, CreateTask to SUCCEEDED / Complete of {other}: {end / theirs:.2f}"
                    f" ({end:.1f} / {theirs:.1f} s; goal: at most {goal})"
                )


def print_lateness(runs: Runs) -> None:
    """Prints how much later an answer says a phase than the RayJob's status does, asked every half second."""
    for status, phase in _SEEN.items():
        late = [
            run[f"answered {phase}"] - run[status] for (side, _), all_ in runs.items() if side == OURS for run in all_
        ]
        print(f"{phase} seen late by: {statistics.median(late):.1f} s, at most {max(late):.1f} s (goal: at most 2)")


def record(runs: Runs, loads: list[float]) -> None:
    """Nothing; the numbers stand in docs/start-up.json."""
    series = [
        {
            "side": side,
            "mode": mode,
            "runs": len(each),
            "ended": sum("SUCCEEDED" in run for run in each),
            "cold": each[0],
            "warm": medians(each[1:] or each),
        }
        for (side, mode), each in runs.items()
    ]
    machine = {"date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count(), "load": [round(load, 1) for load in loads]}
    RECORD.write_text(json.dumps({"machine": machine, "series": series}, indent=1) + "\n", encoding="utf-8")


def on_a_node(arguments: list[str]) -> None:
    """Nothing; a node was there for this program, run once more in its network."""
    with tempfile.TemporaryDirectory() as built, tempfile.TemporaryDirectory(prefix="e2e-") as folder:
        subprocess.run([ROOT / "tools" / "uv", "build", "--quiet", "--wheel", "--out-dir", built, ROOT], check=True)
        with flyte(Path(folder), next(Path(built).glob("*.whl")), announce) as node:
            program = [str(CLUSTER / "enter"), sys.executable, "-m", "bench.cluster", "--folder", folder]
            subprocess.run([*program, *arguments], check=True, cwd=ROOT, env=node.environ())


def announce(text: str) -> None:
    """Prints a step of the node's start."""
    print(f"bench: {text}", flush=True)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="after the cold one")
    parser.add_argument("--modes", nargs="+", default=list(SUBMISSION_MODES))
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder is None:
        missing = what_is_missing()
        print(f"no node can run here: {missing} is missing") if missing else on_a_node(sys.argv[1:])
        return
    loads = [os.getloadavg()[0]]
    runs = asyncio.run(measured(arguments.folder, arguments.rounds, arguments.modes))
    loads.append(os.getloadavg()[0])
    print_ratios({key: medians(each[1:] or each) for key, each in runs.items()})
    print_lateness(runs)
    record(runs, loads)


if __name__ == "__main__":
    main()
