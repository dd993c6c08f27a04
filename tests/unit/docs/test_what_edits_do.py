"""Tests of the table of what an edit does to what waits: it has every field of the API, each once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, get_args

import pytest
from pydantic import BaseModel
from tests.support.paths import ROOT

from delaytopic_api.documents import DelayClassSpec, DelayTopicSpec, RecurringRecordSpec
from delaytopic_api.relay import RelayConfig

PAGE = ROOT / "docs/explanation/exactness.md"
MODELS: dict[str, type[BaseModel]] = {
    "DelayTopic": DelayTopicSpec,
    "DelayClass": DelayClassSpec,
    "RecurringRecord": RecurringRecordSpec,
    "RelayConfig": RelayConfig,
}


class Row(NamedTuple):
    """A line of the table: globs of fields of one document, and what a change does."""

    document: str
    globs: tuple[str, ...]
    effect: str


def rows() -> list[Row]:
    table = re.search(r"<!-- edits: begin -->\n(.*?)<!-- edits: end -->", PAGE.read_text(), re.DOTALL)
    assert table is not None
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()[2:]]
    return [Row(document, tuple(re.findall("`([^`]+)`", fields)), effect) for document, fields, effect in lines]


def leaves(model: type[BaseModel], path: str = "") -> Iterator[str]:
    """Yield every field that holds a value, or that is one by being there, by the names that documents have."""
    for name, field in model.model_fields.items():
        place = f"{path}{field.alias or name}"
        inner = [each for each in types_in(field.annotation) if isinstance(each, type) and issubclass(each, BaseModel)]
        if any(each.model_fields for each in inner):
            for each in inner:
                yield from leaves(each, f"{place}.")
        else:
            yield place


def types_in(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from types_in(part)


@pytest.mark.parametrize("document", MODELS)
def test_every_field_is_listed_once(document: str) -> None:
    found = {
        field: [glob for row in rows() if row.document == document for glob in row.globs if fnmatchcase(field, glob)]
        for field in leaves(MODELS[document])
    }

    assert {field: globs for field, globs in found.items() if len(globs) != 1} == {}, f"see the table in {PAGE.name}"


@pytest.mark.parametrize("document", MODELS)
def test_no_line_is_about_nothing(document: str) -> None:
    fields = [*leaves(MODELS[document])]
    globs = [glob for row in rows() if row.document == document for glob in row.globs]

    assert [glob for glob in globs if not any(fnmatchcase(field, glob) for field in fields)] == []


def test_every_line_is_about_one_of_the_documents_and_says_something() -> None:
    assert {row.document for row in rows()} == MODELS.keys()
    assert [row for row in rows() if not row.globs or not row.effect] == []
