"""Prints, for each golden case, how what we build of it differs from what Flyte's Go code built, and by which rows.

    python -m tools.golden_report

A case's rows (`differs`) hold for what it expects, so they are printed only where we build exactly that; anything else
is listed place by place, and makes the exit status 1.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from flytekitplugins.kuberay.errors import TaskError
from flytekitplugins.kuberay.wire import Manifest
from tests.golden.case import FILES, Case, read_case
from tests.golden.compare import canonical, differences, places


def built(case: Case) -> Manifest:
    """What we make of a case, in the comparison's form."""
    try:
        return case.build()
    except TaskError as error:
        return {"error": str(error)}


def against_go(case: Case, ours: Manifest) -> str:
    """One phrase on how ours and Go's answer differ."""
    go = case.raw["go"]
    rows = " ".join(case.raw["differs"]) or "refusal rules (D13, D21)"
    if "error" in ours:
        return "refused by both" if "error" in go else f"refused, Go builds it: {rows}"
    if "error" in go:
        return f"built, Go refuses it: {rows}"
    count = len(places(canonical(go["rayjob"]), canonical(ours)))
    return f"differs in {count} places by {rows}" if count else "equal"


def lines(case: Case) -> Iterator[tuple[bool, str]]:
    """The report on one case, each line with whether it is as it should be."""
    ours = built(case)
    wrong = differences(case.raw["expected"], ours)
    if not wrong:
        yield True, f"{case.name}: {against_go(case, ours)}"
    for line in wrong:
        yield False, f"{case.name}: NOT AS EXPECTED: {line}"


def main() -> int:
    """Prints the report; 1 when a case is not as expected."""
    report = [line for path in FILES for line in lines(read_case(path))]
    print("\n".join(text for _, text in report))
    print(f"{len(FILES)} cases, {sum(not right for right, _ in report)} lines not as expected")
    return 0 if all(right for right, _ in report) else 1


if __name__ == "__main__":
    sys.exit(main())
