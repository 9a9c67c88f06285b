"""A task template out of a user's Python file, which is loaded and serialized as `pyflyte run` does.

Source: flytekit clis/sdk_in_container/run.py (load_naive_entity), tools/script_mode.py (_find_project_root).
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from flyteidl.core.tasks_pb2 import TaskTemplate
from flytekit import ImageSpec
from flytekit.configuration import FastSerializationSettings, Image, ImageConfig, SerializationSettings
from flytekit.core.python_auto_container import update_image_spec_copy_handling
from flytekit.core.python_function_task import PythonFunctionTask
from flytekit.tools.module_loader import add_sys_path
from flytekit.tools.translator import get_serializable_task

from ..config.podtemplate import pod_spec_of
from ..errors import Problem, ProblemsError

RayTasks = dict[str, PythonFunctionTask[Any]]


def split_target(target: str) -> tuple[str, str]:
    """The file and the task's name ("" for none) of MODULE.py[:TASK]; a colon before anything else is the path's."""
    file, colon, name = target.rpartition(":")
    return (file, name) if colon and name.isidentifier() else (target, "")


def task_template(target: str, images: Sequence[str], project: str, domain: str, version: str) -> TaskTemplate:
    """The TaskTemplate that Flyte would register for a Ray task of a Python file; no image is built or looked up.

    Args:
        target: MODULE.py[:TASK].
        images: [NAME=]IMAGE, as for `pyflyte run`.
        project: Of the task's identifier.
        domain: Of the task's identifier.
        version: Of the task's identifier.

    Raises:
        ProblemsError: The file can't be loaded, has no such task or no single one, or Flyte can't serialize the task.
    """
    config = _image_config(images)
    file, name = split_target(target)
    with _loaded(file) as (module, root):
        name, task = _chosen(file, name, module)
        try:
            config = _with_image_specs(config, task, root)
            settings = SerializationSettings(image_config=config, project=project, domain=domain, version=version)
            template: TaskTemplate = get_serializable_task(OrderedDict(), settings, task).template.to_flyte_idl()
        except Exception as error:  # the user's task may raise anything
            raise ProblemsError(_problems_of(error, f"{file}:{name}")) from error
    return template


def _image_config(images: Sequence[str]) -> ImageConfig:
    """The images as `pyflyte run` reads them, save a file of an ImageSpec, which it would build.

    Raises:
        ProblemsError: One is a file, or no image with tag or digest, or two are the default.
    """
    for image in images:
        if Path(image.rpartition("=")[2]).is_file():
            raise ProblemsError([Problem("--image", f"{image} is a file", "name an image: nothing is built here")])
    try:
        return ImageConfig.validate_image(None, "--image", tuple(images))
    except (AssertionError, ValueError) as error:
        raise ProblemsError([Problem("--image", str(error))]) from error


def _with_image_specs(config: ImageConfig, task: PythonFunctionTask[Any], root: Path) -> ImageConfig:
    """The images with the names of the task's ImageSpecs, for what flytekit finds there it does not build."""
    containers = pod_spec_of(task.pod_template).get("containers") or [] if task.pod_template else []
    fast = FastSerializationSettings(enabled=True)  # the default of `pyflyte run`: no user code in the image
    settings = SerializationSettings(config, source_root=str(root), fast_serialization_settings=fast)
    known = []
    for spec in (task.container_image, *(container.get("image") for container in containers)):
        if isinstance(spec, ImageSpec):
            update_image_spec_copy_handling(spec, settings)
            known.append(Image.look_up_image_info(spec.id, spec.image_name(), allow_no_tag_or_digest=True))
    return replace(config, images=[*(config.images or []), *known])


@contextmanager
def _loaded(name: str) -> Iterator[tuple[ModuleType, Path]]:
    """The module of a file, and the folder from which Flyte imports it; both can be imported from until the end.

    Raises:
        ProblemsError: There is no such file, its import raises, or its name means another module.
    """
    file = _python_file(name)
    root = next(parent for parent in file.parents if not (parent / "__init__.py").exists())
    module_name = ".".join(file.relative_to(root).with_suffix("").parts)
    before = set(sys.modules)
    try:
        with add_sys_path(root):
            importlib.invalidate_caches()
            module = _imported(module_name, name, file, root)
            yield module, root
    finally:
        # another file of this name, or this one changed, may come next in this process
        for loaded in set(sys.modules) - before:
            if loaded.partition(".")[0] == module_name.partition(".")[0]:
                del sys.modules[loaded]


