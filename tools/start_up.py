"""Writes the picture and the table of docs/start-up.md, from what `make bench-cluster` left in docs/start-up.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parent.parent / "docs"
RECORD, PICTURE, PAGE = DOCS / "start-up.json", DOCS / "start-up.svg", DOCS / "start-up.md"

SIDES = GO, BY_HAND, OURS = "Flyte's RayJob", "kubectl create", "this connector"
"""The sides that a record names."""

FLYTE = {
    "created": 0.2,
    "head ready": 11.8,
    "worker ready": 30.2,
    "RUNNING": 37.4,
    "SUCCEEDED": 46.3,
    "Complete": 51.1,
    "answered SUCCEEDED": 52.4,
}
"""Flyte 1.16.8 with its Go plugin, measured once on the same node, from the launch's end to what flyteadmin says."""

_BEGIN, _END = "<!-- tables: begin, written by `make bench-cluster` -->\n", "<!-- tables: end -->\n"
_COLUMNS = {
    "created": "RayJob there",
    "head ready": "head ready",
    "worker ready": "worker ready",
    "RUNNING": "job RUNNING",
    "SUCCEEDED": "job SUCCEEDED",
    "Complete": "Complete",
    "answered SUCCEEDED": "answered",
}
_PARTS = (
    ("created", "RayJob is made", "#8c959f"),
    ("head ready", "head starts", "#54aeff"),
    ("worker ready", "worker starts", "#0969da"),
    ("RUNNING", "job is handed over", "#bf8700"),
    ("SUCCEEDED", "job runs", "#1a7f37"),
    ("end", "end is seen", "#cf222e"),
)
"""What ends each part of a bar, what happens in it, and its colour."""

_LEFT, _WIDTH, _ROW, _TOP = 260, 940, 34, 64
_EVERY = 10


class Row(NamedTuple):
    """One line of table and picture: seconds to each stage; without Complete, of a RayJob that never ends."""

    name: str
    seconds: Mapping[str, float]
    cold_end: float | None = None
    note: str = ""


def rows_of(record: Mapping[str, Any]) -> list[Row]:
    """Flyte's, then those of the record, by side and submission mode."""
    series = sorted(record["series"], key=lambda each: SIDES.index(each["side"]))
    found = [
        Row(f"{each['side']}, {each['mode']}", each["warm"], _end(each["cold"]), _unended(each)) for each in series
    ]
    return [Row("Flyte 1.16.8, K8sJobMode", FLYTE), *found]


def table(rows: Sequence[Row]) -> str:
    """A Markdown table of the rows."""
    head = ("", *_COLUMNS.values(), "cold")
    lines = [head, ("---",) * len(head)]
    for row in rows:
        lines.append(
            (row.name + row.note, *(_shown(row.seconds.get(stage)) for stage in _COLUMNS), _shown(row.cold_end))
        )
    return _markdown(lines)


def savings(record: Mapping[str, Any]) -> str:
    """A Markdown table of the seconds that each measure saves, by submission mode."""
    warm = {(each["side"], each["mode"]): each["warm"] for each in record["series"]}
    pairs = {mode: (warm[side, mode], warm[BY_HAND, mode]) for side, mode in warm if side == OURS}
    first = _end(next(iter(pairs.values()))[0])
    lines = [
        ("seconds saved", *pairs),
        ("---",) * (len(pairs) + 1),
        (
            "by quick probes, until the job has SUCCEEDED",
            *(_saved(by_hand.get("SUCCEEDED"), ours.get("SUCCEEDED")) for ours, by_hand in pairs.values()),
        ),
        (
            "by an answer before Complete",
            *(_saved(ours.get("Complete"), _end(ours)) for ours, _ in pairs.values()),
        ),
        ("by the mode, until the answer", *(_saved(first, _end(ours)) for ours, _ in pairs.values())),
    ]
    return _markdown(lines)


def picture(rows: Sequence[Row]) -> str:
    """The rows as bars, in SVG with a background of its own, so that it reads on light and dark pages."""
    last = max(max(row.seconds.values()) for row in rows)
    scale = (_WIDTH - _LEFT - 60) / last
    height = _TOP + _ROW * len(rows) + 34
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        "<title>Seconds from the create of a task to its end, by stage</title>",
        f'<rect width="{_WIDTH}" height="{height}" rx="6" fill="#ffffff" stroke="#d0d7de"/>',
        *_legend(),
        *_axis(int(last), scale, height),
    ]
    for index, row in enumerate(rows):
        lines += _bar(row, _TOP + _ROW * index, scale)
    return "\n".join([*lines, "</svg>", ""])


def with_tables(document: str, record: Mapping[str, Any]) -> str:
    """The document with fresh tables between its two marks.

    Raises:
        ValueError: A mark is missing.
    """
    if _BEGIN not in document or _END not in document:
        raise ValueError(f"the document must hold the lines {_BEGIN.strip()} and {_END.strip()}")
    before, rest = document.split(_BEGIN)
    return f"{before}{_BEGIN}\n{table(rows_of(record))}\n{savings(record)}\n{_END}{rest.split(_END)[1]}"


def write(record: Mapping[str, Any]) -> None:
    """Brings picture and page up to date."""
    PICTURE.write_text(picture(rows_of(record)), encoding="utf-8")
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _shown(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f}"


def _saved(later: float | None, earlier: float | None) -> str:
    return "" if later is None or earlier is None else f"{later - earlier:.1f}"


def _unended(series: Mapping[str, Any]) -> str:
    runs, ended = series["runs"], series["ended"]
    return "" if ended == runs else f" ({runs - ended} of {runs} never ended)"


def _end(seconds: Mapping[str, float]) -> float | None:
    """When whoever waits for the task knows: its answer, or of a bare RayJob its Complete."""
    return seconds.get("answered SUCCEEDED", seconds.get("Complete"))


def _legend() -> Iterator[str]:
    step = (_WIDTH - 32) // len(_PARTS)
    for index, (_, name, colour) in enumerate(_PARTS):
        left = 20 + step * index
        yield f'<rect x="{left}" y="18" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{left + 18}" y="29" fill="#1f2328">{name}</text>'


def _axis(last: int, scale: float, height: int) -> Iterator[str]:
    for second in range(0, last + 1, _EVERY):
        x = _LEFT + second * scale
        yield f'<line x1="{x:.0f}" y1="{_TOP - 10}" x2="{x:.0f}" y2="{height - 30}" stroke="#d0d7de"/>'
        yield f'<text x="{x:.0f}" y="{height - 12}" text-anchor="middle" fill="#59636e">{second} s</text>'


def _bar(row: Row, top: float, scale: float) -> Iterator[str]:
    """A row's name, its parts, and the second of its end."""
    yield f'<text x="{_LEFT - 12}" y="{top + 16}" text-anchor="end" fill="#1f2328">{row.name}</text>'
    begin, told = 0.0, _end(row.seconds)
    for stage, name, colour in _PARTS:
        end = max(begin, (told if stage == "end" else row.seconds.get(stage)) or begin)
        yield (
            f'<rect x="{_LEFT + begin * scale:.1f}" y="{top}" width="{(end - begin) * scale:.1f}" height="22"'
            f' fill="{colour}"><title>{name}: {end - begin:.1f} s</title></rect>'
        )
        begin = end
    yield f'<text x="{_LEFT + begin * scale + 6:.1f}" y="{top + 16}" fill="#1f2328">{_shown(told)}{row.note}</text>'


if __name__ == "__main__":
    write(json.loads(RECORD.read_text(encoding="utf-8")))
