"""Which RayJob a name means, and what is said where it means none, several, or another's."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from flytekitplugins.kuberay.kube import ApiKubeClient
from tests.api import ApiServer, fresh_namespace
from tests.cli.running import Ended
from tests.kube.samples import rayjob
from tests.kube.scripted import Reply, ScriptedServer, failure

from .tasks import Command, Tasks, our_job

LEFT = "; of a task that failed the diagnosis stands beside its outputs (kuberay-diagnosis.txt)"


def first_line(ended: Ended) -> str:
    """Of a status that was printed."""
    assert (ended.status, ended.err) == (0, "")
    return ended.out.partition("\n")[0]


async def test_a_name_is_looked_for_everywhere(command: Command, tasks: Tasks) -> None:
    """Where nobody says where it is."""
    await tasks.add(our_job(tasks.namespace))
    assert first_line(await command("status", tasks.namespace)) == f"RayJob {tasks.namespace}/{tasks.namespace}"


async def test_the_kubeconfigs_namespace_comes_first(
    command: Command, tasks: Tasks, client: ApiKubeClient, api_server: ApiServer
) -> None:
    """A namesake elsewhere does not matter then; without it several are told, and none is chosen."""
    async with fresh_namespace(client) as other:
        for namespace in (tasks.namespace, other):
            await Tasks(client, namespace).add(our_job("twin"))
        names = ", ".join(f"{namespace}/twin" for namespace in sorted((tasks.namespace, other)))
        expected = f"error: NAME: twin is the name of several: {names}; write NAMESPACE/NAME\n"
        assert await command("status", "twin") == Ended(2, "", expected)
        both = ("--namespace", tasks.namespace, "--namespace", other)
        assert await command("status", "twin", *both) == Ended(2, "", expected)
        config = yaml.safe_load(Path(api_server.kubeconfig).read_text())
        for context in config["contexts"]:
            context["context"]["namespace"] = other
        Path("kubeconfig").write_text(yaml.safe_dump(config))
        assert first_line(await command("status", "--kubeconfig", "kubeconfig", "twin")) == f"RayJob {other}/twin"


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        pytest.param(("no/such",), "RayJob such in namespace no", id="of a name with its namespace"),
        pytest.param(("--namespace", "no", "such"), "RayJob such in namespace no", id="of a name"),
        pytest.param(("such-a-name",), "RayJob such-a-name in any namespace", id="anywhere"),
        pytest.param(
            ("--execution", "f9", "--namespace", "no"), "RayJob of execution f9 in namespace no", id="of an execution"
        ),
    ],
)
async def test_there_is_none(command: Command, arguments: tuple[str, ...], where: str) -> None:
    """With where it was looked for, and what may be left of it."""
    assert await command("status", *arguments) == Ended(1, "", f"error: there is no {where}{LEFT}\n")


async def test_one_of_somebody_else(command: Command, tasks: Tasks) -> None:
    """Is left alone."""
    await tasks.add(rayjob("theirs"))
    told = (
        f"error: RayJob {tasks.namespace}/theirs is not of this package: it has no label kuberay.flyte.org/managed-by"
    )
    for name in ("status", "logs", "delete"):
        assert await command(name, f"{tasks.namespace}/theirs") == Ended(1, "", f"{told}; use kubectl\n")
    assert await tasks.names() == ["theirs"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(("a/b/c",), "NAME: is 'a/b/c'; write it as NAME or NAMESPACE/NAME", id="two slashes"),
        pytest.param(("/b",), "NAME: is '/b'; write it as NAME or NAMESPACE/NAME", id="no namespace before a slash"),
        pytest.param(
            ("a/b", "--namespace", "c"),
            "--namespace: NAME has a namespace already; leave one of them out",
            id="two namespaces",
        ),
        pytest.param(
            ("b", "--namespace", ""),
            "--namespace: is empty; name one, or leave the option out for all",
            id="an empty one",
        ),
    ],
)
async def test_bad_arguments(command: Command, arguments: tuple[str, ...], problem: str) -> None:
    """Are told before a cluster is asked."""
    assert await command("delete", *arguments) == Ended(2, "", f"error: {problem}\n")


async def test_an_empty_execution(command: Command) -> None:
    """As of a variable that is not set, is none."""
    expected = "error: --execution: is empty; write its id, or PROJECT/DOMAIN/ID\n"
    assert await command("status", "--execution", "") == Ended(2, "", expected)


@pytest.mark.parametrize(
    ("replies", "expected"),
    [
        pytest.param(
            [failure(404, "NotFound", "no", name="x"), failure(403, "Forbidden", "you cannot list them all")],
            "error: there is no RayJob x in namespace default, and you may not look everywhere; write NAMESPACE/NAME:"
            " list rayjobs.ray.io: you cannot list them all",
            id="everywhere",
        ),
        pytest.param(
            [failure(403, "Forbidden", "you cannot get it")],
            "error: you may not look in namespace default, the kubeconfig's; write NAMESPACE/NAME: "
            "get rayjobs.ray.io x in namespace default: you cannot get it",
            id="in the kubeconfig's namespace",
        ),
    ],
)
async def test_who_may_not_look_there(
    command: Command, server: ScriptedServer, scripted_cluster: str, replies: list[Reply], expected: str
) -> None:
    """Is told to name the namespace: the name may be of another one."""
    server.replies += replies
    ended = await command("status", "x", "--kubeconfig", scripted_cluster)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith(expected)


async def test_who_may_not_look_everywhere_for_an_execution(
    command: Command, server: ScriptedServer, scripted_cluster: str
) -> None:
    """Is told to name the namespace, and is not told so who has named it."""
    server.replies += [failure(403, "Forbidden", "you cannot list them all")] * 2
    everywhere = await command("status", "--execution", "f4a1", "--kubeconfig", scripted_cluster)
    there = await command("status", "--execution", "f4a1", "--namespace", "team-a", "--kubeconfig", scripted_cluster)
    assert (everywhere.status, there.status) == (1, 1)
    assert everywhere.err.startswith("error: you may not look everywhere; name yours with --namespace: list rayjobs")
    assert there.err.startswith("error: list rayjobs.ray.io in namespace team-a: you cannot list them all")


async def test_no_cluster(command: Command) -> None:
    """Is told with what was tried."""
    ended = await command("status", "x", "--kubeconfig", "nowhere.yaml")
    assert ended == Ended(1, "", "error: the kubeconfig nowhere.yaml does not exist\n")
