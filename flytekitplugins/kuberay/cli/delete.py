"""`delete`: ends one task's RayJob."""

from __future__ import annotations

import argparse
import asyncio

from .. import kube
from ..settings import Settings
from .output import print_text
from .target import NotThereError, Target, name_problems, named, opened, settings_of


def delete(arguments: argparse.Namespace) -> None:
    """Deletes the RayJob and prints its name, or that nothing was there.

    Raises:
        ProblemsError: The arguments or the settings can't be used.
        KubeRayError: The cluster can't be asked, or the RayJob is not of this package.
    """
    settings = settings_of(arguments, name_problems(arguments))
    print_text(f"{asyncio.run(_run(arguments, settings))}\n")


async def _run(arguments: argparse.Namespace, settings: Settings) -> str:
    async with await opened(arguments, settings, "delete") as client:
        try:
            target = await named(client, arguments, settings)
            await client.delete(kube.RAYJOBS, target.namespace, target.name, uid=target.uid)
        except NotThereError as error:
            return f"nothing to delete: {error}"
        except (kube.NotFound, kube.Conflict):  # gone meanwhile, perhaps with a namesake in its place
            return f"nothing to delete: RayJob {target} was just deleted by somebody else"
    return _told(target)


def _told(target: Target) -> str:
    task = f" (task {target.task})" if target.task else ""
    done = f"deleted RayJob {target}{task}; its cluster and pods go with it"
    if not target.by_propeller:
        return done
    return (
        f"{done}. To Flyte this attempt is lost, and another may follow: to end execution {target.execution}, abort it"
    )
