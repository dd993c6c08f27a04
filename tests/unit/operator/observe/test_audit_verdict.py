"""The verdict that the operator takes from the termination message of an audit, and from the audit before it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delaytopic_api.documents import MOST_FAULTY_HOURS
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.observe.audit_verdict import (
    AuditVerdict,
    VerdictMessage,
    last_verdict,
    parsed_message,
    parsed_slo,
    without_audit,
)

HOUR_MS = 3_600_000
FIRST_MS = 1_795_269_600_000
NOW_MS = FIRST_MS + 100 * HOUR_MS


def fault(hour: int, records: int, objective: str = "Complete") -> dict[str, Any]:
    """Faults of an hour after the first audit's."""
    return {"hour": instant(FIRST_MS + hour * HOUR_MS), "objective": objective, "records": records}


def figures(*faults: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The part for the status that an audit with a verdict writes."""
    objectives = [
        {"name": "Timely", "objective": "99.9%", "attainment": "99%", "bad": 5},
        {"name": "Complete", "objective": "100%", "attainment": "99%", "bad": sum(each["records"] for each in faults)},
    ]
    return {"windowEnd": instant(FIRST_MS), "objectives": objectives, "faults": list(faults), **more}


def said(at_ms: int, slo: Any, verdict: str = "Missed") -> VerdictMessage | None:
    """The verdict as an audit serves it."""
    condition = {"type": "SLOMet", "status": "Unknown", "reason": verdict, "message": "Said."}
    message = {
        "delayTopic": "shop/orders",
        "verdict": verdict,
        "generatedAtMs": at_ms,
        "slo": slo,
        "condition": {**condition, "lastTransitionTime": instant(at_ms)},
    }
    return parsed_message(json.dumps(message))


def status_of(verdict: AuditVerdict | None) -> dict[str, Any]:
    """The status that shows a verdict."""
    assert verdict is not None
    condition = {"type": "SLOMet", "status": "Unknown", "reason": "Said", "message": "Said."}
    return {"conditions": [{**condition, "lastTransitionTime": instant(FIRST_MS)}], "slo": dict(verdict.shown)}


def after(*audits: VerdictMessage | None) -> AuditVerdict | None:
    """The knowledge after these audits, each heard of in turn."""
    verdict = None
    for audit in audits:
        verdict = seen_again(verdict, audit) if verdict is not None else last_verdict({}, NOW_MS, audit)
    return verdict


def seen_again(
    verdict: AuditVerdict | None, audit: VerdictMessage | None = None, now_ms: int = NOW_MS
) -> AuditVerdict | None:
    """The knowledge when this is served, and the figures of a verdict were written down."""
    assert verdict is not None
    return last_verdict(status_of(verdict), now_ms, audit, written=parsed_slo(verdict.slo))


def newly(verdict: AuditVerdict | None) -> dict[str, int | None]:
    assert verdict is not None
    return {each["name"]: each.get("newlyBad") for each in verdict.slo["objectives"]}


def test_of_a_first_audit_everything_is_new_and_of_an_objective_with_a_budget_nothing_is_said() -> None:
    assert newly(after(said(FIRST_MS, figures(fault(0, 3), fault(-5, 1))))) == {"Timely": None, "Complete": 4}


def test_of_a_later_audit_only_what_the_one_before_did_not_know_is_new() -> None:
    first = said(FIRST_MS, figures(fault(0, 3), fault(-5, 4)))
    # One of an hour before is found late, one heals, and four of the earliest have left the window.
    second = said(FIRST_MS + HOUR_MS, figures(fault(1, 2), fault(0, 4)))
    third = said(FIRST_MS + 2 * HOUR_MS, figures(fault(1, 1), fault(0, 4)))

    assert [newly(after(*audits))["Complete"] for audits in ((first, second), (first, second, third))] == [3, 0]


def test_an_audit_that_nobody_read_hides_nothing() -> None:
    first, third = said(FIRST_MS, figures()), said(FIRST_MS + 2 * HOUR_MS, figures(fault(1, 2), fault(0, 1)))

    assert newly(after(first, third))["Complete"] == 3


def test_the_same_audit_seen_again_changes_nothing() -> None:
    audit = said(FIRST_MS, figures(fault(0, 3)))

    assert after(audit, audit, audit) == after(audit)


def test_where_more_hours_have_faults_than_are_listed_the_latest_count() -> None:
    many = [fault(-hour, 2) for hour in range(MOST_FAULTY_HOURS)]
    first = said(FIRST_MS, figures(*many))
    second = said(FIRST_MS + HOUR_MS, figures(fault(1, 1), *many[:-1]))

    assert newly(after(first, second))["Complete"] == 1


def test_a_promise_counts_by_itself() -> None:
    first = said(FIRST_MS, figures(fault(0, 3, "NotEarly")))
    second = said(FIRST_MS + HOUR_MS, figures(fault(0, 3, "NotEarly"), fault(0, 2)))

    assert newly(after(first, second))["Complete"] == 2


def test_without_a_verdict_the_figures_stay_and_are_no_news_again() -> None:
    first = said(FIRST_MS, figures(fault(0, 3), report="reports/1"))
    blind = said(FIRST_MS + HOUR_MS, {"objectives": [], "faults": []}, "CannotJudge")
    third = said(FIRST_MS + 2 * HOUR_MS, figures(fault(0, 3)))

    found = after(first, blind)

    assert found is not None
    assert (found.slo["verdict"], found.slo["auditedAt"]) == ("CannotJudge", instant(FIRST_MS + HOUR_MS))
    assert (found.slo["windowEnd"], found.slo["report"]) == (instant(FIRST_MS), "reports/1")
    assert newly(found)["Complete"] == 3
    assert newly(after(first, blind, third))["Complete"] == 0


def test_a_first_audit_without_a_verdict_says_only_that() -> None:
    found = after(said(FIRST_MS, {}, "CannotJudge"))

    assert found is not None
    assert found.slo == {"verdict": "CannotJudge", "auditedAt": instant(FIRST_MS)}


def test_an_older_verdict_that_is_still_served_replaces_nothing_unless_the_status_is_of_the_future() -> None:
    first, second = said(FIRST_MS, figures()), said(FIRST_MS + HOUR_MS, figures(fault(1, 2)))
    known = after(first, second)

    kept = seen_again(known, first)
    of_the_future = seen_again(known, first, now_ms=FIRST_MS)

    assert kept is not None
    assert of_the_future is not None
    assert known is not None
    assert kept.slo == known.slo
    assert of_the_future.slo["auditedAt"] == instant(FIRST_MS)


def test_the_figures_that_were_written_down_outlive_what_is_served() -> None:
    known = after(said(FIRST_MS, figures(fault(0, 3))))

    found = seen_again(known)

    assert known is not None
    assert found is not None
    assert found.slo == known.slo


def test_the_status_shows_what_people_look_at_and_no_lists_but_what_was_missed() -> None:
    shown = {"window": "24h", "missed": ["Complete"], "latenessP99": "80ms", "attainmentPercent": "99%"}
    found = after(said(FIRST_MS, figures(fault(0, 3), budgetLeftPercent="-9%", report="reports/1", **shown)))

    assert found is not None
    assert found.shown == shown | {
        "verdict": "Missed",
        "auditedAt": instant(FIRST_MS),
        "budgetLeftPercent": "-9%",
        "report": "reports/1",
    }


def test_without_figures_that_were_written_down_faults_are_no_news() -> None:
    first = said(FIRST_MS, figures(fault(0, 3), window="24h"))
    second = said(FIRST_MS + HOUR_MS, figures(fault(0, 3), fault(1, 1), window="24h"))
    status = status_of(after(first))

    again, later = (last_verdict(status, NOW_MS, audit) for audit in (first, second))

    assert (newly(again), newly(later)) == ({"Timely": None, "Complete": None},) * 2


def test_a_status_of_a_later_audit_than_was_written_down_is_not_taken_back() -> None:
    older, later = after(said(FIRST_MS, figures())), after(said(FIRST_MS + HOUR_MS, figures(window="24h")))
    assert older is not None

    found = last_verdict(status_of(later), NOW_MS, None, written=parsed_slo(older.slo))

    assert found is not None
    assert found.slo["auditedAt"] == instant(FIRST_MS + HOUR_MS)


@pytest.mark.parametrize(
    "slo",
    [
        {"objectives": [{"name": "x", "bad": -1}]},
        {"objectives": [{"name": "x", "bad": 10**30}]},
        {"objectives": [{"name": "x" * 1_000}]},
        {"objectives": [{"name": "x"}] * 1_000},
        {"faults": [fault(0, 1)] * 1_000},
        {"auditedAt": "yesterday"},
        {"verdict": "x" * 1_000},
        "no object",
    ],
    ids=["negative", "huge", "long", "many", "many-faults", "no-time", "long-verdict", "no-object"],
)
def test_a_message_that_the_api_server_would_refuse_is_no_verdict(slo: Any) -> None:
    assert said(FIRST_MS, slo) is None
    assert parsed_slo(slo) is None


def test_where_no_audit_can_be_set_up_the_figures_of_the_last_one_stay() -> None:
    known = after(said(FIRST_MS, figures()))
    assert known is not None

    found = without_audit(known, "quota exceeded")

    assert (found.condition.reason, found.condition.message) == ("NoAudit", "no audit can be set up: quota exceeded")
    assert (found.slo, without_audit(None, "x").slo) == (known.slo, {})


def test_anything_else_that_is_served_is_no_verdict() -> None:
    assert [parsed_message(text) for text in (b"", b"{}", b"[1]", b"\xff", "nonsense")] == [None] * 5
