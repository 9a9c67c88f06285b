"""The user's exception, out of what flytekit itself writes into error.pb."""

from __future__ import annotations

import sys
import traceback
from concurrent.futures import Future
from types import ModuleType

import pytest
from flytekit.bin.entrypoint import get_traceback_str
from flytekit.exceptions.user import FlyteRecoverableException, FlyteUserRuntimeException

from flytekitplugins.kuberay.cluster.phase import UserError
from flytekitplugins.kuberay.direct.remote_error import RemoteTaskError, remote_error


class PickyError(Exception):
    """A user's own, whose constructor wants two arguments."""

    def __init__(self, what: str, how_much: int) -> None:
        super().__init__(f"{what}: {how_much}")
        self.how_much = how_much


class Outer:
    """Where a class may stand, too."""

    class InnerError(ValueError):
        """Not found by a module's name for it."""


class SealedError(Exception):
    """A class that takes no other beside it."""

    def __init_subclass__(cls) -> None:
        raise TypeError("sealed")


class FrozenError(Exception):
    """A class of values that takes no attribute, as attrs.frozen makes it."""

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("__"):
            raise AttributeError(name)
        super().__setattr__(name, value)


class FinalError(Exception):
    """A class that tells so in its own way."""

    def __init_subclass__(cls) -> None:
        raise RuntimeError("final")


class CodedError(Exception):
    """A class whose instances are made of a code, and of nothing else."""

    def __new__(cls, *, code: int) -> CodedError:
        """The instance, where there is a code."""
        return super().__new__(cls, f"code {code}")

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")


class OnlyError(Exception):
    """A class with one instance."""

    one: OnlyError | None = None

    def __new__(cls, *texts: str) -> OnlyError:
        """The same one each time."""
        OnlyError.one = OnlyError.one or Exception.__new__(OnlyError, *texts)
        return OnlyError.one


class BareError(Exception):
    """A user's own, that is raised without a text."""


class BatchError(Exception):
    """A user's own, whose methods read what its constructor wrote."""

    def __init__(self, items: list[str]) -> None:
        super().__init__(f"{len(items)} items")
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"BatchError({self.items})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchError) and self.items == other.items

    def __getattr__(self, name: str) -> object:
        return getattr(self.items, name)


class SilentError(Exception):
    """A user's own, that is false to Python."""

    def __bool__(self) -> bool:
        return False


class ConstantError(Exception):
    """A user's own, that takes no attribute at all and has arguments of its own."""

    args = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("constant")


def left_by(error: Exception) -> UserError:
    """What error.pb says of an exception that a task's code raised."""
    try:
        try:
            raise error
        except Exception as raised:
            raise FlyteUserRuntimeException(raised) from raised
    except FlyteUserRuntimeException as wrapped:
        return UserError(wrapped.error_code, get_traceback_str(wrapped), recoverable=False)


def ray_task_error(cause: str, text: str) -> Exception:
    """What Ray raises for an exception of a remote function: a class made for it, with both names."""
    name = f"RayTaskError({cause})"
    kind = type(name, (Exception,), {"__module__": "ray.exceptions", "__qualname__": name})
    error: Exception = kind(text)
    return error


