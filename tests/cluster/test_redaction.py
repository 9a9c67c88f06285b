"""No secret value of a manifest is in a text, in whichever form texts show it; what else is there stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.cluster.redaction import (
    REDACTED,
    SHORTEST_SECRET,
    redacted,
    redacted_values,
    secrets_of,
)

SECRET_NAMES = st.sampled_from(
    [
        "API_TOKEN",
        "DB_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "OPENAI_API_KEY",
        "private-key",
        "redis-password",
        "BASIC_AUTH",
    ]
)
SECRETS = st.text(min_size=SHORTEST_SECRET).filter(
    lambda text: len(text.strip()) >= SHORTEST_SECRET and REDACTED not in text and text not in REDACTED
)


def rayjob(name: str, value: str, place: str) -> dict[str, Any]:
    """A RayJob with a variable at one of the places for them."""
    env = [{"name": name, "value": value}]
    template = {"spec": {"containers": [{"name": "ray-head", "env": env}]}}
    if place == "head":
        return {"spec": {"rayClusterSpec": {"headGroupSpec": {"template": template}}}}
    if place == "worker":
        return {"spec": {"rayClusterSpec": {"workerGroupSpecs": [{"template": template}]}}}
    if place == "params":
        return {"spec": {"rayClusterSpec": {"headGroupSpec": {"rayStartParams": {name: value}}}}}
    return {"spec": {"runtimeEnvYAML": yaml.safe_dump({"env_vars": {name: value}})}}


@given(SECRET_NAMES, SECRETS, st.sampled_from(["head", "worker", "params", "runtime_env"]), st.text(), st.text())
def test_no_secret_is_in_a_text(name: str, value: str, place: str, before: str, after: str) -> None:
    """Wherever it stands in the manifest, whatever stands around it in the text."""
    secrets = secrets_of(rayjob(name, value, place))
    assert value not in redacted(f"{before}{value}{after}", secrets)


@given(SECRET_NAMES, SECRETS)
def test_no_secret_is_in_data_either(name: str, value: str) -> None:
    """Before JSON escapes what is in it, which no search would find then."""
    data = {"message": f"a {value} b", value: [1, None, {"deep": value}]}
    clean = redacted_values(data, secrets_of(rayjob(name, value, "head")))
    assert value not in json.loads(json.dumps(clean))["message"]
    assert all(value not in text for text in (*clean, clean[redacted(value, [value])][2]["deep"]))


@given(st.text(), st.lists(SECRETS, max_size=3))
def test_twice_is_once(text: str, secrets: list[str]) -> None:
    """A text that was redacted stays."""
    once = redacted(text, secrets)
    assert redacted(once, [each for each in secrets if each not in once]) == once


def test_a_key_is_found_line_by_line() -> None:
    """As a log shows it, and on the one line that a status makes of it."""
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nAAOCAQ8AMIIBCgKCAQEA0\n-----END KEY-----\n"
    secrets = secrets_of(rayjob("PRIVATE_KEY", key, "head"))
    assert redacted("read MIIEvQIBADANBgkqhkiG9w0 and then", secrets) == "read [redacted] and then"
    assert redacted(f"read {' '.join(key.split())} and then", secrets) == "read [redacted] and then"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("HOME", "/home/ray", id="no secret by its name"),
        pytest.param("API_TOKEN", "short", id="too short to be told from words"),
        pytest.param("secretName", "registry-login", id="the name of a secret, which tells which one is missing"),
        pytest.param("TOKENIZERS_PARALLELISM", "false-ish", id="a tokenizer"),
        pytest.param("RAY_AUTH_MODE", "disabled", id="a mode"),
        pytest.param("AUTHOR", "somebody", id="an author"),
    ],
)
def test_other_values_stay(name: str, value: str) -> None:
    """They tell what happened."""
    assert secrets_of(rayjob(name, value, "head")) == frozenset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Authorization: Bearer abcdefgh.123", "[redacted]", id="a header"),
        pytest.param("got bearer abcdefgh123 back", "got [redacted] back", id="a bearer's token"),
        pytest.param("key AKIAABCDEFGHIJKLMNOP used", "key [redacted] used", id="an AWS key"),
        pytest.param("jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2ln ok", "jwt [redacted] ok", id="a JSON web token"),
        pytest.param("clone https://me:pw@host/x", "clone https://[redacted]@host/x", id="a URL with a password"),
        pytest.param("GET /?token=abc&x=1", "GET /?token=[redacted]&x=1", id="a query"),
        pytest.param("basic authentication failed", "basic authentication failed", id="words"),
        pytest.param("Author: somebody else", "Author: somebody else", id="an author"),
    ],
)
def test_what_looks_like_a_secret_goes(text: str, expected: str) -> None:
    """Whatever the manifest says."""
    assert redacted(text) == expected


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param("-eyJaaaaaaaa", id="beginnings of JSON web tokens"),
        pytest.param("bearer ", id="bearers"),
        pytest.param("://a:", id="beginnings of URLs with a password"),
        pytest.param("authorization: ", id="headers"),
    ],
)
def test_a_log_of_beginnings_holds_nobody_up(piece: str) -> None:
    """The time grows with the text, not with its square, which would be minutes here: the log is the user's."""
    text = piece * (768 * 1024 // len(piece))
    assert len(redacted(text)) <= len(text)


@pytest.mark.parametrize("text", ["", "a: [", "- 1", None, 7, "!!python/object:x {}"])
def test_a_runtime_env_that_is_none_hides_nothing(text: Any) -> None:
    """And breaks nothing."""
    assert secrets_of({"spec": {"runtimeEnvYAML": text}}) == frozenset()


def test_a_runtime_env_of_aliases_is_walked_once() -> None:
    """A few hundred bytes can stand for more than there is time for."""
    levels = ["a0: &a0 {API_TOKEN: sesame-open}", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))]
    assert secrets_of({"spec": {"runtimeEnvYAML": "\n".join(levels)}}) == frozenset({"sesame-open"})


@pytest.mark.parametrize("text", ["DATE: 2024-02-30", "a: &a [*a]", "[" * 2000])
def test_a_runtime_env_that_can_not_be_read_hides_no_job(text: str) -> None:
    """A date that does not exist, a list that holds itself, and one too deep."""
    assert secrets_of({"spec": {"runtimeEnvYAML": text}}) == frozenset()
