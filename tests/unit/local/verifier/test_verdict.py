from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_gateway.client.raw_records import Coordinates
from delaytopic_local.verifier.verdict import (
    DeadLetter,
    DeliveredRecord,
    Fate,
    Lateness,
    Outage,
    SourceRecord,
    Verdict,
    out_of_order,
    verify,
)

END_MS = 1_000_000


def at(offset: int) -> Coordinates:
    return Coordinates("delayed", 0, offset)


def schedule(offset: int, *, sent_ms: int = 0, due_ms: int = 10_000, name: bytes | None = None) -> SourceRecord:
    return SourceRecord(
        at(offset),
        sent_ms,
        Fate.SCHEDULE,
        due_ms,
        name,
        key=b"k",
        value=b"v",
        headers=(("a", b"1"), ("a", None)),
        target="out",
    )


def cancel(offset: int, name: bytes, *, sent_ms: int) -> SourceRecord:
    return SourceRecord(at(offset), sent_ms, Fate.CANCEL, schedule_id=name)


def malformed(offset: int) -> SourceRecord:
    return SourceRecord(at(offset), 0, Fate.DEAD_LETTER, key=b"k", value=b"v", sent_headers=(("deliver-at", b"x"),))


def letter(record: SourceRecord) -> DeadLetter:
    return DeadLetter(record.at, "a reason", record.key, record.value, record.sent_headers)


def arrival(record: SourceRecord, *, late_ms: int = 5) -> DeliveredRecord:
    sent_ms = record.due_ms + late_ms
    return DeliveredRecord(
        record.at, record.due_ms, sent_ms, sent_ms, record.key, record.value, record.headers, topic="out"
    )


def test_a_run_in_which_everything_arrived_once_on_time_is_clean() -> None:
    source = [schedule(0), schedule(1), malformed(2)]

    verdict = verify(source, [arrival(source[0]), arrival(source[1])], [letter(source[2])], until_ms=END_MS)

    late = Lateness(10_000, 5)
    assert verdict == Verdict(
        schedules=2, delivered=2, cancelled=0, replaced=0, dead_lettered=1, pending=0, lateness=(late, late)
    )
    assert verdict.is_clean


def test_a_schedule_that_never_arrives_is_lost() -> None:
    source = [schedule(0), schedule(1)]

    verdict = verify(source, [arrival(source[0])], until_ms=END_MS)

    assert verdict.faults == {"lost": (at(1),)}


def test_a_schedule_that_is_not_due_yet_is_pending_and_not_lost() -> None:
    source = [schedule(0, due_ms=END_MS + 1)]

    verdict = verify(source, [], until_ms=END_MS)

    assert (verdict.pending, verdict.faults) == (1, {})


def test_a_schedule_that_arrives_two_times_is_a_fault() -> None:
    source = [schedule(0)]

    verdict = verify(source, [arrival(source[0]), arrival(source[0], late_ms=90)], until_ms=END_MS)

    assert verdict.faults == {"twice": (at(0),)}


def test_a_schedule_sent_a_millisecond_before_it_is_due_is_early() -> None:
    source = [schedule(0)]

    verdict = verify(source, [arrival(source[0], late_ms=-1)], until_ms=END_MS)

    assert verdict.faults == {"early": (at(0),)}


def test_an_early_record_cannot_hide_behind_its_receipt() -> None:
    source = [schedule(0)]
    disguised = replace(arrival(source[0]), timestamp_ms=9_000)

    verdict = verify(source, [disguised], until_ms=END_MS)

    assert verdict.faults == {"early": (at(0),)}


def test_a_receipt_with_another_due_time_than_the_source_record_says_is_a_fault() -> None:
    source = [schedule(0)]

    verdict = verify(source, [replace(arrival(source[0]), due_ms=10_001)], until_ms=END_MS)

    assert verdict.faults == {"wrong_due": (at(0),)}


