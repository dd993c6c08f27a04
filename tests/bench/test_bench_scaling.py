from __future__ import annotations

from bench.scaling import __main__ as command
from bench.scaling.ahead import Belief
from bench.scaling.cases import run, schedule_aware, stays
from bench.scaling.fleet import Fleet, Physics
from bench.scaling.horizontal import PHASE_SECONDS, HorizontalPodAutoscaler
from bench.scaling.load import Burst, Load
from bench.scaling.results import Result
from click.testing import CliRunner

PHYSICS = Physics()


def scaled(value: int, current: int) -> int:
    """Return what the autoscaler makes of a fleet at one look, with a threshold of 100 and at most 12."""
    fleet = Fleet(PHYSICS, current)
    HorizontalPodAutoscaler(lambda fleet, second: value, threshold=100, most=12)(fleet, PHASE_SECONDS)
    return fleet.wanted


def test_the_operators_rule_is_as_timely_as_all_relays_all_the_time_at_a_fifth_of_their_hours() -> None:
    always = run("always", Load(), PHYSICS, 12, stays)

    operator = schedule_aware("operator", Load(), PHYSICS, Belief(PHYSICS.per_second, PHYSICS.start_seconds))

    lateness = [(each.p99_seconds, each.longest_seconds, each.within_5_seconds) for each in (always, operator)]
    assert lateness[0] == lateness[1]
    assert operator.relay_hours <= 0.2 * always.relay_hours
    assert operator.steps <= 10


def test_a_queue_is_as_late_as_arithmetic_says() -> None:
    load = Load(seconds=200, lowest=0, highest=0, bursts=(Burst(10, 300_000, 10),))

    result = run("one", load, PHYSICS, 1, stays)

    assert result == Result("one", 118, 119, 0.05, relay_hours=0.06, steps=0)


def test_nobody_delivers_during_a_rebalance_nor_before_a_pod_has_started() -> None:
    fleet = Fleet(Physics(start_seconds=3, rebalance_seconds=2), 1)
    fleet.scale(2, second=0)
    delivered = []
    for second in range(7):
        fleet.tick(second, due=100_000 if second == 0 else 0)
        delivered.append(fleet.delivered)

    assert delivered == [2_500, 5_000, 7_500, 7_500, 7_500, 12_500, 17_500]


def test_an_autoscaler_ignores_a_tenth_more_or_less() -> None:
    assert [scaled(value, 10) for value in (905, 1_095, 1_105)] == [10, 10, 12]


def test_an_autoscaler_adds_at_most_four_or_doubles() -> None:
    assert [scaled(10_000, current) for current in (1, 3, 5)] == [5, 7, 10]


def test_an_autoscaler_takes_away_down_to_the_highest_wish_of_five_minutes() -> None:
    fleet, values = Fleet(PHYSICS, 6), iter([600] + [0] * 30)
    rule = HorizontalPodAutoscaler(lambda fleet, second: next(values), threshold=100, most=12)
    sizes = []
    for second in range(0, 330, 15):
        rule(fleet, second + PHASE_SECONDS)
        sizes.append(fleet.wanted)

    assert (sizes[20], sizes[21]) == (6, 1)


def test_a_load_is_known_as_far_ahead_as_it_was_taken_in() -> None:
    load = Load(seconds=1_000, lowest=1, highest=1, known_before=300, bursts=(Burst(500, 70, 60),))

    assert [load.known_within(now, 490, 510) for now in (100, 200, 439, 440)] == [0, 10, 20, 90]
    assert load.arriving_at(440) == 71


def test_the_command_says_what_it_does() -> None:
    result = CliRunner().invoke(command.main, ["--help"])

    assert result.exit_code == 0
    assert "Compare scaling rules in a simulation of three hours." in result.output
