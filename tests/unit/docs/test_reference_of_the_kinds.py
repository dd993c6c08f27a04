"""The reference of the kinds has what the models, the operator and its conditions have."""

from __future__ import annotations

import pytest
from tests.support.paths import ROOT

from delaytopic_api.crd.fields import fields_table, with_tables
from delaytopic_api.documents import ConditionType

PAGE = ROOT / "docs" / "reference" / "delaytopic.md"


def test_its_tables_are_those_of_the_models() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == with_tables(page), "run: python -m delaytopic_api.crd.fields docs/reference/delaytopic.md"
    assert page.count("<!-- fields of ") == 4


@pytest.mark.parametrize("type", list(ConditionType))
def test_it_tells_what_each_condition_says(type: ConditionType) -> None:
    assert f"| `{type}` |" in PAGE.read_text(encoding="utf-8")


def test_a_field_has_its_type_and_its_meaning() -> None:
    rows = dict(row.removeprefix("| ").split(" | ", 1) for row in fields_table("DelayTopic", "spec").splitlines())

    assert rows["`suspend`"] == (
        "`None`, `Delivery`, `Ingest`, `All` | Delivery: take records in, hold what is due. Ingest: deliver, take "
        "nothing in. All: both stand still. Default: None. |"
    )
    assert rows["`source.topic`"] == "string, required | The topic's name; it cannot be changed later. |"
