"""The objects of an audit that are written, and those that are removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.operator.routes import Route, route

from delaytopic_operator.audits.plan import AuditObservation, AuditPlan, plan_audit
from delaytopic_operator.decide.plan import Apply, Delete
from delaytopic_operator.model.reconciliation import Key

NOW_MS = 1_795_269_600_000
NEXT_MS = NOW_MS + 15_000
OPERATORS = {"audit": {"schedule": "0 * * * *", "ledger": "s3a://a/b"}}
OF_CLASS, OF_NAMESPACE = route(config=OPERATORS, of_class={}), route(config=OPERATORS)


def audited(*topics: str, of: Route = OF_CLASS, live: Sequence[dict[str, Any]] = (), **seen_so: Any) -> AuditPlan:
    """The plan for an audit of DelayTopics of these names."""
    return plan_audit(
        AuditObservation(
            key=of.audit_key,
            now_ms=NOW_MS,
            config=of.config,
            of_class=of.delay_class,
            topics=of.named(*topics),
            objects=live,
            **{"is_known": True, **seen_so},
        )
    )


def made(plan: AuditPlan) -> list[dict[str, Any]]:
    return [action.document for action in plan.actions if isinstance(action, Apply)]


@pytest.mark.parametrize("of", [OF_CLASS, OF_NAMESPACE], ids=["class", "namespace"])
def test_an_audit_of_all_delay_topics_is_made_once(of: Route) -> None:
    first = audited("a", of=of)

    kinds = [document["kind"] for document in made(first)]
    assert kinds == ["ServiceAccount", "ConfigMap", "ConfigMap", "NetworkPolicy", "CronJob"]
    assert audited("a", of=of, live=made(first)).actions == ()


def test_another_delay_topic_changes_nothing_but_the_documents() -> None:
    before = made(audited("a"))

    (action,) = audited("a", "b", live=before).actions

    assert isinstance(action, Apply)
    assert action.exists
    assert action.document["kind"] == "ConfigMap"


def test_an_audit_without_delay_topics_goes() -> None:
    before = made(audited("a"))

    assert audited(live=before).actions == tuple(map(Delete, before))


def test_an_audit_stays_as_it_is_while_it_is_not_known_what_is_wanted() -> None:
    before = made(audited("a"))

    assert audited("b", live=before, is_known=False) == AuditPlan()


@pytest.mark.parametrize(
    ("seen_so", "next_ms"),
    [({}, None), ({"runs": True}, NEXT_MS), ({"waits_for": frozenset({Key("shop", "b")})}, NEXT_MS)],
    ids=["nothing to come", "a pod runs", "a DelayTopic is to be accepted"],
)
def test_it_is_looked_at_soon_while_something_comes_that_is_no_event(
    seen_so: dict[str, Any], next_ms: int | None
) -> None:
    assert audited("a", **seen_so).next_at_ms == next_ms
