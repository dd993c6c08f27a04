"""Tests of the places where each kind is watched."""

from __future__ import annotations

import pytest

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.model import kinds
from delaytopic_operator.model.kinds import Kind
from delaytopic_operator.runtime.watched import GROUPS, namespaces_for


@pytest.mark.parametrize(
    ("kind", "watched", "relays", "expected"),
    [
        (kinds.DELAY_TOPIC, [], ["relays"], [None]),
        (kinds.DELAY_TOPIC, ["shop", "bank"], ["relays"], ["bank", "shop"]),
        (kinds.DELAY_CLASS, ["shop"], [], [None]),
        (kinds.POD, [], [], ["operator"]),
        (kinds.CONFIG_MAP, ["shop", "bank"], ["relays", "operator"], ["operator", "relays"]),
        (kinds.DEPLOYMENT, ["shop"], None, [None]),
    ],
)
def test_delay_topics_are_looked_for_where_they_are_watched_and_objects_where_relays_may_run(
    kind: Kind, watched: list[str], relays: list[str] | None, expected: list[str | None]
) -> None:
    config = OperatorConfig(namespace="operator", watch_namespaces=watched, relay_namespaces=relays)

    assert namespaces_for(kind, config) == expected


def test_what_tenants_may_write_as_large_as_etcd_takes_comes_by_smaller_pages_than_what_the_operator_makes() -> None:
    assert {group.name: group.page_size for group in GROUPS} == {"declared": 10, "made": 100, "config maps": 10}
