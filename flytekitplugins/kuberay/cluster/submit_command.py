"""A submitter's own command, for a RayJob of which KubeRay's command line would spoil something.

In K8sJobMode KubeRay writes one line for bash: `ray job submit --runtime-env-json "..." -- ENTRYPOINT`. Ray before 2.56
joins the entrypoint's words anew without quoting what a shell reads (`$`, `;`, `'`, newlines ...), and bash expands `$`
and backticks in the options. So where one of them holds such characters, the submitter hands all over by Ray's API, as
data: the entrypoint as it stands, as HTTPMode does. Elsewhere KubeRay's command stays, which may know of more.

Source: KubeRay 1.6.2 common/job.go BuildJobSubmitCommand, rayjob_controller.go configureSubmitterContainer (it keeps a
command of the template's own); Ray dashboard/modules/job/cli.py submit; Ray PR 63797.
"""

from __future__ import annotations

import json
import re

from ..wire import Manifest, parse_runtime_env
from .entrypoint import format_argument

_WORD = r"""(?:[\w@%+=:,./-]+|'[\w@%+=:,./"\- \t]*')"""
_SAFE_ENTRYPOINT = re.compile(rf"{_WORD}(?:[ \t]+{_WORD})*", re.ASCII)
"""Words as `format_entrypoint` writes them, which both shells and Ray before 2.56 leave whole."""

_READ_BY_BASH = re.compile(r"[$`\\]")
"""Between double quotes; in YAML and JSON, a backslash can stand for the other two."""

_MODE = "K8sJobMode"
"""The default of RayJobs, and the only mode in which KubeRay keeps a command of the submitter's."""

_SCRIPT = """\
import json, os, sys
from ray.job_submission import JobSubmissionClient

address = "http://" + os.environ["RAY_DASHBOARD_ADDRESS"].removeprefix("http://")
job = os.environ["RAY_JOB_SUBMISSION_ID"]
client = JobSubmissionClient(address)
if all(known.submission_id != job for known in client.list_jobs()):
    client.submit_job(entrypoint=sys.argv[1], submission_id=job, **json.loads(sys.argv[2]))
os.execvp("ray", ["ray", "job", "logs", "--address", address, "--follow", job])
"""


def with_submit_command(job: Manifest) -> Manifest:
    """The RayJob, its submitter with a command where it has none and KubeRay's would spoil what the RayJob says.

    What a patch of the user's has made no submitter is left to the API server, which tells.

    Args:
        job: As it is to be created, without `patched_problems`.
    """
    spec = job["spec"]
    if spec.get("submissionMode", _MODE) != _MODE:
        return job
    match spec.get("submitterPodTemplate"):
        case {"spec": {"containers": [dict() as first, *others]} as pod} as template if not first.get("command"):
            pod = {**pod, "containers": [{**first, **submit_command(spec)}, *others]}  # KubeRay takes container 0
            return {**job, "spec": {**spec, "submitterPodTemplate": {**template, "spec": pod}}}
    return job


def submit_command(spec: Manifest) -> Manifest:
    """`command` and `args` of the submitter's container; empty where KubeRay's own command does.

    Args:
        spec: A RayJob's. Fields of a wrong type count as unsaid: the API server takes no such RayJob.
    """
    entrypoint, runtime_env, resources = (
        value if isinstance(value := spec.get(field), str) else ""
        for field in ("entrypoint", "runtimeEnvYAML", "entrypointResources")
    )
    carried = (runtime_env.replace("\n", ""), json.dumps(spec.get("metadata"), ensure_ascii=False), resources)
    is_whole = _SAFE_ENTRYPOINT.fullmatch(entrypoint.strip()) and not any(map(_is_spoilt, carried))
    if is_whole or not entrypoint:
        return {}
    options = {
        "runtime_env": parse_runtime_env(runtime_env)[0],
        "metadata": spec.get("metadata"),
        "entrypoint_num_cpus": spec.get("entrypointNumCpus"),
        "entrypoint_num_gpus": spec.get("entrypointNumGpus"),
        "entrypoint_resources": json.loads(resources or "{}"),
    }
    said = json.dumps({option: value for option, value in options.items() if value})
    return {
        "command": ["python", "-c", _SCRIPT],
        "args": [format_argument(entrypoint), format_argument(said)],
    }


def _is_spoilt(text: str) -> bool:
    """Whether KubeRay's line may bring another text to Ray: Go quotes what is not printable as JSON does not."""
    return bool(_READ_BY_BASH.search(text)) or not text.isprintable()