@pytest.mark.parametrize("change", [{"key": b"K"}, {"value": None}, {"headers": (("a", None), ("a", b"1"))}])
def test_a_changed_key_value_or_header_is_a_fault(change: dict[str, object]) -> None:
    source = [schedule(0)]

    verdict = verify(source, [replace(arrival(source[0]), **change)], until_ms=END_MS)  # type: ignore[arg-type]

    assert verdict.faults == {"altered": (at(0),)}


def test_an_arrival_on_another_topic_is_a_fault() -> None:
    source = [schedule(0)]

    verdict = verify(source, [replace(arrival(source[0]), topic="elsewhere")], until_ms=END_MS)

    assert verdict.faults == {"misdirected": (at(0),)}


def test_an_arrival_that_nobody_sent_is_a_fault() -> None:
    verdict = verify([], [arrival(schedule(7))], until_ms=END_MS)

    assert verdict.faults == {"unknown": (at(7),)}


def test_a_schedule_cancelled_in_time_need_not_arrive() -> None:
    source = [schedule(0, name=b"x"), cancel(1, b"x", sent_ms=5_000)]

    verdict = verify(source, [], until_ms=END_MS)

    assert (verdict.cancelled, verdict.faults) == (1, {})


def test_a_schedule_cancelled_in_time_must_not_arrive() -> None:
    source = [schedule(0, name=b"x"), cancel(1, b"x", sent_ms=5_000)]

    verdict = verify(source, [arrival(source[0])], until_ms=END_MS)

    assert verdict.faults == {"unwanted": (at(0),)}


@pytest.mark.parametrize("arrives", [True, False])
def test_a_cancel_shortly_before_the_due_time_may_win_or_lose(arrives: bool) -> None:
    source = [schedule(0, name=b"x"), cancel(1, b"x", sent_ms=9_500)]

    verdict = verify(source, [arrival(source[0])] if arrives else [], until_ms=END_MS, settle_ms=1_000)

    assert verdict.is_clean


def test_a_cancel_long_after_the_due_time_does_not_excuse_a_loss() -> None:
    source = [schedule(0, name=b"x"), cancel(1, b"x", sent_ms=50_000)]

    verdict = verify(source, [], until_ms=END_MS, settle_ms=1_000)

    assert verdict.faults == {"lost": (at(0),)}


@pytest.mark.parametrize("arrives", [True, False])
def test_a_cancel_sent_during_an_outage_that_lasts_over_the_due_time_may_win_or_lose(arrives: bool) -> None:
    source = [schedule(0, name=b"x"), cancel(1, b"x", sent_ms=5_000)]

    verdict = verify(source, [arrival(source[0])] if arrives else [], until_ms=END_MS, outages=[Outage(4_000, 20_000)])

    assert verdict.is_clean


def test_a_cancel_taken_in_before_an_outage_takes_effect_after_it() -> None:
    source = [schedule(0, name=b"x"), cancel(1, b"x", sent_ms=1_000)]

    verdict = verify(source, [arrival(source[0])], until_ms=END_MS, outages=[Outage(4_000, 20_000)])

    assert verdict.faults == {"unwanted": (at(0),)}


def test_a_replaced_schedule_need_not_arrive_but_its_replacement_must() -> None:
    source = [schedule(0, name=b"x"), schedule(1, name=b"x", sent_ms=2_000, due_ms=20_000)]

    verdict = verify(source, [], until_ms=END_MS)

    assert (verdict.replaced, verdict.faults) == (1, {"lost": (at(1),)})


def test_commands_of_another_id_or_partition_end_nothing() -> None:
    elsewhere = replace(cancel(2, b"x", sent_ms=1_000), at=Coordinates("delayed", 1, 2))
    source = [schedule(0, name=b"x"), cancel(1, b"y", sent_ms=1_000), elsewhere]

    verdict = verify(source, [], until_ms=END_MS)

    assert verdict.faults == {"lost": (at(0),)}


def test_a_cancel_that_arrives_on_the_target_is_a_fault() -> None:
    source = [cancel(0, b"x", sent_ms=0)]

    verdict = verify(source, [arrival(source[0])], until_ms=END_MS)

    assert verdict.faults == {"unwanted": (at(0),)}


