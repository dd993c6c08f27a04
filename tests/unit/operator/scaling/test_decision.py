from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.operator.scaling.scenes import (
    LEAD_MS,
    NOW_MS,
    POLICY,
    QUIET,
    burst,
    decided,
    memory,
    policy,
    shard,
    signals,
    source,
    status,
    steady,
)

from delaytopic_api.documents import ConditionStatus
from delaytopic_api.values import Suspend
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.rules import Reason
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.scaling.state import PastRecommendation, Peak, Peaks, Recommendations, ScalingMemory, Step

STALE = gather([], source(), NOW_MS)
"""Kafka answers, no relay does."""


def outcome(decision: Decision) -> tuple[int, Reason]:
    return decision.replicas, decision.reason


def test_a_load_that_one_relay_can_do_needs_one() -> None:
    assert outcome(decided(1, signals(steady(1_000)))) == (1, Reason.ENOUGH)


def test_a_burst_within_the_lead_time_gets_the_relays_that_it_needs_in_one_step() -> None:
    decision = decided(1, signals(burst(60, 300_000, per_second=300)))

    assert outcome(decision) == (12, Reason.DUE)
    assert decision.sentence == (
        "From 1 to 12 relays: 301,500 records due between 08:00:50 and 08:01:40 UTC, "
        "and a relay delivers 2,500 a second."
    )


def test_a_burst_further_away_raises_nothing_yet_and_is_looked_at_again_exactly_in_time() -> None:
    decision = decided(1, signals({60: 0, 70: 0, 80: 300_000, 600: 0}))

    assert outcome(decision) == (1, Reason.ENOUGH)
    assert decision.next_look_ms == NOW_MS + 70_000 - LEAD_MS - POLICY.pace.poll_ms


def test_a_burst_further_away_keeps_relays_that_are_there() -> None:
    assert outcome(decided(12, signals(burst(400, 300_000)))) == (12, Reason.NEEDED_SOON)


def test_what_is_overdue_gets_more_relays() -> None:
    decision = decided(1, signals(QUIET, overdue=300_000))

    assert outcome(decision) == (12, Reason.OVERDUE)
    assert decision.sentence == ("From 1 to 12 relays: 300,000 records overdue, and a relay delivers 2,500 a second.")


def test_a_source_that_cannot_be_taken_in_fast_enough_gets_more_relays() -> None:
    assert outcome(decided(1, signals(QUIET, lag=2_000_000))) == (4, Reason.INGEST)


def test_relays_that_have_not_been_needed_for_a_while_are_taken_away_in_one_step() -> None:
    decision = decided(12, signals(QUIET))

    assert outcome(decision) == (1, Reason.LESS_NEEDED)
    assert decision.sentence == "From 12 to 1 relay: 1 relay has been enough for 5 min."


def test_relays_that_were_needed_lately_stay() -> None:
    remembered = replace(memory(12), recommendations=Recommendations((PastRecommendation(NOW_MS - 299_000, 12),)))

    assert outcome(decided(12, signals(QUIET), remembered=remembered)) == (12, Reason.STABILIZING)


def test_no_more_are_taken_away_than_was_enough_lately() -> None:
    remembered = replace(memory(12), recommendations=Recommendations((PastRecommendation(NOW_MS - 299_000, 4),)))

    assert outcome(decided(12, signals(QUIET), remembered=remembered)) == (4, Reason.LESS_NEEDED)


def test_an_operator_that_has_just_started_takes_no_relay_away() -> None:
    assert outcome(decided(12, signals(QUIET), remembered=ScalingMemory())) == (12, Reason.STABILIZING)


