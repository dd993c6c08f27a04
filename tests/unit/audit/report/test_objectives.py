"""Objectives, budgets and burn rates from exact counts."""

from __future__ import annotations

from fractions import Fraction

import pytest

from delaytopic_api import Percent
from delaytopic_api.documents import MOST_FAULTY_HOURS
from delaytopic_api.values import Calendar, Guarantee
from delaytopic_audit.model.report import Counts, ObjectiveName, Verdict
from delaytopic_audit.model.rules import Rules, Threshold
from delaytopic_audit.report.objectives import (
    HOUR_MS,
    NONE,
    MinuteCounts,
    added,
    boundaries,
    budget,
    budget_before,
    burn_rates,
    by_threshold,
    faulty_hours,
    objectives,
    percent_text,
)

RULES = Rules(
    lateness_ms=1_000,
    grace_ms=1,
    objective=Percent("99%"),
    window_ms=3 * 3_600_000,
    guarantee=Guarantee.EXACTLY_ONCE,
    retention_ms=1,
)
DAY_MINUTES = 1_440
GOOD = Counts(asked=100, delivered=100, on_time=100)


def verdicts(counts: Counts, rules: Rules = RULES) -> dict[str, str]:
    return {str(each.name): str(each.verdict) for each in objectives([MinuteCounts(0, counts, None)], rules)}


@pytest.mark.parametrize(
    ("counts", "missed"),
    [
        (GOOD, set()),
        (Counts(), set()),
        (Counts(asked=100, delivered=100, on_time=99, late=1), set()),
        (Counts(asked=100, delivered=100, on_time=98, late=2), {"Timely"}),
        (Counts(asked=100, delivered=99, on_time=99, lost=1), {"Complete"}),
        (Counts(asked=10, delivered=9, on_time=9, lost=1), {"Complete", "Timely"}),
        (Counts(asked=1_000, delivered=999, on_time=999, misdirected=1), {"Complete"}),
        (GOOD.model_copy(update={"duplicated": 1, "copies": 1}), {"Unique"}),
        (GOOD.model_copy(update={"unknown": 1}), {"Unique"}),
        (GOOD.model_copy(update={"unwanted": 1}), {"Unique"}),
        (GOOD.model_copy(update={"early": 1}), {"NotEarly"}),
        (GOOD.model_copy(update={"slots": 9, "slots_missed": 3}), set()),
        (GOOD.model_copy(update={"slots": 9, "slots_skipped": 1}), {"Complete"}),
        (GOOD.model_copy(update={"slots": 9, "chains_broken": 1}), {"Complete"}),
        (GOOD.model_copy(update={"slots": 9, "slots_repeated": 1, "copies": 1}), {"Unique"}),
        (Counts(asked=100, delivered=60, on_time=60, cancelled=20, replaced=10, dead_lettered=10), set()),
    ],
)
def test_each_objective_is_missed_by_its_own_faults(counts: Counts, missed: set[str]) -> None:
    assert {name for name, verdict in verdicts(counts).items() if verdict == "Missed"} == missed


def test_duplicates_miss_nothing_where_uniqueness_is_not_promised() -> None:
    rules = RULES.model_copy(update={"guarantee": Guarantee.AT_LEAST_ONCE})

    counts = GOOD.model_copy(update={"duplicated": 5, "copies": 5})

    assert verdicts(counts, rules)["Unique"] == "NotPromised"


def test_a_share_that_is_not_whole_never_shows_as_one_hundred_percent() -> None:
    assert percent_text(Fraction(99_999_999, 100_000_000)) == "99.9999%"
    assert percent_text(Fraction(1)) == "100%"
    assert percent_text(Fraction(0)) == "0%"
    assert percent_text(Fraction(1, 2)) == "50%"


def test_the_budget_is_what_the_objective_leaves_over_the_window() -> None:
    minutes = [
        MinuteCounts(820, Counts(asked=500, delivered=500, late=500), None),
        MinuteCounts(900, Counts(asked=900, delivered=900, on_time=897, late=3), None),
        MinuteCounts(999, Counts(asked=100, delivered=98, on_time=98, lost=2), None),
        MinuteCounts(1_000, Counts(asked=100, lost=100), None),
    ]

    spent = budget(minutes, RULES, end_minute=1_001, first_minute=0)

    assert (spent.total, spent.spent, spent.allowed) == (1_100, 105, 11.0)
    assert spent.remaining == pytest.approx(1 - 105 / 11)
    assert spent.from_ms == (1_001 - 180) * 60_000


def test_burn_rates_compare_the_bad_share_with_what_the_objective_allows() -> None:
    minutes = [
        MinuteCounts(900, Counts(asked=100, delivered=100, on_time=96, late=4), None),
        MinuteCounts(990, Counts(asked=100, delivered=100, on_time=98, late=2), None),
    ]

    rates = burn_rates(minutes, RULES, end_minute=1_000)

    assert [(each.window, each.bad, each.rate) for each in rates] == [("1h", 2, 2.0), ("3h", 6, 3.0)]


