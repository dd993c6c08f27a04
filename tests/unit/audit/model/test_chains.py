"""Links of chains: what is read of one record, and what lies between two of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from delaytopic_api.records import Headers
from delaytopic_api.recurrence import Occurrence, Passed
from delaytopic_audit.model.chains import Link, behind, between, link_of

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
NINE_MS = int(datetime(2026, 10, 24, 7, 0, tzinfo=UTC).timestamp() * 1000)
DAILY: Headers = [("deliver-cron", b"0 9 * * *"), ("deliver-tz", b"Europe/Berlin")]
RULE = '{"deliver-cron": "0 9 * * *", "deliver-tz": "Europe/Berlin"}'


def at(number: int, slot_ms: int) -> Occurrence:
    """Return an occurrence without jitter."""
    return Occurrence(number, slot_ms, slot_ms)


def test_a_link_has_the_next_slot_by_the_clocks_of_its_zone() -> None:
    found = link_of([("other", b"x"), *DAILY], b"id", 0, at(3, NINE_MS))

    assert found == Link(NINE_MS, NINE_MS + DAY_MS + HOUR_MS, RULE)
    assert found.text() == f"{NINE_MS}:{NINE_MS + DAY_MS + HOUR_MS}:{RULE}"


def test_a_record_that_recurs_has_its_first_slot_next() -> None:
    assert link_of(DAILY, b"id", NINE_MS - 1, None) == Link(None, NINE_MS, RULE)


def test_the_last_occurrence_has_no_slot_next() -> None:
    three: Headers = [*DAILY, ("deliver-count", b"3")]

    assert link_of(three, b"id", 0, at(3, NINE_MS)).next_ms is None
    assert link_of(three, b"id", 0, at(2, NINE_MS)).next_ms is not None


@pytest.mark.parametrize("zone", [b"Europe/Nowhere", b"Europe"])
def test_a_link_says_nothing_of_a_zone_that_this_machine_does_not_have(zone: bytes) -> None:
    assert link_of([DAILY[0], ("deliver-tz", zone)], b"id", 0, at(3, NINE_MS)) == Link(NINE_MS)


def test_an_interval_is_counted_on_from_any_of_its_slots() -> None:
    rule = link_of([("deliver-every", b"90s")], b"id", NINE_MS, None).rule

    assert between(rule, NINE_MS + 90_000, at(2, NINE_MS + 900_000), NINE_MS + 900_000) == Passed(9)
    assert between(rule, NINE_MS + 90_000, at(2, NINE_MS + 180_000), NINE_MS) == Passed(0, 1, NINE_MS + 90_000)


def test_what_is_left_of_a_rule_may_be_missed_where_its_policy_is_to_make_up_for_nothing() -> None:
    until = ("deliver-until", b"%d" % (NINE_MS + 2 * DAY_MS + HOUR_MS))
    rule = link_of([*DAILY, until, ("deliver-missed", b"None")], b"id", 0, at(1, NINE_MS)).rule

    assert behind(rule, NINE_MS + DAY_MS + HOUR_MS) == (2, NINE_MS + 2 * DAY_MS + HOUR_MS)
