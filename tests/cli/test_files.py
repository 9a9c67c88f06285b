"""The files of a command: what counts as which message, as a PodTemplate, and what is refused."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from flyteidl.core.tasks_pb2 import TaskTemplate
from google.protobuf.json_format import MessageToJson

from flytekitplugins.kuberay.wire import Manifest
from tests.cli.running import POD_TEMPLATE, Ended, Run, case_files, golden, written


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda template: MessageToJson(template).encode(), id="JSON in camelCase"),
        pytest.param(
            lambda template: MessageToJson(template, preserving_proto_field_name=True).encode(), id="JSON in snake_case"
        ),
        pytest.param(lambda template: b"\xef\xbb\xbf \n" + MessageToJson(template).encode(), id="JSON after a BOM"),
        pytest.param(lambda template: template.SerializeToString(), id="binary"),
    ],
)
def test_a_task_template_in_each_form(form: Callable[[TaskTemplate], bytes], run: Run) -> None:
    """A TaskTemplate is understood by its content, whatever the file is called."""
    case = golden("container-minimal")
    written("template", form(case.task.template))
    assert run(*case_files(case), "--task-template", "template").job == case.build()


def test_a_binary_task_template_that_begins_like_json(run: Run) -> None:
    """A binary message whose first bytes are a line break and a brace is binary all the same."""
    case = golden("container-minimal")
    template = TaskTemplate()
    template.CopyFrom(case.task.template)
    template.id.version += "v" * (123 - template.id.ByteSize())
    content = template.SerializeToString()
    assert (content[:2], run("--task-template", written("task.pb", content)).status) == (b"\n{", 0)


def test_fields_of_a_newer_flyteidl_are_ignored(run: Run) -> None:
    """A field that the message does not know is ignored with a warning."""
    case = golden("container-minimal")
    ended = run(*case_files(case), "--task-template", written("new.json", {**case.raw["task_template"], "novel": 1}))
    warning = (
        'warning: new.json: Message type "flyteidl.core.TaskTemplate" has no field named "novel" at "TaskTemplate"'
    )
    assert (ended.status, ended.err) == (0, warning + "; such fields are ignored\n")
    assert yaml.safe_load(ended.out) == case.build()


@pytest.mark.parametrize(
    "option", [pytest.param("--task-template", id="a message"), pytest.param("--pod-template", id="PodTemplates")]
)
def test_standard_input(option: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads a file from standard input."""
    case = golden("base-default-container")
    arguments = case_files(case)
    place = arguments.index(option) + 1
    content, arguments[place] = Path(arguments[place]).read_bytes(), "-"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert run(*arguments).job == case.build()


def items(*found: Any, kind: str = "List") -> Manifest:
    """A list object of Kubernetes."""
    return {"apiVersion": "v1", "kind": kind, "items": list(found)}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(json.dumps(POD_TEMPLATE), id="JSON"),
        pytest.param("# pool\n---\n" + yaml.dump(POD_TEMPLATE) + "---\n---\n", id="YAML with empty documents"),
        pytest.param(yaml.dump_all([{**POD_TEMPLATE, "metadata": {"name": "x"}}, POD_TEMPLATE]), id="two documents"),
        pytest.param(yaml.dump(items(POD_TEMPLATE)), id="a List"),
        pytest.param(
            json.dumps(items({key: POD_TEMPLATE[key] for key in ("metadata", "template")}, kind="PodTemplateList")),
            id="a PodTemplateList, whose items have no kind",
        ),
        pytest.param(
            json.dumps({**POD_TEMPLATE, "metadata": {"name": "pool", "namespace": "flytesnacks-development"}}),
            id="with the execution's namespace",
        ),
    ],
)
def test_a_pod_template_in_each_form(content: str, run: Run) -> None:
    """The PodTemplate that a task names counts, and without a namespace it is in the execution's."""
    template = golden("bad-named-template-missing").raw["task_template"]
    template["metadata"]["pod_template_name"] = "pool"
    job = run("--task-template", written("t.json", template), "--pod-template", written("pool", content)).job
    worker = job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]
    assert worker["nodeSelector"] == {"pool": "batch"}


