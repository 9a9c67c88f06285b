"""What is needed to import `kube`."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
sys.modules["kubernetes.aio"] = None  # as where kubernetes is older than 37
try:
    import flytekitplugins.kuberay.kube
except ImportError as error:
    print(error)
"""


def test_an_older_kubernetes_is_refused_in_one_sentence() -> None:
    """Who runs a connector with it reads what is missing and how to get it."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "flytekitplugins.kuberay.kube needs kubernetes>=37, the first version with kubernetes.aio;"
        " install flytekitplugins-kuberay[connector]\n"
    )
