"""A submitter's own command, for the arguments and runtime environments that KubeRay's command line would spoil.

In K8sJobMode KubeRay writes one line for bash: `ray job submit --runtime-env-json "..." -- ENTRYPOINT`. Ray before 2.56
joins the entrypoint's words anew without quoting what a shell reads (`$`, `;`, `'`, newlines ...), and bash expands `$`
and backticks in the runtime environment. So where one of them holds such characters, the submitter hands both over by
Ray's API, as data. Elsewhere KubeRay's command stays, which knows of more.

Source: KubeRay 1.6.2 common/job.go BuildJobSubmitCommand, rayjob_controller.go configureSubmitterContainer (it keeps a
command of the template's own); Ray dashboard/modules/job/cli.py submit; Ray PR 63797.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import yaml

from ..wire import Manifest
from .entrypoint import format_entrypoint

_SAFE_ARGUMENT = re.compile(r"""[\w@%+=:,./"\- \t]*""", re.ASCII)
_READ_BY_BASH = ("$", "`")
_SCRIPT = """\
import json, os, sys
from ray.job_submission import JobSubmissionClient

address = "http://" + os.environ["RAY_DASHBOARD_ADDRESS"].removeprefix("http://")
job = os.environ["RAY_JOB_SUBMISSION_ID"]
client = JobSubmissionClient(address)
if all(known.submission_id != job for known in client.list_jobs()):
    client.submit_job(entrypoint=sys.argv[1], submission_id=job, runtime_env=json.loads(sys.argv[2]))
os.execvp("ray", ["ray", "job", "logs", "--address", address, "--follow", job])
"""


def submit_command(argv: Sequence[str], runtime_env_yaml: str) -> Manifest:
    """`command` and `args` of the submitter's container; empty where KubeRay's own command does.

    Args:
        argv: What the driver is to get.
        runtime_env_yaml: The RayJob's runtimeEnvYAML, a mapping; "" for none.
    """
    kept = all(_SAFE_ARGUMENT.fullmatch(argument) for argument in argv)
    if kept and not any(character in runtime_env_yaml for character in _READ_BY_BASH):
        return {}
    runtime_env = json.dumps(yaml.safe_load(runtime_env_yaml) or {}, default=str)
    # the kubelet replaces $(NAME) and $$ in args, so no `$` may stand there
    return {
        "command": ["python", "-c", _SCRIPT],
        "args": [format_entrypoint(argv), runtime_env.replace("$", "\\u0024")],
    }
