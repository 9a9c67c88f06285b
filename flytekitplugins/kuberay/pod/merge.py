"""The one merge of pod specs: base PodTemplate < task pod < group template (design 5.1).

The overlay always wins. Lists merge by the tables below, which follow Kubernetes' patchMergeKey facts; any other list
is replaced. `$patch: replace` and `$patch: delete` work as in a Kubernetes strategic merge patch.

Source: k8s.io/apimachinery/pkg/util/strategicpatch and the patchMergeKey tags of k8s.io/api/core/v1 at v0.34.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..schema import PATCH
from ..wire import Manifest

DEEP_KEYS: Mapping[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "workerGroupSpecs": ("groupName",),  # KubeRay's, for rayJobPatch
}
"""Lists whose entries match by these fields and merge deep."""

ENTRY_KEYS: Mapping[str, tuple[str, ...]] = {
    "env": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "protocol"),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "readinessGates": ("conditionType",),
    "schedulingGates": ("name",),
}
"""Lists whose entries match by these fields; the overlay's entry replaces the base's: two sources in one are wrong."""

UNIONS = frozenset({"tolerations", "envFrom"})
"""Lists that are sets."""

DEFAULTS: Mapping[str, Any] = {"protocol": "TCP"}
"""What an absent key field means."""

ONE_OF: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("livenessProbe", "readinessProbe", "startupProbe"), frozenset({"exec", "httpGet", "tcpSocket", "grpc"})
    ),
    **dict.fromkeys(("preStop", "postStart"), frozenset({"exec", "httpGet", "tcpSocket", "sleep"})),
    **dict.fromkeys(("seccompProfile", "appArmorProfile"), frozenset({"type", "localhostProfile"})),
}
"""Fields of an object that exclude each other: one in the overlay takes all of the base's away."""


def merge_pod_spec(base: Manifest, overlay: Manifest) -> Manifest:
    """A new manifest: the base with the overlay on top; neither is changed, and nothing is shared with them."""
    return _merge_maps("", base, overlay)


def copied(value: Any) -> Any:
    """A copy of plain data that shares nothing with it; many times quicker than `copy.deepcopy`."""
    if isinstance(value, dict):
        return {key: copied(entry) for key, entry in value.items()}
    return [copied(entry) for entry in value] if isinstance(value, list) else value


def entry_key(field: str, entry: Any) -> tuple[Any, ...] | None:
    """What identifies an entry of a keyed list; None for a list without keys or an entry that is no mapping."""
    keys = DEEP_KEYS.get(field) or ENTRY_KEYS.get(field)
    if keys is None or not isinstance(entry, Mapping):
        return None
    return tuple(entry.get(key, DEFAULTS.get(key)) for key in keys)


def _merge_maps(field: str, base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Manifest:
    """The maps of one field merged; a null in the overlay removes the key."""
    kept = {} if overlay.get(PATCH) in ("replace", "delete") else _without_rivals(field, base, overlay)
    merged: Manifest = {}
    for key in (*kept, *(key for key in overlay if key not in kept and key != PATCH)):
        if key not in overlay:
            merged[key] = copied(kept[key])
        elif overlay[key] is not None and not _is_deleted(overlay[key]):
            merged[key] = _merge_values(key, kept.get(key), overlay[key])
    return merged


def _without_rivals(field: str, base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Mapping[str, Any]:
    """The base without the one-of fields that the overlay's choice excludes."""
    rivals = ONE_OF.get(field, frozenset())
    if not any(overlay.get(key) is not None for key in rivals):
        return base
    return {key: value for key, value in base.items() if key not in rivals}


def _merge_values(field: str, base: Any, overlay: Any) -> Any:
    """One value of the overlay over the base's."""
    if isinstance(overlay, Mapping):
        return _merge_maps(field, base if isinstance(base, Mapping) else {}, overlay)
    if isinstance(overlay, list):
        return _merge_lists(field, base if isinstance(base, list) else [], overlay)
    return overlay


def _merge_lists(field: str, base: list[Any], overlay: list[Any]) -> list[Any]:
    """The lists of one field merged: base order first, then what is new in the overlay's order."""
    entries, replace = _without_directives(overlay)
    if field == "containers" and not overlay:
        return list(map(copied, base))  # a pod without containers can't be meant; the SDK writes [] for no template
    if field in UNIONS and entries and not replace:
        return _union(base, entries)
    if field in DEEP_KEYS or field in ENTRY_KEYS:
        return _merge_entries(field, [] if replace or not overlay else base, entries)
    return [_merge_values("", None, entry) for entry in entries if not _is_deleted(entry)]


def _without_directives(overlay: list[Any]) -> tuple[list[Any], bool]:
    """The entries that are more than `{"$patch": "replace"}`, and whether that stood among them."""
    replace = {PATCH: "replace"}
    return [entry for entry in overlay if entry != replace], replace in overlay


def _is_deleted(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get(PATCH) == "delete"


def _union(base: Sequence[Any], overlay: Sequence[Any]) -> list[Any]:
    """The entries of both, none twice, without those equal to a deleted one."""
    deleted = [_merge_values("", None, entry) for entry in overlay if _is_deleted(entry)]
    added = [_merge_values("", None, entry) for entry in overlay if not _is_deleted(entry)]
    union: list[Any] = []
    for entry in (*base, *added):
        if entry not in union and entry not in deleted:
            union.append(copied(entry))
    return union


def _merge_entries(field: str, base: Sequence[Any], overlay: Sequence[Any]) -> list[Any]:
    """The entries of a keyed list: matching ones merged or replaced, deleted ones gone, new ones last."""
    merged = {position: copied(entry) for position, entry in _positioned(field, base, 0)}
    for position, entry in _positioned(field, overlay, len(base)):
        if _is_deleted(entry):
            merged.pop(position, None)
        elif field in DEEP_KEYS:
            merged[position] = _merge_values(field, merged.get(position), entry)
        else:
            merged[position] = _merge_values("", None, entry)
    return list(merged.values())


def _positioned(field: str, entries: Sequence[Any], start: int) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each entry with its key, or its index where it has none; two of one key stay two, for a check to find."""
    seen: Counter[tuple[Any, ...]] = Counter()
    for index, entry in enumerate(entries, start):
        key = entry_key(field, entry)
        keyless = key is None or any(isinstance(part, (dict, list)) for part in key)
        position: tuple[Any, ...] = (index,) if keyless else ("key", *(key or ()))
        seen[position] += 1
        yield (*position, seen[position]), entry
