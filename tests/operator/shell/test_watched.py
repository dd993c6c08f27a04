"""Where is looked for what."""

from __future__ import annotations

import pytest

from delaytopic_operator import kinds
from delaytopic_operator.kinds import Kind
from delaytopic_operator.watched import namespaces_for


@pytest.mark.parametrize(
    ("kind", "watched", "expected"),
    [
        (kinds.DELAY_TOPIC, [], [None]),
        (kinds.POD, [], [None]),
        (kinds.DELAY_CLASS, ["shop"], [None]),
        (kinds.DELAY_TOPIC, ["shop", "bank"], ["bank", "shop"]),
        (kinds.POD, ["shop", "bank"], ["bank", "operator", "relays", "shop"]),
    ],
)
def test_only_the_namespaces_that_matter_are_looked_at(kind: Kind, watched: list[str], expected: list[str]) -> None:
    assert namespaces_for(kind, watched, "operator", ["relays"]) == expected
