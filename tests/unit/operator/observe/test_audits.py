"""The DelayTopics that an audit is about."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.scenes import NOW_MS, document, seen

from delaytopic_operator.decide.planner import plan
from delaytopic_operator.model.conditions import merged
from delaytopic_operator.observe.audits import is_accepted

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
