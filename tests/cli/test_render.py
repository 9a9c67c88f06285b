"""`render`: what it prints for which arguments, and how it refuses bad ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flyteidl.admin.agent_pb2 import TaskExecutionMetadata
from google.protobuf.json_format import ParseDict

from flytekitplugins.kuberay.cli.render import default_output_prefix, placeholder_execution
from flytekitplugins.kuberay.errors import TaskError
from tests.cli.running import POD_TEMPLATE, Ended, Run, case_files, golden, written, TRAIN
from tests.golden.case import FILES, read_case


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
def test_a_golden_case_from_files(path: Path, run: Run) -> None:
    """Files give the manifest, or the error, that the builder gives for what they hold."""
    case = read_case(path)
    ended = run(*case_files(case), "-o", "json")
    try:
        expected = case.build()
    except TaskError as error:
        text = f"error: {error}\n".replace(
            "create it there", "create it there, and give its file here with --pod-template FILE"
        )
        assert ended == Ended(2, "", text)
    else:
        assert (ended.status, json.loads(ended.out)) == (0, expected)


def test_yaml_keeps_the_order_in_which_the_job_is_built(run: Run) -> None:
    """YAML is the default form, says the same as JSON, and sorts no keys."""
    case = golden("head-pod-template-sidecar")
    job = run(*case_files(case)).job
    assert json.dumps(job) == json.dumps(case.build())


def test_inputs_fill_the_templates_of_arguments(run: Run) -> None:
    """`{{.inputs.x}}` in an argument becomes the value that --inputs holds."""
    template = golden("container-minimal").raw["task_template"]
    template["container"]["args"] = ["run", "{{.inputs.epochs}}"]
    inputs = {"literals": {"epochs": {"scalar": {"primitive": {"integer": "7"}}}}}
    job = run("--task-template", written("t.json", template), "--inputs", written("i.json", inputs)).job
    assert job["spec"]["entrypoint"] == "run 7"


def test_later_config_files_win(run: Run) -> None:
    """--config may be repeated; the later file wins."""
    files = [
        written(f"{form}.yaml", f"plugins: {{ray: {{serviceType: {form}}}}}") for form in ("NodePort", "LoadBalancer")
    ]
    job = run(*case_files(golden("container-minimal")), "--config", files[0], "--config", files[1]).job
    assert job["spec"]["rayClusterSpec"]["headGroupSpec"]["serviceType"] == "LoadBalancer"


def test_the_environment_names_the_config(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --config the files of FLYTE_KUBERAY_CONFIG count, as for the connector."""
    monkeypatch.setenv("FLYTE_KUBERAY_CONFIG", written("c.yaml", "plugins: {ray: {serviceType: NodePort}}"))
    job = run("--task-template", written("t.json", golden("container-minimal").raw["task_template"])).job
    assert job["spec"]["rayClusterSpec"]["headGroupSpec"]["serviceType"] == "NodePort"


def test_the_placeholder_execution_is_fixed(run: Run) -> None:
    """Without --execution and --output-prefix a task always becomes the same job, in <project>-<domain>."""
    arguments = ("--task-template", written("t.json", golden("container-minimal").raw["task_template"]))
    first, second = run(*arguments), run(*arguments)
    metadata = first.job["metadata"]
    assert first == second
    assert (metadata["name"], metadata["namespace"]) == ("example-n0-0-d124e9e1", "flytesnacks-development")
    assert metadata["annotations"]["kuberay.flyte.org/output-prefix"] == (
        "s3://bucket/metadata/propeller/flytesnacks-development-example/n0/data/0"
    )


def test_an_execution_without_a_namespace_is_told(run: Run) -> None:
    """A RayJob without a namespace would land in kubectl's own, which no connector makes."""
    ended = run(written("flow.py", TRAIN), "--execution", written("execution.json", "{}"))
    expected = "warning: execution.json: says no namespace, so the RayJob has none; a connector always gets one\n"
    assert (ended.status, ended.err) == (0, expected)


