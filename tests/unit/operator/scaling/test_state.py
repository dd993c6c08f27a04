from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.unit.operator.scaling.scenes import NOW_MS, POLICY, burst, decided, memory, signals, steady

from delaytopic_operator.scaling.capacity import Arrivals, Capacity, EndOffset, LeadTime
from delaytopic_operator.scaling.pace import USUAL
from delaytopic_operator.scaling.signals import Reading, RelayFacts
from delaytopic_operator.scaling.state import (
    MOST_RECOMMENDATIONS,
    PastRecommendation,
    Peak,
    Peaks,
    Recommendations,
    ScalingMemory,
    Watch,
)

LOADS = st.lists(st.tuples(st.integers(0, 8_000), st.integers(0, 100_000), st.integers(1, 60_000)), max_size=40)


def lived(loads: list[tuple[int, int, int]]) -> ScalingMemory:
    """Return the memory after a while of these loads."""
    remembered, current, now_ms = ScalingMemory(), 1, NOW_MS
    for per_second, overdue, wait_ms in loads:
        decision = decided(current, signals(steady(per_second), overdue, now_ms=now_ms), POLICY, remembered, now_ms)
        remembered, current, now_ms = decision.memory, decision.replicas, now_ms + wait_ms
    return remembered


@given(LOADS)
@QUICK
def test_a_memory_comes_back_from_its_document_as_it_was(loads: list[tuple[int, int, int]]) -> None:
    remembered = lived(loads)

    document = json.loads(json.dumps(remembered.to_document(NOW_MS)))

    assert ScalingMemory.from_document(document) == remembered


def test_a_memory_stays_small_however_long_it_lives() -> None:
    remembered = lived([(n * 7_919 % 8_000, n * 104_729 % 99_991, 15_000) for n in range(400)])

    assert len(json.dumps(remembered.to_document(NOW_MS))) < 6_000


def test_the_memory_of_the_largest_fleet_still_fits_in_an_annotation() -> None:
    relays = [RelayFacts(f"order-reminders-relay-{n:060}", NOW_MS, NOW_MS, 10**9, 1e5, True) for n in range(1_000)]
    capacity = Capacity().observed(relays, NOW_MS, USUAL)
    full = replace(memory(64), capacity=capacity, lead_time=LeadTime((99_999,) * 20, ("a" * 63,) * 64))

    assert len(json.dumps(full.to_document(NOW_MS))) < 32_768


@pytest.mark.parametrize(
    "document",
    [
        None,
        "text",
        [],
        {},
        {"version": 2, "memory": {}},
        {"version": 0, "memory": {"replicas": 5}},
        {"version": 1},
        {"version": 1, "memory": "nonsense"},
        {"version": 1, "memory": {"replicas": "many"}},
        {"version": 2, "memory": {"recommendations": {"kept": [[1]]}}},
    ],
)
def test_a_document_that_this_version_did_not_write_is_an_empty_memory(document: object) -> None:
    assert ScalingMemory.from_document(document) == ScalingMemory()


class TestSaving:
    """Not at every poll."""

    def test_a_steady_fleet_is_not_written_again(self) -> None:
        saved = decided(1, signals(steady(500))).memory

        later = decided(1, signals(steady(501), now_ms=NOW_MS + 15_000), POLICY, saved, NOW_MS + 15_000).memory

        assert later != saved
        assert not later.worth_saving(saved)

    def test_a_step_is_written(self) -> None:
        saved = decided(1, signals(steady(500))).memory

        assert decided(1, signals(burst(60, 300_000)), remembered=saved).memory.worth_saving(saved)

    def test_what_was_never_saved_is_written(self) -> None:
        assert ScalingMemory().worth_saving(None)


class TestWishes:
    """The most that was wanted lately."""

    def test_a_larger_wish_makes_smaller_ones_before_it_forgotten(self) -> None:
        recommendations = Recommendations().with_size(3, 1, 100).with_size(2, 2, 100).with_size(6, 3, 100)

        assert recommendations == Recommendations((PastRecommendation(3, 6),))

    def test_the_most_is_forgotten_when_it_is_too_long_ago(self) -> None:
        recommendations = Recommendations().with_size(6, 0, 100).with_size(2, 50, 100)

        assert recommendations.most(100, 100) == PastRecommendation(0, 6)
        assert recommendations.most(101, 100) == PastRecommendation(50, 2)

    def test_they_are_bounded(self) -> None:
        recommendations = Recommendations()
        for step in range(1_000):
            recommendations = recommendations.with_size(1_000 - step, step, 10_000)

        assert len(recommendations.kept) == MOST_RECOMMENDATIONS

    def test_a_day_of_peaks_leaves_out_the_highest_hour(self) -> None:
        peaks = Peaks()
        for hour in range(48):
            peaks = peaks.with_size(12 if hour == 40 else 2, hour * 3_600_000).with_size(1, hour * 3_600_000)

        assert (len(peaks.kept), peaks.kept[-1], peaks.p95()) == (24, Peak(47, 2), 2)


class TestArrivals:
    """The growth of a source."""

    @staticmethod
    def after(*points: tuple[int, int]) -> Arrivals:
        arrivals = Arrivals()
        for at_ms, end in points:
            arrivals = arrivals.observed(Reading(end, at_ms), USUAL)
        return arrivals

    def test_a_single_answer_is_no_rate(self) -> None:
        assert self.after((0, 500)).per_second() is None

    def test_the_rate_is_that_of_the_last_minute(self) -> None:
        assert self.after((0, 0), (60_000, 99_000), (90_000, 102_000), (120_000, 105_000)).per_second() == 100

    def test_polls_further_apart_still_make_a_rate(self) -> None:
        assert self.after((0, 0), (120_000, 12_000)).per_second() == 100

    def test_silence_counts_from_the_last_record(self) -> None:
        arrivals = self.after((0, 0), (15_000, 5), (30_000, 5), (45_000, 5))

        assert arrivals.silent_ms(60_000) == 45_000

    def test_a_source_that_was_made_anew_starts_anew(self) -> None:
        assert self.after((0, 500), (15_000, 100)) == Arrivals((EndOffset(15_000, 100),), 15_000)

    def test_a_long_time_without_an_answer_is_no_silence(self) -> None:
        assert self.after((0, 500), (600_000, 500)).silent_ms(600_000) == 0

    def test_no_answer_changes_nothing(self) -> None:
        assert self.after((0, 500)).observed(None, USUAL) == self.after((0, 500))


class TestWatch:
    """The time for which all has been in sight."""

    @staticmethod
    def looked(*looks: tuple[int, bool]) -> Watch:
        watch = Watch()
        for now_ms, complete in looks:
            watch = watch.observed(now_ms, USUAL, seen=complete, complete=complete)
        return watch

    def test_it_lasts_through_a_rebalance(self) -> None:
        assert self.looked((0, True), (15_000, False), (30_000, True)).since_ms == 0

    def test_it_starts_anew_after_a_longer_gap(self) -> None:
        looks = [(0, True), (15_000, False), (30_000, False), (45_000, False), (60_000, True)]

        assert self.looked(*looks).since_ms == 60_000

    def test_it_starts_anew_when_nobody_looked(self) -> None:
        assert self.looked((0, True), (600_000, True)) == Watch(600_000, 600_000, 600_000, 600_000)
