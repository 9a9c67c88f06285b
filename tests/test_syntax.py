"""Names, label keys and label values: the rows are facts of apimachinery's validation.go."""

from __future__ import annotations

import pytest

from flytekitplugins.kuberay.syntax import (
    is_dns_label,
    is_env_name,
    is_label_key,
    is_label_value,
    is_subdomain,
    is_whole_number,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a", True, id="a letter"),
        pytest.param("1a-b", True, id="a digit first, a dash within"),
        pytest.param("x" * 63, True, id="63 characters"),
        pytest.param("x" * 64, False, id="64 characters"),
        pytest.param("", False, id="nothing"),
        pytest.param("A", False, id="a capital letter"),
        pytest.param("a_b", False, id="an underscore"),
        pytest.param("a.b", False, id="a dot"),
        pytest.param("a-", False, id="a dash last"),
        pytest.param("a\n", False, id="a newline behind"),
    ],
)
def test_is_dns_label(text: str, expected: bool) -> None:
    """A DNS label has small letters, digits and dashes within."""
    assert is_dns_label(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", True, id="nothing"),
        pytest.param("Team_A.1", True, id="letters of any case, digits, punctuation within"),
        pytest.param("x" * 63, True, id="63 characters"),
        pytest.param("x" * 64, False, id="64 characters"),
        pytest.param("a/b", False, id="a slash"),
        pytest.param("-a", False, id="punctuation first"),
        pytest.param("a b", False, id="a blank"),
    ],
)
def test_is_label_value(text: str, expected: bool) -> None:
    """A label's value is like the name in a key, or empty."""
    assert is_label_value(text) is expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("app", True, id="a name"),
        pytest.param("App.Name_1-x", True, id="letters of any case, digits, punctuation within"),
        pytest.param("example.com/app", True, id="with a prefix"),
        pytest.param("x" * 63, True, id="63 characters"),
        pytest.param("x" * 64, False, id="64 characters"),
        pytest.param("a." * 126 + "a/x", True, id="a prefix of 253 characters"),
        pytest.param("a." * 127 + "a/x", False, id="a longer prefix"),
        pytest.param("", False, id="nothing"),
        pytest.param("-app", False, id="punctuation first"),
        pytest.param("app.", False, id="punctuation last"),
        pytest.param("a b", False, id="a blank"),
        pytest.param("ä", False, id="a letter that is no ASCII"),
        pytest.param("app\n", False, id="a newline behind"),
        pytest.param("/app", False, id="an empty prefix"),
        pytest.param("example.com/", False, id="a prefix alone"),
        pytest.param("Example.com/app", False, id="an upper-case prefix"),
        pytest.param("a/b/c", False, id="two slashes"),
    ],
)
def test_is_label_key(key: str, expected: bool) -> None:
    """A key of a label or annotation is a name with an optional prefix, a DNS subdomain."""
    assert is_label_key(key) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a.b-c.1", True, id="labels with dots between"),
        pytest.param("a." * 126 + "a", True, id="253 characters"),
        pytest.param("a." * 127, False, id="more"),
        pytest.param("", False, id="nothing"),
        pytest.param("a..b", False, id="an empty label"),
        pytest.param("A", False, id="a capital letter"),
    ],
)
def test_is_subdomain(text: str, expected: bool) -> None:
    """Most objects have a DNS subdomain as their name."""
    assert is_subdomain(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("PATH", True, id="a usual one"),
        pytest.param("1 a-b.c", True, id="what a shell could not use"),
        pytest.param("", False, id="nothing"),
        pytest.param("a=b", False, id="an equals sign"),
        pytest.param("ä", False, id="a letter that is no ASCII"),
        pytest.param("a\n", False, id="a newline behind"),
    ],
)
def test_is_env_name(text: str, expected: bool) -> None:
    """An environment variable's name has any printable ASCII characters but `=`."""
    assert is_env_name(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("007", True, id="zeros first"),
        pytest.param("-5", True, id="a negative one"),
        pytest.param("9" * 18, True, id="18 digits"),
        pytest.param("9" * 19, False, id="more"),
        pytest.param("--5", False, id="two signs"),
        pytest.param("5.0", False, id="a fraction"),
        pytest.param("٣", False, id="a digit of another script"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_is_whole_number(text: str, expected: bool) -> None:
    """A whole number as text has digits, with a sign at most, and fits into 64 bits."""
    assert is_whole_number(text) is expected
