"""Texts for which Kubernetes has rules, as kinds: keys and values of labels, names; and maps and lists of them."""

from __future__ import annotations

from ..syntax import is_dns_label, is_env_name, is_label_key, is_label_value, is_subdomain
from .kinds import text_kind, text_map, texts_of

_QUALIFIED = "write it as example.com/name"
_DNS_LABEL = "use lower-case letters, digits and '-', begin and end with a letter or digit, at most 63"
_SUBDOMAIN = "use lower-case letters, digits, '-' and '.', at most 253"
_ENV_NAME = "use printable ASCII characters other than '='"
_VALUE = "use letters, digits, '-', '_' and '.', begin and end with a letter or digit, at most 63"

LABEL_KEY = text_kind("a label key", is_label_key, "a Kubernetes label key", _QUALIFIED)
LABEL_VALUE = text_kind("a label value", is_label_value, "a Kubernetes label value", _VALUE)
ANNOTATION_KEY = text_kind(
    "an annotation key", lambda text: is_label_key(text.lower()), "a Kubernetes annotation key", _QUALIFIED
)
RESOURCE_NAME = text_kind("a resource name", is_label_key, "a Kubernetes resource name", _QUALIFIED)
RESOURCE_NAMES = texts_of(RESOURCE_NAME, "a list of resource names")
DNS_LABEL = text_kind("a DNS label", is_dns_label, "a DNS label", _DNS_LABEL)
NAMESPACE = text_kind("a namespace", is_dns_label, "the name of a namespace", _DNS_LABEL)
NAMESPACES = texts_of(NAMESPACE, "a list of namespaces")
OBJECT_NAMES = texts_of(text_kind("a name", is_subdomain, "the name of an object", _SUBDOMAIN), "a list of names")
NAME_OR_NONE = text_kind("a name", lambda text: not text or is_subdomain(text), "the name of an object", _SUBDOMAIN)
ENV_NAME = text_kind("a variable's name", is_env_name, "the name of an environment variable", _ENV_NAME)

LABELS = text_map(LABEL_KEY)  # of any values, for they are made valid: D15 (design)
ANNOTATIONS = text_map(ANNOTATION_KEY)
NODE_SELECTOR = text_map(LABEL_KEY, LABEL_VALUE)
VARIABLES = text_map(ENV_NAME)
