"""The merge of pod specs: design 5.1 row by row, its properties, and its keys against Kubernetes' own."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flytekitplugins.kuberay.pod.merge import DEEP_KEYS, ENTRY_KEYS, UNIONS, entry_key, merge_pod_spec
from flytekitplugins.kuberay.wire import Manifest

KUBERNETES: dict[str, Manifest] = json.loads(Path(__file__).with_name("patch_merge_keys.json").read_text("utf-8"))
"""How Kubernetes merges each list of a pod; `tools/patch_merge_keys.py` writes it."""


@pytest.mark.parametrize(
    ("base", "overlay", "expected"),
    [
        pytest.param(
            {"nodeSelector": {"a": "1", "b": "1"}},
            {"nodeSelector": {"b": "2", "c": "2"}},
            {"nodeSelector": {"a": "1", "b": "2", "c": "2"}},
            id="maps merge key by key",
        ),
        pytest.param(
            {"securityContext": {"seLinuxOptions": {"level": "s0", "role": "r"}}},
            {"securityContext": {"seLinuxOptions": {"level": "s1"}}},
            {"securityContext": {"seLinuxOptions": {"level": "s1", "role": "r"}}},
            id="maps merge at any depth",
        ),
        pytest.param(
            {"affinity": {"a": 1}}, {"affinity": {}}, {"affinity": {"a": 1}}, id="an empty map changes nothing"
        ),
        pytest.param(
            {"hostNetwork": True, "priority": 9, "hostname": "x"},
            {"hostNetwork": False, "priority": 0, "hostname": ""},
            {"hostNetwork": False, "priority": 0, "hostname": ""},
            id="D4 false, 0 and empty text override",
        ),
        pytest.param(
            {"hostname": "x", "dnsConfig": {"searches": ["a"], "nameservers": ["b"]}},
            {"hostname": None, "dnsConfig": {"searches": None}},
            {"dnsConfig": {"nameservers": ["b"]}},
            id="D4 an explicit null removes, at any depth",
        ),
        pytest.param(
            {}, {"hostname": None, "dnsConfig": {"searches": None}}, {"dnsConfig": {}}, id="D4 a null of a new key"
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": "1", "tty": True}, {"name": "b", "image": "1"}]},
            {"containers": [{"name": "c", "image": "2"}, {"name": "a", "image": "2"}]},
            {
                "containers": [
                    {"name": "a", "image": "2", "tty": True},
                    {"name": "b", "image": "1"},
                    {"name": "c", "image": "2"},
                ]
            },
            id="containers match by name and merge deep, base order first, then what is new",
        ),
        pytest.param(
            {"initContainers": [{"name": "a", "command": ["x"], "env": [{"name": "A", "value": "1"}]}]},
            {"initContainers": [{"name": "a", "env": [{"name": "B", "value": "2"}]}]},
            {
                "initContainers": [
                    {"name": "a", "command": ["x"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
                ]
            },
            id="init containers match by name and merge deep",
        ),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": []},
            {"containers": [{"name": "a"}]},
            id="an empty list of containers changes nothing: no pod is without one",
        ),
        pytest.param(
            {"initContainers": [{"name": "a"}], "volumes": [{"name": "v"}], "tolerations": [{"key": "k"}]},
            {"initContainers": [], "volumes": [], "tolerations": []},
            {"initContainers": [], "volumes": [], "tolerations": []},
            id="any other present empty list replaces",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
            {
                "env": [
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "B", "value": "1"},
                ]
            },
            id="D3 a variable of the same name is replaced whole: two sources in one are invalid",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
            id="D3 a volume of the same name is replaced whole",
        ),
        pytest.param(
            {"volumeMounts": [{"mountPath": "/a", "name": "v", "readOnly": True}, {"mountPath": "/b", "name": "v"}]},
            {"volumeMounts": [{"mountPath": "/a", "name": "w"}]},
            {"volumeMounts": [{"mountPath": "/a", "name": "w"}, {"mountPath": "/b", "name": "v"}]},
            id="D3 mounts match by path",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80, "name": "a"}, {"containerPort": 80, "protocol": "UDP", "name": "b"}]},
            {"ports": [{"containerPort": 80, "protocol": "TCP", "name": "c"}]},
            {
                "ports": [
                    {"containerPort": 80, "protocol": "TCP", "name": "c"},
                    {"containerPort": 80, "protocol": "UDP", "name": "b"},
                ]
            },
            id="ports match by number and protocol, which is TCP where it is absent",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}]},
            {
                "topologySpreadConstraints": [
                    {"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 2},
                    {"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 3},
                ]
            },
            {
                "topologySpreadConstraints": [
                    {"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 3},
                    {"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 2},
                ]
            },
            id="spread constraints match by both of their keys",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["a", "b"]}], "imagePullSecrets": [{"name": "s"}]},
            {
                "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["c"]}],
                "imagePullSecrets": [{"name": "s"}, {"name": "t"}],
            },
            {
                "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["c"]}],
                "imagePullSecrets": [{"name": "s"}, {"name": "t"}],
            },
            id="host aliases match by ip, pull secrets by name",
        ),
        pytest.param(
            {
                "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b"}],
                "envFrom": [{"secretRef": {"name": "s"}}],
            },
            {
                "tolerations": [{"key": "c"}, {"key": "a", "operator": "Exists"}],
                "envFrom": [{"secretRef": {"name": "s"}}],
            },
            {
                "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b"}, {"key": "c"}],
                "envFrom": [{"secretRef": {"name": "s"}}],
            },
            id="D3 tolerations and envFrom are unions without duplicates",
        ),
        pytest.param(
            {"args": ["a", "b"], "command": ["c"]},
            {"args": ["d"]},
            {"args": ["d"], "command": ["c"]},
            id="D3 a plain list is replaced",
        ),
        pytest.param(
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]},
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "b", "operator": "Exists"}]}]},
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "b", "operator": "Exists"}]}]},
            id="D11 node selector terms are replaced",
        ),
        pytest.param(
            {"livenessProbe": {"exec": {"command": ["x"]}, "periodSeconds": 5}},
            {"livenessProbe": {"httpGet": {"port": 80}}},
            {"livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5}},
            id="a probe's handler is replaced whole, its times stay",
        ),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 80, "path": "/a"}}},
            {"livenessProbe": {"httpGet": {"port": 81}}},
            {"livenessProbe": {"httpGet": {"port": 81}}},
            id="a probe's handler is replaced whole by one of its own kind too",
        ),
        pytest.param(
            {"livenessProbe": {"httpGet": {"port": 80}}},
            {"livenessProbe": {"periodSeconds": 5}},
            {"livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5}},
            id="a probe without a handler keeps the base's",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"exec": {"command": ["x"]}}, "postStart": {"exec": {"command": ["y"]}}}},
            {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}},
            {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}, "postStart": {"exec": {"command": ["y"]}}}},
            id="D20 a lifecycle handler is replaced whole",
        ),
        pytest.param(
            {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"}}},
            {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
            {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
            id="a seccomp profile is replaced whole",
        ),
        pytest.param(
            {"containers": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"a": "1"}, "volumes": [{"name": "v"}]},
            {
                "containers": [{"name": "a", "$patch": "delete"}],
                "nodeSelector": {"$patch": "delete"},
                "volumes": [{"name": "v", "$patch": "delete"}],
            },
            {"containers": [{"name": "b"}], "volumes": []},
            id="a delete directive takes an entry or a map away",
        ),
        pytest.param(
            {
                "containers": [{"name": "a", "tty": True}, {"name": "b"}],
                "nodeSelector": {"a": "1"},
                "tolerations": [{"key": "a"}],
            },
            {
                "containers": [{"name": "a", "image": "i", "$patch": "replace"}],
                "nodeSelector": {"b": "2", "$patch": "replace"},
                "tolerations": [{"$patch": "replace"}, {"key": "b"}],
            },
            {
                "containers": [{"name": "a", "image": "i"}, {"name": "b"}],
                "nodeSelector": {"b": "2"},
                "tolerations": [{"key": "b"}],
            },
            id="a replace directive drops what the base has of an entry, a map or a list",
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}, {"key": "b"}], "searches": ["x"]},
            {
                "tolerations": [{"key": "a", "$patch": "delete"}, {"key": "c", "$patch": "merge"}],
                "searches": ["y", {"$patch": "delete"}],
            },
            {"tolerations": [{"key": "b"}, {"key": "c"}], "searches": ["y"]},
            id="a delete directive takes an equal entry out of a union, and no directive is left in any list",
        ),
        pytest.param(
            {"workerGroupSpecs": [{"groupName": "a", "replicas": 1}, {"groupName": "b", "replicas": 1}]},
            {"workerGroupSpecs": [{"groupName": "b", "idleTimeoutSeconds": 9}]},
            {
                "workerGroupSpecs": [
                    {"groupName": "a", "replicas": 1},
                    {"groupName": "b", "replicas": 1, "idleTimeoutSeconds": 9},
                ]
            },
            id="a patch of the RayJob finds a worker group by its name",
        ),
    ],
)
def test_merge(base: Manifest, overlay: Manifest, expected: Manifest) -> None:
    """The overlay wins, list by list as Kubernetes' keys say (design 5.1)."""
    assert merge_pod_spec(base, overlay) == expected


