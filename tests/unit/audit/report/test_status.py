"""The part of a report that a DelayTopic's status carries."""

from __future__ import annotations

from tests.unit.audit.sample_report import END_MINUTE, FAST, NOW_MS, sample_report

from delaytopic_api.documents import Condition, ConditionStatus, DelayTopicStatus
from delaytopic_audit.report.reporting import no_verdict
from delaytopic_audit.report.status import slo_condition, slo_status


def test_the_status_carries_the_figures_and_the_place_of_the_report() -> None:
    status = slo_status(sample_report(), "https://reports/shop")

    assert status.to_document() == {
        "verdict": "Missed",
        "auditedAt": "2026-11-21T14:01:10Z",
        "window": "24h",
        "windowEnd": "2026-11-21T14:00:00Z",
        "records": 795_603,
        "latenessP50": "4ms",
        "latenessP99": "269ms",
        "latenessP999": "3s744ms",
        "missed": ["Timely", "Complete", "Unique", "NotEarly"],
        "attainmentPercent": "99.8226%",
        "budgetLeftPercent": "-77.3205%",
        "budgetExhaustedAt": "2026-11-21T14:00:00Z",
        "objectives": [
            {"name": "Timely", "objective": "99.9%", "attainment": "99.8226%", "bad": 1_398},
            {"name": "Complete", "objective": "100%", "attainment": "99.9996%", "bad": 3},
            {"name": "Unique", "objective": "100%", "attainment": "99.9997%", "bad": 2},
            {"name": "NotEarly", "objective": "100%", "attainment": "99.9998%", "bad": 1},
        ],
        "burnRates": [
            {"window": "1h", "rate": "0", "bad": 0},
            {"window": "6h", "rate": "0.0051", "bad": 1},
            {"window": "24h", "rate": "1.7732", "bad": 1_398},
            {"window": "72h", "rate": "1.7732", "bad": 1_398},
            {"window": "720h", "rate": "1.7732", "bad": 1_398},
        ],
        "faults": [
            {"hour": "2026-11-21T01:00:00Z", "objective": "Complete", "records": 3},
            {"hour": "2026-11-21T01:00:00Z", "objective": "NotEarly", "records": 1},
            {"hour": "2026-11-21T01:00:00Z", "objective": "Unique", "records": 2},
        ],
        "report": "https://reports/shop",
    }
    shown = status.shown()
    assert shown.to_document() == {
        "verdict": "Missed",
        "auditedAt": "2026-11-21T14:01:10Z",
        "window": "24h",
        "missed": ["Timely", "Complete", "Unique", "NotEarly"],
        "latenessP99": "269ms",
        "attainmentPercent": "99.8226%",
        "budgetLeftPercent": "-77.3205%",
        "report": "https://reports/shop",
    }
    assert DelayTopicStatus(slo=shown).slo == shown


def test_the_status_has_the_budget_of_each_further_threshold_with_its_objective() -> None:
    status = slo_status(sample_report(thresholds=[FAST], counted_minute=END_MINUTE - 60), None).to_document()

    assert [each["name"] for each in status["objectives"]] == [
        "Timely",
        "Timely-100ms",
        "Complete",
        "Unique",
        "NotEarly",
    ]
    assert status["objectives"][1] == {
        "name": "Timely-100ms",
        "objective": "99%",
        "attainment": "99.5738%",
        "bad": 140,
        "budgetLeftPercent": "57.382%",
        "burnRates": [{"window": window, "rate": "0.4262", "bad": 140} for window in ("1h", "6h", "72h")],
        "countsFrom": "2026-11-21T13:00:00Z",
    }


def test_a_run_without_a_verdict_has_no_figures() -> None:
    status = slo_status(no_verdict("shop/orders", ["The topic is gone."], NOW_MS), None)

    assert status.to_document() == {"verdict": "CannotJudge", "auditedAt": "2026-11-21T14:01:10Z"}


def test_the_condition_says_how_the_budget_stands_and_nothing_of_it_where_nothing_was_due() -> None:
    met = slo_condition(sample_report(faulty=False), 3, None)
    missed = slo_condition(sample_report(), 3, None)
    idle = sample_report(faulty=False).model_copy(update={"objectives": [], "budget": None, "sentence": "Idle."})

    assert met.message.endswith(" on time as agreed. 99.9993% on time, of 99.9%; error budget left: 99.3658%.")
    assert missed.message.endswith(
        " 99.8226% on time, of 99.9%; error budget left: -77.3205%. The error budget is spent."
    )
    assert slo_condition(idle, 3, None).message == "Idle."


def test_the_condition_says_how_each_budget_stands() -> None:
    found = slo_condition(sample_report(faulty=False, thresholds=[FAST]), 3, None)

    assert found.message.endswith(
        " error budget left: 99.3658%. 99.5731% within 100ms, of 99%; error budget left: 57.3186%."
    )


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
