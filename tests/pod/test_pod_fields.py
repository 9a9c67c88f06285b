"""docs/pod-fields.md says where each field of a pod template lands; here code and golden cases are held to it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from google.protobuf.json_format import MessageToDict

from flytekitplugins.kuberay.cluster.job import build_ray_job
from flytekitplugins.kuberay.wire import Manifest
from tests.golden.case import FOLDER, read_case
from tests.golden.compare import canonical
from tests.pod.samples import custom, pod_task, primary, settings, sidecar

ROOT = Path(__file__).parent.parent.parent
SCHEMA: dict[str, dict[str, str]] = json.loads((ROOT / "flytekitplugins/kuberay/schema.json").read_text("utf-8"))
OTHERS = "any other field"


class Row(NamedTuple):
    """A row of the document: where a field lands, and the cases that show it."""

    field: str
    cluster: bool  # from the task's template, in head and workers
    submitter: bool
    group: bool  # from a group's template, in that group
    cases: list[str]


def rows_of(heading: str) -> list[Row]:
    """The rows below a heading of the document."""
    text = (ROOT / "docs/pod-fields.md").read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `") or OTHERS in line]
    return [row_of([cell.strip() for cell in line.strip("|").split(" |")]) for line in lines]


def row_of(cells: list[str]) -> Row:
    """The row of a line's cells."""
    cluster, submitter, group = (cell.startswith("yes") for cell in cells[1:4])
    return Row(cells[0].strip("`"), cluster, submitter, group, re.findall(r"`([\w-]+)`", cells[4]))


POD, CONTAINERS, RAY, METADATA = map(
    rows_of, ["The pod", "Its containers", "The Ray container", "Labels and annotations"]
)
LISTS = {"containers", "initContainers", "ephemeralContainers", "serviceAccount", "name"}


def all_fields(rows: list[Row], kind: str) -> list[Row]:
    """A row for each field of a Kubernetes type: its own, or the one of all others."""
    own = {row.field: row for row in rows if row.field in SCHEMA[kind]}
    [others] = [row for row in rows if row.field.startswith(OTHERS)]
    return [own.get(field, others._replace(field=field, cases=[])) for field in SCHEMA[kind] if field not in LISTS]


def probe(kind: str) -> Any:
    """A small value of a Kubernetes type."""
    if kind.startswith("[]"):
        return [probe(kind[2:])]
    if kind.startswith("{}"):
        return {"x": probe(kind[2:])}
    if kind in SCHEMA:
        field = "name" if "name" in SCHEMA[kind] else min(SCHEMA[kind])
        return {field: probe(SCHEMA[kind][field])}
    return {"string": "x", "integer": 7, "boolean": True, "quantity": "1", "any": "x"}[kind]


