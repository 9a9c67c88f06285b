"""What forms texts have to have: names and labels in Kubernetes, whole numbers; amounts have `quantity`.

Source of Kubernetes' rules: k8s.io/apimachinery/pkg/util/validation/validation.go.
"""

from __future__ import annotations

import re

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_ENV_NAME = re.compile(r"[ -<>-~]+", re.ASCII)
_WHOLE_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


def is_dns_label(text: str) -> bool:
    """Whether the text can be the name of a container, a volume or, in small letters, a worker group."""
    return _DNS_LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Whether the text can be the name of most objects, a Secret's or a service account's."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Whether the text can be the key of a label or an annotation."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return _LABEL.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether the text can be the value of a label; an empty one can."""
    return not text or _LABEL.fullmatch(text) is not None


def is_env_name(text: str) -> bool:
    """Whether the text can be the name of an environment variable."""
    return _ENV_NAME.fullmatch(text) is not None


def is_whole_number(text: str) -> bool:
    """Whether the text is digits, with a sign or none; at most 18, for Python takes no very long ones."""
    return _WHOLE_NUMBER.fullmatch(text) is not None