RAYS = "ray::square() (pid=7)\nValueError: odd"
RAYS_OWN = f"ray::square() (pid=7)\n  File x.py, in square\n    raise BareError\n{__name__}.BareError: odd\n  two"


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        pytest.param(ValueError("too small"), ValueError, "too small", id="a built-in one"),
        pytest.param(ValueError("one\n\n  two: 'x'"), ValueError, "one\n\n  two: 'x'", id="with several lines"),
        pytest.param(ValueError(), ValueError, "", id="without a text"),
        pytest.param(KeyError("name"), KeyError, "'name'", id="one that quotes its text"),
        pytest.param(FileNotFoundError(2, "gone", "x.txt"), OSError, "[Errno 2] gone: 'x.txt'", id="of many arguments"),
        pytest.param(MemoryError("full"), MemoryError, "full", id="one that Python makes in its own way"),
        pytest.param(PickyError("size", 3), PickyError, "size: 3", id="the user's own"),
        pytest.param(BareError(), BareError, "", id="the user's own without a text"),
        pytest.param(FrozenError("cold"), FrozenError, "cold", id="one that takes no attribute"),
        pytest.param(FlyteRecoverableException("later"), FlyteRecoverableException, None, id="flytekit's"),
        pytest.param(ray_task_error("ValueError", RAYS), ValueError, RAYS, id="Ray's, by its cause"),
        pytest.param(ray_task_error("BareError", RAYS_OWN), BareError, RAYS_OWN, id="Ray's, by the user's own cause"),
    ],
)  # fmt: skip
def test_it_is_of_the_type_that_was_raised(error: Exception, kind: type[Exception], text: str | None) -> None:
    """`except` with the user's type catches it, `except RemoteTaskError` too, and its text is the one it had there."""
    raised = remote_error(left_by(error), "wf.train")
    assert isinstance(raised, kind)
    assert isinstance(raised, RemoteTaskError)
    assert str(raised) == (str(error) if text is None else text)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(Outer.InnerError("deep"), "InnerError: deep", id="a class within a class"),
        pytest.param(SealedError("shut"), "SealedError: shut", id="a class that can't have another beside it"),
        pytest.param(StopIteration("over"), "StopIteration: over", id="the end of a loop, which nobody would see"),
        pytest.param(FinalError("last"), "FinalError: last", id="a class that says so with another error"),
        pytest.param(CodedError(code=3), "CodedError: code 3", id="a class made of something else than a text"),
        pytest.param(OnlyError("one"), "OnlyError: one", id="a class that makes no second instance"),
        pytest.param(type("FarError", (Exception,), {"__module__": "far.away"})("x"), "FarError: x", id="not loaded"),
    ],
)  # fmt: skip
def test_a_type_that_can_not_be_had_here_is_named(error: Exception, text: str) -> None:
    """Then the text begins with the type's name."""
    raised = remote_error(left_by(error), "wf.train")
    assert (type(raised), str(raised)) == (RemoteTaskError, text)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(BatchError(["a", "b"]), id="methods read what the constructor wrote"),
        pytest.param(SyntaxError("no match"), id="Python prints its parts"),
        pytest.param(SilentError("hush"), id="it is false to Python"),
        pytest.param(ConstantError("fixed"), id="it takes no attribute"),
    ],
)
def test_it_arrives_through_a_thread_and_in_print(error: Exception) -> None:
    """Whatever its class does with what only the constructor writes, which has not run here."""
    raised = remote_error(left_by(error), "wf.train")
    future: Future[None] = Future()
    future.set_exception(raised)
    with pytest.raises(type(error)) as caught:
        future.result()
    assert caught.value is raised
    assert "".join(traceback.format_exception(raised)).splitlines()[-1].endswith(f"{type(error).__name__}: {error}")
    assert repr(raised) == f"{type(error).__name__}({str(error)!r})"
    assert {raised} == {raised}


def test_a_module_that_loads_others_as_they_are_asked_for_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its way to a name may fail, with anything."""

    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise RuntimeError(f"{name} needs torch")

    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    kind = type("LazyError", (Exception,), {"__module__": "lazy"})
    assert str(remote_error(left_by(kind("mine")), "wf.train")) == "LazyError: mine"


def test_a_script_knows_its_own_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is `__main__` here has the file's name in the pod."""
    main = ModuleType("__main__")
    main.__file__ = "/home/me/script.py"
    kind = type("OwnError", (Exception,), {"__module__": "script"})
    vars(main)["OwnError"] = kind
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert isinstance(remote_error(left_by(kind("mine")), "script.train"), kind)


def test_the_traceback_of_the_pod_comes_with_it() -> None:
    """Printed, it shows the frames in the pod before those of this process."""
    printed = "".join(traceback.format_exception(remote_error(left_by(ValueError("too small")), "wf.train")))
    assert "in left_by\n    raise error" in printed
    assert printed.index("in left_by") < printed.index("direct cause") < printed.rindex("ValueError: too small")


def test_another_form_is_told_whole() -> None:
    """What is not in flytekit's form, of another SDK's or of a later one, is said as it is."""
    raised = remote_error(UserError("USER:Odd", "no trace at all", recoverable=False), "wf.train")
    assert str(raised) == "wf.train failed on the cluster: USER:Odd: no trace at all"
