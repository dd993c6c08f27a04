"""The reference of the kinds has what the models, the operator and its conditions have."""

from __future__ import annotations

import pytest
from tests.support.paths import ROOT

from delaytopic_api.crd import KINDS, custom_resource_definition
from delaytopic_api.crd.explain import explained_in, with_answers
from delaytopic_api.crd.fields import fields_table, with_tables
from delaytopic_api.crd.kinds import Kind
from delaytopic_api.documents import ConditionType

REFERENCE = ROOT / "docs" / "reference"


@pytest.mark.parametrize("page", ["delaytopic-fields.md", "delayclass.md", "recurringrecord.md"])
def test_its_tables_are_those_of_the_models(page: str) -> None:
    text = (REFERENCE / page).read_text(encoding="utf-8")

    assert text == with_tables(text), "run: make generate"
    assert text.count("<!-- fields of ") == 2


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_its_answers_of_kubectl_are_those_of_the_models(kind: Kind) -> None:
    page = (REFERENCE / f"explain-{kind.singular}.md").read_text(encoding="utf-8")
    [version] = custom_resource_definition(kind)["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    objects = {f"{kind.singular}.spec.{name}" for name, field in spec.items() if "properties" in field}

    assert page == with_answers(page), "run: make generate"
    assert {f"{kind.singular}.spec", f"{kind.singular}.status", *objects} <= {*explained_in(page)}


@pytest.mark.parametrize("type", list(ConditionType))
def test_it_tells_what_each_condition_says(type: ConditionType) -> None:
    pages = ("conditions.md", "delayclass.md")

    assert any(f"| `{type}` |" in (REFERENCE / page).read_text(encoding="utf-8") for page in pages)


def test_a_field_has_its_type_and_its_meaning() -> None:
    rows = dict(row.removeprefix("| ").split(" | ", 1) for row in fields_table("DelayTopic", "spec").splitlines())

    assert rows["`suspend`"] == (
        "`None`, `Delivery`, `Ingest`, `All` | Delivery: take records in, hold what is due. Ingest: deliver, take "
        "nothing in. All: both stand still. Default: None. |"
    )
    assert rows["`source.topic`"] == (
        "string, required | The topic's name, such as `shop.reminders`; it cannot be changed later. |"
    )
