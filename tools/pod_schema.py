"""Writes flytekitplugins/kuberay/schema.json: the fields of a pod template and their types, by `kubernetes`.

    python tools/pod_schema.py     # with the newest kubernetes client installed

The file holds facts of the Kubernetes API, so that the pure side of the package needs no client to read a pod spec.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from kubernetes import client

TARGET = Path(__file__).parent.parent / "flytekitplugins/kuberay/schema.json"
QUANTITY_MAPS = {"limits", "requests", "overhead"}
QUANTITIES = {"sizeLimit", "divisor", "storage"}


def type_name(text: str) -> str:
    """A type in the file's short form: `[]V1Container`, `{}string`, `string`, `integer`, `any`."""
    if found := re.fullmatch(r"[Ll]ist\[(.+)\]", text):
        return "[]" + type_name(found.group(1))
    if found := re.fullmatch(r"[Dd]ict[\[(]str, (.+)[\])]", text):
        return "{}" + type_name(found.group(1))
    plain = {"str": "string", "int": "integer", "bool": "boolean", "object": "any", "datetime": "string"}
    return plain.get(text, text)


def fields_of(name: str) -> dict[str, str]:
    """The JSON field names of one Kubernetes type, each with its type."""
    model = getattr(client, name)
    types = {model.attribute_map[key]: type_name(value) for key, value in model.openapi_types.items()}
    types |= {key: "{}quantity" for key in types.keys() & QUANTITY_MAPS}
    return types | {key: "quantity" for key in types.keys() & QUANTITIES}


def main() -> None:
    """Walks from a pod template to every type that it reaches."""
    schema: dict[str, dict[str, str]] = {}
    waiting = ["V1PodTemplateSpec"]
    while waiting:
        name = waiting.pop()
        if name in schema:
            continue
        schema[name] = fields_of(name)
        waiting += [t for t in (re.sub(r"^(\[\]|\{\})+", "", v) for v in schema[name].values()) if t[0].isupper()]
    TARGET.write_text(json.dumps(schema, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
