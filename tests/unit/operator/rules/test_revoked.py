"""A right is gone when the class of relays no longer allows what they do, whatever their DelayTopic asks for now."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.scenes import delay_class, record

from delaytopic_api.documents import Ownership
from delaytopic_api.errors import Problem
from delaytopic_operator.model.record import Role, RouteRecord, TopicRecord
from delaytopic_operator.rules.revoked import Revoked, revoked

TEAM = {"team": "shop"}


def running(**changes: Any) -> RouteRecord:
    """The record of relays of three topics."""
    found = record()
    for role, name in ((Role.TARGET, "shop.b"), (Role.DEAD_LETTER, "shop.a.dlq")):
        found = found.with_role(role, TopicRecord(name=name, ownership=Ownership.CREATED))
    return found.model_copy(update=changes)


@pytest.mark.parametrize(
    ("access", "field", "problem"),
    [
        (
            {"namespaceSelector": {"matchLabels": {"team": "bank"}}},
            "access.namespaceSelector",
            Problem(
                "metadata.namespace", "shop is not allowed: DelayClass standard is for namespaces labelled team=bank"
            ),
        ),
        (
            {"sourceTopics": ["shop.x.*"]},
            "access.sourceTopics",
            Problem("spec.source.topic", "shop.a is not allowed as a source: DelayClass standard allows shop.x.*"),
        ),
        (
            {"targetTopics": ["shop.b", "*.dlq"]},
            "access.targetTopics",
            Problem(
                "spec.target.allowedTopics[0]",
                "shop.c.* reaches beyond what DelayClass standard allows: shop.b, *.dlq",
            ),
        ),
    ],
)
def test_a_right_that_a_class_takes_away_is_named_by_its_field(
    access: dict[str, Any], field: str, problem: Problem
) -> None:
    found = revoked(running(allowed_topics=["shop.c.*"]), [delay_class(access=access)], TEAM)

    assert found == Revoked("standard", (problem,), suspends=False)
    assert found.fields == field


def test_relays_of_what_the_class_allows_keep_their_right() -> None:
    access = {"namespaceSelector": {"matchLabels": TEAM}, "sourceTopics": ["shop.a"], "targetTopics": ["{namespace}.*"]}

    assert revoked(running(), [delay_class(access=access)], TEAM) is None


def test_another_class_takes_no_right_away() -> None:
    narrow = delay_class(access={"sourceTopics": []})

    assert revoked(running(class_name="other"), [narrow], TEAM) is None
    assert revoked(running(class_name=None), [narrow], TEAM) is None


def test_the_class_says_that_relays_stop() -> None:
    found = revoked(running(), [delay_class(access={"sourceTopics": [], "onRevoked": "Suspend"})], TEAM)

    assert found is not None
    assert found.suspends
