"""The base of every document's model: camelCase outside, snake_case inside, nothing unknown, nothing changed later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from delaytopic_api.errors import BrokenRules, Problem


class Model(BaseModel):
    """An immutable part of a document. The text under each attribute is its description for users, by `described`."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
    )

    def to_document(self) -> dict[str, Any]:
        """Return the document as JSON or YAML holds it: camelCase, plain types, no absent fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def require(*rules: tuple[bool, str, str]) -> None:
    """Check rules across fields, each a (kept, path, message); raises `BrokenRules` with all that are not kept."""
    broken = [Problem(path, message) for kept, path, message in rules if not kept]
    if broken:
        raise BrokenRules(broken)


def exactly_one(**values: object) -> bool:
    """Return whether exactly one of the values is given."""
    return _given(values.values()) == 1


def at_most_one(**values: object) -> bool:
    """Return whether at most one of the values is given."""
    return _given(values.values()) <= 1


def both_or_none(one: object, other: object) -> bool:
    """Return whether both values are given, or neither."""
    return (one is None) == (other is None)


def _given(values: Iterable[object]) -> int:
    return sum(value is not None for value in values)
