"""Properties that hold for every fleet and every load."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.unit.operator.scaling.scenes import (
    EDGES,
    LEAD_MS,
    NOW_MS,
    PARTITIONS,
    PER_SECOND,
    POLICY,
    at_once,
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

from delaytopic_api.documents import ScalingStatus
from delaytopic_operator.scaling.assessment import ScalingPolicy
from delaytopic_operator.scaling.decision import Decision, decide
from delaytopic_operator.scaling.explain import explain
from delaytopic_operator.scaling.need import Sizes, useful_sizes
from delaytopic_operator.scaling.signals import STALE_MS, FleetSignals, gather
from delaytopic_operator.scaling.state import ScalingMemory

RECORDS = st.integers(0, 400_000)
HISTOGRAMS = st.fixed_dictionaries(dict.fromkeys(EDGES, RECORDS))
SECONDS = st.fixed_dictionaries({end: st.integers(0, 30_000) for end in range(1, 31)})
"""The finest bin of a relay: a second."""
REPLICAS = st.integers(1, PARTITIONS)
LONG_LIVES = settings(QUICK, max_examples=12)
"""Each example is a hundred looks and more."""
LIMITS = st.tuples(st.integers(1, 15), st.one_of(st.none(), st.integers(1, 15)))


def limited(limits: tuple[int, int | None]) -> ScalingPolicy:
    return policy(min_replicas=limits[0], max_replicas=limits[1])


@given(HISTOGRAMS, RECORDS, RECORDS, st.integers(1, 15), LIMITS)
@QUICK
def test_never_outside_the_limits_nor_more_than_is_useful(
    due: dict[int, int], overdue: int, lag: int, current: int, limits: tuple[int, int | None]
) -> None:
    least, most = limits

    replicas = decided(current, signals(due, overdue, lag), limited(limits)).replicas

    assert most is None or replicas <= most
    assert replicas >= min(least, most or least)
    assert replicas <= max(Sizes(PARTITIONS, 1, most).max_useful, least)


@given(HISTOGRAMS | st.just({}), RECORDS, RECORDS, st.integers(1, 15), LIMITS)
@QUICK
def test_the_status_has_every_number_behind_a_decision(
    due: dict[int, int], overdue: int, lag: int, current: int, limits: tuple[int, int | None]
) -> None:
    seen = signals(due, overdue, lag)
    document = explain(decided(current, seen, limited(limits)), seen)

    assert ScalingStatus.model_validate(document).to_document() == known(document)


def known(part: Any) -> Any:
    """Return a document without what is null."""
    if isinstance(part, dict):
        return {name: known(value) for name, value in part.items() if value is not None}
    return [known(value) for value in part] if isinstance(part, list) else part


@given(HISTOGRAMS, RECORDS, REPLICAS)
@QUICK
def test_every_step_leads_to_a_useful_size(due: dict[int, int], overdue: int, current: int) -> None:
    decision = decided(current, signals(due, overdue))

    assert not decision.changed or decision.replicas in useful_sizes(PARTITIONS)


@given(SECONDS, SECONDS, RECORDS, RECORDS, REPLICAS)
@QUICK
def test_a_higher_load_never_means_fewer_relays(
    due: dict[int, int], more: dict[int, int], overdue: int, later: int, current: int
) -> None:
    higher = {end: records + more[end] for end, records in due.items()}

    less = decided(current, signals(due, overdue))
    greater = decided(current, signals(higher, overdue + later))

    assert greater.replicas >= less.replicas


@given(HISTOGRAMS, st.integers(1, 5), RECORDS, RECORDS, REPLICAS)
@QUICK
def test_a_load_that_is_higher_everywhere_never_means_fewer_relays_however_coarse_its_bins(
    due: dict[int, int], times: int, lag: int, more_lag: int, current: int
) -> None:
    less = decided(current, signals(due, 0, lag))
    greater = decided(current, signals({end: times * each for end, each in due.items()}, 0, lag + more_lag))

    assert greater.replicas >= less.replicas


@given(HISTOGRAMS, REPLICAS, st.sets(st.integers(0, PARTITIONS - 1), min_size=1))
@QUICK
def test_no_relay_is_taken_away_while_a_partition_is_missing(
    due: dict[int, int], current: int, missing: set[int]
) -> None:
    shards = {n: shard(n, due) for n in range(PARTITIONS) if n not in missing}
    seen = gather([status(shards)], source(), NOW_MS)

    assert decided(current, seen).replicas >= current


@given(HISTOGRAMS, REPLICAS, st.integers(1, 3_600_000))
@QUICK
def test_no_relay_is_taken_away_on_signals_that_are_too_old(due: dict[int, int], current: int, age_ms: int) -> None:
    gathered_ms = NOW_MS - STALE_MS - age_ms
    old = signals(due, now_ms=gathered_ms)

    assert decided(current, old).replicas >= current


@given(HISTOGRAMS, RECORDS, REPLICAS, LIMITS)
@QUICK
def test_the_same_question_gets_the_same_answer(
    due: dict[int, int], overdue: int, current: int, limits: tuple[int, int | None]
) -> None:
    def answer() -> Decision:
        return decided(current, signals(due, overdue), limited(limits))

    assert answer() == answer()


@given(HISTOGRAMS, RECORDS, REPLICAS)
@QUICK
def test_it_is_looked_at_again_within_a_poll(due: dict[int, int], overdue: int, current: int) -> None:
    decision = decided(current, signals(due, overdue))

    assert NOW_MS < decision.next_look_ms <= NOW_MS + POLICY.pace.poll_ms


class Watching:
    """The operator's loop, poll by poll; it notes every step."""

    def __init__(self, current: int, remembered: ScalingMemory | None = None) -> None:
        self.current = current
        self.now_ms = NOW_MS
        self.steps: list[tuple[int, int]] = []
        self._memory = remembered or ScalingMemory()

    def look(self, seen: FleetSignals) -> Decision:
        decision = decide(POLICY, self.current, seen, self._memory, self.now_ms)
        if decision.changed:
            self.steps.append((self.now_ms, decision.replicas))
        self.current, self._memory, self.now_ms = decision.replicas, decision.memory, decision.next_look_ms
        return decision


