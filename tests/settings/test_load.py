"""From files to settings: which files, their YAML, how they are merged, what is told of them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from flytekitplugins.kuberay.errors import SettingsError
from flytekitplugins.kuberay.settings import Settings, TemplateLogPlugin, load_settings, parse_settings

from .documents import in_file, k8s, kuberay, problems_of, ray, setting_of


def test_unknown_keys_of_flyte_are_warnings(caplog: pytest.LogCaptureFixture) -> None:
    """A key that a newer Flyte or Kubernetes may know is told once in the log, and stops nothing."""
    data = k8s(default_cpu="3", default_tolerations=[{"key": "a", "new": 1}])
    with caplog.at_level(logging.WARNING, logger="flytekitplugins.kuberay.settings.load"):
        settings = parse_settings([("f.yaml", data)])
    assert settings.k8s.default_tolerations == ({"key": "a", "new": 1},)
    assert [record.getMessage() for record in caplog.records] == [
        "f.yaml: plugins.k8s.default-cpu: is not a setting; did you mean default-cpus?",
        "f.yaml: plugins.k8s.default-tolerations[0].new: is not a setting; "
        "remove it, or see docs/settings.md for the keys there are",
    ]


@pytest.mark.parametrize(
    ("documents", "attribute", "got"),
    [
        pytest.param([k8s(default_cpus=1), k8s(default_cpus=2)], "default_cpus", "2", id="the later value"),
        pytest.param(
            [k8s(default_cpus=1), k8s(default_memory=2)], "default_cpus", "1", id="what the later does not say"
        ),
        pytest.param(
            [k8s(default_labels={"a": 1, "b": 1}), k8s(default_labels={"b": 2})],
            "default_labels",
            {"a": "1", "b": "2"},
            id="maps key by key",
        ),
        pytest.param(
            [k8s(default_env_from_secrets=["a"]), k8s(default_env_from_secrets=["b"])],
            "default_env_from_secrets",
            ("b",),
            id="lists whole",
        ),
        pytest.param(
            [k8s(default_labels={"a": 1}), k8s(default_labels=None)],
            "default_labels",
            {"a": "1"},
            id="null over a map changes nothing",
        ),
        pytest.param(
            [k8s(default_labels={"a": 1}), {"plugins": {"k8s": None}}],
            "default_labels",
            {"a": "1"},
            id="nor over a section",
        ),
        pytest.param(
            [k8s(default_labels={"a": 1}), k8s(default_labels={})],
            "default_labels",
            {"a": "1"},
            id="nor does an empty map",
        ),
        pytest.param(
            [k8s(default_cpus=3), k8s(default_cpus=None)],
            "default_cpus",
            "1000m",
            id="null over a value brings the default back",
        ),
    ],
)
def test_later_documents_win(documents: list[dict[str, Any]], attribute: str, got: object) -> None:
    """Several documents are merged key by key, the later over the earlier."""
    settings = parse_settings([(f"{i}.yaml", document) for i, document in enumerate(documents)])
    assert getattr(settings.k8s, attribute) == got


@pytest.mark.parametrize(
    ("documents", "attribute", "got"),
    [
        pytest.param(
            [{"plugins": {"K8s": {"default-cpus": 7}}}, k8s(default_memory="9Gi")],
            "k8s.default_cpus",
            "7",
            id="a section",
        ),
        pytest.param(
            [{"Plugins": {"k8s": {"default-cpus": 7}}}, k8s(default_memory="9Gi")],
            "k8s.default_cpus",
            "7",
            id="plugins",
        ),
        pytest.param([k8s(default_cpus=7), k8s(Default_CPUs=8)], "k8s.default_cpus", "8", id="a setting"),
        pytest.param(
            [
                ray(defaults={"headNode": {"startParameters": {"num-cpus": 0}}}),
                ray(defaults={"headnode": {"ipAddress": "x"}}),
            ],
            "ray.defaults.head_node.start_parameters",
            {"num-cpus": "0"},
            id="a section's section",
        ),
        pytest.param(
            [
                ray(logs={"dynamic-log-links": {"A": {"displayName": "a"}}}),
                ray(logs={"dynamic-log-links": {"A": {"displayname": "b", "templateUris": ["u"]}}}),
            ],
            "ray.logs.dynamic_log_links",
            {"A": TemplateLogPlugin(display_name="b", template_uris=("u",))},
            id="a section in a map of them",
        ),
        pytest.param(
            [k8s(default_env_vars={"a": 1}), k8s(default_env_vars={"A": 2})],
            "k8s.default_env_vars",
            {"a": "1", "A": "2"},
            id="but not the keys of a map, which are names",
        ),
    ],
)
def test_settings_of_several_documents_meet_in_any_letter_case(
    documents: list[dict[str, Any]], attribute: str, got: object
) -> None:
    """A key counts in any letter case when documents are merged, as it does in one."""
    assert setting_of([(f"{i}.yaml", document) for i, document in enumerate(documents)], attribute) == got


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param({"plugins": {"k8s": {}, "K8s": {}}}, "plugins.K8s: is k8s", id="a section"),
        pytest.param(k8s(default_cpus=1, Default_CPUs=2), "plugins.k8s.Default-CPUs: is default-cpus", id="a setting"),
        pytest.param(
            ray(logs={"templates": [{"displayName": "a", "displayname": "b"}]}),
            "plugins.ray.logs.templates[0].displayname: is displayName",
            id="within a log link",
        ),
    ],
)
def test_a_key_that_stands_twice_by_its_letter_case_is_refused(data: dict[str, Any], problem: str) -> None:
    """Only one of the two could count."""
    assert problems_of(data) == [f"{problem} in another letter case; keep one of the two"]


def test_a_part_of_an_object_may_come_from_another_document() -> None:
    """What an object lacks is missing only where no document has it."""
    documents = [("a", ray(logsSidecar={"name": "l", "image": "i"})), ("b", ray(logsSidecar={"image": "j"}))]
    assert setting_of(documents, "ray.logs_sidecar") == {"name": "l", "image": "j"}


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param(
            {},
            [
                "plugins.ray.remoteClusterConfig is not used: name the RayJobs' cluster by plugins.kuberay.kubeconfig; "
                "see docs/settings.md"
            ],
            id="none of ours",
        ),
        pytest.param({"kubeconfig": "/k"}, [], id="a kubeconfig"),
        pytest.param({"context": "c"}, [], id="a context"),
    ],
)
def test_a_remote_cluster_of_flyte_is_told(
    own: dict[str, str], expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Who moves from Flyte's plugin would find the RayJobs in another cluster: told once, unless we have one named."""
    parse_settings([("a", ray(remoteClusterConfig={"enabled": True, "endpoint": "e"})), ("b", kuberay(**own))])
    assert caplog.messages == expected


