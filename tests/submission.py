"""How a submitter gets its command: from KubeRay, and through the kubelet."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import yaml

from flytekitplugins.kuberay.wire import Manifest


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """A container's argument as the kubelet hands it to the container runtime.

    Source: Kubernetes third_party/forked/golang/expansion Expand.
    """

    def replaced(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else environment.get(found[0][2:-1], found[0])

    return re.sub(r"\$(\$|\([^)]*\))", replaced, text)


def kuberay_submit_command(spec: Manifest, address: str, job: str) -> list[str]:
    """KubeRay's own command of a submitter in K8sJobMode, with its arguments.

    Source: KubeRay 1.6.2 common/job.go BuildJobSubmitCommand, rayjob_controller.go configureSubmitterContainer.
    """
    options = ["--address", address, "--no-wait"]
    if yaml_text := spec.get("runtimeEnvYAML"):
        options += ["--runtime-env-json", _quoted(_json(yaml.safe_load(yaml_text)))]
    if metadata := spec.get("metadata"):
        options += ["--metadata-json", _quoted(_json(metadata))]
    options += ["--submission-id", job]
    for option, field in (
        ("--entrypoint-num-cpus", "entrypointNumCpus"),
        ("--entrypoint-num-gpus", "entrypointNumGpus"),
    ):
        options += [option, f"{amount:f}"] if (amount := spec.get(field, 0)) > 0 else []
    if resources := spec.get("entrypointResources"):
        options += ["--entrypoint-resources", _quoted(resources)]
    line = (
        f"if ! ray job status --address {address} {job} >/dev/null 2>&1 ; "
        f"then ray job submit {' '.join(options)} -- {spec['entrypoint'].strip()} ; "
        f"fi ; ray job logs --address {address} --follow {job}"
    )
    return ["/bin/bash", "-ce", "--", line]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quoted(text: str) -> str:
    """The text as Go's strconv.Quote writes it."""
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    if short := {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}.get(character):
        return f"\\{short}"
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