# Differences from Kubernetes' strategic merge patch that are meant.
OURS = {
    "ports": ("containerPort", "protocol"),  # one number may serve TCP and UDP; a server-side apply's keys
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),  # a server-side apply's keys: all of them valid
    "readinessGates": ("conditionType",),  # a platform's gates stay when a task brings its own
    "tolerations": "union",  # what lets a pod run somewhere is never taken away unsaid
    "envFrom": "union",  # has no key, and order decides where names repeat
}


@pytest.mark.parametrize("path", sorted(KUBERNETES))
def test_keys_are_kubernetes_own(path: str) -> None:
    """Each list of a pod merges by Kubernetes' patchMergeKey, and is replaced where it has none."""
    field, key = path.rpartition(".")[2], KUBERNETES[path]["patchMergeKey"]
    ours = "union" if field in UNIONS else DEEP_KEYS.get(field) or ENTRY_KEYS.get(field)
    assert OURS.get(field, (key,) if key else None) == ours


@pytest.mark.parametrize("field", ["ports", "topologySpreadConstraints"])
def test_keys_of_a_server_side_apply(field: str) -> None:
    """Where we have more keys than a strategic merge patch, they are those of a server-side apply."""
    paths = [path for path in KUBERNETES if path.endswith(f".{field}")]
    assert {tuple(KUBERNETES[path]["listMapKeys"]) for path in paths} == {ENTRY_KEYS[field]}


