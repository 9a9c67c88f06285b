"""The user's exception out of error.pb: of its own type, with the traceback of the pod that it was raised in."""

from __future__ import annotations

import builtins
import re
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from ..cluster.phase import UserError
from ..errors import KubeRayError

_PARTS = re.compile(r"\ATrace:\n\n(?P<trace>.*?)\nMessage:\n\n(?P<message>.*)\Z", re.DOTALL)
"""Source: flytekit bin/entrypoint.py get_traceback_str."""
_SUMMARY = re.compile(r"(?P<name>[\w.]+)(?:\((?P<cause>\w+)\))?: ?(?P<text>.*)", re.DOTALL)
"""`ValueError: text`; Ray's own errors name the cause as in `RayTaskError(ValueError): text`."""
_ENDS_OF_LOOPS = (StopIteration, StopAsyncIteration)


class RemoteTaskError(KubeRayError):
    """What the task's code raised on the cluster; where its type is known here, an instance of that type too."""

    # The next class may be the user's, whose constructor has not run: its methods would look for what is not there
    # wherever an error is raised, kept or printed
    args = Exception.args
    __eq__, __hash__ = Exception.__eq__, Exception.__hash__
    __repr__ = Exception.__repr__
    __setattr__ = Exception.__setattr__

    def __init__(self, text: str) -> None:
        # not super(): the user's constructor may want anything
        Exception.__init__(self, text)

    def __str__(self) -> str:
        return str(self.args[0])

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(name)


class RemoteTraceback(Exception):
    """The traceback in the pod, as the cause of what is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def remote_error(error: UserError, task: str) -> RemoteTaskError:
    """The exception to raise for what the task's code left in error.pb.

    Args:
        error: The content of error.pb.
        task: The task's name, for the text.
    """
    parts = _PARTS.match(error.message)
    if parts is None:  # not flytekit's form: another SDK's, or a later one's
        return RemoteTaskError(f"{task} failed on the cluster: {error.code}: {error.message}")
    trace, message = (textwrap.dedent(parts[part]).strip("\n") for part in ("trace", "message"))
    summary = _SUMMARY.match(message)
    kind = _class_of(summary, trace) if summary else None
    raised = _instance(kind, summary["text"] if summary and kind else message)
    raised.__cause__ = RemoteTraceback(trace)
    return raised


def _class_of(summary: re.Match[str], trace: str) -> type[Exception] | None:
    """The class of the exception as this process knows it; None where it doesn't. Nothing is imported for it."""
    if summary["cause"]:  # at the end of Ray's text stands the traceback of its worker
        name, said, line = summary["cause"], summary["text"], rf"{summary['cause']}(?::.*)?"
    else:
        name, said = summary["name"], trace
        first = f"{name}: {summary['text']}".splitlines()[0].rstrip(": ")  # Python writes no colon without a text
        line = rf"{re.escape(first)}[:\s]*"
    # the line of the traceback that says the text names the class with its module
    dotted = re.findall(rf"^((?:\w+\.)*){line}$", said, re.MULTILINE)
    module = _module(dotted[-1].rstrip(".")) if dotted and dotted[-1] else builtins
    return _found(module, name)


def _module(name: str) -> ModuleType | None:
    """The module that the pod knows by this name; a script that is run here is `__main__` here alone."""
    main = sys.modules["__main__"]
    is_main = Path(getattr(main, "__file__", None) or "").stem == name.rpartition(".")[2]
    return sys.modules.get(name) or (main if is_main else None)


def _found(module: ModuleType | None, name: str) -> type[Exception] | None:
    found = vars(module).get(name) if isinstance(module, ModuleType) else None  # getattr may import, and fail
    # who raises an end of a loop is not heard, and Python itself crashes on one that its constructor has not seen
    is_raisable = isinstance(found, type) and issubclass(found, Exception) and not issubclass(found, _ENDS_OF_LOOPS)
    return found if is_raisable else None


def _instance(kind: type[Exception] | None, text: str) -> RemoteTaskError:
    """An error that `except kind` catches too, made without the class's own constructor, which may want anything."""
    if kind is None or issubclass(kind, RemoteTaskError):
        return RemoteTaskError(text)
    with suppress(Exception):  # it can't have another base, or is made of something else; and may raise anything then
        named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        both: type[RemoteTaskError] = type(kind.__name__, (RemoteTaskError, kind), named)
        made = both(text)
        if type(made) is both:
            if isinstance(made, SyntaxError):  # of which Python prints no other text
                made.msg = text
            return made
    return RemoteTaskError(f"{kind.__name__}: {text}")
