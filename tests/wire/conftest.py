"""What the tests of the wire share: task templates made of a `custom` and a config."""

from collections.abc import Callable
from typing import Any

import pytest
from flyteidl.core.tasks_pb2 import TaskTemplate
from google.protobuf.json_format import ParseDict

MakeTemplate = Callable[..., TaskTemplate]


@pytest.fixture
def template() -> MakeTemplate:
    """A function that makes a task template of `custom` and, by keyword, the entries of its config."""

    def make(custom: dict[str, Any] | None, **config: str) -> TaskTemplate:
        body = {"config": config} if custom is None else {"custom": custom, "config": config}
        made: TaskTemplate = ParseDict(body, TaskTemplate())
        return made

    return make
