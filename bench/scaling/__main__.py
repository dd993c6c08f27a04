"""The worth of each rule of scaling: `python -m bench.scaling [--day NAME ...] [--without NAME ...]`.

Run from the repository's root. It needs no server: the operator's own decision scales simulated relays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import click

from bench.figures.table import Table
from bench.scaling.days import days
from bench.scaling.variants import VARIANTS, variant
from bench.scaling.world import Day, World
from delaytopic_api.documents import AutoscalingSettings
from delaytopic_api.values import AutoscalingMode, Duration, Percent, ScaleToZero
from delaytopic_operator.scaling.assessment import ScalingPolicy
from delaytopic_operator.scaling.decision import decide
from delaytopic_operator.scaling.state import ScalingMemory

POLICY = ScalingPolicy(
    AutoscalingSettings(
        mode=AutoscalingMode.OPERATOR,
        replicas=1,
        min_replicas=1,
        max_replicas=None,
        scale_to_zero=ScaleToZero.NEVER,
        look_ahead=Duration("10m"),
        scale_down_stabilization=Duration("5m"),
        target_utilization=Percent("60%"),
    ),
    precision_ms=1_000,
)


class Figures(NamedTuple):
    """One day with one rule."""

    p99_s: int
    longest_s: int
    within_5_s: float
    relay_hours: float
    steps: int

    def cells(self) -> tuple[str, ...]:
        """Return them as text."""
        p99, longest = f"{self.p99_s} s", f"{self.longest_s} s"
        return p99, longest, f"{self.within_5_s:.2%}", f"{self.relay_hours:.1f}", f"{self.steps}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--day", "names", multiple=True, help="The days' names; all without it.")
@click.option("--without", "variants", multiple=True, type=click.Choice(tuple(VARIANTS)), help="All without it.")
@click.option("--seeds", default=1, show_default=True, help="How often each day is lived through.")
def main(names: tuple[str, ...], variants: tuple[str, ...], seeds: int) -> None:
    """Live through simulated days with the operator's rule, and with each part of it taken away."""
    for day in days():
        if names and day.name not in names:
            continue
        rows = []
        for name in variants or VARIANTS:
            with variant(name):
                lives = [lived(day, seed) for seed in range(seeds)]
            rows.append((name, *_together(lives).cells()))
            click.echo(f"{day.name}: {', '.join(rows[-1])}", err=True)
        click.echo(Table((day.name, "p99 late", "longest", "within 5 s", "relay-hours", "steps"), rows).text())


def _together(lives: Sequence[Figures]) -> Figures:
    """Return the worst lateness of some lives, and the mean of all else."""
    return Figures(
        max(each.p99_s for each in lives),
        max(each.longest_s for each in lives),
        fmean(each.within_5_s for each in lives),
        fmean(each.relay_hours for each in lives),
        round(fmean(each.steps for each in lives)),
    )


def lived(day: Day, seed: int) -> Figures:
    """Live through a day."""
    world, memory = World(day, seed), ScalingMemory()
    relays, steps, look_ms = 1, 0, world.now_ms
    while world.now_s < day.length_s:
        if world.now_ms >= look_ms:
            decided = decide(POLICY, relays, world.signals(), memory, world.now_ms)
            memory, look_ms = decided.memory if decided.changed else decided.held, decided.next_look_ms
            steps, relays = steps + decided.changed, decided.replicas
            world.scale(relays)
        world.step()
    world.finish()
    return _figures(world.lateness, world.relay_seconds / 3_600, steps)


def _figures(lateness: Counter[int], relay_hours: float, steps: int) -> Figures:
    total, seen, p99_s = sum(lateness.values()), 0, 0
    for seconds in sorted(lateness):
        seen += lateness[seconds]
        if seen >= 0.99 * total:
            p99_s = seconds
            break
    in_time = sum(records for seconds, records in lateness.items() if seconds <= 5)
    return Figures(p99_s, max(lateness, default=0), in_time / total, relay_hours, steps)


if __name__ == "__main__":
    main()
