"""What a setting may be: each `Kind` names itself, for errors and documentation, and reads one value of the YAML.

Like Flyte's own loader, a kind takes text for a number or a switch and a number for text, but never guesses. A value
that it refuses becomes a problem at its `Place`, so that all problems are found in one go; what `read` gives back
then is never used.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, TypeVar

from ..errors import Problem
from ..quantity import is_quantity, parse_quantity
from ..syntax import is_label_key

Section = TypeVar("Section")

_INT32_MAX = 2**31 - 1
_GO_DURATION_MAX = 2**63 - 1  # nanoseconds
_MICRO, _MINUTE = 10**3, 60 * 10**9
_GO_UNITS = {
    "ns": 1,
    "us": _MICRO,
    "µs": _MICRO,
    "μs": _MICRO,
    "ms": 10**6,
    "s": 10**9,
    "m": _MINUTE,
    "h": 60 * _MINUTE,
}
_GO_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


@dataclass(frozen=True)
class Place:
    """Where a value stands: the file, the path of keys, and where problems and warnings about it go."""

    file: str
    path: str = ""
    strict: bool = False  # an unknown key is a problem, not a warning
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def at(self, key: object) -> Place:
        """The place of one entry of the map, or with a number the list, that stands here."""
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if self.path else str(key)
        return replace(self, path=self.path + step)

    def problem(self, what: str, remedy: str = "") -> Problem:
        """A problem of this place."""
        return Problem(": ".join(filter(None, (self.file, self.path))) or "settings", what, remedy)

    def refuse(self, wanted: str, value: object, remedy: str = "") -> None:
        """Adds the problem that the value is not what is wanted."""
        self.problems.append(self.problem(f"must be {wanted}, got {_shown(value)}", remedy))

    def unknown(self, key: object, known: Iterable[str]) -> None:
        """Adds a problem, or a warning, for a key that nobody reads."""
        near = difflib.get_close_matches(str(key), list(known), n=1)
        remedy = f"did you mean {near[0]}?" if near else "remove it, or see docs/settings.md for the keys there are"
        entry = self.at(str(key))
        (self.problems if self.strict else self.warnings).append(entry.problem("is not a setting", remedy))


@dataclass(frozen=True)
class Kind:
    """A kind of value: its name with article, and how it is read; `null` if null is a value of it."""

    name: str
    read: Callable[[Any, Place], Any]
    null: bool = False


def setting(key: str, kind: Kind, default: Any, doc: str) -> Any:
    """One setting: a dataclass field that knows its key in the YAML, its kind and its documentation."""
    metadata = {"key": key, "kind": kind, "doc": doc}
    if isinstance(default, dict):
        return field(default_factory=lambda: copy.deepcopy(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def section(key: str, cls: type[Any]) -> Any:
    """A section of settings within a section."""
    return field(default_factory=cls, metadata={"key": key, "kind": section_kind(cls), "section": cls})


def read_section(cls: type[Section], value: Any, place: Place) -> Section:
    """The section that a map of the YAML says: its settings, and defaults for all others.

    Keys count in any letter case, as for Flyte. Null and an empty map say nothing.
    """
    if not isinstance(value, Mapping):
        if value is not None:
            place.refuse("a map of settings", value)
        return cls()
    known = {f.metadata["key"].lower(): f for f in fields(cls)}  # type: ignore[arg-type]  # Section is a dataclass
    values = {}
    for key, item in value.items():
        entry = known.get(str(key).lower())
        if entry is None:
            place.unknown(key, [f.metadata["key"] for f in known.values()])
            continue
        kind: Kind = entry.metadata["kind"]
        if (item is not None or kind.null) and item != {}:
            values[entry.name] = kind.read(item, place.at(key))
    return cls(**values)


def section_kind(cls: type[Any]) -> Kind:
    """A map with the settings of a dataclass."""
    return Kind("a map of settings", lambda value, place: read_section(cls, value, place))


def choice(*names: str) -> Kind:
    """One of some words; "" stands for none where it is among them."""
    words = f"one of {', '.join(filter(None, names))}"

    def read(value: Any, place: Place) -> Any:
        if value not in names:
            near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.4)
            place.refuse(words, value, f"did you mean {near[0]}?" if near else "")
        return value

    return Kind(words, read)


def optional(kind: Kind, null: str) -> Kind:
    """A kind or null, which means what `null` says."""
    return Kind(
        f"{kind.name}, or null ({null})",
        lambda value, place: None if value is None else kind.read(value, place),
        null=True,
    )


def map_of(kind: Kind, name: str) -> Kind:
    """A map with any keys, or a list of one-key maps, of one kind of value; an empty list empties it."""

    def read(value: Any, place: Place) -> dict[str, Any]:
        entries = _folded(value)
        if entries is None:
            place.refuse(f"{name}, or a list of one-key maps", value)
            return {}
        return {str(key): kind.read(item, place.at(str(key))) for key, item in entries.items()}

    return Kind(name, read)


def list_of(kind: Kind, name: str) -> Kind:
    """A list of one kind of value; a lone map stands for a list of one, as in Flyte."""

    def read(value: Any, place: Place) -> tuple[Any, ...]:
        items = [value] if isinstance(value, Mapping) else value
        if not isinstance(items, (list, tuple)):
            place.refuse(name, value)
            return ()
        return tuple(kind.read(item, place.at(i)) for i, item in enumerate(items))

    return Kind(name, read)


def _read_bool(value: Any, place: Place) -> Any:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text not in ("true", "false"):
        place.refuse("true or false", value)
    return text == "true"


def _read_integer(value: Any, place: Place) -> Any:
    whole = isinstance(value, float) and value.is_integer() or isinstance(value, str) and value.strip().isdecimal()
    number = int(value) if whole else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _INT32_MAX:
        place.refuse(f"a whole number from 0 to {_INT32_MAX}", value)
    return number


def _read_text(value: Any, place: Place) -> Any:
    if isinstance(value, bool):
        return str(value).lower()  # as written in YAML; Flyte makes "1" or "0" of it
    if not isinstance(value, (str, int, float)):
        place.refuse("a text", value)
    return str(value)


def _read_value(value: Any, place: Place) -> Any:
    return "" if value is None else _read_text(value, place)


def _read_texts(value: Any, place: Place) -> tuple[Any, ...]:
    items = list(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        place.refuse("a list of texts", value)
        return ()
    return tuple(_read_text(item, place.at(i)) for i, item in enumerate(items))


def _read_quantity(value: Any, place: Place) -> Any:
    if not is_quantity(value) or parse_quantity(value) < 0:
        place.refuse("a Kubernetes quantity", value, "write it as 500m, 2 or 1Gi")
    return str(value)


def _read_label_key(value: Any, place: Place) -> Any:
    if not isinstance(value, str) or not is_label_key(value):
        place.refuse("a Kubernetes label key", value, "write it as example.com/name")
    return value


def _read_flyte_duration(value: Any, place: Place) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = f"{value}ns"
    return _read_go_duration("0" if value == "" else value, place, signed=True)


def _read_duration(value: Any, place: Place) -> Any:
    bare_zero = value == 0 and not isinstance(value, bool)
    return _read_go_duration("0" if bare_zero else value, place, signed=False)


def _read_go_duration(value: Any, place: Place, signed: bool) -> timedelta:
    """Source: Go, time.ParseDuration; a bare number counts nanoseconds in Flyte (flytestdlib config.Duration)."""
    text = value if isinstance(value, str) else ""
    sign, number = (-1, text[1:]) if signed and text.startswith("-") else (1, text.removeprefix("+"))
    parts = _GO_DURATION_PART.findall(number)
    nanoseconds = sum(int(Decimal(amount) * _GO_UNITS[unit]) for amount, unit in parts)
    complete = number == "0" or (parts and "".join(amount + unit for amount, unit in parts) == number)
    if not complete or nanoseconds > _GO_DURATION_MAX:
        place.refuse("a duration", value, "write it with units, as 90s, 3m or 1h30m")
        return timedelta()
    return sign * timedelta(microseconds=nanoseconds // 1000)


def _read_data(value: Any, place: Place) -> Any:
    if not isinstance(value, Mapping):
        place.refuse("a map", value)
        return {}
    return value


def _read_list(value: Any, place: Place) -> Any:
    if not isinstance(value, (list, tuple)):
        place.refuse("a list", value)
        return []
    return list(value)


def _folded(value: Any) -> Mapping[Any, Any] | None:
    """The map that a map, or a list of maps, stands for; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, Mapping) for item in value):
        return {key: item for entry in value for key, item in entry.items()}
    return None


def _shown(value: object) -> str:
    """A value for an error's text: short, and of what may hold many values only its kind."""
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


BOOL = Kind("true or false", _read_bool)
INTEGER = Kind("a whole number", _read_integer)
TEXT = Kind("a text", _read_text)
TEXTS = Kind("a list of texts", _read_texts)
QUANTITY = Kind("a quantity", _read_quantity)
LABEL_KEY = Kind("a label key", _read_label_key)
FLYTE_DURATION = Kind("a duration", _read_flyte_duration)
DURATION = Kind("a duration", _read_duration)
TEXT_MAP = map_of(Kind("a text", _read_value), "a map of texts")
DATA = Kind("a map", _read_data)
LIST = Kind("a list", _read_list)
