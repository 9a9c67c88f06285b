"""Compares a RayJob manifest with a golden case, after both are brought into one canonical form.

    python compare.py CASE.json GOT.json

GOT.json holds the manifest that the product rendered, or {"error": "text"} where it refused the task. Prints one line
a difference; the exit status is 1 when there is any. The rules are told in README.md.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

try:  # only for runtimeEnvYAML whose text differs; without it such texts count as different
    import yaml  # type: ignore[import-untyped]  # optional, and its stubs even more so
except ImportError:
    yaml = None

Manifest = dict[str, Any]

OWN_PREFIX = "kuberay.flyte.org/"  # labels and annotations of our own: always allowed
EXTRA_SPEC_KEYS = {  # what our own settings may add to a RayJob's spec
    "submissionMode", "backoffLimit", "submitterConfig", "suspend",
    "activeDeadlineSeconds", "preRunningDeadlineSeconds",
}  # fmt: skip
IGNORED = {"status", "creationTimestamp", "ownerReferences", "resourceVersion", "uid", "generation", "managedFields"}
FALSE_IS_ABSENT = {
    "hostNetwork", "hostPID", "hostIPC", "readOnly", "stdin", "stdinOnce", "tty",
    "enableIngress", "enableInTreeAutoscaling", "shutdownAfterJobFinishes", "suspend",
}  # fmt: skip
DEFAULTS = {"ttlSecondsAfterFinished": 0, "minReplicas": 0, "numOfHosts": 1, "protocol": "TCP"}
STRING_MAPS = {"labels", "annotations", "nodeSelector", "matchLabels", "rayStartParams"}
QUANTITY_MAPS = {"requests", "limits"}
QUANTITIES = {"sizeLimit", "divisor"}
SORTED_BY = {
    "env": ["name"], "volumes": ["name"], "volumeMounts": ["mountPath"], "volumeDevices": ["devicePath"],
    "ports": ["containerPort", "protocol"], "imagePullSecrets": ["name"], "hostAliases": ["ip"], "claims": ["name"],
    "topologySpreadConstraints": ["topologyKey", "whenUnsatisfiable"], "resourceClaims": ["name"],
}  # fmt: skip
SETS = {"tolerations", "envFrom", "nodeSelectorTerms", "matchExpressions", "matchFields", "values"}
SUBMITTER_SPEC_KEYS = [
    "serviceAccountName", "imagePullSecrets", "nodeSelector", "tolerations", "affinity", "schedulerName",
    "priorityClassName", "securityContext", "dnsPolicy", "dnsConfig",
]  # fmt: skip
SUFFIXES: dict[str, Fraction | int] = {
    "": 1, "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": 10**3, "M": 10**6, "G": 10**9,
    "T": 10**12, "P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([eE][+-]?[0-9]{1,3}|[a-zA-Z]*)")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,45}[a-z0-9])?")


def _object(value: Any) -> Manifest:
    """The value itself where it is an object, else an empty one: a manifest may hold anything anywhere."""
    return value if isinstance(value, dict) else {}


def _quantity(value: Any) -> str:
    """The value of a Kubernetes quantity, the same text for the same amount."""
    found = _QUANTITY.fullmatch(str(value))
    if found is None:
        return f"not a quantity: {value!r}"
    number, suffix = found.groups()
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
        return str(Fraction(number + suffix))
    return str(Fraction(number) * SUFFIXES[suffix]) if suffix in SUFFIXES else f"not a quantity: {value!r}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _is_default(key: str, value: Any) -> bool:
    return key in DEFAULTS and value == DEFAULTS[key] and type(value) is type(DEFAULTS[key])


def _value(key: str, value: Any, parent: str) -> Any:  # noqa: PLR0911 - a rule a line
    """One value under its key in canonical form; None where it says nothing."""
    if key in QUANTITY_MAPS and isinstance(value, dict):
        return {name: _quantity(amount) for name, amount in sorted(value.items()) if amount is not None} or None
    if key in QUANTITIES:
        amount = None if value is None else _quantity(value)
        return None if amount == "0" else amount
    if key in STRING_MAPS and isinstance(value, dict):
        return {k: v for k, v in sorted(value.items()) if v is not None and not k.startswith(OWN_PREFIX)} or None
    if (key in FALSE_IS_ABSENT and value is False) or _is_default(key, value):
        return None
    if (key, parent, value) in (("operator", "tolerations", "Equal"), ("apiVersion", "fieldRef", "v1")):
        return None
    if isinstance(value, dict):
        return canonical(value, key) or None
    if isinstance(value, list):
        return _list(key, value) or None
    return None if value == "" else value


def _list(key: str, items: list[Any]) -> list[Any]:
    """A list in canonical order: the Ray container first, the others by name; sets and keyed lists sorted."""
    done = [canonical(item, key) if isinstance(item, dict) else item for item in items]
    if key == "containers":
        return done[:1] + sorted(done[1:], key=lambda c: str(_object(c).get("name")))
    if key in SORTED_BY:
        return sorted(done, key=lambda item: (_text([_object(item).get(k) for k in SORTED_BY[key]]), _text(item)))
    if key in SETS:
        return sorted(done, key=_text)
    return done


def canonical(manifest: Manifest, parent: str = "") -> Manifest:
    """A copy of the manifest that is equal to another's copy when both mean the same."""
    out: Manifest = {}
    for key, value in sorted(manifest.items()):
        if key in IGNORED:
            continue
        if (kept := _value(key, value, parent)) is not None:
            out[key] = kept
    return out


def _label(item: Any, index: int) -> str:
    name = (item.get("name") or item.get("groupName") or item.get("mountPath")) if isinstance(item, dict) else None
    return f"[{name or index}]"


