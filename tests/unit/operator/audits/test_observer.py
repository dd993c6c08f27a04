"""The DelayTopics that an audit is about."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.scenes import NOW_MS, document, seen

from delaytopic_operator.audits.observer import is_accepted, is_kept
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.model.conditions import instant, merged
from delaytopic_operator.observe.audit_verdict import VerdictMessage
from delaytopic_operator.observe.observation import PAUSE

ALLOWED = document(deleted_ms=None)
FORBIDDEN = document(deleted_ms=None, source={"topic": "others.a"}, target={"topic": "others.a"})


def judged(found: dict[str, Any], generation: int = 1) -> dict[str, Any]:
    """A DelayTopic with the conditions that the operator gives it, by now of this generation."""
    conditions = merged((), plan(seen(found)).conditions, 1, NOW_MS)
    metadata = {**found["metadata"], "generation": generation}
    return {**found, "metadata": metadata, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (judged(ALLOWED), True),
        (judged(FORBIDDEN), False),
        (judged(ALLOWED, generation=2), False),
        (ALLOWED, False),
        ({**judged(ALLOWED), "metadata": document()["metadata"]}, False),
    ],
    ids=["accepted", "refused", "changed since", "not judged yet", "going"],
)
def test_a_delay_topic_is_audited_while_it_is_accepted_as_it_is_now(found: dict[str, Any], expected: bool) -> None:
    assert is_accepted(found) is expected


PAUSED = {PAUSE: "true"}


def told(at_ms: int) -> VerdictMessage:
    """A verdict of this time."""
    condition = {"type": "SLOMet", "status": "True", "reason": "Met", "message": "Said."}
    return VerdictMessage.model_validate(
        {
            "delayTopic": "shop/orders",
            "verdict": "Met",
            "generatedAtMs": at_ms,
            "slo": {},
            "condition": {**condition, "lastTransitionTime": instant(at_ms)},
        }
    )


def shown(at_ms: int, **annotations: str) -> dict[str, Any]:
    """A DelayTopic whose status shows a verdict of this time."""
    of = judged(ALLOWED)
    metadata = {**of["metadata"], "annotations": annotations}
    return {
        **of,
        "metadata": metadata,
        "status": {**of["status"], "slo": {"verdict": "Met", "auditedAt": instant(at_ms)}},
    }


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (shown(NOW_MS), True),
        (shown(NOW_MS + 60_000), True),
        (shown(NOW_MS - 60_000), False),
        (judged(ALLOWED), False),
        (None, True),
        (judged(FORBIDDEN), True),
        (shown(NOW_MS - 60_000, **PAUSED), True),
    ],
    ids=["shown", "a later one is", "an older one is", "none is", "gone", "refused", "paused"],
)
def test_a_verdict_is_kept_once_the_status_shows_it_or_nobody_writes_one(
    found: dict[str, Any] | None, expected: bool
) -> None:
    assert is_kept(told(NOW_MS), found) is expected
