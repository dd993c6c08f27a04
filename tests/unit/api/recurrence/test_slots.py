"""Slots of rules beside clocks that are put forward and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from delaytopic_api.recurrence import Cron, Every, Instant, Ladder, Local, Rule, Rung, instant_of_wall

ZONES = (
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago"),
    *("Asia/Beirut", "Asia/Tehran", "Africa/Casablanca", "UTC"),
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE_MS = 60_000


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def slots(rule: Rule, zone: str, after: str, most: int) -> list[str]:
    found: list[str] = []
    slot_ms: int | None = ms(after)
    while len(found) < most:
        assert slot_ms is not None
        slot_ms = rule.slot_after(slot_ms, ZoneInfo(zone))
        if slot_ms is None:
            break
        found.append(datetime.fromtimestamp(slot_ms / 1000, ZoneInfo(zone)).isoformat())
    return found


def wall(text: str) -> int:
    return ms(f"{text}Z")


@pytest.mark.parametrize(
    ("zone", "local", "instant"),
    [
        ("Europe/Berlin", "2026-03-29T02:30:00", "2026-03-29T01:00:00Z"),
        ("Europe/Berlin", "2026-03-29T03:00:00", "2026-03-29T01:00:00Z"),
        ("Europe/Berlin", "2026-03-29T01:59:59.999", "2026-03-29T00:59:59.999Z"),
        ("Europe/Berlin", "2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),
        ("Europe/Berlin", "2026-10-25T03:00:00", "2026-10-25T02:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-04T02:15:00", "2026-10-03T15:30:00Z"),
        ("America/Santiago", "2026-09-06T00:30:00", "2026-09-06T04:00:00Z"),
        ("Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T10:00:00Z"),
    ],
)
def test_a_local_time_in_a_gap_is_the_first_moment_after_it_and_in_a_fold_the_first_of_two(
    zone: str, local: str, instant: str
) -> None:
    assert instant_of_wall(wall(local), ZoneInfo(zone)) == ms(instant)


@given(st.integers(ms("2020-01-01T00:00:00Z"), ms("2040-01-01T00:00:00Z")), st.sampled_from(ZONES))
def test_a_local_time_is_the_first_instant_whose_clock_shows_it_or_more(instant_ms: int, zone: str) -> None:
    shown = (EPOCH + timedelta(milliseconds=instant_ms)).astimezone(ZoneInfo(zone)).replace(tzinfo=UTC)
    found_ms = instant_of_wall((shown - EPOCH) // timedelta(milliseconds=1), ZoneInfo(zone))

    assert found_ms <= instant_ms
    assert (EPOCH + timedelta(milliseconds=found_ms)).astimezone(ZoneInfo(zone)).replace(tzinfo=UTC) == shown


def test_a_time_of_the_clock_fires_once_on_both_days_of_change() -> None:
    assert slots(Cron("30 2 * * *"), "Europe/Berlin", "2026-03-28T12:00Z", 2) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    assert slots(Cron("30 2 * * *"), "Europe/Berlin", "2026-10-24T12:00Z", 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]


def test_six_fields_follow_the_rules_of_five() -> None:
    assert slots(Cron("0 30 2 * * *"), "Europe/Berlin", "2026-03-28T12:00Z", 1) == ["2026-03-29T03:00:00+02:00"]
    assert slots(Cron("0 30 2 * * *"), "Europe/Berlin", "2026-10-24T12:00Z", 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]


def test_times_that_one_gap_leaves_out_are_one_slot() -> None:
    assert slots(Cron("0,30 2-3 * * *"), "Europe/Berlin", "2026-03-29T00:00Z", 3) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-29T03:30:00+02:00",
        "2026-03-30T02:00:00+02:00",
    ]


def test_a_rhythm_goes_on_through_a_fold_and_leaves_out_a_gap() -> None:
    assert slots(Cron("*/30 * * * *"), "Europe/Berlin", "2026-10-24T23:45Z", 5) == [
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T02:30:00+01:00",
        "2026-10-25T03:00:00+01:00",
    ]
    assert slots(Cron("*/30 2 * * *"), "Europe/Berlin", "2026-03-28T12:00Z", 1) == ["2026-03-30T02:00:00+02:00"]


def test_a_rhythm_of_midnight_leaves_out_a_day_without_one() -> None:
    assert slots(Cron("*/30 0 * * *"), "America/Santiago", "2026-09-05T12:00Z", 1) == ["2026-09-07T00:00:00-03:00"]


def test_an_interval_never_minds_the_clock() -> None:
    every = Every(3_600_000, ms("2026-10-24T23:00Z"))

    assert [every.slot_after(every.anchor_ms + n, ZoneInfo("UTC")) for n in (-5_000_000, -1, 0, 3_599_999)] == [
        every.anchor_ms,
        every.anchor_ms,
        every.anchor_ms + 3_600_000,
        every.anchor_ms + 3_600_000,
    ]


def test_days_of_a_ladder_are_those_of_the_calendar_and_hours_those_of_the_clock() -> None:
    ladder = Ladder(Local(wall("2026-10-26T09:00:00")), (Rung(1, 0), Rung(0, 24 * 3_600_000), Rung(0, 0), Rung(7, 1)))

    assert slots(ladder, "Europe/Berlin", "2026-01-01T00:00Z", 9) == [
        "2026-10-19T08:59:59.999000+02:00",
        "2026-10-25T09:00:00+01:00",
        "2026-10-26T09:00:00+01:00",
    ]
    assert slots(ladder, "Europe/Berlin", "2026-10-25T12:00Z", 9) == ["2026-10-26T09:00:00+01:00"]


def test_a_ladder_from_an_instant_within_a_fold_ends_at_that_one() -> None:
    ladder = Ladder(Instant(ms("2026-10-25T02:30:00+01:00")), (Rung(0, 3_600_000), Rung(0, 0)))

    assert slots(ladder, "Europe/Berlin", "2026-01-01T00:00Z", 9) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-25T02:30:00+01:00",
    ]


MINUTES = st.sampled_from(["0", "30", "15,45", "0-59", "59", "5-20"])
HOURS = st.sampled_from(["0", "1", "2", "3", "0-23", "1-3", "23", "2,3"])
STARRED_MINUTES = st.sampled_from(["*", "*/15", "*/7"])
STARRED_HOURS = st.sampled_from(["*", "*/2", "*/5"])
DAYS = st.sampled_from(["* * *", "* * sun", "*/2 * *", "1-7 * sun", "l * *", "* 3,9,10 *"])
CHANGES = [
    *("2026-03-29T00:00Z", "2026-10-25T00:00Z", "2026-03-08T06:00Z", "2026-11-01T05:00Z", "2026-04-04T14:00Z"),
    *("2026-10-03T14:00Z", "2026-04-05T02:00Z", "2026-09-06T03:00Z", "2026-03-28T21:00Z", "2026-10-24T20:00Z"),
    *("2022-03-21T20:00Z", "2022-09-21T19:00Z", "2026-02-15T01:00Z", "2026-03-22T01:00Z", "2026-06-01T00:00Z"),
]
AFTER = st.builds(
    lambda change, minutes, extra: ms(change) + minutes * MINUTE_MS + extra,
    st.sampled_from(CHANGES),
    st.integers(-1_500, 300),
    st.sampled_from([-1, 0, 1, 30_500]),
)


def fields(expression: str) -> list[set[int]]:
    """Take minutes and hours apart, in another way than the product does."""
    parsed: list[set[int]] = []
    for text, size in zip(expression.split()[:2], (60, 24), strict=True):
        found: set[int] = set()
        for term in text.split(","):
            span, _, step = term.partition("/")
            first, _, last = ("0", "-", str(size - 1)) if span == "*" else span.partition("-")
            found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
        parsed.append(found)
    return parsed


@given(st.builds("{} {} * * *".format, STARRED_MINUTES, HOURS | STARRED_HOURS), AFTER, st.sampled_from(ZONES))
@example("*/15 0 * * *", ms("2026-09-05T12:00Z"), "America/Santiago")
@example("* 0 * * *", ms("2026-04-04T14:00Z"), "Australia/Lord_Howe")
def test_a_rhythm_has_each_minute_whose_clock_fits(expression: str, after_ms: int, zone: str) -> None:
    minutes, hours = fields(expression)
    slot_ms = Cron(expression).slot_after(after_ms, ZoneInfo(zone))
    assert slot_ms is not None
    fits = []
    for minute in range(after_ms // MINUTE_MS + 1, slot_ms // MINUTE_MS + 1):
        shown = datetime.fromtimestamp(minute * 60, ZoneInfo(zone))
        if shown.minute in minutes and shown.hour in hours:
            fits.append(minute * MINUTE_MS)

    assert fits == [slot_ms]


@given(st.builds("{} {} * * *".format, MINUTES, HOURS), AFTER, st.sampled_from(ZONES))
@example("0-59 0-23 * * *", ms("2026-10-25T00:30Z"), "Europe/Berlin")
def test_a_time_of_the_clock_is_the_first_minute_that_shows_it_or_passes_it(
    expression: str, after_ms: int, zone: str
) -> None:
    minutes, hours = fields(expression)
    slot_ms = Cron(expression).slot_after(after_ms, ZoneInfo(zone))
    assert slot_ms is not None
    shown = [
        datetime.fromtimestamp(minute * 60, ZoneInfo(zone)).replace(tzinfo=None)
        for minute in range(after_ms // MINUTE_MS - 300, slot_ms // MINUTE_MS + 1)
    ]
    fits = []
    latest = shown[0]
    for place, moment in enumerate(shown[1:], after_ms // MINUTE_MS - 299):
        passed = [latest + timedelta(minutes=n) for n in range(1, (moment - latest) // timedelta(minutes=1) + 1)]
        if place * MINUTE_MS > after_ms and any(each.minute in minutes and each.hour in hours for each in passed):
            fits.append(place * MINUTE_MS)
        latest = max(latest, moment)

    assert fits == [slot_ms]


@given(
    st.builds("{} {} {}".format, MINUTES | STARRED_MINUTES, HOURS | STARRED_HOURS, DAYS), AFTER, st.sampled_from(ZONES)
)
def test_wherever_one_begins_the_slots_are_the_same(expression: str, after_ms: int, zone: str) -> None:
    rule = Cron(expression)
    chain: list[int] = []
    slot_ms: int | None = after_ms
    for _ in range(8):
        assert slot_ms is not None
        slot_ms = rule.slot_after(slot_ms, ZoneInfo(zone))
        assert slot_ms is not None
        chain.append(slot_ms)

    assert chain == sorted(set(chain))
    for before_ms, each_ms in zip([after_ms, *chain], chain, strict=False):
        for start_ms in (before_ms, (before_ms + each_ms) // 2, each_ms - 1):
            assert rule.slot_after(start_ms, ZoneInfo(zone)) == each_ms


def test_no_rule_has_slots_at_the_end_of_time() -> None:
    late_ms = ms("9998-12-30T23:59:00Z")

    assert [
        Cron("0 0 29 2 *").slot_after(late_ms, ZoneInfo("Pacific/Kiritimati")),
        Cron("* * * * *").slot_after(late_ms + 86_400_000, ZoneInfo("Pacific/Kiritimati")),
        Every(3_600_000, 0).slot_after(late_ms + 86_400_000, ZoneInfo("UTC")),
    ] == [None, None, None]
