"""Writes tests/golden/processed/: the golden cases with a K8sPod target as a propeller since 1.16.7 sends them.

    python tools/processed_cases.py ORACLE

ORACLE is a program that runs Flyte's own Go code: `ORACLE connector` reads a case from its standard input and prints
what propeller's connector plugin makes of it, the task template after ToK8sPodSpec. A case that Flyte refuses gives no
file; nor does one that is such a template already (`connector-wire-*`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent.parent / "tests/golden"


def oracle_case(case: dict[str, Any]) -> dict[str, Any]:
    """A golden case in the oracle's form: what our own settings say stands in metadata there."""
    plugins = dict(case["settings"].get("plugins") or {})
    own = plugins.pop("kuberay", {})
    interruptible = case["execution"].get("labels", {}).get("interruptible") == "true"
    execution = {**case["execution"], "generated_name": "f1-n0-0", "interruptible": interruptible}
    if platform := own.get("platform-resources"):
        execution["platform_resources"] = platform
    changed = {
        "settings": {**case["settings"], "plugins": plugins},
        "task_template": case["task_template"],
        "default_pod_templates": case["pod_templates"],
        "default_pod_template_namespace": own.get("platform-namespace"),
        "output_prefix": case["output_prefix"],
        "inputs": case.get("inputs"),
        "task_execution_metadata": execution,
    }
    return {key: value for key, value in changed.items() if value is not None}


def processed(oracle: str, case: dict[str, Any]) -> dict[str, Any] | None:
    """The task template that propeller sends; None where Flyte refuses the case.

    Raises:
        ValueError: The oracle can't read the case.
    """
    text = json.dumps(oracle_case(case), ensure_ascii=False)  # its YAML reader takes no pairs of surrogates
    run = subprocess.run([oracle, "connector"], input=text, capture_output=True, encoding="utf-8")
    answer: dict[str, Any] = json.loads(run.stdout)
    if (answer.get("error") or {}).get("code") == "OracleInput":
        raise ValueError(answer["error"]["message"])
    return answer.get("template")


def main(oracle: str) -> None:
    """Writes a file for each case, named as the case."""
    for path in sorted(GOLDEN.glob("*/*.json")):
        case = json.loads(path.read_text("utf-8"))
        if path.stem.startswith("connector-wire-") or "k8s_pod" not in case.get("task_template", {}):
            continue
        if template := processed(oracle, case):
            text = json.dumps(template, indent=1, sort_keys=True, ensure_ascii=False)
            (GOLDEN / "processed" / path.name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
