"""`python -m delaytopic_api.crd.fields FILE...`: the tables of fields in Markdown pages, from the models.

A table stands between `<!-- fields of DelayTopic.spec -->` and `<!-- end of fields -->`; what is between is replaced.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from delaytopic_api.crd.definition import custom_resource_definition
from delaytopic_api.crd.kinds import KINDS

_PLACE: Final = re.compile(r"(<!-- fields of (\w+)\.(\w+) -->\n).*?(<!-- end of fields -->)", re.DOTALL)
_HEAD: Final = "| field | type | meaning |\n| --- | --- | --- |\n"

Schema = Mapping[str, Any]


def with_tables(page: str) -> str:
    """The page with its tables as the models have them."""
    return _PLACE.sub(lambda found: f"{found[1]}{fields_table(found[2], found[3])}{found[4]}", page)


def fields_table(kind: str, part: str) -> str:
    """All fields below `spec` or `status` of a kind, in the order of the models."""
    known = next(each for each in KINDS if each.name == kind)
    version = next(each for each in custom_resource_definition(known)["spec"]["versions"] if each["storage"])
    schema = version["schema"]["openAPIV3Schema"]["properties"][part]
    return _HEAD + "".join(_rows(schema, ""))


def _rows(schema: Schema, above: str) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        path = f"{above}{name}"
        needed = ", required" if name in required else ""
        yield f"| `{path}` | {_type(field)}{needed} | {_meaning(field)} |\n"
        items = field.get("items", {})
        yield from _rows(items if items.get("properties") else field, f"{path}[]." if items else f"{path}.")


def _type(field: Schema) -> str:
    if "enum" in field:
        return ", ".join(f"`{choice}`" for choice in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), Mapping):
        return f"map of {_type(field['additionalProperties'])}"
    return str(field.get("type", "any")) if not field.get("x-kubernetes-int-or-string") else "integer or string"


def _meaning(field: Schema) -> str:
    return str(field.get("description", "")).replace("\n", " ").replace("|", "\\|")


def main(paths: Iterable[Path]) -> None:
    """Bring pages up to date."""
    for path in paths:
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(map(Path, sys.argv[1:]))
