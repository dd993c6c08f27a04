"""Mutants of what happens while a topic that records go to takes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.simulation.mutants.breaking import Mutant, Patch

from delaytopic_relay.delivery.reachability import Reachability, Sight
from delaytopic_relay.engine.holding import Holding
from delaytopic_relay.engine.loop import DUE_LIMIT, Loop
from delaytopic_relay.errors import ProducerOutdated, StateInDoubt


def passes_over_what_waits() -> Sequence[Patch]:
    original = Loop._deliver

    def deliver(self: Loop) -> None:
        original(self)
        for partition in self._holding.held.keys() & self.shards.keys():
            if self.shards[partition].take_due(self._clock.now_ms(), DUE_LIMIT).schedules:
                self._note_moved()

    return [(Loop, "_deliver", deliver)]


def never_forgives() -> Sequence[Patch]:
    original = Reachability.seen

    def seen(self: Reachability, found: Sight, now_ms: int) -> None:
        original(self, {each: reason for each, reason in found.items() if reason is not None}, now_ms)

    return [(Reachability, "seen", seen)]


def holds_all() -> Sequence[Patch]:
    return [(Holding, "delivers", lambda self, partition: not self.held)]


def holds_nobody() -> Sequence[Patch]:
    return [(Holding, "delivers", lambda self, partition: True)]


def keeps_its_producer() -> Sequence[Patch]:
    original = Loop._reset

    def reset(self: Loop, lost: StateInDoubt) -> None:
        was_spent = self._target_is_spent
        original(self, lost)
        if isinstance(lost, ProducerOutdated):
            self._target_is_spent = was_spent

    return [(Loop, "_reset", reset)]


def _of_targets(name: str, sentence: str, patches: Callable[[], Sequence[Patch]]) -> Mutant:
    return Mutant(name, sentence, patches, "Targets")


MUTANTS = (
    _of_targets(
        "passes-over", "passes over what waits for a topic that takes nothing, as if delivered", passes_over_what_waits
    ),
    _of_targets("never-forgives", "does not believe a topic that takes records again", never_forgives),
    _of_targets("holds-all", "lets all partitions wait for the topic that one of them sends to", holds_all),
    _of_targets(
        "keeps-its-producer", "goes on with a producer that does not compress what fits only so", keeps_its_producer
    ),
    _of_targets("holds-nobody", "tries again at once what takes nothing, with what others send", holds_nobody),
)
