"""Where a task of a local run goes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from flytekit.core.data_persistence import FileAccessProvider

from flytekitplugins.kuberay import KubeRayError
from flytekitplugins.kuberay.direct.choice import VARIABLE, Choice, Cluster
from flytekitplugins.kuberay.errors import SettingsError

from .cluster import STORE
from .conftest import Direct, close


@pytest.fixture
def remote(tmp_path: Path) -> FileAccessProvider:
    """An object store, as --raw-output-data-prefix names it."""
    return FileAccessProvider(str(tmp_path), STORE)


@pytest.fixture
def local(tmp_path: Path) -> FileAccessProvider:
    """The default: a folder."""
    return FileAccessProvider(str(tmp_path), str(tmp_path / "raw"))


@pytest.fixture
def no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubeconfig whose cluster is away."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "away",
        "contexts": [{"name": "away", "context": {"cluster": "away", "user": "me"}}],
        "clusters": [{"name": "away", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(path))


@pytest.fixture
def choice(direct: Direct) -> Iterator[Choice]:
    """Of a process that says nothing, where a cluster is."""
    own = Choice({})
    yield own
    close(own)


def test_an_object_store_and_a_cluster_mean_the_cluster(
    choice: Choice, direct: Direct, remote: FileAccessProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said in one line, once: which context, which namespace, and how to stay here."""
    cluster = choice.cluster_for(remote, has_address=False)
    assert cluster is not None and cluster.namespace == direct.namespace
    assert choice.cluster_for(remote, has_address=False) is cluster
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert (
        f"namespace {direct.namespace}" in said and "context kuberay-test of " in said and f"{VARIABLE}=local" in said
    )


def test_tasks_of_several_threads_share_one_way(
    choice: Choice, remote: FileAccessProvider, capfd: pytest.CaptureFixture[str]
) -> None:
    """As those of an eager workflow: it is looked for and said once, too."""
    begin = threading.Barrier(3)

    def asked() -> Cluster | None:
        begin.wait(60)
        return choice.cluster_for(remote, has_address=False)

    with ThreadPoolExecutor(3) as pool:
        clusters = [waiting.result() for waiting in [pool.submit(asked) for _ in range(3)]]
    assert None not in clusters
    assert len({id(cluster) for cluster in clusters}) == 1
    assert capfd.readouterr().err.count("\n") == 1


def test_without_an_object_store_nothing_is_asked(
    no_cluster: None, local: FileAccessProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    """`pyflyte run` as ever: in this process, without a word."""
    assert Choice({}).cluster_for(local, has_address=False) is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("environ", "has_address"),
    [
        pytest.param({VARIABLE: "local"}, False, id="FLYTE_KUBERAY_RUN=local"),
        pytest.param({}, True, id="a task with an address of its own"),
    ],
)
def test_a_task_stays_here(
    direct: Direct, remote: FileAccessProvider, environ: dict[str, str], has_address: bool
) -> None:
    """Though there is a cluster."""
    assert Choice(environ).cluster_for(remote, has_address=has_address) is None


def test_a_cluster_that_is_away_leaves_the_task_here(
    no_cluster: None, remote: FileAccessProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said why, once."""
    choice = Choice({})
    assert [choice.cluster_for(remote, has_address=False) for _ in range(2)] == [None, None]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("Ray tasks run in this process, there is no cluster for them: ")
    assert "127.0.0.1:1" in said


def test_a_cluster_that_is_asked_for_has_to_be_there(no_cluster: None, remote: FileAccessProvider) -> None:
    """Else the task does not run at all."""
    choice = Choice({VARIABLE: "cluster"})
    for _ in range(2):
        with pytest.raises(KubeRayError, match=f"^{VARIABLE}=cluster: .*127.0.0.1:1"):
            choice.cluster_for(remote, has_address=False)


def test_pods_need_an_object_store(direct: Direct, local: FileAccessProvider) -> None:
    """A folder of this machine is none; the error says which option names one."""
    with pytest.raises(KubeRayError, match=rf"^{VARIABLE}=cluster: pods can't read .*--raw-output-data-prefix s3://"):
        Choice({VARIABLE: "cluster"}).cluster_for(local, has_address=False)


def test_another_word_is_refused(local: FileAccessProvider) -> None:
    """With the words that there are."""
    with pytest.raises(KubeRayError, match=f"^{VARIABLE}: is 'remote'; write local or cluster, or leave it unset$"):
        Choice({VARIABLE: "remote"}).cluster_for(local, has_address=False)


def test_settings_that_can_not_be_read_stop_the_run(
    direct: Direct, remote: FileAccessProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are no reason to run elsewhere."""
    settings = tmp_path / "settings.yaml"
    settings.write_text("plugins: {kuberay: {submision-mode: HTTPMode}}")
    monkeypatch.setenv("FLYTE_KUBERAY_CONFIG", str(settings))
    with pytest.raises(SettingsError, match="submision-mode"):
        Choice({}).cluster_for(remote, has_address=False)
