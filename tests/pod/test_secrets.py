"""What Flyte's webhook reads; the encoded texts were printed by Flyte's own Go code."""

from __future__ import annotations

import pytest
from flyteidl.core.security_pb2 import Secret
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.pod.secrets import secret_annotations, secret_labels
from flytekitplugins.kuberay.wire import Manifest

ENV_VAR = ParseDict({"group": "g", "key": "k", "mountRequirement": "ENV_VAR"}, Secret())


@pytest.mark.parametrize(
    ("secrets", "expected"),
    [pytest.param([], {}, id="none"), pytest.param([ENV_VAR], {"inject-flyte-secrets": "true"}, id="one")],
)
def test_secret_labels(secrets: list[Secret], expected: dict[str, str]) -> None:
    """The label that makes the webhook look at a pod stands only where there are secrets."""
    assert secret_labels(secrets) == expected


@pytest.mark.parametrize(
    ("secret", "expected"),
    [
        pytest.param(
            {"group": "wandb", "key": "api-key", "mountRequirement": "ENV_VAR"},
            "m4zg54lqhiqce42bnzsgeiqknnsxsoraejqxa1jnnnsxsiqknvxxk2tul4zgk3lvnfzgk2lfnz1duicfjzlf5vsbkifa",
            id="as a variable",
        ),
        pytest.param(
            {"group": "s3", "key": "credentials", "mountRequirement": "FILE"},
            "m4zg54lqhiqce3zteifgwzlzhiqcey2smvsgk2tunfqwy3zcbjww54loorpxezlrovuxezlnmvxhioraizeuyrik",
            id="as a file",
        ),
        pytest.param({"envVar": "E"}, "mvxhmx2wmfzduibciurau", id="with a name of its own, and nothing else"),
        pytest.param(
            {"group": 'gé"\\\n\x7f☃', "groupVersion": "v1", "key": "k\x01"},
            "m4zg54lqhiqcez13gmydgxbsguyvyis3lrog3xbrg32vymzugjodemzqlqzdamzcbjtxe22vobpxmzlsonuw52r1earhmmjcbjvwk5j1eargwxbqgaysecq",
            id="with characters that protobuf's text escapes",
        ),
    ],
)
def test_secret_annotations(secret: Manifest, expected: str) -> None:
    """Each secret is one annotation, in protobuf's text form and the webhook's base32."""
    one = ParseDict(secret, Secret())
    assert secret_annotations([one, ENV_VAR])["flyte.secrets/s0"] == expected
    assert list(secret_annotations([one, ENV_VAR])) == ["flyte.secrets/s0", "flyte.secrets/s1"]
