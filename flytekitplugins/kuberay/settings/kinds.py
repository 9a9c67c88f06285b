"""What a setting may be: each `Kind` names itself, for errors and documentation, and reads one value of the YAML.

Like Flyte's own loader, a kind takes text for a number or a switch and a number for text, but never guesses. A value
that it refuses becomes a problem at its `Place`, so that all problems are found in one go; what `read` gives back
then is never used.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeVar

from ..config.checks import INT32_MAX
from ..errors import Problem
from ..quantity import is_quantity, parse_quantity
from ..syntax import is_whole_number

Section = TypeVar("Section")


@dataclass(frozen=True)
class Place:
    """Where a value stands: the file, the path of keys, and where problems and warnings about it go."""

    file: str
    path: str = ""
    strict: bool = False  # an unknown key is a problem, not a warning
    whole: bool = False  # no other file adds to it: what is missing is missing
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def at(self, key: object) -> Place:
        """The place of one entry of the map, or with a number the list, that stands here."""
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if self.path else str(key)
        return replace(self, path=self.path + step)

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.file, self.path))) or "settings"

    def problem(self, what: str, remedy: str = "") -> Problem:
        """A problem of this place."""
        return Problem(str(self), what, remedy)

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
    """A kind of value: its name with article, and how it is read.

    `null` if null is a value of it; `spelled` gives a value whose settings' keys are spelled as here, for a merge.
    """

    name: str
    read: Callable[[Any, Place], Any]
    null: bool = False
    spelled: Callable[[Any], Any] = lambda value: value


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
    known = _settings_of(cls)
    values = {}
    for lower, (key, item) in in_lower_case(value, place).items():
        entry = known.get(lower)
        if entry is None:
            place.unknown(key, [f.metadata["key"] for f in known.values()])
            continue
        kind: Kind = entry.metadata["kind"]
        if (item is not None or kind.null) and item != {}:
            values[entry.name] = kind.read(item, place.at(key))
    return cls(**values)


def in_lower_case(value: Mapping[Any, Any], place: Place) -> dict[str, tuple[str, Any]]:
    """The entries of a map by their keys in lower case, each with its key; a problem for one that is there twice."""
    found: dict[str, tuple[str, Any]] = {}
    for key, item in ((str(key), item) for key, item in value.items()):
        earlier, _ = found.setdefault(key.lower(), (key, item))
        if earlier != key:
            place.problems.append(place.at(key).problem(f"is {earlier} in another letter case", "keep one of the two"))
    return found


def section_kind(cls: type[Any]) -> Kind:
    """A map with the settings of a dataclass."""
    return Kind(
        "a map of settings",
        lambda value, place: read_section(cls, value, place),
        spelled=lambda value: _spelled(cls, value),
    )


def _settings_of(cls: type[Any]) -> dict[str, Field[Any]]:
    """The settings of a section by their keys in lower case."""
    return {entry.metadata["key"].lower(): entry for entry in fields(cls)}


def _spelled(cls: type[Any], value: Any) -> Any:
    """The settings that a map of the YAML holds, their keys as the section spells them, and theirs likewise."""
    if not isinstance(value, Mapping):
        return value
    known = _settings_of(cls)
    pairs = ((known[str(key).lower()].metadata, item) for key, item in value.items() if str(key).lower() in known)
    return {metadata["key"]: metadata["kind"].spelled(item) for metadata, item in pairs}


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


def map_of(kind: Kind, name: str, keys: Kind | None = None) -> Kind:
    """A map, or a list of one-key maps, of one kind of value and, if named, of keys; an empty list empties it."""

    def read(value: Any, place: Place) -> dict[str, Any]:
        entries = _folded(value)
        if entries is None:
            place.refuse(f"{name}, or a list of one-key maps", value)
            return {}
        if keys is not None:
            for key in map(str, entries):
                keys.read(key, place.at(key))
        return {str(key): kind.read(item, place.at(str(key))) for key, item in entries.items()}

    def spelled(value: Any) -> Any:
        return {key: kind.spelled(item) for key, item in value.items()} if isinstance(value, Mapping) else value

    return Kind(name, read, spelled=spelled)


def text_map(keys: Kind | None = None, values: Kind | None = None) -> Kind:
    """A map of texts of which null is the empty one."""
    kind = values or TEXT
    return map_of(
        Kind(kind.name, lambda value, place: kind.read("" if value is None else value, place)), "a map of texts", keys
    )


def list_of(kind: Kind, name: str) -> Kind:
    """A list of one kind of value; a lone map stands for a list of one and null for an empty one, as in Flyte."""
    return _list(kind, name, lambda value: [value] if isinstance(value, Mapping) else () if value is None else value)


def texts_of(kind: Kind, name: str) -> Kind:
    """A list of one kind of text, or one text with commas."""
    return _list(kind, name, lambda value: _split(value) if isinstance(value, str) else value)


def _split(text: str) -> list[str]:
    return list(filter(None, map(str.strip, text.split(","))))


def _list(kind: Kind, name: str, items_of: Callable[[Any], Any]) -> Kind:
    """A list of one kind of value; `items_of` makes one of what may stand for a list."""

    def read(value: Any, place: Place) -> tuple[Any, ...]:
        items = items_of(value)
        if not isinstance(items, (list, tuple)):
            place.refuse(name, value)
            return ()
        return tuple(kind.read(item, place.at(i)) for i, item in enumerate(items))

    return Kind(name, read)


def text_kind(name: str, is_valid: Callable[[str], bool], wanted: str = "", remedy: str = "") -> Kind:
    """A text of some form: its name, whether a text has that form, its name in a problem, and what to write."""

    def read(value: Any, place: Place) -> Any:
        text = str(value).lower() if isinstance(value, bool) else str(value)  # as in YAML; Flyte makes "1" of true
        if not isinstance(value, (str, int, float)) or not is_valid(text):
            place.refuse(wanted or name, value, remedy)
        return text

    return Kind(name, read)


def whole_number(least: int = 0, most: int = INT32_MAX) -> Kind:
    """A whole number within bounds."""

    def read(value: Any, place: Place) -> Any:
        digits = isinstance(value, str) and is_whole_number(value.strip())
        number = int(value) if digits or isinstance(value, float) and value.is_integer() else value
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            place.refuse(f"a whole number from {least} to {most}", value)
        return number

    return Kind("a whole number", read)


def _read_bool(value: Any, place: Place) -> Any:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text not in ("true", "false"):
        place.refuse("true or false", value)
    return text == "true"


def _read_quantity(value: Any, place: Place) -> Any:
    if not is_quantity(value) or parse_quantity(value) < 0:
        place.refuse("a Kubernetes quantity", value, "write it as 500m, 2 or 1Gi")
    return str(value)


def _read_data(value: Any, place: Place) -> Any:
    if not isinstance(value, Mapping):
        place.refuse("a map", value)
        return {}
    return value


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
INTEGER = whole_number()
TEXT = text_kind("a text", lambda text: True)
TEXTS = texts_of(TEXT, "a list of texts")
QUANTITY = Kind("a quantity", _read_quantity)
TEXT_MAP = text_map()
DATA = Kind("a map", _read_data)
ANYTHING = Kind("anything", lambda value, place: value)
