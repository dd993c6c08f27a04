"""Tests of how long records are sent one by one, after Kafka refused a batch without naming the record."""

from __future__ import annotations

from delaytopic_relay.delivery.refusals import CAREFUL_MS, LONGEST_CAREFUL_MS, OneByOne


def refused(caution: OneByOne, now_ms: int) -> OneByOne:
    """A refusal without a name, and the first record that is sent after it."""
    caution.refused(known=False)
    caution.holds(now_ms, may_begin=True)
    return caution


def test_records_go_in_batches_until_one_is_refused() -> None:
    assert not OneByOne().holds(0, may_begin=True)


def test_the_time_counts_from_the_next_record_that_is_sent() -> None:
    caution = OneByOne()
    caution.refused(known=False)

    held = [caution.holds(0, may_begin=False), caution.holds(90_000, may_begin=True)]

    assert held == [False, True]
    assert caution.holds(90_000 + CAREFUL_MS - 1, may_begin=True)
    assert not caution.holds(90_000 + CAREFUL_MS, may_begin=True)


def test_the_time_doubles_until_reading_again_takes_no_longer() -> None:
    caution, now_ms, rounds = OneByOne(), 0, 0

    # Each round reads for a minute, from the first record sent to the one that is refused.
    while not refused(caution, now_ms).holds(now_ms + 60_000, may_begin=True):
        now_ms, rounds = now_ms + 60_000, rounds + 1

    assert rounds == 4


def test_a_refusal_that_names_its_record_ends_the_doubling() -> None:
    caution = refused(refused(OneByOne(), 0), 10_000)
    caution.refused(known=True)

    refused(caution, 100_000)

    assert not caution.holds(100_000 + CAREFUL_MS, may_begin=True)


def test_a_refusal_long_after_the_last_one_begins_anew() -> None:
    caution = refused(refused(OneByOne(), 0), 10_000)

    later_ms = 30_000 + LONGEST_CAREFUL_MS + 1
    refused(caution, later_ms)

    assert not caution.holds(later_ms + CAREFUL_MS, may_begin=True)
