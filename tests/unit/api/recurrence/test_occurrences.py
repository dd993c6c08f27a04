from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api.recurrence import (
    MOST_MISSED_COUNTED,
    Cron,
    Every,
    Instant,
    Ladder,
    Local,
    Missed,
    Occurrence,
    Passed,
    Recurrence,
    Rung,
    first_occurrence,
    in_words,
    left_out,
    next_occurrence,
    passed_over,
    upcoming,
)

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
START_MS = int(datetime(2026, 11, 21, 14, 0, tzinfo=UTC).timestamp() * 1000)
EACH_MINUTE = Recurrence(Cron("* * * * *"), "UTC", START_MS)
SECOND = Occurrence(2, START_MS + MINUTE_MS, START_MS + MINUTE_MS)


def at(number: int, minutes: int) -> Occurrence:
    """Return an occurrence without jitter at so many minutes behind the start."""
    return Occurrence(number, START_MS + minutes * MINUTE_MS, START_MS + minutes * MINUTE_MS)


def test_the_first_occurrence_is_the_first_slot_from_the_start_on() -> None:
    assert first_occurrence(EACH_MINUTE, b"id", START_MS) == (at(1, 0), 0)
    assert first_occurrence(replace(EACH_MINUTE, from_ms=START_MS + 1), b"id", START_MS) == (at(1, 1), 0)


def test_behind_an_occurrence_that_is_delivered_in_time_the_next_slot_follows() -> None:
    assert next_occurrence(EACH_MINUTE, b"id", SECOND, SECOND.due_ms + 5) == (at(3, 2), 0)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (replace(EACH_MINUTE, missed=Missed.LATEST), (at(3, 10), 8)),
        (replace(EACH_MINUTE, missed=Missed.NONE), (at(3, 11), 9)),
        (replace(EACH_MINUTE, missed=Missed.ALL, catch_up_ms=HOUR_MS), (at(3, 2), 0)),
        (replace(EACH_MINUTE, missed=Missed.ALL, catch_up_ms=3 * MINUTE_MS), (at(3, 8), 6)),
        (replace(EACH_MINUTE, missed=Missed.ALL, catch_up_ms=1_000), (at(3, 11), 9)),
    ],
)
def test_slots_that_are_past_when_an_occurrence_is_delivered_late_follow_the_policy(
    policy: Recurrence, expected: tuple[Occurrence, int]
) -> None:
    assert next_occurrence(policy, b"id", SECOND, START_MS + 10 * MINUTE_MS + 30_000) == expected


def test_a_record_that_is_read_late_follows_the_policy_too() -> None:
    late_ms = START_MS + 5 * MINUTE_MS + 1

    assert first_occurrence(EACH_MINUTE, b"id", late_ms) == (at(1, 5), 5)
    assert first_occurrence(replace(EACH_MINUTE, missed=Missed.NONE), b"id", late_ms) == (at(1, 6), 6)


def test_a_slot_at_this_very_moment_is_past() -> None:
    assert next_occurrence(EACH_MINUTE, b"id", SECOND, START_MS + 5 * MINUTE_MS) == (at(3, 5), 3)


def test_a_slot_that_is_just_as_old_as_the_catch_up_is_made_up_for() -> None:
    within = replace(EACH_MINUTE, missed=Missed.ALL, catch_up_ms=3 * MINUTE_MS)

    assert next_occurrence(within, b"id", SECOND, START_MS + 10 * MINUTE_MS) == (at(3, 7), 5)


def test_the_last_slot_ends_the_chain_also_when_it_is_made_up_for() -> None:
    until = replace(EACH_MINUTE, until_ms=START_MS + 3 * MINUTE_MS)
    late_ms = START_MS + 10 * MINUTE_MS

    assert next_occurrence(until, b"id", SECOND, late_ms) == (at(3, 3), 1)
    assert next_occurrence(until, b"id", at(3, 3), late_ms) == (None, 0)
    assert next_occurrence(replace(until, missed=Missed.NONE), b"id", SECOND, late_ms) == (None, 2)


