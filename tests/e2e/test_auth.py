"""Ray's token authentication on a real node: the task runs, and who has no token gets no answer."""

from __future__ import annotations

import base64
import sys
from types import ModuleType

import pytest

from .conftest import Start
from .looking import left_by_code, pods_of, seen
from .node import Node
from .propeller import Execution

CORE, FULL = pytest.mark.e2e, pytest.mark.e2e_full

ASK = """
import sys, urllib.error, urllib.request
url, token, body = sys.argv[1:]
headers = {"Content-Type": "application/json", **({"Authorization": "Bearer " + token} if token else {})}
request = urllib.request.Request(url, body.encode() or None, headers)
try:
    print(urllib.request.urlopen(request, timeout=10).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
LIST, RUN = "", '{"entrypoint": "true"}'
"""What is asked of Ray's jobs API: a list, or to run a program."""


def answer(node: Node, execution: Execution, body: str, token: str) -> int:
    """The status with which the dashboard of an execution answers a pod's network."""
    (head,) = pods_of(node, execution, "head")
    url = f"http://{head['status']['podIP']}:8265/api/jobs/"
    return int(node.run(sys.executable, "-c", ASK, url, token, body))


def token_of(node: Node, execution: Execution) -> str:
    """The token that KubeRay made for the cluster of an execution: a Secret of the cluster's name."""
    (cluster,) = node.objects("rayclusters", execution.stem)
    (secret,) = node.objects("secrets", cluster["metadata"]["name"])
    return base64.b64decode(secret["data"]["auth_token"]).decode()


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("K8sJobMode", marks=FULL),
        pytest.param("HTTPMode", marks=FULL),
        pytest.param("SidecarMode", marks=FULL),
        pytest.param("", id="by default", marks=CORE),
    ],
)
def test_only_who_has_the_token_is_answered(start: Start, node: Node, user: ModuleType, mode: str) -> None:
    """Operator, submitter, head and worker have it, so the task succeeds; no other pod may list jobs, or start one."""
    execution = start(user.guarded, mode=mode)
    seen(lambda: left_by_code(node, execution), within=120)
    token = token_of(node, execution)
    answers = {
        (what, whose): answer(node, execution, body, given)
        for what, body in (("list", LIST), ("run", RUN))
        for whose, given in (("nobody's", ""), ("another's", "x" * len(token)), ("its own", token))
    }
    run = execution.end()

    assert answers == {
        ("list", "nobody's"): 401,
        ("list", "another's"): 403,
        ("list", "its own"): 200,
        ("run", "nobody's"): 401,
        ("run", "another's"): 403,
        ("run", "its own"): 200,
    }
    assert (run.phase, run.attempts, run.outputs) == ("SUCCEEDED", 1, {"o0": "computed"})
