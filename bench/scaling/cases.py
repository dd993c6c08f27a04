"""The rules that are compared."""

from __future__ import annotations

from collections.abc import Callable

from bench.scaling.ahead import Belief, ScheduleAware
from bench.scaling.fleet import Fleet, Physics
from bench.scaling.horizontal import HorizontalPodAutoscaler
from bench.scaling.load import Load, bursting, lumpy
from bench.scaling.results import Result
from bench.scaling.witness import Witness
from delaytopic_relay.telemetry.status import bin_edges_ms

LOOK_AHEAD_MS = 600_000
LAG_THRESHOLD = 10
"""KEDA's default."""

NARROW_EDGES_MS = (*range(5_000, 120_001, 5_000), *range(150_000, LOOK_AHEAD_MS + 1, 50_000))

Rule = Callable[[Fleet, int], None]


def run(name: str, load: Load, physics: Physics, relays: int, rule: Rule) -> Result:
    """Three hours; the rule looks at each second before its work."""
    fleet = Fleet(physics, relays)
    for second in range(load.seconds):
        rule(fleet, second)
        fleet.tick(second, load.due_at(second))
    return Result.of(name, fleet)


def stays(fleet: Fleet, second: int) -> None:
    """A rule that changes nothing."""


def overdue(fleet: Fleet, second: int) -> int:
    """Return the count of KEDA's Redis scaler."""
    return fleet.overdue


def schedule_aware(
    name: str, load: Load, physics: Physics, belief: Belief, edges_ms: tuple[int, ...] | None = None
) -> Result:
    """The operator's rule, over the histograms that relays serve."""
    witness = Witness(load, edges_ms or bin_edges_ms(LOOK_AHEAD_MS))
    return run(name, load, physics, 1, ScheduleAware(witness, belief))


def comparison(load: Load, physics: Physics) -> list[Result]:
    """Rules against each other; what the operator believes is true."""
    most = physics.partitions
    by_overdue = {threshold: HorizontalPodAutoscaler(overdue, threshold, most) for threshold in (5_000, 1_000)}
    no_lag = HorizontalPodAutoscaler(lambda fleet, second: 0, LAG_THRESHOLD, most)
    all_is_lag = HorizontalPodAutoscaler(
        lambda fleet, second: fleet.overdue + load.pending(second), LAG_THRESHOLD, most
    )
    known = Belief(physics.per_second, physics.start_seconds)
    return [
        run("fixed 1 relay", load, physics, 1, stays),
        run(f"always {most}", load, physics, most, stays),
        run("HPA on source lag, Redis (lag about 0)", load, physics, 1, no_lag),
        run("HPA on source lag, held in Kafka (lag = all pending)", load, physics, 1, all_is_lag),
        *(
            run(f"HPA/KEDA on overdue, threshold {limit:,}", load, physics, 1, rule)
            for limit, rule in by_overdue.items()
        ),
        schedule_aware("operator, schedule-aware", load, physics, known),
        schedule_aware("operator, new: nothing measured yet", load, physics, Belief()),
    ]


def sensitivity(load: Load, physics: Physics) -> list[Result]:
    """Measure the cost of wrong beliefs, which stay wrong all the time."""
    slow = Physics(start_seconds=60)
    true, start = physics.per_second, physics.start_seconds
    beliefs = [
        (true, start, physics),
        (true * 3 // 2, start, physics),
        (true // 2, start, physics),
        (true, start, slow),
        (true, slow.start_seconds, slow),
    ]
    return [
        schedule_aware(
            f"{rate:,} a second, {lead} s (true: {real.per_second:,}, {real.start_seconds} s)",
            load,
            real,
            Belief(rate, lead, fixed=True),
        )
        for rate, lead, real in beliefs
    ]


def resolution(physics: Physics) -> list[Result]:
    """Measure the gain of narrower bins."""
    most, known = physics.partitions, Belief(physics.per_second, physics.start_seconds)
    results: list[Result] = []
    for name, load in (("lumps", lumpy()), ("short bursts", bursting())):
        results += [
            run(f"{name}: 1 relay", load, physics, 1, stays),
            run(f"{name}: always {most}", load, physics, most, stays),
            schedule_aware(f"{name}: operator, bins of 1, 2, 5, 10, 20, 50 ... s", load, physics, known),
            schedule_aware(f"{name}: operator, bins of 5 s for two minutes", load, physics, known, NARROW_EDGES_MS),
        ]
    return results
