"""`python -m delaytopic_api.crd.explain FILE...`: the answers of `kubectl explain` in Markdown pages, from the models.

An answer stands between `<!-- kubectl explain delaytopic.spec -->` and `<!-- end of explain -->`; what is between is
replaced. A test on an API server compares each with what kubectl says.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from delaytopic_api.crd.definition import custom_resource_definition
from delaytopic_api.crd.kinds import KINDS
from delaytopic_api.documents.metadata import API_VERSION, GROUP

_PLACE: Final = re.compile(r"(<!-- kubectl explain ([a-zA-Z.]+) -->\n).*?(<!-- end of explain -->)", re.DOTALL)
_WIDTH: Final = 76
_INDENT: Final = "    "
_CHOICES_SHOWN: Final = 4

Schema = Mapping[str, Any]


def with_answers(page: str) -> str:
    """Return the page with its answers as the models have them."""
    return _PLACE.sub(lambda found: f"{found[1]}```text\n{explained(found[2]).rstrip()}\n```\n{found[3]}", page)


def explained_in(page: str) -> list[str]:
    """Return the paths whose answers a page has."""
    return [found[2] for found in _PLACE.finditer(page)]


def explained(path: str) -> str:
    """Return what `kubectl explain` says of a path of objects below spec or status, such as `delaytopic.spec.slo`."""
    singular, *names = path.split(".")
    kind = next(each for each in KINDS if each.singular == singular)
    versions = custom_resource_definition(kind)["spec"]["versions"]
    field: Schema = next(each["schema"]["openAPIV3Schema"] for each in versions if each["storage"])
    for name in names:
        field = field.get("items", field)["properties"][name]
    lines = [
        f"GROUP:      {GROUP}",
        f"KIND:       {kind.name}",
        f"VERSION:    {API_VERSION.rpartition('/')[2]}",
        "",
        f"FIELD: {names[-1]} <{_type(field)}>",
        "",
        "",
        "DESCRIPTION:",
        *_description(field),
        *_description(field.get("items", {})),
        _INDENT,
        "FIELDS:",
        *_fields(field.get("items", field)),
        "",
    ]
    return "\n".join([*lines, ""])


def _fields(schema: Schema) -> Iterator[str]:
    """Yield the lines of an object's fields, sorted by name as kubectl sorts them."""
    required = schema.get("required", ())
    for name, field in sorted(schema["properties"].items()):
        yield f"  {name}\t<{_type(field)}>{' -required-' if name in required else ''}"
        if "enum" in field:
            choices = [*field["enum"][:_CHOICES_SHOWN], *(["...."] if len(field["enum"]) > _CHOICES_SHOWN else [])]
            yield f"  enum: {', '.join(choices)}"
        yield from _description(field)
        yield ""


def _description(field: Schema) -> list[str]:
    text = field.get("description", "")
    wrapped = textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"{_INDENT}{line}" for line in wrapped]


def _type(field: Schema) -> str:
    if field.get("type") == "array":
        return f"[]{_type(field['items'])}"
    if "additionalProperties" in field:
        return f"map[string]{_type(field['additionalProperties'])}"
    return str(field.get("type", "Object")).replace("object", "Object")


def main(paths: Iterable[Path]) -> None:
    """Bring pages up to date."""
    for path in paths:
        path.write_text(with_answers(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(map(Path, sys.argv[1:]))
