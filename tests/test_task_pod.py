"""The task's own pod of a template that holds a dict; what a task with one registers as stands in test_task."""

from __future__ import annotations

from typing import Any

import pytest
from flytekit import ImageSpec, PodTemplate
from flytekit.configuration import Image, ImageConfig, SerializationSettings
from flytekit.models.task import Container, Resources

from flytekitplugins.kuberay.config.podtemplate import task_problems
from flytekitplugins.kuberay.task_pod import k8s_pod_of

SPEC = ImageSpec(name="data", registry="registry", python_version="3.11")
APP = Image(name="default", fqn="registry/app", tag="1")
SETTINGS = SerializationSettings(
    image_config=ImageConfig(default_image=APP, images=[APP, Image(name=SPEC.id, fqn="registry/data", tag="2")])
)
TASK = Container("registry/app:1", [], ["run"], Resources([], []), {}, {})


def template(spec: Any) -> PodTemplate:
    """A PodTemplate with a dict, which flytekit's types do not know."""
    return PodTemplate(pod_spec=spec)


@pytest.mark.parametrize("field", ["initContainers", "containers"])
@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param(SPEC, "registry/data:2", id="an ImageSpec"),
        pytest.param("{{.image.default.fqn}}:x", "registry/app:x", id="a name of the image configuration"),
        pytest.param("busybox", "busybox", id="any other name"),
    ],
)
def test_images_are_those_that_are_pulled(field: str, image: Any, expected: str) -> None:
    """An image that flytekit builds, or knows by a name of its own, is found in each list of containers."""
    given = template({field: [{"name": "data", "image": image}]})
    assert list(task_problems(given)) == []
    written: Any = k8s_pod_of(given, TASK, SETTINGS).pod_spec
    assert written[field][0] == {"name": "data", "image": expected}


def test_the_template_stays_as_it_is() -> None:
    """It may serve several tasks, each of which gets its own containers."""
    spec: dict[str, Any] = {"containers": [{"name": "data", "image": SPEC}]}
    assert k8s_pod_of(template(spec), TASK, SETTINGS).pod_spec == k8s_pod_of(template(spec), TASK, SETTINGS).pod_spec
    assert spec == {"containers": [{"name": "data", "image": SPEC}]}


def test_resources_of_the_task_are_those_of_the_primary_container() -> None:
    """By Kubernetes' names, but for a GPU, whose name is the platform's; they replace the template's own."""
    kinds = Resources.ResourceName
    requests = [Resources.ResourceEntry(kinds.GPU, "1"), Resources.ResourceEntry(kinds.EPHEMERAL_STORAGE, "2Gi")]
    task = Container("registry/app:1", [], ["run"], Resources(requests, []), {}, {})
    given = template({"containers": [{"name": "primary", "resources": {"limits": {"cpu": "9"}}}]})
    written: Any = k8s_pod_of(given, task, SETTINGS).pod_spec
    assert written["containers"][0]["resources"] == {"requests": {"gpu": "1", "ephemeral-storage": "2Gi"}, "limits": {}}