def _diff(path: str, expected: Any, got: Any) -> list[str]:
    """The differences of two canonical values, each with its path."""
    if isinstance(expected, dict) and isinstance(got, dict):
        keys = sorted({**expected, **got}, key=str)  # YAML has other keys than text
        return [line for key in keys for line in _diff(f"{path}.{key}", expected.get(key), got.get(key))]
    if isinstance(expected, list) and isinstance(got, list):
        names = [_label(item, i) for i, item in enumerate(expected)], [_label(item, i) for i, item in enumerate(got)]
        if names[0] == names[1]:
            return [line for n, e, g in zip(names[0], expected, got, strict=True) for line in _diff(path + n, e, g)]
        if "[0]" not in names[0] + names[1]:
            return [f"{path}: expected {' '.join(names[0])}, got {' '.join(names[1])}"]
    if expected == got and type(expected) is type(got):  # the API server takes 8080, not 8080.0
        return []
    return [f"{path}: expected {json.dumps(expected, default=str)}, got {json.dumps(got, default=str)}"]


def places(one: Manifest, other: Manifest) -> list[str]:
    """Where two canonical manifests differ, one line each."""
    return _diff("", one, other)


def _runtime_env(expected: Manifest, spec: Manifest) -> list[str]:
    """Compares and removes both runtimeEnvYAML: by text, else by what the YAML holds."""
    want, have = expected["rayjob"]["spec"].pop("runtimeEnvYAML", None), spec.pop("runtimeEnvYAML", None)
    if want == have:
        return []
    if yaml is None or not want or not isinstance(have, str):
        return _diff("spec.runtimeEnvYAML", want, have)
    try:
        return _diff("spec.runtimeEnvYAML", expected.get("runtime_env") or yaml.safe_load(want), yaml.safe_load(have))
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that does not exist
        return [f"spec.runtimeEnvYAML: {' '.join(str(error).split())}"]


def _entrypoint(argv: list[str], entrypoint: Any) -> list[str]:
    """Tells where the entrypoint, read as a shell reads words, is not the argv."""
    if not isinstance(entrypoint, str):
        return [f"spec.entrypoint: expected text, got {json.dumps(entrypoint)}"]
    try:
        got = shlex.split(entrypoint)
    except ValueError as error:
        return [f"spec.entrypoint: {error}: {entrypoint}"]
    return [] if got == argv else [f"spec.entrypoint: expected the argv {argv}, got {got}"]


def _submitter(expected: Manifest, template: Any) -> list[str]:
    """The differences of the submitter's pod template from what design D7 wants."""
    spec, meta = (_object(_object(template).get(key)) for key in ("spec", "metadata"))
    containers = spec.get("containers")
    listed = containers if isinstance(containers, list) else []
    container = _object(listed[0]) if listed else {}
    lines = [] if len(listed) == 1 else ["spec.submitterPodTemplate: must have exactly one container"]
    lines += [] if container.get("name") else ["spec.submitterPodTemplate: no name of the container"]
    got = {key: spec[key] for key in SUBMITTER_SPEC_KEYS if key in spec}
    got |= {key: meta[key] for key in ("labels", "annotations") if key in meta}
    got |= {"image": container.get("image"), "imagePullPolicy": container.get("imagePullPolicy")}
    lines += _diff("spec.submitterPodTemplate", canonical(expected), canonical(got))
    resources = _object(container.get("resources"))
    for side in ("requests", "limits"):
        amounts = _object(resources.get(side))
        lines += [f"spec.submitterPodTemplate: no {side} of {n}" for n in ("cpu", "memory") if n not in amounts]
        lines += [f"spec.submitterPodTemplate: {side} hold {n}" for n in amounts if "/" in n]
    if spec.get("volumes") or spec.get("initContainers") or container.get("volumeMounts"):
        lines.append("spec.submitterPodTemplate: must have no volumes, mounts or init containers")
    return lines


def _folded(text: str) -> str:
    return re.sub(r"[\s_-]", "", text).lower()


def differences(expected: Manifest, got: Any) -> list[str]:
    """What differs between a case's `expected` and what the product gave, one line each; [] when nothing does."""
    if not isinstance(got, dict):
        return [f"neither a manifest nor an error: {json.dumps(got)}"]
    if "error" in expected:
        if "error" not in got:
            return [f"a manifest although the task must be refused: {expected['error']['about']}"]
        text = _folded(str(got["error"]))
        return [
            f"the error does not mention {w!r}" for w in expected["error"]["must_mention"] if _folded(w) not in text
        ]
    if "error" in got:
        return [f"refused: {got['error']}"]
    expected, got = json.loads(json.dumps(expected)), json.loads(json.dumps(got))
    spec = _object(got.get("spec"))
    lines = _runtime_env(expected, spec)
    lines += _entrypoint(expected["entrypoint_argv"], spec.pop("entrypoint", None))
    lines += _submitter(expected["submitter"], spec.pop("submitterPodTemplate", None))
    for key in EXTRA_SPEC_KEYS - set(expected["rayjob"]["spec"]):
        spec.pop(key, None)
    name = _object(got.get("metadata")).pop("name", None)
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        lines.append(f"metadata.name: {name!r} is no DNS-1035 label of at most 47 characters")
    return lines + [line.removeprefix(".") for line in _diff("", canonical(expected["rayjob"]), canonical(got))]


def main(argv: list[str]) -> int:
    """Prints the differences of GOT.json from CASE.json's `expected`."""
    if len(argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    case, got = (json.loads(Path(path).read_text(encoding="utf-8")) for path in argv[1:])
    lines = differences(case["expected"], got)
    print("\n".join(lines) or "no differences")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