def test_the_environment_gives_values() -> None:
    """POD_NAMESPACE stands below the files; variables named by default-env-vars-from-env arrive with their values."""
    environ = {"POD_NAMESPACE": "flyte-system", "REGION": "eu"}
    data = k8s(default_env_vars_from_env={"AWS_REGION": "REGION", "GONE": "NOT_THERE"})
    settings = parse_settings(data, environ)
    assert settings.k8s.default_env_vars_from_env == {"AWS_REGION": "eu", "GONE": ""}
    assert settings.kuberay.platform_namespace == "flyte-system"
    assert parse_settings(kuberay(platform_namespace="x"), environ).kuberay.platform_namespace == "x"


def test_arguments_are_left_alone() -> None:
    """Settings share nothing with the document of which they were made, nor with each other's defaults."""
    data = kuberay(ray_job_patch={"spec": {"list": [1]}})
    settings = parse_settings(data)
    data["plugins"]["kuberay"]["ray-job-patch"]["spec"]["list"].append(2)
    assert settings.kuberay.ray_job_patch == {"spec": {"list": [1]}}
    assert Settings().kuberay.submitter_resources["limits"] is not Settings().kuberay.submitter_resources["limits"]


def test_files_are_read_in_order(tmp_path: Path) -> None:
    """Files named win over each other in their order, a pattern's in the order of their names."""
    in_file(tmp_path, "plugins: {k8s: {default-cpus: 1, default-memory: 1Gi}}", "1.yaml")
    in_file(tmp_path, "plugins: {k8s: {default-cpus: 2}}", "2.yaml")
    in_file(tmp_path, "# nothing", "3.yaml")
    last = in_file(tmp_path, "plugins: {kuberay: {queue: q}}", "own.yml")
    settings = load_settings([tmp_path / "*.yaml", last], environ={})
    assert (settings.k8s.default_cpus, settings.k8s.default_memory, settings.kuberay.queue) == ("2", "1Gi", "q")


def test_the_variable_names_files(tmp_path: Path) -> None:
    """Without files named, FLYTE_KUBERAY_CONFIG names them; without either there are defaults."""
    first, second = in_file(tmp_path, "plugins: {kuberay: {queue: a}}", "a"), in_file(tmp_path, "", "b")
    environ = {"FLYTE_KUBERAY_CONFIG": f"{first}:{second}"}
    assert load_settings(environ=environ).kuberay.queue == "a"
    assert load_settings([], environ=environ) == load_settings(environ={}) == Settings()


