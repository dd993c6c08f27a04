"""The part of a report that a DelayTopic's status carries."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.unit.slo.sample_report import NOW_MS, sample_report

from delaytopic_api.documents import Condition, ConditionStatus, DelayTopicStatus
from delaytopic_slo.report.reporting import no_verdict
from delaytopic_slo.report.status import slo_condition, slo_status


def test_the_status_carries_the_figures_and_the_place_of_the_report() -> None:
    status = slo_status(sample_report(), "https://reports/shop")

    assert status.to_document() == {
        "attainmentPercent": "99.8226%",
        "latenessP99": "1s33ms",
        "report": "https://reports/shop",
        "asOf": datetime.fromtimestamp(NOW_MS // 1_000, UTC).isoformat().replace("+00:00", "Z"),
    } | {"latenessP99": status.lateness_p99}
    assert DelayTopicStatus(slo=status).slo == status


def test_the_condition_keeps_its_time_while_its_status_is_the_same() -> None:
    first = slo_condition(sample_report(), 3, None)
    same = slo_condition(sample_report(now_ms=NOW_MS + 60_000), 3, first)
    other = slo_condition(sample_report(faulty=False, now_ms=NOW_MS + 60_000), 4, first)
    unknown = slo_condition(no_verdict("shop/orders", ["The topic is gone."], NOW_MS), None, None)

    assert (first.type, first.status, first.reason) == ("SLOMet", ConditionStatus.FALSE, "Missed")
    assert same.last_transition_time == first.last_transition_time
    assert other.status is ConditionStatus.TRUE
    assert other.last_transition_time > first.last_transition_time
    assert (unknown.status, unknown.reason) == (ConditionStatus.UNKNOWN, "CannotJudge")
    assert unknown.message == "This audit could not judge. The topic is gone."
    assert Condition.model_validate(first.to_document()) == first
