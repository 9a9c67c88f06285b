"""The `flyte-kuberay` command: arguments over the functions that the connector uses."""

from .program import main

__all__ = ["main"]
