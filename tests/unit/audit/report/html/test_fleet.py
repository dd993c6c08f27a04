"""The page of all DelayTopics."""

from __future__ import annotations

import re
from typing import Any

from tests.unit.audit.report.html.test_page import Balanced
from tests.unit.audit.sample_report import NOW_MS

from delaytopic_audit.model.report import Verdict
from delaytopic_audit.report.html.fleet import Standing, fleet_page


def standing(name: str, left: float | None, verdict: Verdict = Verdict.MET, **more: Any) -> Standing:
    budget: dict[str, Any] = {"budget_window": "720h", "budget_spent": 3, "budget_allowed": 4.0, "asked": 4_000}
    return Standing(name, verdict, "said", budget_left=left, **({} if left is None else budget), **more)


def names(page: str) -> list[str]:
    return re.findall(r"<b>(shop/[a-z]+)</b>", page)


def test_those_with_the_least_of_their_budget_left_come_first_and_those_without_any_last() -> None:
    given = [
        standing("shop/good", 0.9, p99_ms=8.0),
        standing("shop/idle", None),
        standing("shop/unread", None, Verdict.CANNOT_JUDGE, reasons=["The topic is gone."]),
        standing("shop/spent", -0.5, Verdict.MISSED, exhausted_ms=NOW_MS),
        standing("shop/low", 0.1, exhausted_ms=NOW_MS, judged_until_ms=NOW_MS),
    ]

    page = fleet_page(given, None, NOW_MS)

    assert names(page) == ["shop/spent", "shop/low", "shop/good", "shop/unread", "shop/idle"]
    told = ("overspent by 50.0%", "10.0% left", "90.0% left", "no verdict", "nothing was due", "The topic is gone.")
    assert [text for text in told if text not in page] == []
    assert page.count("at the present pace spent by 2026-11-21 14:01:10 UTC") == 1


def test_the_page_is_whole_and_loads_nothing_but_leads_to_reports() -> None:
    page = fleet_page([standing("shop/a b", 0.5), standing("shop/c", None)], "../reports", NOW_MS)

    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert parser.addresses == ["../reports/shop/a%20b/report.html", "../reports/shop/c/report.html"]
    assert "<script" not in page
    assert "url(" not in page


def test_the_page_escapes_what_others_wrote() -> None:
    hostile = "<script>'x'</script>\"&"
    given = Standing(hostile, Verdict.CANNOT_JUDGE, hostile, reasons=[hostile])

    for reports in ("../reports", None):
        page = fleet_page([given], reports, NOW_MS)
        assert "<script" not in page
        assert page.count("&lt;script&gt;") == 3


def test_a_page_without_delay_topics_says_so() -> None:
    assert "Nothing has been audited yet." in fleet_page([], None, NOW_MS)