def holds(got: Any, wanted: Any) -> bool:
    """Whether a value is the wanted one, or has all of it."""
    if isinstance(wanted, dict):
        return isinstance(got, dict) and all(holds(got.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(got, list) and all(any(holds(each, entry) for each in got) for entry in wanted)
    return bool(got == wanted)


def templates_of(task: Manifest, group: Manifest) -> dict[str, Manifest]:
    """The pod templates of a K8sPod target and a group's own, both with podSpec and metadata, by whose they are."""
    groups = custom({"groupName": "own", "k8sPod": group}, {"groupName": "plain"})
    target = pod_task(task.get("podSpec"), pod_metadata=task.get("metadata"), custom=groups)
    job = build_ray_job(target, settings())["spec"]
    own, plain = (worker["template"] for worker in job["rayClusterSpec"]["workerGroupSpecs"])
    head = job["rayClusterSpec"]["headGroupSpec"]["template"]
    return {"head": head, "own": own, "plain": plain, "submitter": job["submitterPodTemplate"]}


def built(task: Manifest, group: Manifest | None = None) -> dict[str, Manifest]:
    """The pod specs of a task's and a group's own, by whose they are."""
    templates = templates_of({"podSpec": task}, {"podSpec": group or {}})
    return {name: template["spec"] for name, template in templates.items()}


def landings(row: Row) -> tuple[dict[str, bool], dict[str, bool]]:
    """Where the document says that a field lands, from the task's template and from the group's called own."""
    task = {"head": row.cluster, "own": row.cluster, "plain": row.cluster, "submitter": row.submitter}
    return task, {"head": False, "own": row.group, "plain": False, "submitter": False}


@pytest.mark.parametrize("row", [pytest.param(row, id=row.field) for row in all_fields(POD, "V1PodSpec")])
def test_fields_of_a_pod(row: Row) -> None:
    """A pod's field lands where the document says, from the task's template and from a group's."""
    part = {row.field: probe(SCHEMA["V1PodSpec"][row.field])}
    shown = [{name: holds(spec, part) for name, spec in pods.items()} for pods in (built(part), built({}, part))]
    assert shown == list(landings(row))


@pytest.mark.parametrize("row", [pytest.param(row, id=row.field) for row in all_fields(RAY, "V1Container")])
def test_fields_of_the_ray_container(row: Row) -> None:
    """The primary container's field lands where the document says, from the task's template and from a group's."""
    part = {row.field: probe(SCHEMA["V1Container"][row.field])}
    volumes = {"volumes": [{"name": "x"}]}  # for a mount
    task = built({"containers": [primary(**part)], **volumes})
    group = built(volumes, {"containers": [{"name": "ray-worker", **part}]})
    shown = [{name: holds(spec["containers"][0], part) for name, spec in pods.items()} for pods in (task, group)]
    assert shown == list(landings(row))


@pytest.mark.parametrize(
    ("row", "field", "part"),
    [
        pytest.param(CONTAINERS[1], "containers", sidecar(), id="other containers"),
        pytest.param(CONTAINERS[2], "initContainers", sidecar(), id="init containers"),
    ],
)
def test_containers(row: Row, field: str, part: Manifest) -> None:
    """Sidecars and init containers land where the document says."""
    task = built({"containers": [primary()], **{field: [primary(), part] if field == "containers" else [part]}})
    group = built({}, {field: [part]})
    shown = [{name: holds(spec, {field: [part]}) for name, spec in pods.items()} for pods in (task, group)]
    assert shown == list(landings(row))


@pytest.mark.parametrize("row", [pytest.param(row, id=row.field) for row in METADATA])
def test_metadata(row: Row) -> None:
    """Labels and annotations land where the document says."""
    part = {"metadata": {row.field: {"x": "y"}}}
    both = (templates_of(part, {}), templates_of({}, part))
    shown = [{name: holds(template, part) for name, template in templates.items()} for templates in both]
    assert shown == list(landings(row))


def templates_of_case(name: str) -> list[tuple[Manifest, list[Manifest]]]:
    """The templates of a golden case, each with the pod templates of the expected RayJob that it goes to."""
    case = read_case(FOLDER / "cases" / f"{name}.json")
    template = MessageToDict(case.task.template)
    cluster = case.raw["expected"]["rayjob"]["spec"]["rayClusterSpec"]
    head, workers = cluster["headGroupSpec"], cluster["workerGroupSpecs"]
    wire = template["custom"]["rayCluster"]
    groups = zip([wire.get("headGroupSpec", {}), *wire.get("workerGroupSpec", [])], [head, *workers], strict=True)
    pods = [(template.get("k8sPod", {}), [head, *workers])] + [
        (group.get("k8sPod", {}), [built]) for group, built in groups
    ]
    base = [(each["template"], [head, *workers]) for each in case.raw["pod_templates"]]
    return [
        (
            {"podSpec": pod.get("podSpec") or pod.get("spec") or {}, **(pod.get("metadata") or {})},
            [each["template"] for each in to],
        )
        for pod, to in pods + base
    ]


def says(template: Manifest, expected: Manifest, field: str, where: str) -> bool:
    """Whether a template has a field and the pod template that is expected of it has it, too."""
    if where == "metadata":
        return field in template and field in expected["metadata"]
    mine, theirs = template["podSpec"], expected["spec"]
    if where == "pod":
        return field in mine and (field in canonical(theirs) or not mine[field])
    own = [container for container in mine.get("containers") or [] if field in container]
    names = [container["name"] for container in theirs["containers"]]
    if where == "primary":
        return any(container["name"] not in names for container in own)
    if where == "others":
        return any(container["name"] in names[1:] for container in own)
    landed = any(field in container for container in canonical(theirs)["containers"])
    return bool(own) and (landed or not all(container[field] for container in own))


@pytest.mark.parametrize(
    ("field", "where", "case"),
    [
        pytest.param(row.field.partition("`")[0], where, case, id=f"{row.field} in {case}")
        for rows, where in (
            (POD + CONTAINERS[2:], "pod"),
            ([CONTAINERS[0]._replace(field="name")], "primary"),
            ([CONTAINERS[1]._replace(field="name")], "others"),
            (RAY, "container"),
            (METADATA, "metadata"),
        )
        for row in rows
        for case in row.cases
    ],
)
def test_golden_cases_show_it(field: str, where: str, case: str) -> None:
    """A golden case that the document names has the field in a template, and in the pods that it goes to."""
    shown = [says(template, each, field, where) for template, expected in templates_of_case(case) for each in expected]
    assert True in shown
