"""The last word on a RayJob: `rayJobPatch` of the platform and of the task, and what the API server needs of all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import Problem
from ..pod.merge import merge_pod_spec
from ..wire import Manifest, parse_runtime_env
from .names import PREFIX

_NUMBERS = ("entrypointNumCpus", "entrypointNumGpus")
"""A RayJob's only fields that are fractions."""


def with_patches(job: Manifest, patches: Iterable[Mapping[str, Any] | None]) -> Manifest:
    """The RayJob with the patches on top, the later over the earlier; by what it is found again stays as it is."""
    patched = job
    for patch in patches:
        patched = merge_pod_spec(patched, dict(patch or {}))
    metadata = job["metadata"]
    own = {
        field: {key: value for key, value in metadata[field].items() if key.startswith(PREFIX)}
        for field in ("labels", "annotations")
    }
    identity = {"name": metadata["name"], "namespace": metadata["namespace"], **own}
    return merge_pod_spec(patched, {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": identity})


def patched_problems(job: Manifest, unpatched: Manifest) -> Iterator[Problem]:
    """What patches have made of a RayJob that is none any more, or whose driver no submitter could start.

    Types of fields are the API server's to judge.
    """
    remedy = "patch its fields, not all of it at once"
    if not isinstance(spec := job.get("spec"), dict):
        yield Problem("rayJobPatch.spec", f"leaves {spec!r} of the RayJob's spec", remedy)
    elif not isinstance(cluster := spec.get("rayClusterSpec", {}), dict):
        yield Problem("rayJobPatch.spec.rayClusterSpec", f"leaves {cluster!r} of the cluster's spec", remedy)
    else:
        yield from _submission_problems(spec, unpatched["spec"])


def _submission_problems(spec: Manifest, unpatched: Manifest) -> Iterator[Problem]:
    """What is wrong with the texts that are YAML and JSON themselves; none of it is told, it may hold a secret."""
    text = spec.get("runtimeEnvYAML")
    if isinstance(text, str) and text != unpatched.get("runtimeEnvYAML") and (fault := parse_runtime_env(text)[1]):
        yield Problem("rayJobPatch.spec.runtimeEnvYAML", fault, "write a mapping as YAML")
    if isinstance(text := spec.get("entrypointResources"), str) and text and not _is_json_object(text):
        remedy = """write a text as '{"name": 1}'"""
        yield Problem("rayJobPatch.spec.entrypointResources", "is no JSON object", remedy)


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def ready_for_api(value: Any) -> Any:
    """A copy without nulls, which have said what they had to in the merges, and with fractions as text.

    No field of Kubernetes' API is a fraction: only a quantity can be one. Nor is one of a RayJob's, but for two.
    """
    if isinstance(value, Mapping):
        return {
            key: entry if key in _NUMBERS and isinstance(entry, float) else ready_for_api(entry)
            for key, entry in value.items()
            if entry is not None
        }
    if isinstance(value, list):
        return [ready_for_api(entry) for entry in value]
    return str(value) if isinstance(value, float) else value
