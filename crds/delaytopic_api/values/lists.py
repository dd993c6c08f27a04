"""Kinds of lists, as server-side apply merges them: whole, by the items themselves, or by fields that identify an item.

The API server refuses an item that is there twice in a set or a map, and so do the models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field
from pydantic.alias_generators import to_snake

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.cluster_rules import Checked

LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"

ATOMIC: Final = Field(json_schema_extra={LIST_TYPE: "atomic"})
"""A list that has one owner: whoever applies it replaces all of it."""


def _check_each_once(items: list[Any]) -> list[Any]:
    for place, item in enumerate(items):
        if item in items[:place]:
            raise InvalidText(f"{item} is there twice")
    return items


AS_SET: Final = Checked(_check_each_once, **{LIST_TYPE: "set"})
"""A list of scalars that are told apart by themselves: several managers may own some of them."""


def as_map(*keys: str) -> Checked:
    """A list of objects that are told apart by these fields: several managers may own some of them."""

    def check(items: list[Any]) -> list[Any]:
        seen: list[Sequence[Any]] = []
        for item in items:
            identity = [getattr(item, _ATTRIBUTES.get(key, to_snake(key))) for key in keys]
            if identity in seen:
                named = " and ".join(f"{key} {value}" for key, value in zip(keys, identity, strict=True))
                raise InvalidText(f"{named} is there twice")
            seen.append(identity)
        return items

    return Checked(check, **{LIST_TYPE: "map", LIST_KEYS: list(keys)})


_ATTRIBUTES: Final = {"from": "start"}
"""Fields whose names Python does not take."""