def test_every_key_is_a_list_of_a_pod() -> None:
    """The tables hold no list that a pod does not have, but for the worker groups of a RayJob."""
    known = {path.rpartition(".")[2] for path in KUBERNETES}
    assert {*DEEP_KEYS, *ENTRY_KEYS, *UNIONS} - known == {"workerGroupSpecs"}


@pytest.mark.parametrize(
    ("field", "entry", "expected"),
    [
        pytest.param("env", {"name": "A", "value": "1"}, ("A",), id="by its key"),
        pytest.param("ports", {"containerPort": 80}, (80, "TCP"), id="an absent protocol is TCP"),
        pytest.param("args", "x", None, id="a plain list has no key"),
        pytest.param("env", "x", None, id="what is no mapping has no key"),
    ],
)
def test_entry_key(field: str, entry: Any, expected: tuple[Any, ...] | None) -> None:
    """What identifies an entry of a list."""
    assert entry_key(field, entry) == expected


FIELDS = [*DEEP_KEYS, *ENTRY_KEYS, *UNIONS, "args", "livenessProbe", "preStop", "spec", "hostname", "hostNetwork"]


@st.composite
def pod_parts(draw: st.DrawFn, *, directives: bool, depth: int = 2) -> Manifest:
    """A valid part of a pod spec: maps, keyed lists, unions, plain lists, one-of objects; each key of a list once."""
    fields = draw(st.lists(st.sampled_from(FIELDS), max_size=3 if depth else 0, unique=True))
    part = {field: draw(values_of(field, directives, depth - 1)) for field in fields}
    if directives and (mark := draw(st.sampled_from([None, None, None, "replace", "delete"]))):
        part["$patch"] = mark
    return part


def values_of(field: str, directives: bool, depth: int) -> st.SearchStrategy[Any]:
    """What may stand in a field of a pod spec."""
    deeper = pod_parts(directives=directives, depth=depth)
    if keys := DEEP_KEYS.get(field) or ENTRY_KEYS.get(field):
        named = st.fixed_dictionaries({key: st.sampled_from("abc") for key in keys})
        entries = st.builds(lambda part, own: {**part, **own}, deeper, named)
        return st.lists(entries, max_size=3, unique_by=lambda entry: entry_key(field, entry))
    if field in UNIONS:
        mark = {"$patch": st.sampled_from(["delete", "merge"])} if directives else {}
        entry = st.fixed_dictionaries({"key": st.sampled_from("abc")}, optional=mark)
        return st.lists(entry, max_size=3, unique_by=lambda entry: str(entry["key"]))
    if field == "args":
        return st.lists(st.sampled_from("xy"), max_size=2)
    if field == "livenessProbe" or field == "preStop":
        return st.fixed_dictionaries({}, optional={"exec": deeper, "httpGet": deeper, "periodSeconds": st.integers()})
    return deeper if field == "spec" else st.sampled_from([True, False, 0, "", "x", *([None] if directives else [])])


plain = pod_parts(directives=False)
patches = pod_parts(directives=True)
quick = hypothesis.settings(max_examples=50, deadline=None)


@quick
@given(plain)
def test_merge_of_nothing_is_identity(spec: Manifest) -> None:
    """Nothing over a pod spec is that pod spec, and so is a pod spec over nothing."""
    assert [merge_pod_spec(spec, {}), merge_pod_spec({}, spec)] == [spec, spec]


@quick
@given(plain, patches)
def test_merge_is_idempotent(base: Manifest, overlay: Manifest) -> None:
    """The same overlay once more changes nothing."""
    once = merge_pod_spec(base, overlay)
    assert merge_pod_spec(once, overlay) == once


@quick
@given(plain, patches)
def test_merge_leaves_its_inputs(base: Manifest, overlay: Manifest) -> None:
    """Neither side is changed, and the result shares no list or map with them, so that it can be built upon."""
    before = copy.deepcopy((base, overlay))
    merged = merge_pod_spec(base, overlay)
    assert (base, overlay) == before
    assert identities(merged) & (identities(base) | identities(overlay)) == set()


def identities(value: Any) -> set[int]:
    """The ids of all lists and maps within a value."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return set() if children is None else {id(value)}.union(*map(identities, children))