def _python_file(name: str) -> Path:
    """The file of that name.

    Raises:
        ProblemsError: There is none that Python could import.
    """
    remedy = "name a .py file, or a task template with --task-template"
    try:
        file = Path(name).resolve()
        if file.suffix != ".py" or not file.is_file():
            raise ProblemsError([Problem(name, "is no Python file" if file.exists() else "is not there", remedy)])
        file.read_bytes()
    except OSError as error:
        raise ProblemsError([Problem(name, f"can't be read: {error.strerror}", remedy)]) from error
    if "." in file.stem:
        what = "has a dot in its name, which Python takes for a package's"
        raise ProblemsError([Problem(name, what, "rename the file")])
    return file


def _imported(module_name: str, name: str, file: Path, root: Path) -> ModuleType:
    try:
        module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a user's module may raise anything
        place, deeper = _places_of(error, name, file, root)
        raise ProblemsError(_problems_of(error, place, deeper)) from error
    found = getattr(module, "__file__", None)
    if not found or Path(found).resolve() != file:
        what = f"its name, {module_name}, is that of a module loaded from {found or 'Python itself'}"
        raise ProblemsError([Problem(name, what, "rename the file: on Flyte it would be mistaken too")])
    return module


def _places_of(error: BaseException, name: str, file: Path, root: Path) -> tuple[str, str]:
    """The file with the line where the error came up, and where it did beyond that, in a file of the same project."""
    lines = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append((Path(error.filename), error.lineno))
    own = [line for path, line in lines if path == file]
    last, line = next((each for each in reversed(lines) if each[0].is_relative_to(root)), (file, None))
    deeper = f" ({last.relative_to(root)}, line {line})" if last != file else ""
    return (f"{name}, line {own[-1]}" if own else name), deeper


def _problems_of(error: BaseException, place: str, deeper: str = "") -> list[Problem]:
    if isinstance(error, ProblemsError):
        return [replace(problem, path=f"{place}: {problem.path}") for problem in error.problems]
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    text = " ".join(f"{type(error).__name__}: {said}".split()).removesuffix(":") + deeper
    missing = isinstance(error, ModuleNotFoundError)
    return [Problem(place, text, "install it here, or run this where your tasks' packages are" if missing else "")]


def _chosen(file: str, name: str, module: ModuleType) -> tuple[str, PythonFunctionTask[Any]]:
    """The Ray task of that name; without a name the only one there is.

    Raises:
        ProblemsError: There is none, or more than one to choose from.
    """
    tasks = _ray_tasks(module)
    listed = f"the Ray tasks here are {', '.join(tasks)}" if tasks else "no Ray task is here"
    if name:
        value: Any = getattr(module, name, None)
        if _is_ray_task(value):
            return name, value
        kind = f"a task of type {value.task_type!r}" if hasattr(value, "task_type") else f"a {type(value).__name__}"
        what = f"is {kind}, no Ray task" if hasattr(module, name) else "is not there"
        raise ProblemsError([Problem(f"{file}:{name}", what, listed)])
    own = {key: task for key, task in tasks.items() if task.instantiated_in == module.__name__} or tasks
    if not own:
        raise ProblemsError([Problem(file, "has no Ray task", "write @task(task_config=RayJobConfig(...))")])
    if len(own) > 1:
        what = f"has {len(own)} Ray tasks: {', '.join(own)}"
        raise ProblemsError([Problem(file, what, f"name one, as in {file}:{next(iter(own))}")])
    return next(iter(own.items()))


def _ray_tasks(module: ModuleType) -> RayTasks:
    """The Ray tasks of a module, each by the first name it has there."""
    tasks: RayTasks = {}
    for name, value in vars(module).items():
        if _is_ray_task(value) and not any(value is task for task in tasks.values()):
            tasks[name] = value
    return tasks


def _is_ray_task(value: Any) -> bool:
    return isinstance(value, PythonFunctionTask) and value.task_type == "ray"