def test_a_count_ends_the_chain_and_missed_slots_do_not_count() -> None:
    three = replace(EACH_MINUTE, count=3)
    late_ms = START_MS + 10 * MINUTE_MS

    assert next_occurrence(three, b"id", SECOND, late_ms) == (at(3, 10), 8)
    assert next_occurrence(three, b"id", at(3, 10), late_ms) == (None, 0)


def test_more_missed_slots_than_are_counted_count_as_so_many() -> None:
    seconds = replace(EACH_MINUTE, rule=Cron("* * * * * *"))

    assert next_occurrence(seconds, b"id", SECOND, START_MS + 7 * DAY_MS) == (
        Occurrence(3, START_MS + 7 * DAY_MS, START_MS + 7 * DAY_MS),
        MOST_MISSED_COUNTED,
    )


def test_jitter_follows_from_id_and_number_alone() -> None:
    spread = replace(EACH_MINUTE, jitter_ms=HOUR_MS)
    found = [each for identity in (b"a", b"b") for each in upcoming(spread, identity, None, 2)]
    put_off = [each.due_ms - each.nominal_ms for each in found]

    assert put_off == [each.due_ms - each.nominal_ms for b in (b"a", b"b") for each in upcoming(spread, b, None, 2)]
    assert len(set(put_off)) == 4
    assert all(0 <= each < HOUR_MS for each in put_off)


def test_a_slot_whose_jitter_is_not_over_is_not_past() -> None:
    spread = replace(EACH_MINUTE, rule=Every(HOUR_MS, START_MS), jitter_ms=HOUR_MS, missed=Missed.NONE)
    first, _ = first_occurrence(spread, b"id", START_MS)
    assert first is not None
    second = upcoming(spread, b"id", first, 1)[0]

    assert next_occurrence(spread, b"id", first, second.due_ms - 1) == (second, 0)
    assert next_occurrence(spread, b"id", first, second.due_ms)[1] == 1


def test_upcoming_occurrences_end_where_the_chain_does() -> None:
    assert upcoming(replace(EACH_MINUTE, count=3), b"id", at(1, 0), 5) == [at(2, 1), at(3, 2)]


def test_a_local_time_is_one_delivery_however_long_it_is_past() -> None:
    local = Recurrence(Local(START_MS + HOUR_MS), "Europe/Berlin", START_MS)

    assert first_occurrence(local, b"id", START_MS + DAY_MS) == (Occurrence(1, START_MS, START_MS), 0)
    assert next_occurrence(local, b"id", Occurrence(1, START_MS, START_MS), START_MS) == (None, 0)


def test_rungs_before_the_record_itself_are_none() -> None:
    rungs = (Rung(7, 0), Rung(1, 0), Rung(0, HOUR_MS))
    ladder = Recurrence(Ladder(Instant(START_MS + 2 * DAY_MS), rungs), "UTC", START_MS)

    assert upcoming(ladder, b"id", None, 5) == [
        Occurrence(1, START_MS + DAY_MS, START_MS + DAY_MS),
        Occurrence(2, START_MS + 2 * DAY_MS - HOUR_MS, START_MS + 2 * DAY_MS - HOUR_MS),
    ]
    assert first_occurrence(replace(ladder, from_ms=START_MS + 3 * DAY_MS), b"id", START_MS) == (None, 0)


def test_the_next_occurrence_follows_the_zone_as_it_is_known_by_then() -> None:
    nine = Recurrence(Cron("0 9 * * *"), "Europe/Berlin", START_MS)

    def without_summer_time(name: str) -> tzinfo:
        return ZoneInfo("Etc/GMT-1")

    june_ms = int(datetime(2027, 6, 1, 7, 0, tzinfo=UTC).timestamp() * 1000)
    written = Occurrence(5, june_ms, june_ms)
    following_ms = june_ms + DAY_MS + HOUR_MS

    assert next_occurrence(nine, b"id", written, june_ms, without_summer_time) == (
        Occurrence(6, june_ms + HOUR_MS, june_ms + HOUR_MS),
        0,
    )
    assert upcoming(nine, b"id", written, 2, without_summer_time)[1].nominal_ms == following_ms


