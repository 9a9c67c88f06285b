"""The smallest objects that a kube-apiserver with KubeRay's CRDs accepts."""

from __future__ import annotations

from flytekitplugins.kuberay.kube import Manifest


def pod_spec() -> Manifest:
    """One container."""
    return {"containers": [{"name": "main", "image": "example/image:1"}]}


def rayjob(name: str, *, labels: dict[str, str] | None = None, **spec: object) -> Manifest:
    """A RayJob with a head; `spec` adds to its spec or replaces parts of it."""
    head = {"rayStartParams": {}, "template": {"spec": pod_spec()}}
    whole = {"entrypoint": "python -V", "rayClusterSpec": {"headGroupSpec": head}, **spec}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": whole}


def core(kind: str, name: str, **rest: object) -> Manifest:
    """An object of the core API."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **rest}
