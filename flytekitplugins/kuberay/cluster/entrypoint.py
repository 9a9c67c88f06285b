"""A RayJob's `spec.entrypoint`: the driver's argv as the one string that every submission mode takes.

What becomes of the string:

- HTTPMode: the operator posts it to Ray as it is, and the head runs it with `/bin/sh -c`.
- K8sJobMode, SidecarMode: the operator puts it bare into the submitter's argument,
  `/bin/bash -ce -- "... ray job submit ... -- ENTRYPOINT ;"`. The kubelet replaces `$(NAME)` and `$$` in it first,
  quoted or not. Then bash reads it, and `ray job submit` joins the words anew for the head's `/bin/sh -c`.

So it is quoted once, for a POSIX shell, and holds nothing that the kubelet replaces. The second joining is Ray's: right
since Ray 2.56 (`shlex.join`). Before, it was `subprocess.list2cmdline`, which quotes for Windows: in these two modes
`$`, backtick, `'`, `;`, `&`, newline, backslash and the like are then lost whatever the string; HTTPMode keeps them
with any Ray.

Linux takes at most 131,071 bytes as one argument, here all of the text after `-c`; a longer one fails in any mode.

Source: KubeRay 1.3 to 1.7 common/job.go BuildJobSubmitCommand (1.3, 1.4: GetK8sJobCommand), dashboard_httpclient.go
ConvertRayJobToReq; Kubernetes third_party/forked/golang/expansion Expand; Ray dashboard/modules/job cli.py submit,
job_supervisor.py JobSupervisor._exec_entrypoint.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from ..errors import Problem

LONGEST = 128 * 1024 - 1
"""Bytes of an entrypoint: what Linux takes for one argument of a process. Source: linux/binfmts.h MAX_ARG_STRLEN."""

_READ_BY_KUBELET = re.compile(r"\$(?=[$(])")


def argv_problems(argv: Sequence[str], path: str) -> Iterator[Problem]:
    """Why no process can be started with this argv, if none can."""
    for index, argument in enumerate(argv):
        if "\0" in argument:
            yield Problem(f"{path}[{index}]", "holds a NUL character, which no argument can", "pass it by file")
    size = len(format_entrypoint(argv).encode())
    if size > LONGEST:
        remedy = f"Linux takes {LONGEST} bytes for one command line: pass large values by file, as Flyte's inputs are"
        yield Problem(path, f"is {size} bytes long as a command line", remedy)


def format_entrypoint(argv: Sequence[str]) -> str:
    """The entrypoint that gives the driver exactly this argv; `shlex.split` gives it back too.

    Args:
        argv: Program and arguments. A NUL character can't stand in an argument of any process.

    Raises:
        Nothing.
    """
    # shlex.quote puts every `$` between single quotes; there '' ends and reopens them: "$(x)" becomes '$''(x)'.
    return _READ_BY_KUBELET.sub("$''", shlex.join(argv))


def format_argument(text: str) -> str:
    """What stands in a container's args so that its process gets the text: the kubelet makes one `$` of two."""
    return _READ_BY_KUBELET.sub("$$", text)
