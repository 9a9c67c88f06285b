"""Prints what one build of a RayJob costs, for a small, a medium and a large golden case, beside Flyte's Go code.

`make bench` runs it, nothing is asserted. Go's side is ../shared/oracle `bench`, where that folder is there:
BuildResource of the same case, in CPU time, since other load on the machine does not count in it. A second part shows
that the cost is linear in worker groups.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict

from tests.golden.case import FILES, Case, read_case

ORACLE = Path(__file__).parents[2] / "shared" / "oracle" / "build"
ROUNDS, BUILDS = 15, 20
GROUPS = (1, 10, 100)


def cpu_seconds(case: Case) -> float:
    """The median CPU seconds of one build."""
    taken = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(BUILDS):
            case.build()
        taken.append((time.process_time() - start) / BUILDS)
    return statistics.median(taken)


def oracle_case(case: Case) -> str:
    """A golden case in the form that the oracle takes."""
    raw = case.raw
    metadata = {**raw["execution"], "generated_name": "f1-n0-0"}
    form = {key: raw[key] for key in ("settings", "task_template", "output_prefix")}
    return json.dumps(form | {"default_pod_templates": raw["pod_templates"], "task_execution_metadata": metadata})


def go_cpu_seconds(oracle: Path, case: Case) -> float:
    """The CPU seconds of Go's BuildResource, with the fresh copy of the template that each call needs."""
    done = subprocess.run([oracle, "bench", "300"], input=oracle_case(case), capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return float(found["cpu_ns_per_op"]) / 1e9


def with_groups(case: Case, count: int) -> Case:
    """The case with that many copies of its first worker group."""
    cluster = case.task.template.custom["rayCluster"]
    group = MessageToDict(cluster["workerGroupSpec"][0])
    cluster.update({"workerGroupSpec": [{**group, "groupName": f"g{index}"} for index in range(count)]})
    return case


def main() -> None:
    """Measures and prints."""
    buildable = [
        case for case in map(read_case, FILES) if "rayjob" in case.raw["expected"] and "rayjob" in case.raw["go"]
    ]
    by_size = sorted(buildable, key=lambda case: len(json.dumps(case.raw["expected"])))
    oracle = None
    if ORACLE.exists():
        oracle = Path(subprocess.run([ORACLE], capture_output=True, text=True, check=True).stdout.strip())
    for size, case in zip(
        ("small", "medium", "large"), (by_size[0], by_size[len(by_size) // 2], by_size[-1]), strict=True
    ):
        ours = cpu_seconds(case)
        beside = f", {ours / go_cpu_seconds(oracle, case):.1f} times Go's" if oracle else ""
        print(f"build_ray_job, {size} ({case.name}): {ours * 1000:.2f} ms of CPU{beside}", flush=True)
    name = by_size[0].name
    times = [cpu_seconds(with_groups(read_case(next(f for f in FILES if f.stem == name)), count)) for count in GROUPS]
    shown = ", ".join(f"{count}: {each / times[0]:.1f}" for count, each in zip(GROUPS, times, strict=True))
    print(f"build_ray_job by worker groups, as multiples of one: {shown}", flush=True)


if __name__ == "__main__":
    main()