def test_the_output_prefix_follows_the_execution() -> None:
    """The placeholder prefix of an execution is where propeller would put its outputs."""
    case = golden("container-minimal")
    assert default_output_prefix(case.task.execution) == case.raw["output_prefix"]


def test_the_placeholder_names_the_task() -> None:
    """The placeholder execution is one of the task at hand."""
    template = golden("container-minimal").task.template
    execution = placeholder_execution(template)
    expected = {
        "task_execution_id": {
            "task_id": golden("container-minimal").raw["task_template"]["id"],
            "node_execution_id": {
                "node_id": "n0",
                "execution_id": {"project": "flytesnacks", "domain": "development", "name": "example"},
            },
        },
        "namespace": "flytesnacks-development",
    }
    assert execution == ParseDict(expected, TaskExecutionMetadata())


def test_a_pod_template_of_another_namespace_does_not_count(run: Run) -> None:
    """A PodTemplate elsewhere is not the one that the task names; the error says how to give it."""
    template = golden("bad-named-template-missing").raw["task_template"]
    template["metadata"]["pod_template_name"] = "pool"
    elsewhere = {**POD_TEMPLATE, "metadata": {"name": "pool", "namespace": "elsewhere"}}
    ended = run("--task-template", written("t.json", template), "--pod-template", written("pool.json", elsewhere))
    assert ended == Ended(
        2,
        "",
        "error: metadata.podTemplateName: no PodTemplate is called 'pool' in namespace "
        "'flytesnacks-development' or 'flyte'; create it there, and give its file here with --pod-template FILE\n",
    )


def test_a_default_pod_template_that_is_not_given(run: Run) -> None:
    """Where the platform's default PodTemplate is not among the files, a warning says what was rendered."""
    config = written("c.yaml", "plugins: {k8s: {default-pod-template-name: pool}}")
    ended = run(*case_files(golden("container-minimal")), "--config", config)
    assert (ended.status, ended.err) == (
        0,
        "warning: no --pod-template holds 'pool' for namespace ml-platform-development or flyte: "
        "rendered as on a cluster that has no such PodTemplate\n",
    )


def test_all_files_are_looked_at(run: Run) -> None:
    """The problems of all files come at once."""
    options = ("--task-template", "--config", "--execution", "--inputs", "--pod-template")
    arguments = [argument for option in options for argument in (option, f"no{option}")]
    places = ("no--config", "no--task-template", "no--execution", "no--inputs", "no--pod-template")
    lines = [f"  - {place}: can't be read: No such file or directory; name a file that can be\n" for place in places]
    assert run(*arguments) == Ended(2, "", "error: 5 problems:\n" + "".join(lines))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], "one of the arguments MODULE.py[:TASK] --task-template is required", id="no task"),
        pytest.param(["a.py", "--task-template", "t"], "not allowed with argument MODULE.py[:TASK]", id="two tasks"),
        pytest.param(
            ["a.py", "--conf", "c"],
            "unrecognized arguments: --conf c",
            id="a cut option, which may come to mean another",
        ),
        pytest.param(["a.py", "-o", "xml"], "invalid choice: 'xml'", id="an unknown form"),
        pytest.param(
            ["--task-template", "t", "--image", "i:1"],
            "--image: counts for MODULE.py only",
            id="an image for a template",
        ),
        pytest.param(
            ["--task-template", "-", "--inputs", "-"],
            "-: stands for more than one file",
            id="two files from standard input",
        ),
        pytest.param(
            ["a.py", "--image", "i"],
            "--image: Incorrectly formatted image i, missing tag or digest",
            id="an image without a tag",
        ),
        pytest.param(
            ["a.py", "--image", "x=" + __file__],
            "is a file; name an image: nothing is built here",
            id="a file for an image",
        ),
    ],
)
def test_arguments_that_are_refused(arguments: list[str], expected: str, run: Run) -> None:
    """Arguments that can't be meant end with status 2 and say why."""
    ended = run(*arguments)
    assert (ended.status, ended.out, expected in ended.err) == (2, "", True)
