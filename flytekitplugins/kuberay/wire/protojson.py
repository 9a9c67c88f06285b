"""Readers of protobuf's JSON: each takes a plain value and its path, gives the value read and notes what is wrong.

protobuf's own parser stops at the first fault, names no path, and drops explicit nulls of no message; a task's author
needs all faults, with their places. Readers are put together into tables that read like the message they describe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..config.checks import INT32_MAX
from ..errors import Problem
from ..syntax import is_whole_number

Reader = Callable[[Any, str, list[Problem]], Any]
T = TypeVar("T")


def has_field(message: Any, name: str) -> bool:
    """Whether a protobuf message holds the field (mypy sees no types of protobuf's own, hence Any)."""
    return bool(message.HasField(name))


def which(message: Any, oneof: str) -> str:
    """The field of a protobuf message's oneof that is set; "" for none."""
    return str(message.WhichOneof(oneof) or "")


def plain_struct(struct: Any) -> dict[str, Any]:
    """A google.protobuf.Struct as plain data: keys sorted, nulls kept, whole numbers as int (it knows only doubles)."""
    return {key: _plain_value(value) for key, value in sorted(struct.fields.items())}


def _plain_value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return plain_struct(value.struct_value)
    if kind == "list_value":
        return [_plain_value(item) for item in value.list_value.values]
    if kind == "number_value":
        return whole(value.number_value)
    return None if kind in (None, "null_value") else getattr(value, kind)


def whole(value: Any) -> Any:
    """The value, as an int where it is a whole float (D22 of the design)."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text(value: Any, path: str, problems: list[Problem]) -> str:
    """The text, or "" with a problem."""
    return value if isinstance(value, str) else _wrong(value, path, problems, "text", "")


def boolean(value: Any, path: str, problems: list[Problem]) -> bool:
    """The truth value, or False with a problem."""
    return value if isinstance(value, bool) else _wrong(value, path, problems, "true or false", False)


def count(value: Any, path: str, problems: list[Problem]) -> int:
    """The whole number of 0 or more, or 0 with a problem; protobuf's JSON allows it as text."""
    number = whole(value)
    if isinstance(value, str) and is_whole_number(value):
        number = int(value)
    if not isinstance(number, int) or isinstance(number, bool):
        return _wrong(value, path, problems, "a whole number", 0)
    if not 0 <= number <= INT32_MAX:
        return _wrong(value, path, problems, f"from 0 to {INT32_MAX}", 0)
    return number


def texts(value: Any, path: str, problems: list[Problem]) -> dict[str, str]:
    """The map of text to text, without the entries that are none, each with a problem."""
    return {key: text(item, f"{path}[{key}]", problems) for key, item in mapping(value, path, problems).items()}


def mapping(value: Any, path: str, problems: list[Problem]) -> dict[str, Any]:
    """The map as it is, or {} with a problem."""
    return value if isinstance(value, dict) else _wrong(value, path, problems, "a map", {})


def one_of(names: Mapping[str, Any], numbers: Mapping[int, Any] | None = None) -> Reader:
    """A reader of an enum: by its names or, as protobuf's JSON allows, by its numbers; None with a problem."""

    def read(value: Any, path: str, problems: list[Problem]) -> Any:
        if isinstance(value, str) and value in names:
            return names[value]
        if isinstance(value, int) and not isinstance(value, bool) and value in (numbers or {}):
            return (numbers or {})[value]
        return _wrong(value, path, problems, "one of " + ", ".join(names), None)

    return read


def list_of(reader: Reader) -> Reader:
    """A reader of a list, each item read by `reader`."""

    def read(value: Any, path: str, problems: list[Problem]) -> list[Any]:
        if not isinstance(value, list):
            return _wrong(value, path, problems, "a list", [])
        return [reader(item, f"{path}[{index}]", problems) for index, item in enumerate(value)]

    return read


def message(unknown: Callable[[str], None] | None = None, /, **fields: Reader) -> Reader:
    """A reader of a message: its fields by their camelCase names, each only where the value has it.

    Args:
        unknown: Told the path of each key that is no field.
        fields: camelCase name -> reader; the snake_case name is read too. A null field counts as unset.
    """
    aliases = {name: {name, _snake_case(name)} for name in fields}
    known = set().union(*aliases.values())

    def read(value: Any, path: str, problems: list[Problem]) -> dict[str, Any]:
        given = {key: item for key, item in mapping(value, path, problems).items() if item is not None}
        if unknown:
            for key in sorted(given.keys() - known):
                unknown(f"{path}.{key}")
        found: dict[str, Any] = {}
        for name, reader in fields.items():
            keys = sorted(aliases[name] & given.keys())
            if len(keys) > 1:
                problems.append(Problem(f"{path}.{name}", "is given twice", f"drop {_snake_case(name)}"))
            elif keys:
                found[name] = reader(given[keys[0]], f"{path}.{name}", problems)
        return found

    return read


def _snake_case(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


def _wrong(value: Any, path: str, problems: list[Problem], wanted: str, instead: T) -> T:
    shown = f"{value!r}" if isinstance(value, (str, bool, int, float)) else f"a {_json_type(value)}"
    problems.append(Problem(path, f"is {shown[:80]}", f"it has to be {wanted}"))
    return instead


def _json_type(value: Any) -> str:
    return {"dict": "map", "NoneType": "null"}.get(type(value).__name__, type(value).__name__)
