"""Arguments, exit statuses and error texts of `flyte-kuberay`; what a command does stands in a module of its own."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import TypeAlias

from ..errors import KubeRayError, ProblemsError

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
_DISTRIBUTION = "flytekitplugins-kuberay"
_NAME_HELP = (
    "a RayJob's name, or NAMESPACE/NAME; else it is looked for in the kubeconfig's namespace, then in the setting"
    " namespaces, or everywhere"
)
_NAMESPACE_HELP = "where to look; repeatable. Without it and a NAME: the setting namespaces, else everywhere"
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status: 0, 2 for bad input, 130 when interrupted, 1 for anything else. Raises nothing.

    Args:
        argv: The arguments after the program's name; None takes those of the process.
    """
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as end:  # argparse has printed its help or what is wrong with the arguments
        return int(end.code or 0)
    with _logged_warnings():
        status = _status_of(arguments, debug="debug" in arguments)
    if argv is None:
        _leave_threads(status)
    return status


def _leave_threads(status: int) -> None:
    """Ends the process if a thread still waits for an object store: it could do so for minutes, for nobody."""
    if any(thread.name.startswith("kuberay-results") for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _status_of(arguments: argparse.Namespace, debug: bool) -> int:
    try:
        arguments.run(arguments)
    except BrokenPipeError:  # the reader has what it wanted, as `head` does
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except ProblemsError as error:
        return _failed(error, BAD_INPUT, debug)
    except Exception as error:  # noqa: BLE001  # a user gets no traceback
        return _failed(error, FAILED, debug)
    return 0


def _failed(error: Exception, status: int, debug: bool) -> int:
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    text = str(error)
    if not isinstance(error, KubeRayError):
        text = f"{type(error).__name__}: {' '.join(text.split())}" + ("" if debug else " (--debug shows where)")
    print(f"error: {text}", file=sys.stderr)
    return status


@contextmanager
def _logged_warnings() -> Iterator[None]:
    """What this package logs goes to standard error, in the form of the errors."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LowerCase("%(levelname)s: %(message)s"))
    logger = logging.getLogger("flytekitplugins.kuberay")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _LowerCase(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        level, colon, message = super().format(record).partition(":")
        return f"{level.lower()}{colon}{message}"


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    # no default: it would hide a --debug that stands before the command
    common.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
    parser = argparse.ArgumentParser(
        prog="flyte-kuberay",
        description="Ray on Flyte through KubeRay.",
        epilog="Exit status: 0, 2 for bad input, 1 for anything else that fails.",
        parents=[common],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{_DISTRIBUTION} {version(_DISTRIBUTION)}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_render(commands, common)
    cluster = _cluster_options()
    _add_status(commands, [common, cluster])
    _add_logs(commands, [common, cluster])
    _add_delete(commands, [common, cluster])
    _add_sweep(commands, [common, cluster])
    return parser


def _command(name: str) -> Callable[[argparse.Namespace], None]:
    """The function of that name, whose module of the same name is loaded when it runs: the parser is quick."""
    return lambda arguments: getattr(import_module(f".{name}", __package__), name)(arguments)


def _cluster_options() -> argparse.ArgumentParser:
    """The options of each command that asks a cluster."""
    options = argparse.ArgumentParser(add_help=False)
    add = options.add_argument
    add("--config", metavar="FILE", action="append", help="the platform's YAML; repeatable, the later wins")
    add("--kubeconfig", metavar="FILE", help="by default that of the settings, else as kubectl's")
    add("--context", metavar="NAME", help="of the kubeconfig")
    add("--namespace", metavar="NAME", action="append", default=[], help=_NAMESPACE_HELP)
    return options


def _add_render(commands: _Commands, common: argparse.ArgumentParser) -> None:
    parser = commands.add_parser(
        "render",
        help="print the RayJob that a task becomes",
        description="Prints the RayJob that a task becomes, and nothing else, to standard output.",
        epilog="FILE may be - for standard input, save that of --config.",
        parents=[common],
        allow_abbrev=False,
    )
    parser.set_defaults(run=_render)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument(
        "module",
        metavar="MODULE.py[:TASK]",
        nargs="?",
        help="a Python file, loaded as `pyflyte run` does; TASK may be left out where the file has one Ray task",
    )
    task.add_argument("--task-template", metavar="FILE", help="a TaskTemplate, in protobuf's JSON or binary")
    add = parser.add_argument
    add("--config", metavar="FILE", action="append", help="the platform's YAML; repeatable, the later wins")
    add(
        "--pod-template",
        metavar="FILE",
        action="append",
        default=[],
        help="Kubernetes PodTemplates of the cluster, YAML or JSON; repeatable",
    )
    add("--execution", metavar="FILE", help="a TaskExecutionMetadata in protobuf's JSON; by default a placeholder")
    add("--inputs", metavar="FILE", help="the task's inputs, a LiteralMap in protobuf's JSON")
    add("--output-prefix", metavar="URI", help="where the outputs go; by default a placeholder")
    add(
        "--image",
        metavar="[NAME=]IMAGE",
        action="append",
        default=[],
        help="as for `pyflyte run`: the image of tasks that name none, or the one called NAME; for MODULE.py only",
    )
    add("-o", "--output", choices=("yaml", "json"), default="yaml", help="the form of the output (yaml)")
    add("--color", choices=("auto", "always", "never"), default="auto", help="auto: on a terminal without NO_COLOR")


def _render(arguments: argparse.Namespace) -> None:
    from .output import print_manifest, reserved_stdout
    from .render import render

    with reserved_stdout():
        manifest = render(arguments)
    print_manifest(manifest, arguments.output, arguments.color)


def _add_status(commands: _Commands, parents: Sequence[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "status",
        help="tell how a task is, and why it waits or failed",
        description="Prints how a task is: its phase, what it waits for, links, pods and the last events.",
        parents=parents,
        allow_abbrev=False,
    )
    parser.set_defaults(run=_command("status"))
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("name", metavar="NAME", nargs="?", help=_NAME_HELP)
    task.add_argument("--execution", metavar="ID", help="all RayJobs of this execution of Flyte's")
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="the form of the output (table)"
    )


def _add_logs(commands: _Commands, parents: Sequence[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "logs",
        help="print what a task's code printed",
        description="Prints the log of a task's driver, which is what the user's code printed, or of its pods. Where"
        " it is gone with its pod, the diagnosis that was kept.",
        parents=parents,
        allow_abbrev=False,
    )
    parser.set_defaults(run=_command("logs"))
    add = parser.add_argument
    add("name", metavar="NAME", help=_NAME_HELP)
    add("--follow", action="store_true", help="wait for it, and go on as it grows")
    add("--pod", choices=("driver", "head", "worker", "submitter"), default="driver", help="whose log (driver)")


def _add_delete(commands: _Commands, parents: Sequence[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "delete",
        help="delete a task's RayJob, with its cluster and pods",
        description="Deletes one RayJob of this package, whatever its state; that it is gone already is no failure.",
        parents=parents,
        allow_abbrev=False,
    )
    parser.set_defaults(run=_command("delete"))
    parser.add_argument("name", metavar="NAME", help=_NAME_HELP)


def _add_sweep(commands: _Commands, parents: Sequence[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "sweep",
        help="delete RayJobs that nobody needs any more, or say which it would",
        description="Prints the RayJobs of this package whose execution is gone, or that ended long ago; deletes"
        " them only with --delete. Those of an execution that lives stay.",
        parents=parents,
        allow_abbrev=False,
    )
    parser.set_defaults(run=_command("sweep"))
    add = parser.add_argument
    add(
        "--older-than",
        metavar="DURATION",
        help="for how long a RayJob that has ended stays, as 2h; by default the setting keep-finished, else as long as"
        " Flyte knows its execution",
    )
    add("--delete", action="store_true", help="delete them; without it nothing is changed")
    add("-o", "--output", choices=("table", "json"), default="table", help="the form of the output (table)")
