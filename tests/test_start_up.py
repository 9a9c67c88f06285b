"""What tools/start_up.py makes of measured seconds."""

import json
import re
from xml.etree import ElementTree

import pytest

from tools.start_up import PAGE, PICTURE, RECORD, Row, picture, rows_of, savings, table, with_tables

STAGES = {"created": 0.5, "head ready": 6.0, "worker ready": 9.0, "RUNNING": 11.0, "SUCCEEDED": 20.0, "Complete": 25.0}
BY_HAND = Row("kubectl create, HTTPMode", STAGES, cold_end=30.0)
OURS = Row("this connector, HTTPMode", {**STAGES, "answered SUCCEEDED": 20.5})


def bars(svg: str) -> list[list[float]]:
    """The widths of the parts of each row's bar."""
    rows: dict[str, list[float]] = {}
    for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect"):
        if each.find("{http://www.w3.org/2000/svg}title") is not None:
            rows.setdefault(each.attrib["y"], []).append(float(each.attrib["width"]))
    return list(rows.values())


def test_the_documentation_is_up_to_date() -> None:
    """Picture and table are those of the record; `make bench-cluster` writes all three."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert PICTURE.read_text(encoding="utf-8") == picture(rows_of(record))
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tables(page, record)


def test_a_bar_has_a_part_for_each_stage() -> None:
    """As long as the stage took; the last one ends with the answer, or without one with Complete."""
    by_hand, ours = bars(picture([BY_HAND, OURS]))
    second = by_hand[0] / 0.5
    assert [round(width / second, 1) for width in by_hand] == [0.5, 5.5, 3.0, 2.0, 9.0, 5.0]
    assert [round(width / second, 1) for width in ours] == [0.5, 5.5, 3.0, 2.0, 9.0, 0.5]


@pytest.mark.parametrize("missing", ["head ready", "RUNNING"])
def test_a_stage_that_nobody_saw_takes_no_time(missing: str) -> None:
    """A status is asked for every 3 s: a job may be over before it is seen running."""
    seconds = {stage: second for stage, second in STAGES.items() if stage != missing}
    (bar,), (whole,) = bars(picture([Row("a", seconds)])), bars(picture([Row("a", STAGES)]))
    assert 0.0 in bar
    assert sum(bar) == pytest.approx(sum(whole), abs=0.5)


def test_a_table_has_a_line_for_each_row() -> None:
    """With nothing where a stage does not come."""
    lines = table([BY_HAND, OURS]).splitlines()[2:]
    assert [re.split(r" *\| *", line)[1:-1] for line in lines] == [
        ["kubectl create, HTTPMode", "0.5", "6.0", "9.0", "11.0", "20.0", "25.0", "", "30.0"],
        ["this connector, HTTPMode", "0.5", "6.0", "9.0", "11.0", "20.0", "25.0", "20.5", ""],
    ]


def test_what_each_measure_saves() -> None:
    """The probes beside the same RayJob by hand, the answer beside Complete, a mode beside the first one."""
    quick = {**STAGES, "SUCCEEDED": 16.0, "Complete": 21.0, "answered SUCCEEDED": 16.5}
    quicker = {**STAGES, "SUCCEEDED": 12.0, "Complete": 12.0, "answered SUCCEEDED": 12.5}
    runs = {("this connector", "A"): quick, ("this connector", "B"): quicker}
    runs |= {("kubectl create", mode): STAGES for mode in "AB"}
    series = [{"side": side, "mode": mode, "warm": seconds} for (side, mode), seconds in runs.items()]
    assert savings({"series": series}).splitlines() == [
        "| seconds saved | A | B |",
        "| --- | --- | --- |",
        "| by quick probes, until the job has SUCCEEDED | 4.0 | 8.0 |",
        "| by an answer before Complete | 4.5 | -0.5 |",
        "| by the mode, until the answer | 0.0 | 4.0 |",
    ]


def test_a_page_needs_its_marks() -> None:
    """A document without the marks is refused, not overwritten."""
    with pytest.raises(ValueError, match="must hold the lines"):
        with_tables("# How long\n", {"series": []})