def test_yaml_is_read_as_flyte_reads_it(tmp_path: Path) -> None:
    """Only true, false, null and plain numbers are more than text; anchors and merge keys work."""
    path = in_file(
        tmp_path,
        """
        base: &base {a: no, b: 12:30, c: 2020-01-01, d: 007}
        plugins:
          k8s:
            default-labels: {<<: *base, d: 0x1f, e: true, f: 1e3, g: 1_000}
            default-pod-security-context: {runAsUser: 1000, runAsNonRoot: true}
        """,
    )
    settings = load_settings([path], environ={})
    assert settings.k8s.default_labels == {
        "a": "no", "b": "12:30", "c": "2020-01-01", "d": "0x1f", "e": "true", "f": "1e3", "g": "1_000",
    }  # fmt: skip
    assert settings.k8s.default_pod_security_context == {"runAsUser": 1000, "runAsNonRoot": True}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("[" * 9999 + "]" * 9999, ": is nested too deep", id="deep"),
        pytest.param(
            "a: [1", ", line 1, column 6: is not YAML: expected ',' or ']', but got '<stream end>'", id="open"
        ),
        pytest.param(
            "a: 1\nb:\n  c: 1\n  c: 3",
            ", line 4, column 3: is not YAML: the key c stands in line 3 already",
            id="a key twice",
        ),
        pytest.param("- a", ": must be a map, got a list", id="a list"),
        pytest.param(
            "a: !!python/name:os.system",
            ", line 1, column 4: is not YAML: could not determine a constructor "
            "for the tag 'tag:yaml.org,2002:python/name:os.system'",
            id="a tag that would run code",
        ),
        pytest.param(
            "a: \x01",
            ": is not YAML: unacceptable character #x0001: special characters are not allowed "
            'in "<unicode string>", position 3',
            id="a control character",
        ),
        pytest.param("a: !!int x", ": has a value that its !! tag does not fit; drop the tag", id="a tag's number"),
        pytest.param("a: !!bool x", ": has a value that its !! tag does not fit; drop the tag", id="a tag's switch"),
        pytest.param("a: !!timestamp x", ": has a value that its !! tag does not fit; drop the tag", id="a tag's date"),
        pytest.param(
            f"plugins: {{ray: {{ttlSecondsAfterFinished: {'9' * 5000}}}}}",
            f": plugins.ray.ttlSecondsAfterFinished: must be a whole number from 0 to 2147483647, got '{'9' * 56}...",
            id="a number too long for Python",
        ),
    ],
)
def test_bad_yaml_names_its_place(tmp_path: Path, text: str, problem: str) -> None:
    """What is no YAML, or no map, is refused with file, line and column."""
    path = in_file(tmp_path, text)
    with pytest.raises(SettingsError) as refused:
        load_settings([path], environ={})
    assert str(refused.value) == f"{path}{problem}"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["{k8s: {}}"], ["0.yaml"], id="a section that stands at the top"),
        pytest.param(["{kind: PodTemplate}", "", "{a: b}"], ["0.yaml, 2.yaml"], id="files of something else"),
        pytest.param(["{database: {}}", "{Plugins: {}}"], [], id="a section in one of the platform's files"),
        pytest.param(["# nothing"], [], id="an empty file"),
    ],
)
def test_files_without_plugins_are_told(
    texts: list[str], expected: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where no file says a setting, a warning tells so: else a wrong file would pass for a right one."""
    for index, text in enumerate(texts):
        (tmp_path / f"{index}.yaml").write_text(text)
    load_settings([tmp_path / "*.yaml"])
    end = ": no section is called plugins, so all settings are the defaults; see docs/settings.md"
    assert [message.replace(f"{tmp_path}/", "") for message in caplog.messages] == [text + end for text in expected]


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """A file that is missing, a folder, not UTF-8, or a pattern without a match: all told at once."""
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: \xe9")
    with pytest.raises(SettingsError) as refused:
        load_settings([tmp_path / "no.yaml", tmp_path, latin, tmp_path / "*.yml"], environ={})
    assert [str(problem).removeprefix(str(tmp_path)) for problem in refused.value.problems] == [
        "/*.yml: matches no file; correct the pattern or add a file",
        "/no.yaml: can't be read: No such file or directory; name a file that can be",
        ": can't be read: Is a directory; name a file that can be",
        "/latin.yaml: is not UTF-8 at byte 3; save it as UTF-8",
    ]
