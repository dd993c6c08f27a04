"""Mutants of a clock that is moved: from where records count, and when that may be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.simulation.mutants.breaking import Mutant, Patch

from delaytopic_relay.core.rules import Generation
from delaytopic_relay.engine.loop import Loop
from delaytopic_relay.engine.reading import Reading


def counts_all_from_todays_clock() -> Sequence[Patch]:
    original = Reading.follow

    def follow(self: Reading, partition: int, generations: Sequence[Generation]) -> None:
        shift_ms = generations[-1].rules.shift_ms
        moved = [each._replace(rules=each.rules._replace(shift_ms=shift_ms)) for each in generations]
        original(self, partition, moved)

    return [(Reading, "follow", follow)]


def tells_before_the_commit() -> Sequence[Patch]:
    def shown_ms(self: Loop) -> Mapping[int, int]:
        return dict.fromkeys(self.shards, self._clock.asked_ms)

    return [(Loop, "shown_ms", property(shown_ms))]


def _of_moves(name: str, sentence: str, patches: Callable[[], Sequence[Patch]]) -> Mutant:
    return Mutant(name, sentence, patches, "Moves")


MUTANTS = (
    _of_moves(
        "todays-clock",
        "counts what was produced before the clock was moved from where it was moved to",
        counts_all_from_todays_clock,
    ),
    _of_moves(
        "clock-uncommitted",
        "tells that the clock was moved before it is committed from which offset on records count from there",
        tells_before_the_commit,
    ),
)
