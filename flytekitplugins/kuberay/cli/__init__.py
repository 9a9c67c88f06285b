"""The `flyte-kuberay` command: arguments over the functions that the connector uses."""

from flytekitplugins.kuberay.cli.program import main

__all__ = ["main"]