def test_a_budget_of_a_calendar_begins_with_its_period_and_tells_of_the_one_before() -> None:
    rules = RULES.model_copy(update={"calendar": Calendar.DAY})
    day = DAY_MINUTES
    minutes = [
        MinuteCounts(day - 1, Counts(asked=100, delivered=100, late=100), None),
        MinuteCounts(day, Counts(asked=100, delivered=100, on_time=98, late=2), None),
        MinuteCounts(2 * day, Counts(asked=1_000, delivered=1_000, on_time=996, late=4), None),
    ]

    now = budget(minutes, rules, end_minute=2 * day + 60, first_minute=day - 1)
    before = budget_before(minutes, rules, end_minute=2 * day + 60, first_minute=day - 1)

    assert (now.window, now.calendar, now.from_ms, now.until_ms) == ("24h", "Day", 2 * day * 60_000, 3 * day * 60_000)
    assert (now.total, now.spent, now.allowed) == (1_000, 4, 10.0)
    assert now.remaining == pytest.approx(0.6)
    assert before is not None
    assert (before.total, before.spent, before.remaining) == (100, 2, -1.0)
    assert [each.window for each in burn_rates(minutes, rules, 2 * day + 60)] == ["1h", "6h"]


def test_nothing_is_told_of_a_period_before_the_audit_nor_without_a_calendar() -> None:
    rules = RULES.model_copy(update={"calendar": Calendar.DAY})

    assert budget_before([], rules, end_minute=2 * DAY_MINUTES + 60, first_minute=2 * DAY_MINUTES) is None
    assert budget_before([], RULES, end_minute=2 * DAY_MINUTES + 60, first_minute=0) is None


@pytest.mark.parametrize(
    ("calendar", "starts"),
    [
        (None, [2_880, 2_760]),
        (Calendar.DAY, [2_880, 2_580, 1_440]),
        (Calendar.WEEK, [2_880, 2_580, 1_500, -1_380, -4_320, -14_400]),
    ],
)
def test_sums_begin_where_windows_and_periods_begin(calendar: Calendar | None, starts: list[int]) -> None:
    rules = RULES.model_copy(update={"calendar": calendar})

    assert boundaries(rules, end_minute=2 * DAY_MINUTES + 60) == starts


def test_what_is_excluded_spends_no_budget_and_burns_none() -> None:
    excluded = Counts(on_time=90, late=10)
    minutes = [
        MinuteCounts(980, Counts(asked=100, delivered=100, on_time=90, late=10), None, excluded),
        MinuteCounts(990, Counts(asked=100, delivered=100, on_time=99, late=1), None),
    ]

    spent = budget(minutes, RULES, end_minute=1_000, first_minute=0)
    rates = burn_rates(minutes, RULES, end_minute=1_000)

    assert (spent.total, spent.spent, spent.allowed, spent.excluded) == (100, 1, 1.0, 100)
    assert [(each.window, each.total, each.bad, each.rate) for each in rates] == [
        ("1h", 100, 1, 1.0),
        ("3h", 100, 1, 1),
    ]


def test_an_exclusion_excuses_lateness_and_no_loss() -> None:
    counts = Counts(asked=100, delivered=98, on_time=90, late=8, lost=2, duplicated=1, copies=1)
    excluded = Counts(on_time=10, late=8, lost=2)

    graded = {str(each.name): each for each in objectives([MinuteCounts(0, counts, None, excluded)], RULES)}

    assert {name: str(each.verdict) for name, each in graded.items()} == {
        "Timely": "Met",
        "Complete": "Missed",
        "Unique": "Missed",
        "NotEarly": "Met",
    }
    assert (graded["Timely"].good, graded["Timely"].bad, graded["Timely"].sentence) == (80, 0, "no fault")


def test_lateness_within_an_exclusion_is_no_broken_promise() -> None:
    rules = RULES.model_copy(update={"objective": Percent("100%")})
    counts = GOOD.model_copy(update={"late": 5, "lost": 1})

    found = faulty_hours([MinuteCounts(0, counts, None, Counts(late=4, lost=1))], rules)

    assert [(each.objective, each.records) for each in found] == [("Complete", 1), ("Timely", 1)]


def test_an_objective_of_one_hundred_percent_has_no_budget_to_spend() -> None:
    rules = RULES.model_copy(update={"objective": Percent("100%")})

    whole = budget([MinuteCounts(1, GOOD, None)], rules, end_minute=2, first_minute=0)
    spent = budget([MinuteCounts(1, Counts(asked=1, lost=1), None)], rules, end_minute=2, first_minute=0)

    assert (whole.remaining, spent.remaining) == (1.0, -1.0)


def test_counts_add_up() -> None:
    assert added([GOOD, Counts(asked=1, lost=1)]) == Counts(asked=101, delivered=100, on_time=100, lost=1)


FAST = Threshold(name="Timely-100ms", lateness_ms=100, objective=Percent("90%"))
WITH_FAST = RULES.model_copy(update={"thresholds": [FAST]})


def also_fast(minute: int, counts: Counts, fast: Counts, excluded: Counts = NONE) -> MinuteCounts:
    """A minute that counts for both thresholds."""
    return MinuteCounts(minute, counts, None, NONE, {100: MinuteCounts(minute, fast, None, excluded)})