@given(HISTOGRAMS, st.integers(0, 60_000), REPLICAS)
@LONG_LIVES
def test_a_constant_load_comes_to_rest(due: dict[int, int], overdue: int, current: int) -> None:
    watching = Watching(current)
    while watching.now_ms < NOW_MS + 1_800_000:
        watching.look(at_once(due, overdue, now_ms=watching.now_ms))

    ups = [replicas for _, replicas in watching.steps if replicas > current]
    assert len(watching.steps) <= 2
    assert len(ups) <= 1
    assert all(at_ms <= NOW_MS + 420_000 for at_ms, _ in watching.steps)


@given(
    st.integers(120, 600),
    st.integers(5_000, 600_000),
    st.integers(0, 1_000),
    st.integers(10_000, 90_000),
    st.integers(0, 14_999),
)
@QUICK
def test_relays_are_asked_for_no_later_than_a_lead_time_before_a_known_burst(
    in_seconds: int, records: int, per_second: int, lead_ms: int, phase_ms: int
) -> None:
    burst_ms = NOW_MS + 1_000 * in_seconds
    watching = Watching(1, memory(1, lead_ms))
    watching.now_ms += phase_ms
    needed = Sizes(PARTITIONS, 1, None).fit(records / (PER_SECOND * 0.6 * 6))
    while watching.now_ms <= burst_ms - lead_ms:
        ahead = -(-(burst_ms - watching.now_ms) // 1_000)
        watching.look(at_once(burst(ahead, records, per_second), now_ms=watching.now_ms))

    assert watching.current >= needed


@given(st.integers(0, 2**32), st.integers(100, 20_000))
@LONG_LIVES
def test_noise_takes_a_bounded_number_of_steps_an_hour(seed: int, per_second: int) -> None:
    noise = random.Random(seed)
    watching = Watching(1, memory(1))
    while watching.now_ms < NOW_MS + 3_600_000:
        load = {end: round(records * noise.uniform(0.7, 1.3)) for end, records in steady(per_second).items()}
        watching.look(at_once(load, noise.randint(0, per_second), now_ms=watching.now_ms))

    # Up at once, down after five quiet minutes: no more than a pair in each such span.
    assert len(watching.steps) <= 24


@given(st.integers(0, 2**32))
@LONG_LIVES
def test_two_steps_are_never_closer_than_half_a_minute(seed: int) -> None:
    chaos = random.Random(seed)
    watching = Watching(1, memory(1))
    while watching.now_ms < NOW_MS + 1_800_000:
        load = {end: chaos.choice((0, 0, 100_000, 300_000)) for end in EDGES}
        watching.look(at_once(load, chaos.choice((0, 0, 500_000)), now_ms=watching.now_ms))

    times = [at_ms for at_ms, _ in watching.steps]
    assert all(later - earlier >= 30_000 for earlier, later in pairwise(times))


def test_a_longer_lead_time_asks_earlier() -> None:
    seen = signals({80: 0, 90: 300_000, 600: 0})

    quick, slow = (decided(1, seen, remembered=memory(1, lead_ms)) for lead_ms in (LEAD_MS, 80_000))

    assert (quick.replicas, slow.replicas) == (1, 12)


def test_an_operator_that_restarts_from_its_document_decides_the_same() -> None:
    remembered = replace(memory(12), partitions=PARTITIONS + 1)
    restarted = ScalingMemory.from_document(remembered.to_document(NOW_MS))
    seen = signals(burst(300, 200_000), overdue=50_000)

    assert decided(12, seen, remembered=restarted) == decided(12, seen, remembered=remembered)
