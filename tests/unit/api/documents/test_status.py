from __future__ import annotations

import json
from datetime import UTC, datetime

from delaytopic_api.documents import Condition, ConditionStatus, ConditionType, DelayTopicStatus, SloStatus

READY = Condition(
    type=ConditionType.READY,
    status=ConditionStatus.TRUE,
    observed_generation=3,
    last_transition_time=datetime(2026, 11, 21, 12, tzinfo=UTC),
    reason="Delivering",
    message="2 of 2 relays deliver",
)


def test_a_condition_is_found_by_its_type() -> None:
    status = DelayTopicStatus(conditions=[READY])

    assert (status.condition(ConditionType.READY), status.condition(ConditionType.PAUSED)) == (READY, None)


def test_a_condition_has_the_shape_that_kubernetes_tools_expect() -> None:
    assert READY.to_document() == {
        "type": "Ready",
        "status": "True",
        "observedGeneration": 3,
        "lastTransitionTime": "2026-11-21T12:00:00Z",
        "reason": "Delivering",
        "message": "2 of 2 relays deliver",
    }


def test_a_status_survives_the_way_through_the_api_server() -> None:
    status = DelayTopicStatus(observed_generation=3, conditions=[READY], slo=SloStatus(lateness_p99="12ms"))

    stored = json.dumps(status.to_document())

    assert DelayTopicStatus.model_validate_json(stored) == status
    assert json.loads(stored)["slo"] == {"latenessP99": "12ms"}