RULES = st.sampled_from(
    [
        (Cron("*/7 * * * *"), "Europe/Berlin"),
        (Cron("0,30 2 * * *"), "Europe/Berlin"),
        (Cron("*/20 * * * * *"), "UTC"),
        (Every(90_000, START_MS - 7), "UTC"),
        (Every(DAY_MS, START_MS), "UTC"),
        (
            Ladder(Local(START_MS + 2 * DAY_MS), (Rung(1, 0), Rung(0, HOUR_MS), Rung(0, 60_000), Rung(0, 0))),
            "Asia/Tehran",
        ),
    ]
)
POLICIES = st.sampled_from([(Missed.LATEST, None), (Missed.NONE, None), (Missed.ALL, 10 * MINUTE_MS), (Missed.ALL, 0)])
RECURRENCES = st.builds(
    lambda rule, policy, from_ms, length, count, jitter: Recurrence(
        rule[0], rule[1], from_ms, None if length is None else from_ms + length, count, jitter, *policy
    ),
    RULES,
    POLICIES,
    st.integers(START_MS - DAY_MS, START_MS + DAY_MS),
    st.none() | st.integers(0, 2 * HOUR_MS),
    st.none() | st.integers(1, 9),
    st.sampled_from([0, 0, 1_000, 80_000]),
)
DELAYS = st.lists(st.sampled_from([0, 1, 999, 30_000, 90_000, 45 * MINUTE_MS, 3 * DAY_MS]), min_size=1, max_size=12)


@given(RECURRENCES, DELAYS)
def test_each_slot_is_delivered_once_or_counted_as_missed_and_none_is_early(
    recurrence: Recurrence, delays: list[int]
) -> None:
    zone = ZoneInfo(recurrence.zone)
    now_ms = recurrence.from_ms + delays[0]
    occurrence, missed = first_occurrence(recurrence, b"id", now_ms)
    delivered: list[Occurrence] = []
    missed_before = 0
    for delay_ms in delays[1:]:
        if occurrence is None:
            break
        delivered.append(occurrence)
        missed_before = missed
        # A relay delivers it when it is due, or some time later.
        now_ms = max(now_ms, occurrence.due_ms) + delay_ms
        occurrence, passed = next_occurrence(recurrence, b"id", occurrence, now_ms)
        missed += passed

    assert [each.number for each in delivered] == list(range(1, len(delivered) + 1))
    assert all(0 <= each.due_ms - each.nominal_ms <= max(0, recurrence.jitter_ms - 1) for each in delivered)
    nominal = [each.nominal_ms for each in delivered]
    assert nominal == sorted(set(nominal))
    slots: list[int] = []
    slot_ms = recurrence.rule.slot_after(recurrence.from_ms - 1, zone)
    while slot_ms is not None and delivered and slot_ms <= nominal[-1] and len(slots) < MOST_MISSED_COUNTED:
        slots.append(slot_ms)
        slot_ms = recurrence.rule.slot_after(slot_ms, zone)
    if len(slots) < MOST_MISSED_COUNTED:
        assert set(nominal) <= set(slots)
        assert len(slots) - len(nominal) == missed_before
    if recurrence.until_ms is not None:
        assert all(each <= recurrence.until_ms for each in nominal)


@given(RECURRENCES, DELAYS)
def test_what_is_reckoned_again_is_the_same(recurrence: Recurrence, delays: list[int]) -> None:
    now_ms = recurrence.from_ms + sum(delays)

    assert first_occurrence(recurrence, b"id", now_ms) == first_occurrence(replace(recurrence), b"id", now_ms)


