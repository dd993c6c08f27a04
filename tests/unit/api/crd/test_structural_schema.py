"""From models to the schemas that the API server understands."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import AwareDatetime, Field

from delaytopic_api.crd.schema import structural_schema
from delaytopic_api.documents import KubernetesObject, Model
from delaytopic_api.values import Checked, Quantity, Rule


def positive(number: int) -> int:
    return number


class Part(Model):
    """A part."""

    size: Quantity
    """The size."""


class Whole(Model):
    """A whole."""

    kind: Literal["Whole"]
    """Its kind."""
    part: Part | None = None
    """Its own
    description."""
    parts: Annotated[list[Part], Field(max_length=3, default_factory=list)]
    """Several."""
    count: Annotated[int, Checked(positive, Rule("self > 0", "must be more"), minimum=0)] = 7
    """The number."""
    since: AwareDatetime | None = None
    """A time."""
    anything: Annotated[KubernetesObject, Field(default_factory=dict)]
    """Whatever."""


SIZE = {
    "description": "The size.",
    **Quantity.schema,
}
FIELDS = {
    "kind": {"description": "Its kind.", "type": "string", "enum": ["Whole"]},
    "part": {
        "description": "Its own description.",
        "type": "object",
        "required": ["size"],
        "properties": {"size": SIZE},
    },
    "parts": {
        "description": "Several.",
        "type": "array",
        "maxItems": 3,
        "items": {
            "description": "A part.",
            "type": "object",
            "required": ["size"],
            "properties": {"size": SIZE},
        },
    },
    "count": {
        "description": "The number. Default: 7.",
        "type": "integer",
        "format": "int64",
        "minimum": 0,
        "x-kubernetes-validations": [{"rule": "self > 0", "message": "must be more"}],
    },
    "since": {"description": "A time.", "type": "string", "format": "date-time"},
    "anything": {"description": "Whatever.", "type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_becomes_what_the_api_server_understands(field: str) -> None:
    assert structural_schema(Whole)["properties"][field] == FIELDS[field]


def test_an_object_says_what_it_needs() -> None:
    whole = structural_schema(Whole)

    assert {name: whole[name] for name in ("description", "type", "required")} == {
        "description": "A whole.",
        "type": "object",
        "required": ["kind"],
    }


def test_a_rule_names_the_field_that_has_to_change() -> None:
    assert Rule("self.a != self.b", "must differ from a", "b").document() == {
        "rule": "self.a != self.b",
        "message": "must differ from a",
        "fieldPath": ".b",
    }
    assert Rule("self", "'is ' + self", is_expression=True).document() == {
        "rule": "self",
        "messageExpression": "'is ' + self",
    }
