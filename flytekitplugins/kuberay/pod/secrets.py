"""What Flyte's webhook reads to put the task's secrets into pods: a label and an annotation for each secret.

Source: flyteplugins pluginmachinery/utils/secrets/marshaler.go and pluginmachinery/encoding/encoder.go.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

from flyteidl.core.security_pb2 import Secret
from google.protobuf import text_format

LABEL = "inject-flyte-secrets"
_ANNOTATION = "flyte.secrets/s"
_ALPHABET = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"abcdefghijklmnopqrstuvwxyz123456")


def secret_labels(secrets: Iterable[Secret]) -> dict[str, str]:
    """The label that makes the webhook look at a pod; none without secrets."""
    return {LABEL: "true"} if list(secrets) else {}


def secret_annotations(secrets: Iterable[Secret]) -> dict[str, str]:
    """One annotation for each secret: its protobuf text in the webhook's base32."""
    return {f"{_ANNOTATION}{index}": _encode(secret) for index, secret in enumerate(secrets)}


def _encode(secret: Secret) -> str:
    text = text_format.MessageToString(secret, as_utf8=False)  # octal escapes, as Go writes them
    encoded = base64.b32encode(text.encode()).translate(_ALPHABET).decode()
    return encoded.rstrip("=")
