from __future__ import annotations

from tests.unit.operator.scaling.scenes import NOW_MS

from delaytopic_operator.scaling.capacity import (
    ASSUMED_PER_SECOND,
    LEAST_PER_SECOND,
    MOST_PER_SECOND,
    MOST_RELAYS,
    MOST_SAMPLES,
    Capacity,
    RateEstimate,
    RateSample,
    weighted_median,
)
from delaytopic_operator.scaling.pace import USUAL, WINDOW_MS
from delaytopic_operator.scaling.signals import RelayFacts

POLL_MS = 15_000


def relay(delivered: int, poll: int = 0, name: str = "relay-0", busy_rate: float | None = None) -> RelayFacts:
    at_ms = NOW_MS + poll * POLL_MS
    return RelayFacts(name, NOW_MS, at_ms, delivered, busy_rate, delivering=True)


def observed(*polls: RelayFacts) -> Capacity:
    """One relay, poll by poll."""
    capacity = Capacity()
    for facts in polls:
        capacity = capacity.observed([facts], facts.as_of_ms, USUAL)
    return capacity


def test_a_capacity_that_was_never_measured_is_the_start_value() -> None:
    assert Capacity().per_second == 5_000


def test_a_busy_relay_tells_what_it_can_do() -> None:
    polls = [relay(20_000 * poll, poll, busy_rate=1_500.0) for poll in range(4)]

    assert observed(*polls).per_second == 1_500


def test_a_relay_that_has_delivered_a_few_records_says_nothing_about_what_it_could() -> None:
    polls = [relay(99 * poll, poll, busy_rate=150.0) for poll in range(10)]

    assert observed(*polls).per_second == ASSUMED_PER_SECOND


def test_a_relay_that_measured_no_rate_says_nothing_however_much_it_delivers() -> None:
    polls = [relay(20_000 * poll, poll) for poll in range(10)]

    assert observed(*polls).per_second == ASSUMED_PER_SECOND


def test_a_capacity_is_remembered_after_the_last_busy_quarter_of_an_hour() -> None:
    busy = observed(*(relay(20_000 * poll, poll, busy_rate=1_500.0) for poll in range(4)))

    later = busy.observed([relay(60_001, 100)], NOW_MS + 100 * POLL_MS, USUAL)

    assert (later.delivery.samples, later.per_second) == ((), 1_500)


def test_the_typical_record_decides_not_the_typical_second() -> None:
    samples = [RateSample(0, 50, 10), RateSample(0, 60, 10), RateSample(0, 3_000, 10_000)]

    assert weighted_median(samples) == 3_000


def test_an_estimate_stays_within_its_bounds() -> None:
    assert RateEstimate(remembered=1).per_second == LEAST_PER_SECOND
    assert RateEstimate(remembered=10**9).per_second == MOST_PER_SECOND


def test_two_samples_are_not_enough() -> None:
    estimate = (
        RateEstimate()
        .with_sample(RateSample(0, 99, 1_000), 0, WINDOW_MS)
        .with_sample(RateSample(1, 99, 1_000), 1, WINDOW_MS)
    )

    assert not estimate.measured


def test_samples_are_bounded_in_number_and_age() -> None:
    estimate = RateEstimate()
    for at_ms in range(0, 2 * WINDOW_MS, 1_000):
        estimate = estimate.with_sample(RateSample(at_ms, 500, 1_000), at_ms, WINDOW_MS)

    assert len(estimate.samples) == MOST_SAMPLES
    assert estimate.with_sample(None, 4 * WINDOW_MS, WINDOW_MS).samples == ()


def test_a_relay_that_restarted_is_counted_anew() -> None:
    first = relay(100_000, 0, busy_rate=1_000.0)
    restarted = relay(150_000, 1, busy_rate=1_000.0)._replace(started_at_ms=NOW_MS + 1)

    assert observed(first, restarted).delivery.samples == ()


def test_the_same_answer_twice_changes_nothing() -> None:
    once = observed(relay(0, 0), relay(20_000, 1, busy_rate=1_500.0))

    assert once.observed([relay(20_000, 1, busy_rate=1_500.0)], NOW_MS + POLL_MS + 1, USUAL) == once


def test_no_more_relays_are_remembered_than_fit() -> None:
    relays = [relay(0, 0, f"relay-{n}") for n in range(300)]

    assert len(Capacity().observed(relays, NOW_MS, USUAL).tallies) == MOST_RELAYS
