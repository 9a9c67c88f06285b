"""The entrypoint as shells and the kubelet read it; the way through KubeRay's and Ray's commands is in tests/e2e."""

import re
import shlex
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flytekitplugins.kuberay.cluster.entrypoint import format_argument, format_entrypoint
from tests.submission import expanded

any_text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
shell_text = st.text(st.sampled_from("$()'\"`\\;&|<>*?[]{}~!#%=- \t\r\nax"))
argvs = st.lists(any_text | shell_text)


@given(argvs)
def test_a_posix_split_gives_the_argv_back(argv: list[str]) -> None:
    """Splitting the entrypoint as a POSIX shell splits words gives the argv, whatever it holds."""
    assert shlex.split(format_entrypoint(argv)) == argv


@given(argvs)
def test_the_kubelet_finds_nothing_to_replace(argv: list[str]) -> None:
    """The kubelet replaces `$(NAME)` and `$$` in container arguments, quoted or not: the entrypoint holds neither."""
    assert re.findall(r"\$[$(]", format_entrypoint(argv)) == []


@given(any_text | st.text(st.sampled_from("$()ax")))
@example("$$$(HOME)$$(X)$")
def test_a_containers_process_gets_the_text(text: str) -> None:
    """Whatever the kubelet would replace in it."""
    assert expanded(format_argument(text), {"HOME": "/root", "X": "y", "x": "z", "a": "b"}) == text


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
@settings(deadline=None, max_examples=25)  # two processes each
@given(argv=st.lists(any_text | shell_text, min_size=10, max_size=30))
def test_a_shell_runs_exactly_the_argv(shell: str, argv: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    """The head's shell and the submitter's start the program with the argv, and nothing else."""
    program = ["/usr/bin/printf", r"%s\0"]  # prints each argument and a NUL

    words = [shell, "-ce", format_entrypoint([*program, *argv])]
    folder = tmp_path_factory.getbasetemp()  # a text that is quoted wrongly may write files

    shown = subprocess.run(words, cwd=folder, capture_output=True, check=True)

    assert shown.stdout.decode().split("\0")[:-1] == argv
    assert shown.stderr == b""


@pytest.mark.parametrize(
    ("argv", "entrypoint"),
    [
        pytest.param([], "", id="no argument gives no text"),
        pytest.param(
            ["pyflyte-execute", "--inputs", "s3://b/inputs.pb", "--prev-checkpoint", '""'],
            "pyflyte-execute --inputs s3://b/inputs.pb --prev-checkpoint '\"\"'",
            id="an ordinary argv stays readable",
        ),
        pytest.param(["a", "", "b"], "a '' b", id="an empty argument is kept"),
        pytest.param(["$HOME"], "'$HOME'", id="a variable that the kubelet leaves alone is only quoted"),
        pytest.param(["$(HOME) $$$"], "'$''(HOME) $''$''$'", id="what the kubelet would replace is taken apart"),
    ],
)
def test_how_it_looks(argv: list[str], entrypoint: str) -> None:
    """People read the entrypoint in the RayJob and in Ray's dashboard: nothing is quoted without need."""
    assert format_entrypoint(argv) == entrypoint
