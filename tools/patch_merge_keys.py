"""Writes tests/pod/patch_merge_keys.json: how Kubernetes merges the lists of a pod spec, as its Go types say.

    python tools/patch_merge_keys.py k8s.io/api/core/v1/types.go

For each list of PodSpec and of the types that it reaches: the key of a strategic merge patch (`patchMergeKey`), the
keys of a server-side apply (`listMapKey`), and the list's type, `atomic` without a word. A field's tag and its comment
hold these facts.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "tests/pod/patch_merge_keys.json"
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"((?:^\t(?://.*)?\n)*)^\t(?:\w+ )?([\w.*\[\]]+) +`json:\"(\w*)[^\"]*\"([^`]*)`", re.MULTILINE)


def fields_of(body: str) -> list[tuple[str, str, str]]:
    """Each field of a Go struct: JSON name ("" for an embedded struct), Go type, comment with tag."""
    return [(name, kind, f"{comment}\n{tag}") for comment, kind, name, tag in _FIELD.findall(re.sub(" +", " ", body))]


def facts_of(text: str) -> dict[str, Any]:
    """What a field's comment and tag say of its merge."""
    key = re.search(r'patchMergeKey[:=]"?(\w+)', text)
    kind = re.search(r"\+listType=(\w+)", text)
    return {
        "listType": kind.group(1) if kind else "atomic",
        "patchMergeKey": key.group(1) if key else None,
        "listMapKeys": re.findall(r"\+listMapKey=(\w+)", text),
    }


def main(source: str) -> None:
    """Walks from PodSpec to every type that it reaches."""
    structs = dict(_STRUCT.findall(Path(source).read_text("utf-8")))
    lists: dict[str, dict[str, Any]] = {}
    seen, waiting = set(), ["PodSpec"]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in structs:
            continue
        seen.add(name)
        for field, kind, text in fields_of(structs[name]):
            waiting.append(re.sub(r"^.*[\]*]", "", kind))
            if kind.startswith("[]") and kind != "[]byte":
                lists[f"{name}.{field}"] = {"type": kind[2:], **facts_of(text)}
    TARGET.write_text(json.dumps(lists, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