def test_a_smaller_fleet_needs_a_tenth_to_spare() -> None:
    nearly_two = steady(2_500 * 2 * 6 // 10 - 50)

    assert outcome(decided(3, signals(nearly_two))) == (3, Reason.ENOUGH)
    assert outcome(decided(2, signals(nearly_two))) == (2, Reason.ENOUGH)


class TestLimits:
    """Set by people: they hold whatever is signalled."""

    def test_too_many_relays_are_taken_away_at_once(self) -> None:
        decision = decided(12, signals(burst(60, 300_000)), policy(max_replicas=4))

        assert outcome(decision) == (4, Reason.MAX_REPLICAS)

    def test_too_few_are_filled_up_at_once(self) -> None:
        assert outcome(decided(1, signals(QUIET), policy(min_replicas=2))) == (2, Reason.MIN_REPLICAS)

    def test_more_than_there_are_partitions_are_of_no_use(self) -> None:
        assert outcome(decided(20, signals(QUIET))) == (12, Reason.MAX_REPLICAS)

    def test_a_limit_between_two_useful_sizes_means_the_lower_one(self) -> None:
        decision = decided(1, signals(burst(60, 300_000)), policy(max_replicas=8))

        assert (decision.replicas, decision.max_useful) == (6, 6)


class TestUnknown:
    """Unknown signals are never zero."""

    def test_without_any_answer_of_a_relay_everything_stays(self) -> None:
        decision = decided(4, STALE)

        assert outcome(decision) == (4, Reason.SIGNAL_STALE)
        assert decision.next_look_ms == NOW_MS + 15_000

    def test_after_five_minutes_without_an_answer_the_peak_of_the_last_day_runs(self) -> None:
        hours = tuple(Peak(NOW_MS // 3_600_000 - 23 + n, 6 if n == 5 else 3) for n in range(24))
        remembered = replace(memory(1), peaks=Peaks(hours))
        blind = replace(remembered, watch=remembered.watch._replace(seen_ms=NOW_MS - 300_000))

        assert outcome(decided(1, STALE, remembered=blind)) == (3, Reason.BLIND)
        assert outcome(decided(4, STALE, remembered=replace(blind, replicas=4))) == (4, Reason.SIGNAL_STALE)

    def test_even_then_the_limit_holds(self) -> None:
        remembered = replace(memory(1), peaks=Peaks((Peak(NOW_MS // 3_600_000, 6),)))
        blind = replace(remembered, watch=remembered.watch._replace(seen_ms=NOW_MS - 300_000))

        assert outcome(decided(1, STALE, policy(max_replicas=2), blind)) == (2, Reason.BLIND)

    def test_an_operator_that_was_away_itself_has_not_been_blind(self) -> None:
        remembered = replace(memory(1, now_ms=NOW_MS - 3_600_000), peaks=Peaks((Peak(NOW_MS // 3_600_000, 6),)))

        assert outcome(decided(1, STALE, remembered=remembered)) == (1, Reason.SIGNAL_STALE)

    def test_a_partition_without_a_relay_forbids_taking_relays_away(self) -> None:
        seen = gather([status({n: shard(n) for n in range(11)})], source(), NOW_MS)

        decision = decided(12, seen)

        assert outcome(decision) == (12, Reason.SIGNAL_STALE)
        assert decision.sentence == "Stays at 12 relays: no relay reports partition 11."

    def test_what_the_others_report_is_enough_to_add_relays(self) -> None:
        seen = gather([status({n: shard(n, {50: 0, 55: 30_000, 600: 0}) for n in range(11)})], source(), NOW_MS)

        assert outcome(decided(1, seen)) == (12, Reason.DUE)

    def test_the_number_of_partitions_is_remembered_while_kafka_is_away(self) -> None:
        seen = gather([status({n: shard(n) for n in range(12)})], None, NOW_MS)

        assert outcome(decided(12, seen)) == (1, Reason.LESS_NEEDED)

    def test_nothing_happens_to_a_topic_that_nobody_knows(self) -> None:
        decision = decided(3, gather([], None, NOW_MS), remembered=ScalingMemory())

        assert outcome(decision) == (3, Reason.SIGNAL_STALE)
        assert (decision.active.status, decision.capacity.status) == (ConditionStatus.FALSE, ConditionStatus.UNKNOWN)


class TestPace:
    """Every step is a rebalance."""

    def test_a_step_waits_until_half_a_minute_after_the_last(self) -> None:
        remembered = replace(memory(2), step=Step(NOW_MS - 20_000, 1, 2))

        decision = decided(2, signals(burst(60, 300_000)), remembered=remembered)

        assert (*outcome(decision), decision.next_look_ms) == (2, Reason.STEP_TOO_SOON, NOW_MS + 10_000)

    def test_a_step_down_waits_for_a_minute(self) -> None:
        remembered = replace(memory(2), step=Step(NOW_MS - 50_000, 3, 2))

        decision = decided(2, signals(QUIET), remembered=remembered)

        assert (*outcome(decision), decision.next_look_ms) == (2, Reason.STEP_TOO_SOON, NOW_MS + 10_000)

    def test_a_step_that_somebody_else_took_counts_too(self) -> None:
        decision = decided(6, signals(QUIET), remembered=memory(12))

        assert outcome(decision) == (6, Reason.STEP_TOO_SOON)
        assert decision.memory.step == Step(NOW_MS, 12, 6)

    def test_the_next_decision_knows_of_the_step(self) -> None:
        decision = decided(1, signals(burst(60, 300_000)))

        assert decision.memory.step == Step(NOW_MS, 1, 12)


class TestHeld:
    """By annotations, or because everything stands still on purpose."""

    def test_an_annotation_holds_relays_that_would_go(self) -> None:
        held = replace(POLICY, paused_scale_in=True)

        decision = decided(12, signals(QUIET), held)

        assert outcome(decision) == (12, Reason.PAUSED_SCALE_IN)
        assert decision.active.reason == "PausedScaleIn"

    def test_an_annotation_holds_relays_that_would_come(self) -> None:
        held = replace(POLICY, paused_scale_out=True)

        assert outcome(decided(1, signals(burst(60, 300_000)), held)) == (1, Reason.PAUSED_SCALE_OUT)

    def test_one_direction_goes_on_while_the_other_is_held(self) -> None:
        held = replace(POLICY, paused_scale_in=True)

        assert outcome(decided(1, signals(burst(60, 300_000)), held)) == (12, Reason.DUE)

    def test_suspended_delivery_asks_for_no_relays_for_what_is_overdue_and_lets_none_go(self) -> None:
        suspended = replace(POLICY, suspend=Suspend.DELIVERY)

        assert outcome(decided(1, signals(QUIET, overdue=1_000_000), suspended)) == (1, Reason.SUSPENDED)
        assert outcome(decided(12, signals(QUIET), suspended)) == (12, Reason.SUSPENDED)

    def test_suspended_delivery_still_takes_in(self) -> None:
        suspended = replace(POLICY, suspend=Suspend.DELIVERY)

        assert outcome(decided(1, signals(QUIET, lag=2_000_000), suspended)) == (4, Reason.INGEST)

    def test_suspended_ingest_asks_for_no_relays_for_what_is_not_taken_in(self) -> None:
        suspended = replace(POLICY, suspend=Suspend.INGEST)

        assert outcome(decided(1, signals(QUIET, lag=2_000_000), suspended)) == (1, Reason.ENOUGH)

    @pytest.mark.parametrize("current", [0, 1, 12])
    def test_everything_suspended_leaves_the_fleet_as_it_is(self, current: int) -> None:
        suspended = replace(POLICY, suspend=Suspend.ALL)

        assert outcome(decided(current, signals(QUIET, overdue=1_000_000), suspended)) == (current, Reason.SUSPENDED)


def test_what_is_remembered_as_wanted_has_a_tenth_to_spare() -> None:
    decision = decided(1, signals(steady(1_450)))

    assert decision.replicas == 1
    assert decision.memory.recommendations == Recommendations((PastRecommendation(NOW_MS, 2),))
