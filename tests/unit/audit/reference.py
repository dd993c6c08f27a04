"""`python -m tests.unit.audit.reference`: the tables of docs/reference/audit-report-fields.md, from the models."""

from __future__ import annotations

import inspect
from typing import Any

from delaytopic_api.documents.descriptions import described
from delaytopic_audit.model import manifest
from delaytopic_audit.model import report as report_model
from delaytopic_audit.model.report import Report


def tables() -> str:
    """One for each model, in the order of use."""
    schema = described(Report).model_json_schema(by_alias=True)
    models: dict[str, Any] = {"Report": schema, **schema["$defs"]}
    parts = []
    for name, model in models.items():
        if "properties" not in model:
            continue
        rows = [f"| `{field}` | {_type(each)} | {_text(each)} |" for field, each in model["properties"].items()]
        parts.append(
            "\n".join([f"### {name}", "", _about(name), "", "| field | type | |", "| --- | --- | --- |", *rows])
        )
    return "\n\n".join(parts) + "\n"


def _about(name: str) -> str:
    model = getattr(report_model, name, None) or getattr(manifest, name)
    return " ".join((inspect.getdoc(model) or "").split())


def _text(each: dict[str, Any]) -> str:
    return " ".join(str(each.get("description", "")).split())


def _type(each: dict[str, Any]) -> str:
    if "$ref" in each:
        return str(each["$ref"]).rpartition("/")[2]
    if "anyOf" in each:
        return " or ".join(_type(part) for part in each["anyOf"])
    if each.get("type") == "array":
        return f"list of {_type(each['items'])}"
    return str(each.get("const", each.get("type", "")))


if __name__ == "__main__":
    print(tables(), end="")
