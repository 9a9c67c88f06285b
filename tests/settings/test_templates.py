"""Templates of links: which variables they have, how they are filled, and which mistakes are found at start."""

from __future__ import annotations

from typing import Any

import pytest

from flytekitplugins.kuberay.errors import SettingsError
from flytekitplugins.kuberay.settings import parse_settings
from flytekitplugins.kuberay.settings.templates import filled, variables_of

LITERAL = "(braces that are meant are written %7B%7B)"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("https://x", [], id="none"),
        pytest.param("{{ .podName }}/{{$NAMESPACE}}", ["podname", "namespace"], id="of any case, in their order"),
        pytest.param("{{ .taskConfig.wandb_Project }}", ["taskconfig.wandb_Project"], id="an entry, in its own case"),
        pytest.param("{{ .TASKCONFIG$port-1 }}", ["taskconfig.port-1"], id="an entry, with a dollar"),
        pytest.param('?q={"a":{"b":1}}&c={x}', [], id="braces of other kinds"),
    ],
)
def test_variables_of(template: str, expected: list[str]) -> None:
    """Source: flyteplugins, tasklog/template.go MustCreateRegex, MustCreateDynamicLogRegex."""
    assert variables_of(template) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({"podname": r"p\1&", "namespace": "n"}, r"https://p\1&/n/p\1&", id="all, as they are"),
        pytest.param({"podname": "p"}, None, id="one is not known"),
        pytest.param({"podname": "p", "namespace": ""}, None, id="one is empty"),
    ],
)
def test_a_template_is_filled_whole_or_not_at_all(values: dict[str, str], expected: str | None) -> None:
    """Flyte leaves braces in an address; it leads nowhere."""
    assert filled("https://{{ .podName }}/{{ .namespace }}/{{ .podName }}", values) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "{{ .podNam }}", "has the unknown variable {{ .podNam }}; did you mean {{ .podName }}?", id="a slip"
        ),
        pytest.param(
            "{{ podName }}",
            "has the unknown variable {{ podName }}; did you mean {{ .podName }}?",
            id="without its dot",
        ),
        pytest.param(
            "{{ .clusterName }}",
            "has the unknown variable {{ .clusterName }}; did you mean {{ .rayClusterName }}?",
            id="a name that Flyte's documentation has not",
        ),
        pytest.param(
            "{{ .zzz }}", "has the unknown variable {{ .zzz }}; see docs/connector.md for those there are", id="no near"
        ),
        pytest.param("{{}}", "has the unknown variable {{}}; see docs/connector.md for those there are", id="empty"),
        pytest.param("{{ .podName", "has {{ without }}; write a variable as {{ .podName }}", id="not closed"),
    ],
)
@pytest.mark.parametrize(
    ("place", "path"),
    [
        pytest.param(
            lambda text: {"ray": {"logs": {"templates": [{"templateUris": ["https://a", text]}]}}},
            "plugins.ray.logs.templates[0].templateUris[1]",
            id="an address",
        ),
        pytest.param(
            lambda text: {"ray": {"logs": {"templates": [{"displayName": text}]}}},
            "plugins.ray.logs.templates[0].displayName",
            id="a name",
        ),
        pytest.param(
            lambda text: {"ray": {"logs": {"dynamic-log-links": {"a": {"templateUris": [text]}}}}},
            "plugins.ray.logs.dynamic-log-links.a.templateUris[0]",
            id="a dynamic link",
        ),
        pytest.param(
            lambda text: {"ray": {"logs": {"kubernetes-template-uri": text}}},
            "plugins.ray.logs.kubernetes-template-uri",
            id="one of Flyte's own",
        ),
        pytest.param(
            lambda text: {"ray": {"dashboardURLTemplate": {"templateUris": text}}},
            "plugins.ray.dashboardURLTemplate.templateUris[0]",
            id="the dashboard, a lone text for a list",
        ),
        pytest.param(
            lambda text: {"kuberay": {"history-server-url-template": text}},
            "plugins.kuberay.history-server-url-template",
            id="the history server",
        ),
    ],
)
def test_a_wrong_template_is_refused_at_start(text: str, problem: str, place: Any, path: str) -> None:
    """With its place, what is wrong with it, and what to do."""
    with pytest.raises(SettingsError) as refused:
        parse_settings({"plugins": place(text)})
    ending = "; braces that are meant are written %7B%7B" if "without" in problem else f" {LITERAL}"
    assert [str(each) for each in refused.value.problems] == [f"{path}: {problem}{ending}"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("https://x/{{ .taskConfig.anything }}", id="an entry of a task's config, whatever its name"),
        pytest.param("https://x/{{ .subtaskExecutionIndex }}", id="an array node's, as templates are shared"),
        pytest.param("https://x?q=a,b", id="with a comma"),
        pytest.param('https://x?panes={"a":{"b":{}}}', id="with braces that close without opening"),
    ],
)
def test_a_template_that_flyte_takes_is_taken(text: str) -> None:
    """And a lone one is one, whatever is in it."""
    settings = parse_settings({"plugins": {"ray": {"logs": {"templates": [{"templateUris": text}]}}}})
    assert settings.ray.logs.templates[0].template_uris == (text,)


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        pytest.param(1, "", "must be a list of templates, got 1", id="a number"),
        pytest.param({"a": "b"}, "", "must be a list of templates, got a map", id="a map"),
        pytest.param(["https://x", ["y"]], "[1]", "must be a text, got a list", id="a list in the list"),
    ],
)
def test_templates_of_a_wrong_kind_are_refused(value: Any, path: str, problem: str) -> None:
    """As each other setting."""
    with pytest.raises(SettingsError) as refused:
        parse_settings({"plugins": {"ray": {"logs": {"templates": [{"templateUris": value}]}}}})
    assert [str(each) for each in refused.value.problems] == [
        f"plugins.ray.logs.templates[0].templateUris{path}: {problem}"
    ]
