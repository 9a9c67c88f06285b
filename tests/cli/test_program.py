"""The program: exit statuses, standard output for the manifest alone, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from flytekitplugins.kuberay.cli import main
from tests.cli.running import TRAIN, Ended, Run, written


BIN = Path(sys.executable).parent
COMMANDS = [
    pytest.param([str(BIN / "flyte-kuberay")], id="the console script"),
    pytest.param([sys.executable, "-m", "flytekitplugins.kuberay"], id="the module"),
]


def test_what_a_module_prints_goes_to_standard_error(run: Run) -> None:
    """Standard output holds the manifest alone when the user's module prints."""
    ended = run(written("flow.py", "print('loading')\n" + TRAIN))
    assert (yaml.safe_load(ended.out)["kind"], ended.err) == ("RayJob", "loading\n")


@pytest.mark.parametrize(
    ("arguments", "status", "first_word"),
    [
        pytest.param(["--help"], 0, "usage:", id="help"),
        pytest.param(["render", "--help"], 0, "usage:", id="a command's help"),
        pytest.param(["--version"], 0, "flytekitplugins-kuberay", id="version"),
        pytest.param([], 2, "", id="no command"),
        pytest.param(["frobnicate"], 2, "", id="an unknown command"),
    ],
)
def test_statuses_of_argparse_are_returned(
    arguments: list[str], status: int, first_word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What argparse ends the process with is returned."""
    assert (main(arguments), capsys.readouterr().out.partition(" ")[0]) == (status, first_word)


@pytest.mark.parametrize("before", [pytest.param(True, id="before the command"), pytest.param(False, id="after it")])
def test_debug_shows_the_traceback(before: bool, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """--debug shows where in the user's file an error came up, and the error as without it."""
    flow = written("flow.py", "def load():\n    raise ValueError('no')\n\nload()\n")
    status = main(["--debug", "render", flow] if before else ["render", flow, "--debug"])
    lines = capsys.readouterr().err.splitlines()
    assert (status, lines[-1]) == (2, "error: flow.py, line 2: ValueError: no")
    assert [line.strip() for line in lines if "flow.py" in line][:2] == [
        f'File "{Path(flow).resolve()}", line 4, in <module>',
        f'File "{Path(flow).resolve()}", line 2, in load',
    ]


def test_an_interrupt(run: Run) -> None:
    """Ctrl-C ends with 130, as a shell reports SIGINT, and without a word."""
    assert run(written("flow.py", "raise KeyboardInterrupt")) == Ended(130, "", "")


def test_the_import_is_quick() -> None:
    """Importing the CLI loads no module beyond those of the package but its own two and argparse."""
    code = "import sys, argparse, flytekitplugins.kuberay; known = {*sys.modules}; import flytekitplugins.kuberay.cli; "
    code += "print(*sorted({*sys.modules} - known))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["flytekitplugins.kuberay.cli", "flytekitplugins.kuberay.cli.program"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_program(command: list[str], run: Run) -> None:
    """A process prints what main prints, whatever a module and its child processes write to its standard output."""
    flow = written("flow.py", "import os\nos.write(1, b'raw')\nos.system('echo child')\n" + TRAIN)
    done = subprocess.run([*command, "render", flow], capture_output=True, text=True)
    assert Ended(done.returncode, done.stdout, done.stderr) == Ended(0, run(flow).out, "rawchild\n")


def test_a_store_that_does_not_answer(run: Run) -> None:
    """A thread that still waits for it does not hold the process, whose words and status stand."""
    code = (
        "import sys, threading; from flytekitplugins.kuberay.cli import main; "
        "threading.Thread(target=threading.Event().wait, name='kuberay-results_0').start(); sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "render", "nowhere.py"], capture_output=True, text=True, timeout=60
    )
    assert Ended(done.returncode, done.stdout, done.stderr) == run("nowhere.py")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that can't be written")
def test_a_fault_that_is_no_bad_input(run: Run) -> None:
    """Anything else that fails ends with status 1 and one line."""
    flow = written("flow.py", TRAIN)
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "flytekitplugins.kuberay", "render", flow]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    expected = "error: OSError: [Errno 28] No space left on device (--debug shows where)\n"
    assert (done.returncode, done.stderr) == (1, expected)


@pytest.mark.parametrize(
    ("closing", "expected"),
    [
        pytest.param(
            'exec "$@" flow.py >&-',
            Ended(1, "", "error: standard output: is closed; send it to a file, or to another command\n"),
            id="output",
        ),
        pytest.param(
            'exec "$@" --task-template - <&-',
            Ended(2, "", "error: standard input: is closed; name a file\n"),
            id="input",
        ),
    ],
)
def test_a_closed_stream(closing: str, expected: Ended, run: Run) -> None:
    """A standard stream that its caller has closed is told."""
    written("flow.py", TRAIN)
    command = ["sh", "-c", closing, "sh", sys.executable, "-m", "flytekitplugins.kuberay", "render"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert Ended(done.returncode, done.stdout, done.stderr) == expected


def test_a_reader_that_goes(run: Run) -> None:
    """A reader that has seen enough, as `head` does, is no failure."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "flytekitplugins.kuberay", "render", written("flow.py", TRAIN)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
