"""Mutants of what a dialect writes beside its deliveries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.simulation.mutants.breaking import BrokenTarget, Mutant, Patch, with_target

from delaytopic_relay.delivery.outbound import Outgoing
from delaytopic_relay.dialects import scheduler
from delaytopic_relay.engine.loop import Loop


def tombstones_cancel() -> Sequence[Patch]:
    return [(scheduler, "is_by_relay", lambda record: False)]


class _WithoutCopies(BrokenTarget):
    def send(self, records: Sequence[Outgoing]) -> None:
        self.target.send([record for record in records if record.topic != "history"])


def forgets_copies() -> Sequence[Patch]:
    return with_target(_WithoutCopies)


def tombstones_in_a_transaction_of_their_own() -> Sequence[Patch]:
    original = Loop._close_tick
    kept: dict[int, list[Outgoing]] = {}

    class Later(BrokenTarget):
        """Writes tombstones after the commit."""

        def send(self, records: Sequence[Outgoing]) -> None:
            stones = [record for record in records if record.topic == "source"]
            kept.setdefault(id(self), []).extend(stones)
            self.target.send([record for record in records if record.topic != "source"])

    def close_tick(self: Loop, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        stones = kept.pop(id(self._target), [])
        if stones and self._target.owner:
            self._begin()
            self._target.target.send(stones)  # type: ignore[attr-defined]

    return [*with_target(Later), (Loop, "_close_tick", close_tick)]


MUTANTS = (
    Mutant(
        "tombstones-cancel",
        "the tombstone of a delivery withdraws what has come under its name meanwhile",
        tombstones_cancel,
        "Scheduler",
    ),
    Mutant("forgets-copies", "nothing goes to the history topic", forgets_copies, "Scheduler"),
    Mutant(
        "tombstones-later",
        "the tombstone of a delivery is in the next transaction",
        tombstones_in_a_transaction_of_their_own,
        "Scheduler",
    ),
)
