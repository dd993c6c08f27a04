"""Mutants of clocks that are wrong: which one is believed, and what is done once one has come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.simulation.mutants.breaking import Mutant, Patch

from delaytopic_relay.core.done import Done
from delaytopic_relay.core.partition import ShardCore
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.second_clock import ClockWatch


def delivers_on_an_unproved_clock() -> Sequence[Patch]:
    def believes(self: ClockWatch, now_ms: int, monotonic_ms: int) -> bool:
        return True

    return [(ClockWatch, "believes", believes)]


def forgets_what_left_early() -> Sequence[Patch]:
    original = ShardCore.progress

    def progress(self: ShardCore, owner: str) -> Progress:
        return original(self, owner)._replace(ahead=None)

    return [(ShardCore, "progress", progress)]


def counts_what_came_later() -> Sequence[Patch]:
    def has(self: Done, due_ms: int, offset: int) -> bool:
        return (due_ms, offset) <= self.cursor or (self.ahead is not None and (due_ms, offset) <= self.ahead.until)

    return [(Done, "has", has)]


def _of_clocks(name: str, sentence: str, patches: Callable[[], Sequence[Patch]]) -> Mutant:
    return Mutant(name, sentence, patches, "Clocks")


MUTANTS = (
    _of_clocks(
        "unproved-clock", "delivers by a clock that was compared with no other one", delivers_on_an_unproved_clock
    ),
    _of_clocks(
        "early-forgotten",
        "commits a cursor that has gone back, and not what was delivered above it",
        forgets_what_left_early,
    ),
    _of_clocks(
        "early-unbounded",
        "takes for done whatever is due up to what was delivered early, at whatever offset",
        counts_what_came_later,
    ),
)
