"""Propeller's configuration as docs/connector.md shows it, read by Flyte's own loader."""

from __future__ import annotations

import re
from pathlib import Path

from .propelling import Propeller


async def test_propeller_takes_the_configuration_of_the_manual(propeller: Propeller) -> None:
    """Flyte's own loader, which is strict, reads docs/connector.md's block; a task runs by it."""
    manual = (Path(__file__).parents[2] / "docs" / "connector.md").read_text(encoding="utf-8")
    (block,) = [block for block in re.findall(r"```yaml\n(.*?)```", manual, re.S) if "connectorForTaskTypes" in block]
    settings = block.replace("dns:///flyte-kuberay.flyte.svc.cluster.local:8000", "dns:///ENDPOINT").replace(
        "ray: connector-service",
        "ray: connector-service-watched",  # as propeller-client calls its own
    )
    async with propeller.runs(settings=settings) as run:
        await run.succeeds(await run.job())
        status, end = await run.ends()
    assert (status, end["phase"]) == (0, "SUCCEEDED")


async def test_propeller_gets_over_failures_as_the_manual_says(propeller: Propeller) -> None:
    """Eight GetTasks fail after the first: with maxSystemFailures of 5 the task would be frozen."""
    settings = "plugins: {connector-service: {webApi: {caching: {maxSystemFailures: 50}}}}"
    async with propeller.runs("--fail", "GetTask=8@1", settings=settings) as run:
        job = await run.job()
        await run.until(lambda _: [call["code"] for call in run.calls("GetTask")].count("Unavailable") == 8)
        await run.succeeds(job)
        status, end = await run.ends()
    assert (status, end["phase"]) == (0, "SUCCEEDED")
    assert end["calls"]["GetTask"]["errors"] == {"Unavailable": 8}