def test_a_malformed_record_must_be_on_the_dead_letter_topic() -> None:
    verdict = verify([malformed(0)], [], [], until_ms=END_MS)

    assert verdict.faults == {"dead_letters_missing": (at(0),)}


def test_a_malformed_record_twice_on_the_dead_letter_topic_is_a_fault() -> None:
    source = [malformed(0)]

    verdict = verify(source, [], [letter(source[0])] * 2, until_ms=END_MS)

    assert verdict.faults == {"dead_letters_twice": (at(0),)}


def test_a_good_record_on_the_dead_letter_topic_is_a_fault() -> None:
    source = [schedule(0)]

    verdict = verify(source, [], [letter(source[0])], until_ms=END_MS)

    assert verdict.faults == {"dead_letters_unwanted": (at(0),)}


@pytest.mark.parametrize("change", [{"key": b"K"}, {"value": None}, {"headers": ()}])
def test_a_dead_letter_that_is_not_what_was_sent_is_a_fault(change: dict[str, object]) -> None:
    source = [malformed(0)]

    verdict = verify(source, [], [replace(letter(source[0]), **change)], until_ms=END_MS)  # type: ignore[arg-type]

    assert verdict.faults == {"dead_letters_altered": (at(0),)}


def test_a_dead_letter_that_did_not_fit_keeps_its_key_at_least() -> None:
    source = [malformed(0)]
    shortened = replace(letter(source[0]), value=None, headers=(), is_shortened=True)

    kept, lost = (verify(source, [], [record], until_ms=END_MS) for record in (shortened, replace(shortened, key=None)))

    assert (kept.faults, lost.faults) == ({}, {"dead_letters_altered": (at(0),)})


def test_a_record_that_may_expire_arrives_in_time_or_is_a_dead_letter() -> None:
    source = [replace(schedule(0), expires_ms=10_100)]

    in_time = verify(source, [arrival(source[0])], until_ms=END_MS)
    expired = verify(source, [], [letter(source[0])], until_ms=END_MS)

    assert (in_time.faults, expired.faults) == ({}, {})


def test_a_record_that_arrives_after_it_expired_or_both_ways_is_a_fault() -> None:
    source = [replace(schedule(0), expires_ms=10_100)]

    too_late = verify(source, [arrival(source[0], late_ms=101)], until_ms=END_MS)
    both = verify(source, [arrival(source[0])], [letter(source[0])], until_ms=END_MS)

    assert (too_late.faults, both.faults) == ({"unwanted": (at(0),)}, {"dead_letters_unwanted": (at(0),)})


def test_a_record_handed_in_after_its_due_time_is_late_from_then_on() -> None:
    source = [schedule(0, sent_ms=30_000)]

    verdict = verify(source, [arrival(source[0], late_ms=20_007)], until_ms=END_MS)

    assert verdict.lateness == (Lateness(10_000, 7),)


def test_deliveries_against_due_order_are_found() -> None:
    first, second = schedule(0, due_ms=10_000), schedule(1, due_ms=11_000)

    found = out_of_order([first, second], [arrival(second), arrival(first)], caught_up_ms=5_000)

    assert found == (at(0),)


def test_a_record_already_due_when_it_was_read_has_no_order_to_keep() -> None:
    first, second = schedule(0, due_ms=10_000), schedule(1, due_ms=11_000)

    found = out_of_order([first, second], [arrival(second), arrival(first)], caught_up_ms=10_500)

    assert found == ()


@given(st.integers(1, 40), st.data())
def test_whatever_single_record_is_left_out_or_doubled_is_named(count: int, data: st.DataObject) -> None:
    source = [schedule(offset, due_ms=10_000 + offset % 7) for offset in range(count)]
    arrivals = [arrival(record) for record in source]
    victim = data.draw(st.integers(0, count - 1))

    without = verify(source, arrivals[:victim] + arrivals[victim + 1 :], until_ms=END_MS)
    doubled = verify(source, [*arrivals, arrivals[victim]], until_ms=END_MS)

    assert (without.faults, doubled.faults) == ({"lost": (at(victim),)}, {"twice": (at(victim),)})
