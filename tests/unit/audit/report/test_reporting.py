"""The report from gathered counts: verdict, findings, notes."""

from __future__ import annotations

from tests.unit.audit.sample_report import END_MINUTE, FAST, SURE, WINDOW_MINUTES, sample_report

from delaytopic_api import Percent
from delaytopic_audit.model.manifest import GradedUntil, Remarked, Role
from delaytopic_audit.model.report import Counts, Verdict
from delaytopic_audit.model.rules import Exclusion
from delaytopic_audit.model.words import bucket_value_ms
from delaytopic_audit.report.reporting import percentile_ms


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


def test_a_report_says_how_many_slots_of_what_recurs_had_an_occurrence_and_how_many_were_missed() -> None:
    whole = sample_report(faulty=False, slots=Counts(slots=1_200))
    missed = sample_report(faulty=False, slots=Counts(slots=1_200, slots_missed=3))

    assert [whole.sentence.partition("agreed. ")[2], missed.sentence.partition("agreed. ")[2]] == [
        "Slots of what recurs: 1,200.",
        "Slots of what recurs: 1,200, missed 3.",
    ]
    assert (missed.verdict, [(each.finding, each.records) for each in missed.findings][-1:]) == (
        Verdict.MET,
        [("slots-missed", 3)],
    )


def test_slots_that_are_skipped_or_repeated_and_chains_that_are_broken_miss_objectives() -> None:
    counts = Counts(slots=9, slots_skipped=4, slots_repeated=2, chains_broken=1)

    report = sample_report(faulty=False, slots=counts)

    assert {each.name: each.bad for each in report.objectives if each.name != "Timely"} == {
        "Complete": 5,
        "Unique": 2,
        "NotEarly": 0,
    }
    assert report.sentence.startswith(
        "Complete: 1 were to recur and do not, 4 slots skipped; Unique: 2 arrived for a slot that had its delivery. "
    )
    assert [(each.finding, each.records) for each in report.findings if "s-" in each.finding] == [
        *(("chains-broken", 1), ("slots-skipped", 4), ("slots-repeated", 2)),
    ]
    assert {each.objective: each.records for each in report.faulty_hours} == {"Complete": 5, "Unique": 2}
    assert report.worst_minutes[0].counts.chains_broken == 1


def test_what_is_excluded_is_named_with_its_records_and_counts_for_no_lateness() -> None:
    start_ms = (END_MINUTE - 740) * 60_000
    upgrade = Exclusion(from_ms=start_ms, until_ms=start_ms + 1_800_000, reason="Kafka is upgraded")

    report = sample_report(excluded=[upgrade])

    timely, complete, *_ = report.objectives
    assert (timely.verdict, timely.bad, complete.verdict, complete.bad) == (Verdict.MET, 5, Verdict.MISSED, 3)
    assert [each.to_document() for each in report.exclusions] == [
        {
            "fromMs": upgrade.from_ms,
            "untilMs": upgrade.until_ms,
            "reason": "Kafka is upgraded",
            "records": 17_178,
            "bad": 1_393,
        }
    ]
    assert report.notes[-1] == (
        "Excluded from lateness: 2026-11-21 01:40 to 2026-11-21 02:10 UTC, Kafka is upgraded."
        " 17,178 records were due then; 1,393 of them were late or lost."
    )
    assert report.sentence.endswith("17,178 records were due within exclusions, where lateness does not count.")
    assert report.budget is not None
    assert (report.budget.spent, report.budget.excluded) == (5, 17_178)
    assert [span.excluded is not None for span in report.spans].count(True) == 3


def test_a_threshold_that_was_added_later_says_from_when_on_it_counts() -> None:
    report = sample_report(thresholds=[FAST, SURE], counted_minute=END_MINUTE - 90)

    assert [(each.objective, each.counts_from_ms) for each in report.thresholds] == [
        ("Timely-100ms", (END_MINUTE - 90) * 60_000),
        ("Timely-1m", (END_MINUTE - 90) * 60_000),
    ]
    assert {each.budget.from_ms for each in report.thresholds} == {(END_MINUTE - 90) * 60_000}
    assert report.notes[-2:] == [
        "Timely-100ms counts from 2026-11-21 12:30 UTC: what was due before was graded without it.",
        "Timely-1m counts from 2026-11-21 12:30 UTC: what was due before was graded without it.",
    ]


def test_a_threshold_that_was_there_from_the_beginning_says_nothing_of_it() -> None:
    report = sample_report(thresholds=[FAST])

    assert [each.counts_from_ms for each in report.thresholds] == [None]
    assert report.notes == sample_report().notes


def test_a_lateness_that_was_changed_within_the_window_is_told() -> None:
    before_it, within_it = END_MINUTE - WINDOW_MINUTES, END_MINUTE - 90
    formerly = [GradedUntil(lateness_ms=5_000, minute=before_it), GradedUntil(lateness_ms=200, minute=within_it)]

    notes = sample_report(formerly=formerly).notes

    assert notes == [
        "Until 2026-11-21 12:30 UTC records counted as late beyond 200ms, the DelayTopic's lateness of that time.",
        *sample_report().notes,
    ]


def test_a_report_misses_an_objective_of_a_further_threshold_as_any_other() -> None:
    strict = FAST.model_copy(update={"objective": Percent("99.9%")})

    report = sample_report(faulty=False, thresholds=[strict])

    assert report.verdict is Verdict.MISSED
    assert report.sentence == "Timely-100ms: 3,365 arrived more than 100ms late."


def test_an_exclusion_outside_of_the_window_is_not_told() -> None:
    long_ago = Exclusion(from_ms=0, until_ms=60_000, reason="x")

    report = sample_report(excluded=[long_ago])

    assert (report.exclusions, report.notes) == ([], sample_report().notes)


def test_what_the_run_could_not_learn_and_what_it_judged_otherwise_is_told() -> None:
    piece = Remarked(topic="a", role=Role.SOURCE, partition=3, start=20, end=25, reason="why")

    notes = sample_report(planned={"remarks": ["Nothing was learned."], "unjudged": [piece], "doubtful": [piece]}).notes

    first, *rest = sample_report().notes
    assert notes == [
        "Nothing was learned.",
        first,
        "Offsets 20 to 24 of a partition 3 are not judged, nor is what arrived of them: why.",
        "Offsets 20 to 24 of a partition 3 may be judged wrongly: why.",
        *rest,
    ]


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


def test_a_note_tells_how_many_records_were_due_when_nobody_can_have_meant() -> None:
    report = sample_report(ancient=1_234)

    told = [note for note in report.notes if "1973" in note]
    assert report.reading is not None
    assert (report.reading.ancient, told) == (
        1_234,
        [
            "1,234 source records were due in 1973 or before, which mostly is a time in seconds that is read as"
            " milliseconds. They leave at once, and are judged from when they were appended."
        ],
    )