def test_a_pod_template_is_read_as_kubectl_reads_it(run: Run) -> None:
    """Octal numbers are numbers; dates, times and on as a key are texts."""
    spec = "{nodeSelector: {on: 2024-11-07, at: 12:30}, volumes: [{name: v, secret: {defaultMode: 0400}}]}"
    content = f"kind: PodTemplate\nmetadata: {{name: pool}}\ntemplate: {{spec: {spec}}}\n"
    template = golden("bad-named-template-missing").raw["task_template"]
    template["metadata"]["pod_template_name"] = "pool"
    job = run("--task-template", written("t.json", template), "--pod-template", written("pool.yaml", content)).job
    head = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    assert head["nodeSelector"] == {"true": "2024-11-07", "at": "12:30"}
    assert head["volumes"] == [{"name": "v", "secret": {"defaultMode": 0o400}}]


@pytest.mark.parametrize(
    ("option", "content", "expected"),
    [
        pytest.param(
            "--task-template",
            b"\xff",
            "FILE: is no TaskTemplate, neither in protobuf's JSON nor binary",
            id="neither JSON nor binary",
        ),
        pytest.param(
            "--task-template",
            "",
            "FILE: holds no TaskTemplate; of a TaskSpec, give what stands under its template",
            id="an empty file",
        ),
        pytest.param(
            "--task-template", '{"a":' * 99999 + "1" + "}" * 99999, "FILE: is nested too deep", id="a deep message"
        ),
        pytest.param("--pod-template", "[" * 9999 + "]" * 9999, "FILE: is nested too deep", id="a deep PodTemplate"),
        pytest.param(
            "--task-template",
            '{"type": ray}',
            "FILE, line 1, column 10: is not JSON: Expecting value",
            id="broken JSON",
        ),
        pytest.param(
            "--task-template",
            '{"metadata": {"interruptible": "no"}}',
            "FILE: is no TaskTemplate: Failed to parse metadata field: "
            "Expected true or false without quotes at TaskTemplate.metadata.interruptible",
            id="a wrong type",
        ),
        pytest.param(
            "--execution", "[]", "FILE: is no JSON object, so no TaskExecutionMetadata", id="a list for a message"
        ),
        pytest.param(
            "--execution", "\n nope", "FILE, line 2, column 2: is not JSON: Expecting value", id="text for a message"
        ),
        pytest.param("--inputs", b"{\xff}", "FILE: is not UTF-8 at byte 1; save it as UTF-8", id="another encoding"),
        pytest.param(
            "--pod-template",
            "a: [1\nb: {",
            "FILE, line 2, column 2: is not YAML: expected ',' or ']', but got ':'",
            id="broken YAML",
        ),
        pytest.param(
            "--pod-template",
            "a: !!binary aGk=",
            "FILE: is not YAML of a Kubernetes object: Object of type bytes is not JSON serializable",
            id="YAML that is no JSON",
        ),
        pytest.param(
            "--pod-template",
            "hello",
            "FILE, document 1: is 'hello', no Kubernetes object; write a PodTemplate",
            id="text for an object",
        ),
        pytest.param(
            "--pod-template",
            "---\n---\nkind: Pod",
            "FILE, document 2: is a Pod; give PodTemplates, or a List of them",
            id="another kind",
        ),
        pytest.param(
            "--pod-template",
            "metadata: {name: x}",
            "FILE, document 1: has no kind; give PodTemplates, or a List of them",
            id="no kind",
        ),
        pytest.param(
            "--pod-template",
            json.dumps(items({**POD_TEMPLATE, "metadata": {}})),
            "FILE, document 1: items[0]: metadata.name: is not there or no text; write the name that tasks call it by",
            id="no name",
        ),
        pytest.param(
            "--pod-template",
            json.dumps({**POD_TEMPLATE, "template": []}),
            "FILE, document 1: template.spec: is no map; write the pod's spec there",
            id="no pod spec",
        ),
        pytest.param(
            "--config",
            "plugins: {kuberay: {nope: 1}}",
            "FILE: plugins.kuberay.nope: is not a setting; remove it, or see docs/settings.md for the keys there are",
            id="an unknown setting",
        ),
    ],
)
def test_a_file_that_is_refused(option: str, content: str | bytes, expected: str, run: Run) -> None:
    """What is wrong with a file is said with its place."""
    ended = run(*case_files(golden("container-minimal")), option, written("bad", content))
    assert ended == Ended(2, "", f"error: {expected.replace('FILE', 'bad')}\n")
