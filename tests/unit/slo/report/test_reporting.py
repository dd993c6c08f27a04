"""The report from gathered counts: verdict, findings, notes."""

from __future__ import annotations

from tests.unit.slo.sample_report import sample_report

from delaytopic_slo.model.report import Verdict
from delaytopic_slo.model.words import bucket_value_ms
from delaytopic_slo.report.reporting import percentile_ms


def test_a_report_says_missed_and_by_what() -> None:
    report = sample_report()

    assert report.verdict is Verdict.MISSED
    assert [(str(each.name), str(each.verdict)) for each in report.objectives] == [
        *(("Timely", "Missed"), ("Complete", "Missed"), ("Unique", "Missed"), ("NotEarly", "Missed")),
    ]
    assert report.sentence.startswith("Timely: 1,395 arrived more than 1s late, 3 did not arrive; Complete: 3 lost; ")
    assert [(each.finding, each.records, each.provisional) for each in report.findings] == [
        *(("lost", 3, 2), ("duplicated", 2, 0), ("early", 1, 0), ("late", 1395, 0), ("cancelled", 7200, 0)),
    ]
    assert report.worst_minutes[0].counts.lost == 3


def test_a_clean_report_says_met() -> None:
    report = sample_report(faulty=False)

    assert report.verdict is Verdict.MET
    assert report.sentence.endswith("every one arrived or is accounted for, once, and on time as agreed.")


def test_clocks_that_disagree_are_named_in_a_note() -> None:
    notes = sample_report().notes

    assert notes[0] == (
        "Clocks disagree: the broker of shop.orders partition 2 is at least 8 ms behind a relay's clock."
        " A record counts as early only beyond that."
    )


def test_percentiles_are_of_the_nearest_rank() -> None:
    counts = [(10, 98), (200, 1), (300, 1)]

    assert percentile_ms(counts, 0.5) == bucket_value_ms(10)
    assert percentile_ms(counts, 0.99) == bucket_value_ms(200)
    assert percentile_ms(counts, 0.999) == bucket_value_ms(300)
    assert percentile_ms([], 0.5) is None
