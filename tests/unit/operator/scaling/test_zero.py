from __future__ import annotations

from dataclasses import replace

from tests.unit.operator.scaling.scenes import (
    END,
    LEAD_MS,
    NOW_MS,
    PARTITIONS,
    QUIET,
    SLEEPY,
    decided,
    memory,
    signals,
    source,
)

from delaytopic_api.documents import ConditionStatus
from delaytopic_api.values import ScaleToZero, Suspend
from delaytopic_operator.scaling.capacity import Arrivals, EndOffset
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.rules import SILENT_MS, Reason
from delaytopic_operator.scaling.signals import FleetSignals, Reading, gather
from delaytopic_operator.scaling.state import Backlog, ScalingMemory, Step

END_OF_ALL = PARTITIONS * END
NO_RELAY = gather([], source(), NOW_MS)
NO_ANSWER = gather([], None, NOW_MS)


def outcome(decision: Decision) -> tuple[int, Reason]:
    return decision.replicas, decision.reason


def silent(replicas: int, for_ms: int = SILENT_MS) -> ScalingMemory:
    """Nothing has arrived for a while."""
    points = (EndOffset(NOW_MS - 15_000, END_OF_ALL),)
    return replace(memory(replicas), arrivals=Arrivals(points, NOW_MS - for_ms))


def sleeping(pending: int = 0, next_due_ms: int | None = None) -> ScalingMemory:
    """No relay runs; so much was pending when the last one stopped."""
    return replace(silent(0), backlog=Backlog(NOW_MS - 3_600_000, pending, next_due_ms, END_OF_ALL))


def arrived(records: int) -> FleetSignals:
    return gather([], source(end=END + records), NOW_MS)


def test_no_relay_runs_while_nothing_is_pending_and_nothing_has_arrived_for_ten_minutes() -> None:
    decision = decided(1, signals(QUIET), SLEEPY, silent(1))

    assert outcome(decision) == (0, Reason.NOTHING_PENDING)
    assert decision.sentence == "From 1 to 0 relays: nothing is pending, and nothing has arrived for 10 min."
    assert decision.memory.backlog == Backlog(NOW_MS, 0, None, END_OF_ALL)


def test_a_relay_stays_where_zero_is_not_allowed() -> None:
    assert outcome(decided(1, signals(QUIET), remembered=silent(1))) == (1, Reason.ENOUGH)


def test_a_relay_stays_until_nothing_has_arrived_for_ten_minutes() -> None:
    assert outcome(decided(1, signals(QUIET), SLEEPY, silent(1, SILENT_MS - 1))) == (1, Reason.ENOUGH)


def test_a_relay_stays_for_a_single_record_however_far_away() -> None:
    assert outcome(decided(1, signals({600: 1}), SLEEPY, silent(1))) == (1, Reason.ENOUGH)


def test_a_relay_stays_for_a_record_that_it_has_not_seen() -> None:
    seen = replace(signals(QUIET), source_end=Reading(END_OF_ALL + 1, NOW_MS))
    arrived_long_ago = Arrivals((EndOffset(NOW_MS - 15_000, END_OF_ALL + 1),), NOW_MS - SILENT_MS)

    decision = decided(1, seen, SLEEPY, replace(silent(1), arrivals=arrived_long_ago))

    assert outcome(decision) == (1, Reason.ENOUGH)


def test_a_relay_stays_while_kafka_does_not_tell_where_the_source_ends() -> None:
    seen = replace(signals(QUIET), source_end=None, partitions=None)

    assert outcome(decided(1, seen, SLEEPY, silent(1))) == (1, Reason.ENOUGH)


def test_a_sleeping_fleet_sleeps_on_while_nothing_happens() -> None:
    decision = decided(0, NO_RELAY, SLEEPY, sleeping())

    assert (*outcome(decision), decision.next_look_ms) == (0, Reason.ASLEEP, NOW_MS + 15_000)
    assert (decision.active.status, decision.active.reason) == (ConditionStatus.TRUE, "Asleep")


def test_a_new_record_wakes_it() -> None:
    decision = decided(0, arrived(1), SLEEPY, sleeping())

    assert outcome(decision) == (1, Reason.NEW_RECORDS)
    assert decision.sentence == "From 0 to 1 relay: 12 new records in the source."


def test_it_wakes_at_once_however_short_it_has_slept() -> None:
    just_now = replace(sleeping(), step=Step(NOW_MS - 1_000, 1, 0))

    assert outcome(decided(0, arrived(1), SLEEPY, just_now)) == (1, Reason.NEW_RECORDS)


def test_it_wakes_with_as_many_relays_as_what_arrived_asks_for() -> None:
    unread_only = replace(sleeping(), arrivals=Arrivals())

    assert outcome(decided(0, arrived(200_000), SLEEPY, unread_only)) == (4, Reason.NEW_RECORDS)


def test_a_source_that_was_made_anew_wakes_it() -> None:
    assert outcome(decided(0, gather([], source(end=0), NOW_MS), SLEEPY, sleeping())) == (1, Reason.NEW_RECORDS)


def test_a_due_time_wakes_it_two_lead_times_ahead() -> None:
    at_hand = NOW_MS + 2 * LEAD_MS

    assert outcome(decided(0, NO_RELAY, SLEEPY, sleeping(1, at_hand))) == (1, Reason.NEXT_DUE)


def test_until_then_it_sleeps_and_is_looked_at_exactly_in_time() -> None:
    decision = decided(0, NO_RELAY, SLEEPY, sleeping(5, NOW_MS + 2 * LEAD_MS + 7))

    assert (*outcome(decision), decision.next_look_ms) == (0, Reason.ASLEEP, NOW_MS + 7)


def test_pending_records_of_unknown_time_wake_it() -> None:
    assert outcome(decided(0, NO_RELAY, SLEEPY, sleeping(1))) == (1, Reason.NEXT_DUE)


def test_a_fleet_without_memory_wakes_as_nobody_knows_what_is_pending() -> None:
    assert outcome(decided(0, NO_RELAY, SLEEPY, ScalingMemory())) == (1, Reason.BLIND)


def test_a_fleet_that_may_no_longer_sleep_wakes() -> None:
    awake = replace(SLEEPY, autoscaling=replace(SLEEPY.autoscaling, scale_to_zero=ScaleToZero.NEVER, min_replicas=2))

    assert outcome(decided(0, NO_RELAY, awake, sleeping())) == (2, Reason.MIN_REPLICAS)


def test_a_short_silence_of_kafka_wakes_nothing_and_a_long_one_does() -> None:
    asleep = sleeping()
    long_ago = replace(
        asleep,
        arrivals=Arrivals((EndOffset(NOW_MS - 300_000, END_OF_ALL),), NOW_MS - 900_000),
        watch=asleep.watch._replace(seen_ms=NOW_MS - 300_000),
    )

    assert outcome(decided(0, NO_ANSWER, SLEEPY, asleep)) == (0, Reason.SIGNAL_STALE)
    assert outcome(decided(0, NO_ANSWER, SLEEPY, long_ago)) == (1, Reason.BLIND)


def test_suspended_ingest_lets_it_sleep_although_records_arrive() -> None:
    suspended = replace(SLEEPY, suspend=Suspend.INGEST)

    assert outcome(decided(0, arrived(1), suspended, sleeping())) == (0, Reason.ASLEEP)


def test_suspended_delivery_lets_it_sleep_although_a_record_is_due() -> None:
    suspended = replace(SLEEPY, suspend=Suspend.DELIVERY)

    assert outcome(decided(0, NO_RELAY, suspended, sleeping(1, NOW_MS))) == (0, Reason.ASLEEP)
