"""The RayJob CRDs of several versions of KubeRay, out of its Go modules, for a real API server."""

from __future__ import annotations

import asyncio
import functools
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import yaml

from flytekitplugins.kuberay.kube import RAYJOBS, ApiKubeClient, Resource
from flytekitplugins.kuberay.wire import Manifest
from tests.kube.admin import merge_patch

VERSIONS = ("1.3.2", "1.4.2", "1.5.1", "1.6.2")
_MODULE = "github.com/ray-project/kuberay/ray-operator"
_DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")


class NoCrdError(Exception):
    """A version's CRD can't be had; the text says why."""


@functools.cache
def crd_of(version: str) -> Manifest:
    """The CustomResourceDefinition of RayJobs; Go keeps what it has downloaded once.

    Raises:
        NoCrdError: There is no Go, or its module proxy does not have this version.
    """
    if not shutil.which("go"):
        raise NoCrdError("Go is missing, which downloads KubeRay's modules")
    command = ["go", "mod", "download", "-json", f"{_MODULE}@v{version}"]
    done = subprocess.run(command, cwd=tempfile.gettempdir(), capture_output=True, text=True)
    answer = json.loads(done.stdout or "{}")
    if "Dir" not in answer:
        raise NoCrdError(f"KubeRay {version} can't be downloaded: {answer.get('Error', done.stderr)}")
    text = (Path(answer["Dir"]) / "config" / "crd" / "bases" / "ray.io_rayjobs.yaml").read_text()
    crd: Manifest = yaml.load(text, yaml.CSafeLoader)
    return crd


def spec_schema_of(version: str) -> Manifest:
    """The schema of a RayJob's spec, ray.io/v1, in that CRD.

    Raises:
        NoCrdError: As `crd_of`.
    """
    versions = {each["name"]: each["schema"]["openAPIV3Schema"] for each in crd_of(version)["spec"]["versions"]}
    schema: Manifest = versions[RAYJOBS.version]["properties"]["spec"]
    return schema


async def install(kubeconfig: str, version: str) -> None:
    """Puts that version's CRD in place of the one that the API server has.

    Raises:
        NoCrdError: As `crd_of`.
    """
    wanted = spec_schema_of(version)
    async with await ApiKubeClient.open(kubeconfig) as client:
        await merge_patch(client, _DEFINITIONS, None, str(RAYJOBS), {"spec": crd_of(version)["spec"]}, timeout=30)
        for _ in range(300):
            served = await client.schema(RAYJOBS, "RayJob")
            if served["properties"]["spec"] == wanted:
                return
            await asyncio.sleep(0.1)
    raise AssertionError("the API server does not follow its CustomResourceDefinitions")