def test_a_rule_can_be_told_in_words() -> None:
    assert [
        in_words(Recurrence(Cron("0 9 * * mon-fri"), "Europe/Berlin", START_MS, count=10)),
        in_words(Recurrence(Every(5_400_000, START_MS), "UTC", START_MS, START_MS + DAY_MS, 1, 300_000)),
        in_words(Recurrence(Local(START_MS), "Asia/Tehran", START_MS)),
        in_words(Recurrence(Ladder(Instant(START_MS), (Rung(7, 0), Rung(1, HOUR_MS), Rung(0, 0))), "UTC", START_MS)),
        in_words(Recurrence(Ladder(Local(START_MS), (Rung(0, HOUR_MS),)), "UTC", 0, missed=Missed.NONE)),
        in_words(Recurrence(Cron("* * * * *"), "UTC", 0, missed=Missed.ALL, catch_up_ms=DAY_MS)),
    ] == [
        "At 09:00 on Monday through Friday; Europe/Berlin; 10 times",
        "Every 1h30m, counted from 2026-11-21T14:00:00.000Z; UTC; once; until 2026-11-22T14:00:00.000Z;"
        " put off by less than 5m",
        "Once, at 2026-11-21T14:00:00; Asia/Tehran",
        "7d before, 1d1h before and at 2026-11-21T14:00:00.000Z; UTC",
        "1h before 2026-11-21T14:00:00; UTC; missed ones are left out",
        "Every minute; UTC; missed ones of the last 24h are made up for",
    ]


def test_the_header_of_a_delivery_has_number_and_slot() -> None:
    assert SECOND.encode() == b"2:1795269660000"


@given(RECURRENCES, DELAYS)
def test_whatever_follows_an_occurrence_no_slot_is_skipped_before_it_and_missed_ones_are_counted_again(
    recurrence: Recurrence, delays: list[int]
) -> None:
    now_ms = recurrence.from_ms + delays[0]
    occurrence, _ = first_occurrence(recurrence, b"id", now_ms)
    for delay_ms in delays[1:]:
        if occurrence is None or occurrence.number == recurrence.count:
            break
        former, now_ms = occurrence, max(now_ms, occurrence.due_ms) + delay_ms
        occurrence, missed = next_occurrence(recurrence, b"id", former, now_ms)
        if occurrence is not None:
            assert passed_over(recurrence, former.nominal_ms, occurrence, now_ms) == Passed(missed)
        elif missed:
            left, from_ms = left_out(recurrence, former.nominal_ms) or (0, now_ms + 1)
            assert (left, from_ms <= now_ms) == (missed, True)


@pytest.mark.parametrize(
    ("policy", "following", "now_minutes", "expected"),
    [
        (EACH_MINUTE, at(3, 4), 2, Passed(0, 1, START_MS + 3 * MINUTE_MS)),
        (EACH_MINUTE, at(3, 9), 9, Passed(6)),
        (replace(EACH_MINUTE, missed=Missed.NONE), at(3, 9), 9, Passed(6)),
        (replace(EACH_MINUTE, missed=Missed.NONE), at(3, 9), 5, Passed(3, 3, START_MS + 6 * MINUTE_MS)),
        (
            replace(EACH_MINUTE, missed=Missed.ALL, catch_up_ms=3 * MINUTE_MS),
            at(3, 9),
            9,
            Passed(3, 3, START_MS + 6 * MINUTE_MS),
        ),
    ],
)
def test_slots_before_an_occurrence_are_skipped_where_the_policy_would_have_delivered_them(
    policy: Recurrence, following: Occurrence, now_minutes: int, expected: Passed
) -> None:
    assert passed_over(policy, SECOND.nominal_ms + MINUTE_MS, following, START_MS + now_minutes * MINUTE_MS) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (EACH_MINUTE, None),
        (replace(EACH_MINUTE, missed=Missed.NONE), (2, START_MS + 3 * MINUTE_MS)),
        (replace(EACH_MINUTE, missed=Missed.ALL, catch_up_ms=HOUR_MS), (2, START_MS + 3 * MINUTE_MS + HOUR_MS + 1)),
    ],
)
def test_all_slots_that_are_left_may_be_missed_once_the_last_is_past_but_for_the_newest(
    policy: Recurrence, expected: tuple[int, int] | None
) -> None:
    assert left_out(replace(policy, until_ms=START_MS + 3 * MINUTE_MS), START_MS + MINUTE_MS) == expected