def test_a_further_threshold_is_graded_beside_the_first_by_its_own_objective() -> None:
    minutes = [
        also_fast(0, GOOD, Counts(on_time=80, late=20)),
        also_fast(1, GOOD.model_copy(update={"lost": 1}), Counts(on_time=98, late=2, lost=1), Counts(late=1)),
        MinuteCounts(2, GOOD, None),
    ]

    timely, fast, *others = objectives(minutes, WITH_FAST)

    assert [each.name for each in others] == ["Complete", "Unique", "NotEarly"]
    assert (timely.good, timely.bad, str(timely.verdict), timely.lateness_ms) == (300, 1, "Met", 1_000)
    assert fast.to_document() == {
        "name": "Timely-100ms",
        "latenessMs": 100,
        "objective": "90%",
        "attainment": "89%",
        "good": 178,
        "bad": 22,
        "verdict": "Missed",
        "sentence": "21 arrived more than 100ms late, 1 did not arrive",
    }


def test_a_further_threshold_spends_a_budget_of_its_own() -> None:
    minutes = [also_fast(990, GOOD, Counts(on_time=95, late=5)), MinuteCounts(995, GOOD, None)]
    rules, sums = WITH_FAST.by(FAST), by_threshold(minutes, FAST)

    spent = budget(sums, rules, end_minute=1_000, first_minute=0)

    assert (spent.total, spent.spent, spent.allowed, spent.remaining) == (100, 5, 10.0, 0.5)
    assert [(each.window, each.bad, each.rate) for each in burn_rates(sums, rules, 1_000)] == [
        ("1h", 5, 0.5),
        ("3h", 5, 0.5),
    ]


def test_a_threshold_that_none_may_miss_is_a_promise() -> None:
    strict = FAST.model_copy(update={"objective": Percent("100%")})
    minutes = [also_fast(0, GOOD, Counts(on_time=97, late=3), Counts(late=1))]

    for threshold, broken in ((FAST, []), (strict, [("Timely-100ms", 2)])):
        found = faulty_hours(minutes, RULES.model_copy(update={"thresholds": [threshold]}))
        assert [(each.objective, each.records) for each in found] == broken


def test_the_names_of_objectives_are_stable() -> None:
    assert [str(name) for name in ObjectiveName] == ["Timely", "Complete", "Unique", "NotEarly", "Told"]
    assert [str(verdict) for verdict in Verdict] == ["Met", "Missed", "CannotJudge", "NotPromised"]


def test_outcomes_are_graded_where_a_topic_has_to_tell_them() -> None:
    rules = RULES.model_copy(update={"tells": True})
    counts = GOOD.model_copy(update={"told": 97, "untold": 3, "told_twice": 2, "retold": 2, "untrue": 1})
    minutes = [MinuteCounts(0, counts, None)]

    *_, graded = objectives(minutes, rules)

    assert graded.to_document() == {
        "name": "Told",
        "objective": "100%",
        "attainment": "94%",
        "good": 94,
        "bad": 6,
        "verdict": "Missed",
        "sentence": "3 ended without an outcome, 2 with more than one outcome, 1 with an outcome that is not true",
    }
    assert [(each.objective, each.records) for each in faulty_hours(minutes, rules)] == [("Told", 6)]
    assert "Told" not in {each.name for each in objectives(minutes, RULES)}
    assert faulty_hours(minutes, RULES) == []


def test_the_latest_hours_with_broken_promises_are_listed_by_objective() -> None:
    minutes = [
        MinuteCounts(59, GOOD.model_copy(update={"lost": 2, "misdirected": 1}), None),
        MinuteCounts(60, GOOD.model_copy(update={"early": 1, "late": 50}), None),
        MinuteCounts(119, GOOD.model_copy(update={"early": 1, "duplicated": 2, "unknown": 1}), None),
    ]

    found = faulty_hours(minutes, RULES)

    assert [(each.hour_ms, str(each.objective), each.records) for each in found] == [
        (HOUR_MS, "NotEarly", 2),
        (HOUR_MS, "Unique", 3),
        (0, "Complete", 3),
    ]


def test_what_is_not_promised_is_no_broken_promise_and_lateness_is_one_where_none_may_be_late() -> None:
    minutes = [MinuteCounts(0, GOOD.model_copy(update={"late": 5, "duplicated": 2}), None)]
    strict = RULES.model_copy(update={"objective": Percent("100%")})
    at_least_once = RULES.model_copy(update={"guarantee": Guarantee.AT_LEAST_ONCE})

    assert [(each.objective, each.records) for each in faulty_hours(minutes, strict)] == [("Timely", 5), ("Unique", 2)]
    assert faulty_hours(minutes, at_least_once) == []


def test_no_more_hours_are_listed_than_a_status_takes() -> None:
    minutes = [MinuteCounts(60 * hour, GOOD.model_copy(update={"lost": 1}), None) for hour in range(100)]

    found = faulty_hours(minutes, RULES)

    assert [each.hour_ms // HOUR_MS for each in found] == list(range(99, 99 - MOST_FAULTY_HOURS, -1))
