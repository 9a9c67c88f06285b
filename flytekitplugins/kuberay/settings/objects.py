"""The Kubernetes objects that stand in settings: kinds that check the first level and keep the rest as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .kinds import (
    BOOL,
    DATA,
    INTEGER,
    LIST,
    QUANTITY,
    TEXT,
    TEXTS,
    Kind,
    Place,
    list_of,
    map_of,
)


def kubernetes(name: str, /, **known: Kind) -> Kind:
    """A Kubernetes object as plain data, its first level checked; what that does not know is kept with a warning."""

    def read(value: Any, place: Place) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            place.refuse(f"a map ({name})", value)
            return {}
        for key in value:
            if key not in known:
                place.unknown(key, known)
        return {
            str(key): known[key].read(item, place.at(key)) if key in known else item
            for key, item in value.items()
            if item is not None
        }

    return Kind(name, read)


_STRINGS = Kind(TEXTS.name, lambda value, place: list(TEXTS.read(value, place)))  # plain data, unlike a setting

TOLERATION = kubernetes("a toleration", key=TEXT, operator=TEXT, value=TEXT, effect=TEXT, tolerationSeconds=INTEGER)
TOLERATIONS = list_of(TOLERATION, "a list of tolerations")
AFFINITY = kubernetes("an affinity", nodeAffinity=DATA, podAffinity=DATA, podAntiAffinity=DATA)
NODE_SELECTOR_REQUIREMENT = kubernetes("a node selector requirement", key=TEXT, operator=TEXT, values=_STRINGS)
POD_SECURITY_CONTEXT = kubernetes(
    "a pod security context",
    **dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), INTEGER),
    **dict.fromkeys(("seLinuxOptions", "windowsOptions", "seccompProfile", "appArmorProfile"), DATA),
    **dict.fromkeys(("fsGroupChangePolicy", "supplementalGroupsPolicy", "seLinuxChangePolicy"), TEXT),
    **dict.fromkeys(("supplementalGroups", "sysctls"), LIST),
    runAsNonRoot=BOOL,
)
SECURITY_CONTEXT = kubernetes(
    "a security context",
    **dict.fromkeys(("runAsUser", "runAsGroup"), INTEGER),
    **dict.fromkeys(("privileged", "runAsNonRoot", "readOnlyRootFilesystem", "allowPrivilegeEscalation"), BOOL),
    **dict.fromkeys(("capabilities", "seLinuxOptions", "windowsOptions", "seccompProfile", "appArmorProfile"), DATA),
    procMount=TEXT,
)
POD_DNS_CONFIG = kubernetes("a pod DNS config", nameservers=_STRINGS, searches=_STRINGS, options=LIST)
CONTAINER = kubernetes(
    "a container",
    **dict.fromkeys(("name", "image", "workingDir", "imagePullPolicy", "restartPolicy"), TEXT),
    **dict.fromkeys(("terminationMessagePath", "terminationMessagePolicy"), TEXT),
    **dict.fromkeys(("command", "args"), _STRINGS),
    **dict.fromkeys(("ports", "env", "envFrom", "volumeMounts", "volumeDevices", "resizePolicy"), LIST),
    **dict.fromkeys(("resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"), DATA),
    **dict.fromkeys(("stdin", "stdinOnce", "tty"), BOOL),
    securityContext=SECURITY_CONTEXT,
)
RESOURCES = kubernetes(
    "resource requirements",
    requests=map_of(QUANTITY, "a map of quantities"),
    limits=map_of(QUANTITY, "a map of quantities"),
    claims=LIST,
)
