"""Scaling does all it does at every pace of the looks: at the bounds of `poll`, and while the operator has too much to
do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.unit.operator.scaling.scenes import (
    NOW_MS,
    PARTITIONS,
    POLICY,
    QUIET,
    SLEEPY,
    shard,
    source,
    status,
)

from delaytopic_operator.scaling.assessment import ScalingPolicy
from delaytopic_operator.scaling.decision import Decision, decide
from delaytopic_operator.scaling.pace import Pace
from delaytopic_operator.scaling.rules import Reason
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.scaling.state import ScalingMemory

AN_HOUR_MS = 3_600_000
PACES = [
    pytest.param(1_000, 0, id="the shortest poll"),
    pytest.param(15_000, 0, id="the usual poll"),
    pytest.param(600_000, 0, id="the longest poll"),
    pytest.param(15_000, 120_000, id="a look waits for two minutes in the queue"),
    pytest.param(600_000, 600_000, id="the longest poll, and looks that wait as long"),
]


def looks(
    wanted: ScalingPolicy,
    poll_ms: int,
    waited_ms: int,
    relays: int = 3,
    per_second: int = 0,
    silent: bool = False,
) -> Iterator[Decision]:
    """Decide for a while, each look as late as it is; `silent`: in its second half no relay answers."""
    lasts_ms = 900_000 + 8 * (poll_ms + waited_ms)
    memory, now_ms, waited = ScalingMemory(), NOW_MS, 0
    while now_ms - NOW_MS <= lasts_ms:
        policy = replace(wanted, pace=Pace(poll_ms, waited))
        delivered = per_second * (now_ms - NOW_MS) // 1_000
        shards = {number: shard(number, QUIET, now_ms=now_ms) for number in range(PARTITIONS)}
        busy: dict[str, object] = {"busy_rate": 2_500.0, "delivered_total": delivered} if per_second else {}
        answers = (
            []
            if silent and now_ms - NOW_MS >= lasts_ms // 2
            else [status(shards, as_of_ms=now_ms).model_copy(update=busy)]
        )
        decision = decide(policy, relays, gather(answers, source(now_ms), now_ms), memory, now_ms)
        yield decision
        memory, relays, waited = decision.memory, decision.replicas, waited_ms
        now_ms = decision.next_look_ms + waited_ms


@pytest.mark.parametrize(("poll_ms", "waited_ms"), PACES)
def test_a_fleet_that_is_too_large_shrinks_at_every_pace(poll_ms: int, waited_ms: int) -> None:
    assert [each.reason for each in looks(POLICY, poll_ms, waited_ms) if each.changed] == [Reason.LESS_NEEDED]


@pytest.mark.parametrize(("poll_ms", "waited_ms"), PACES)
def test_a_fleet_without_work_goes_to_sleep_at_every_pace(poll_ms: int, waited_ms: int) -> None:
    assert list(looks(SLEEPY, poll_ms, waited_ms, relays=1))[-1].replicas == 0


@pytest.mark.parametrize(("poll_ms", "waited_ms"), PACES)
def test_what_a_relay_can_do_is_measured_at_every_pace(poll_ms: int, waited_ms: int) -> None:
    assert list(looks(POLICY, poll_ms, waited_ms, per_second=1_000))[-1].memory.capacity.per_second == 2_500


@pytest.mark.parametrize(("poll_ms", "waited_ms"), PACES)
def test_one_look_without_an_answer_says_nothing_at_any_pace(poll_ms: int, waited_ms: int) -> None:
    seen = looks(POLICY, poll_ms, waited_ms, relays=1, silent=True)

    first = next(each for each in seen if each.assessment is not None and not each.assessment.known)

    assert (first.reason, first.active.reason) == (Reason.SIGNAL_STALE, "SignalsFresh")


def test_a_look_that_was_asked_for_an_hour_after_the_last_begins_anew() -> None:
    first = next(looks(POLICY, 15_000, 0))
    shards = {number: shard(number, now_ms=NOW_MS + AN_HOUR_MS) for number in range(PARTITIONS)}
    seen = gather([status(shards, as_of_ms=NOW_MS + AN_HOUR_MS)], source(NOW_MS + AN_HOUR_MS), NOW_MS + AN_HOUR_MS)

    later = decide(replace(POLICY, pace=Pace(15_000, 2_000)), 3, seen, first.memory, NOW_MS + AN_HOUR_MS)

    assert later.memory.watch.since_ms == NOW_MS + AN_HOUR_MS
