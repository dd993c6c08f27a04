"""The report as a page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from tests.unit.audit.sample_report import FAST, NOW_MS, SURE, sample_report

from delaytopic_api.values import Calendar
from delaytopic_audit.model.report import Counts
from delaytopic_audit.report.html.page import html_page
from delaytopic_audit.report.reporting import no_verdict


class Balanced(HTMLParser):
    """Fails where tags do not nest."""

    VOID = frozenset({"meta", "rect", "line"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag not in self.VOID or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("faulty", [True, False])
def test_the_page_is_whole_and_loads_nothing(faulty: bool) -> None:
    page = html_page(sample_report(faulty=faulty, thresholds=[FAST]))

    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert parser.addresses == []
    assert "<script" not in page
    assert "url(" not in page
    assert ("Objectives missed" in page) is faulty


def test_the_page_of_an_audit_without_a_verdict_says_why_and_escapes_what_others_wrote() -> None:
    page = html_page(no_verdict("shop/<b>", ["the topic <script>x</script> is gone"], NOW_MS))

    assert "Could not judge" in page
    assert "the topic &lt;script&gt;x&lt;/script&gt; is gone" in page
    assert "<script" not in page


def test_the_page_escapes_names_and_reasons_wherever_they_stand() -> None:
    hostile = "<script>'x'</script>\"&"
    report = sample_report()
    listed = (
        report.findings[0]
        .listed[0]
        .model_copy(update={"topic": hostile, "at_partition": 0, "at_offset": 1, "reason": hostile})
    )
    found = report.findings[0].model_copy(update={"listed": [listed]})
    texts = {"delay_topic": hostile, "source": hostile, "target": hostile, "sentence": hostile, "notes": [hostile]}

    page = html_page(report.model_copy(update={**texts, "reasons": [hostile], "findings": [found]}))

    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 10


def test_the_page_has_the_remarks_of_whoever_ran_the_audit() -> None:
    report = sample_report().model_copy(update={"remarks": ["The relay was killed <b>twice</b>."]})

    assert "<p>The relay was killed &lt;b&gt;twice&lt;/b&gt;.</p>" in html_page(report)


def test_the_budget_of_a_calendar_is_of_its_period_beside_that_of_the_one_before() -> None:
    page = html_page(sample_report(calendar=Calendar.DAY))

    assert "<h2>Error budget of this day</h2>" in page
    assert "The day before, from 2026-11-20 14:00 UTC: 2 of 328,500 were late or lost, 99.4% of the budget left" in page


def test_each_further_threshold_has_its_card_and_its_budget() -> None:
    page = html_page(sample_report(faulty=False, thresholds=[FAST, SURE]))

    assert ["at most 100 ms late" in page, "at most 1 min late" in page] == [True, True]
    headings = [part.partition("</h2>")[0] for part in page.split("<h2>")]
    assert [each for each in headings if each.startswith("Error budget")] == [
        "Error budget over 720h",
        "Error budget of what is more than 100 ms late",
        "Error budget of what is more than 1 min late",
    ]
    assert ["99.4% left" in page, "57.3% left" in page, "100.0% left" in page] == [True, True, True]


def test_slots_and_their_faults_have_their_places_where_records_recur() -> None:
    pages = html_page(sample_report()), html_page(sample_report(slots=Counts(slots=7, slots_missed=2, chains_broken=1)))

    found = [[text in page for text in ("slots missed", "<th>chains_broken</th>")] for page in pages]
    assert found == [[False, False], [True, True]]


def test_the_page_opens_with_the_budget_and_with_what_broke_since_when_and_in_which_records() -> None:
    page = html_page(sample_report())

    opening = page.partition("<h2>Before you trust")[0]
    rows = re.findall(r"<tr><td>(.*?)</td>.*?>([0-9,]+)</td>\n<td>(.*?)</td>\n<td>(.*?)</td></tr>", opening)
    assert "<span>error budget</span>" in opening
    assert rows == [
        ("lost", "3", "2026-11-21 01:45", "0:88000, 1:88017, 2:88034"),
        ("duplicated", "2", "2026-11-21 01:45", "0:88000, 1:88017"),
        ("early", "1", "2026-11-21 01:45", "0:88000"),
        ("late", "1,395", "2026-11-21 01:45", "0:88000, 1:88017, 2:88034"),
    ]
    assert "What broke" not in html_page(sample_report(faulty=False))


def test_the_top_tells_how_long_the_budget_lasts() -> None:
    assert "<p>At the pace of the last 72h the error budget lasts.</p>" in html_page(sample_report(faulty=False))
