"""The options of Ray's autoscaler, which KubeRay runs beside the head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import Problem
from ..pod.checks import container_problems
from ..quantity import parse_quantity
from ..wire import AutoscalerOptions, Manifest

AUTOSCALER_PATH = "custom.rayCluster.autoscalerOptions"


def autoscaler_problems(options: AutoscalerOptions) -> Iterator[Problem]:
    """What is wrong with the environment and the resources that the task wants for its autoscaler."""
    resources = {"requests": dict(options.requests), "limits": dict(options.limits)}
    container = {"name": "autoscaler", "env": _env(options), "resources": resources}
    yield from container_problems(container, AUTOSCALER_PATH)


def build_autoscaler_options(options: AutoscalerOptions) -> Manifest:
    """The autoscaler's options; without resources KubeRay gives it its own, which pass a quota.

    Args:
        options: The task's, without `autoscaler_problems`.

    Source: ray.go buildAutoscalerOptions.
    """
    sides = {"requests": _amounts(options.requests), "limits": _amounts(options.limits)}
    values = {
        "upscalingMode": options.upscaling_mode,
        "idleTimeoutSeconds": options.idle_timeout_seconds,
        "image": options.image,
        "env": _env(options),
        "resources": {side: amounts for side, amounts in sides.items() if amounts},
    }
    return {key: value for key, value in values.items() if value or value == 0}  # 0: an idle worker goes at once


def _env(options: AutoscalerOptions) -> list[Manifest]:
    return [{"name": name, "value": value} for name, value in options.env]


def _amounts(amounts: Mapping[str, str]) -> Manifest:
    """The amounts but those of zero, which say nothing in Flyte."""
    return {name: amount for name, amount in amounts.items() if parse_quantity(amount) != 0}
