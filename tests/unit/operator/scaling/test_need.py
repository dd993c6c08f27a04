from __future__ import annotations

import random
from itertools import pairwise

from delaytopic_operator.scaling.need import (
    ROUNDING,
    Crest,
    Need,
    NeedKind,
    Piece,
    lateness_ms,
    most_of_due,
    need_of_ingest,
    needs_of_due,
    pieces,
)


def piece(start_s: int, end_s: int, records: int) -> Piece:
    return Piece(start_s * 1_000, end_s * 1_000, records, end_s * 1_000)


def test_a_burst_is_to_leave_within_its_own_width_and_the_precision() -> None:
    [need] = needs_of_due([piece(0, 9, 10_000)], 0, per_second=500, precision_ms=1_000, now_ms=0)

    assert need == Need(NeedKind.DUE, 2.0, 10_000, from_ms=0, to_ms=9_000, pressing_ms=0)


def test_each_piece_is_the_end_of_its_worst_interval_and_presses_when_it_begins() -> None:
    needs = needs_of_due([piece(0, 10, 11_000), piece(10, 20, 11_000)], 0, 1_000, precision_ms=1_000, now_ms=0)

    assert needs == (
        Need(NeedKind.DUE, 1.0, 11_000, from_ms=0, to_ms=10_000, pressing_ms=0),
        Need(NeedKind.DUE, 22_000 / 21_000, 22_000, from_ms=0, to_ms=20_000, pressing_ms=10_000),
    )


def test_what_is_overdue_shall_have_left_in_half_a_minute() -> None:
    [need] = needs_of_due([], 60_000, per_second=1_000, precision_ms=1_000, now_ms=5)

    assert need == Need(NeedKind.OVERDUE, 2.0, 60_000, from_ms=5, to_ms=30_005, pressing_ms=5)


def test_what_is_overdue_joins_what_falls_due_over_the_time_that_it_has() -> None:
    due, overdue = needs_of_due([piece(0, 30, 31_000)], 31_000, per_second=1_000, precision_ms=1_000, now_ms=0)

    assert due == Need(NeedKind.DUE, 2.0, 62_000, from_ms=0, to_ms=30_000, pressing_ms=0)
    assert overdue.relays < due.relays


def test_no_need_of_what_is_due_exceeds_the_number_that_is_found_without_looking_at_intervals() -> None:
    chance = random.Random(51)
    for _ in range(200):
        edges_ms = sorted(chance.sample(range(1, 600_000), chance.randint(1, 12)))
        loads = [
            (chance.choice((0, 1_000)) * chance.random(), chance.choice((0, 50_000)) * chance.random())
            for _ in edges_ms
        ]
        crests = [Crest(*ends, *load) for ends, load in zip(pairwise([0, *edges_ms]), loads, strict=True)]
        overdue = chance.choice((0, 70_000))

        needs = needs_of_due(pieces(crests), overdue, per_second=500, precision_ms=1_000, now_ms=0)

        assert max((need.relays for need in needs), default=0.0) <= most_of_due(crests, overdue, 500) + ROUNDING


def test_a_single_dense_span_needs_about_as_many_relays_as_are_found_without_looking_at_intervals() -> None:
    assert most_of_due([Crest(0, 60_000, 6_000, 0), Crest(60_000, 120_000, 6_000, 5_000)], 30_000, per_second=100) == 21


def test_what_arrives_and_what_is_behind_is_taken_in_within_a_minute() -> None:
    assert need_of_ingest(5_000.0, 600_000, now_ms=0).relays == 1.5


def test_records_due_in_one_instant_are_as_late_as_the_fleet_needs_for_them() -> None:
    assert lateness_ms([Crest(0, 50_000, 0, 300_000)], overdue=0, per_second=30_000) == 10_000


def test_idle_time_before_a_burst_does_not_make_it_less_late() -> None:
    burst = [Crest(0, 500_000, 0, 0), Crest(500_000, 501_000, 0, 300_000)]

    assert lateness_ms(burst, overdue=0, per_second=30_000) == 10_000


def test_a_load_that_fits_is_never_late() -> None:
    assert lateness_ms([Crest(0, 600_000, 60_000, 0)], overdue=0, per_second=100) == 0


def test_without_relays_what_is_due_is_late_for_ever() -> None:
    assert lateness_ms([Crest(0, 1_000, 1, 0)], overdue=0, per_second=0) == 86_400_000
    assert lateness_ms([], overdue=0, per_second=0) == 0
