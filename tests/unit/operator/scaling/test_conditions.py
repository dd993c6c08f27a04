from __future__ import annotations

from dataclasses import replace

from tests.unit.operator.scaling.scenes import (
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
)

from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_api.values import AutoscalingMode, Suspend
from delaytopic_operator.scaling.conditions import ScalingCondition
from delaytopic_operator.scaling.rules import Reason
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.scaling.state import Backlog, ScalingMemory

FRESH = ScalingCondition(
    ConditionType.AUTOSCALING_ACTIVE, ConditionStatus.TRUE, "SignalsFresh", "Every source partition tells what is due."
)


def test_a_fleet_in_full_sight_is_scaled() -> None:
    assert decided(1, signals(QUIET)).active == FRESH


def test_a_rebalance_does_not_end_it() -> None:
    rebalancing = gather([status({n: shard(n) for n in range(6)})], source(), NOW_MS)

    assert decided(1, rebalancing).active == FRESH


def test_a_partition_that_stays_without_a_relay_ends_it() -> None:
    seen = gather([status({n: shard(n) for n in range(11)})], source(), NOW_MS)
    remembered = memory(1)
    lasting = replace(remembered, watch=remembered.watch._replace(complete_ms=NOW_MS - 60_000))

    active = decided(1, seen, remembered=lasting).active

    assert (active.status, active.reason) == (ConditionStatus.FALSE, "SignalStale")
    assert active.message == "No relay reports partition 11: relays are not taken away until it is known."


def test_a_fleet_that_starts_is_not_known_yet() -> None:
    active = decided(1, gather([], source(), NOW_MS), remembered=ScalingMemory()).active

    assert (active.status, active.message) == (ConditionStatus.UNKNOWN, "No relay has told yet what is due.")


def test_both_annotations_pause_it() -> None:
    active = decided(1, signals(QUIET), replace(POLICY, paused_scale_in=True, paused_scale_out=True)).active

    assert (active.status, active.reason) == (ConditionStatus.FALSE, "Paused")


def test_suspending_everything_suspends_it() -> None:
    active = decided(1, signals(QUIET), replace(POLICY, suspend=Suspend.ALL)).active

    assert (active.status, active.reason) == (ConditionStatus.FALSE, "Suspended")


class TestCapacity:
    """Said before it happens."""

    def test_a_burst_that_fits_is_no_matter(self) -> None:
        assert decided(1, signals(burst(400, 20_000))).capacity == ScalingCondition(
            ConditionType.CAPACITY_SUFFICIENT,
            ConditionStatus.TRUE,
            "Sufficient",
            "12 relays can deliver all that is due on time.",
        )

    def test_a_burst_that_no_fleet_can_deliver_in_time_is_told_minutes_ahead(self) -> None:
        decision = decided(1, signals(burst(400, 300_000)))

        assert not decision.changed
        assert (decision.capacity.status, decision.capacity.reason) == (ConditionStatus.FALSE, "PartitionCeiling")
        assert decision.capacity.message == (
            "Records will be up to 10 s late: 12 relays can deliver 30,000 a second. "
            "More cannot help, as the source has 12 partitions: add partitions, or allow a larger precision."
        )

    def test_a_larger_precision_is_lateness_that_was_allowed(self) -> None:
        decision = decided(1, signals(burst(400, 300_000)), policy(precision_ms=10_000))

        assert decision.capacity.status is ConditionStatus.TRUE

    def test_a_limit_that_is_too_low_is_named(self) -> None:
        capacity = decided(1, signals(burst(400, 30_000)), policy(max_replicas=2)).capacity

        assert capacity.reason == "CapacityInsufficient"
        assert capacity.message == (
            "Records will be up to 6.0 s late: 2 relays can deliver 5,000 a second. "
            "Raise maxReplicas (2): up to 12 are of use."
        )

    def test_with_delivery_suspended_nobody_knows(self) -> None:
        assert decided(1, signals(QUIET), replace(POLICY, suspend=Suspend.DELIVERY)).capacity.reason == "Suspended"


class TestSomebodyElseDecides:
    """An HPA, KEDA or the spec: the number is passed on."""

    def test_an_external_scaler_gets_what_it_asks_for_and_is_told_what_would_do(self) -> None:
        decision = decided(6, signals(QUIET), policy(mode=AutoscalingMode.EXTERNAL, replicas=8))

        assert (decision.replicas, decision.changed, decision.reason) == (8, True, Reason.EXTERNAL_SCALER)
        assert decision.active == ScalingCondition(
            ConditionType.AUTOSCALING_ACTIVE,
            ConditionStatus.FALSE,
            "ExternalScaler",
            "8 relays, as an external scaler asks; with 12 partitions, 6 would do as much.",
        )

    def test_a_fixed_number_is_kept(self) -> None:
        decision = decided(3, signals(burst(60, 300_000)), policy(mode=AutoscalingMode.FIXED, replicas=3))

        assert (decision.replicas, decision.changed, decision.reason) == (3, False, Reason.FIXED)
        assert decision.sentence == "3 relays, as relay.replicas says."

    def test_a_fixed_number_that_is_too_small_is_told_ahead_of_time(self) -> None:
        capacity = decided(1, signals(burst(60, 10_000)), policy(mode=AutoscalingMode.FIXED)).capacity

        assert capacity.reason == "CapacityInsufficient"
        assert capacity.message == (
            "Records will be up to 4.0 s late: 1 relay can deliver 2,500 a second. 4 relays would do better."
        )

    def test_zero_is_passed_on_too(self) -> None:
        decision = decided(1, signals(QUIET), policy(mode=AutoscalingMode.EXTERNAL, replicas=0))

        assert (decision.replicas, decision.sentence) == (0, "0 relays, as an external scaler asks.")

    def test_a_fleet_that_somebody_else_stopped_with_records_pending_may_be_late(self) -> None:
        stopped = policy(mode=AutoscalingMode.EXTERNAL, replicas=0)
        remembered = replace(memory(0), backlog=Backlog(NOW_MS - 1_000, 5, NOW_MS, 12_000))
        nothing = replace(remembered, backlog=Backlog(NOW_MS - 1_000, 0, None, 12_000))

        conditions = [
            decided(0, gather([], source(), NOW_MS), stopped, each).capacity for each in (remembered, nothing)
        ]

        assert [each.status for each in conditions] == [ConditionStatus.UNKNOWN, ConditionStatus.TRUE]
