from __future__ import annotations

from dataclasses import replace

from tests.unit.operator.scaling.scenes import NOW_MS, decided, shard, source, status

from delaytopic_api.relay import ShardState
from delaytopic_operator.scaling.capacity import LAST_STARTS, LeadTime
from delaytopic_operator.scaling.signals import FleetSignals, gather
from delaytopic_operator.scaling.state import ScalingMemory


def seen(state: ShardState | None, created_ms: int = NOW_MS - 30_000) -> FleetSignals:
    """One pod's relay, whose only shard is in this state; None: it does not answer yet."""
    statuses = [status({0: shard(0, state=state)}, "relay-abc-7-0f3a")] if state else []
    return gather(statuses, source(partitions=1), NOW_MS, pods={"relay-abc": created_ms})


def test_before_any_start_was_seen_it_is_the_start_value() -> None:
    assert LeadTime().p95_ms() == 45_000


def test_a_pod_counts_from_its_creation_until_its_relay_delivers() -> None:
    starting = LeadTime().observed(seen(None)).observed(seen(ShardState.RECOVERING))

    started = starting.observed(seen(ShardState.DELIVERING))

    assert (starting.waiting, started) == (("relay-abc",), LeadTime((30_000,)))


def test_a_pod_that_delivered_when_it_was_first_seen_does_not_count() -> None:
    assert LeadTime().observed(seen(ShardState.DELIVERING)) == LeadTime()


def test_a_pod_counts_once() -> None:
    started = LeadTime(waiting=("relay-abc",)).observed(seen(ShardState.DELIVERING))

    assert started.observed(seen(ShardState.DELIVERING)) == started


def test_a_pod_that_waited_for_a_node_does_not_count() -> None:
    started = seen(ShardState.DELIVERING, created_ms=NOW_MS - 3_600_000)

    assert LeadTime(waiting=("relay-abc",)).observed(started) == LeadTime()


def test_few_quick_starts_are_not_trusted_and_slow_ones_are() -> None:
    assert LeadTime((8_000,) * 4).p95_ms() == 45_000
    assert LeadTime((8_000,) * 5).p95_ms() == 8_000
    assert LeadTime((90_000,)).p95_ms() == 90_000


def test_it_is_what_95_of_100_starts_took_at_most() -> None:
    assert LeadTime((20_000,) * 18 + (60_000, 80_000)).p95_ms() == 60_000


def test_only_the_last_starts_count() -> None:
    lead_time = LeadTime((99_000,) * LAST_STARTS, waiting=("relay-abc",))

    assert lead_time.observed(seen(ShardState.DELIVERING)).starts_ms == (99_000,) * (LAST_STARTS - 1) + (30_000,)


def test_pods_that_are_not_known_change_nothing() -> None:
    starting = LeadTime(waiting=("relay-abc",))

    assert starting.observed(replace(seen(ShardState.DELIVERING), pods=None)) == starting


def test_each_decision_takes_in_what_pods_did() -> None:
    decision = decided(1, seen(None), remembered=ScalingMemory())

    assert decision.memory.lead_time == LeadTime(waiting=("relay-abc",))
