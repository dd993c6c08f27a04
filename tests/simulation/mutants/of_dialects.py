"""Mutants of what a dialect writes beside its deliveries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.simulation.mutants.breaking import BrokenTarget, Mutant, Patch, with_target

from delaytopic_api.records import RESTATED
from delaytopic_relay.core.commands import Record, Rewritten, Schedule
from delaytopic_relay.core.id_states import IdEntry, IdState
from delaytopic_relay.core.ids import IdTable
from delaytopic_relay.delivery.batches import Batch, one_by_one
from delaytopic_relay.dialects import scheduler
from delaytopic_relay.engine.loop import Loop
from delaytopic_relay.engine.recovery import Takeover


def tombstones_cancel() -> Sequence[Patch]:
    return [(scheduler, "is_by_relay", lambda record: False)]


class _WithoutCopies(BrokenTarget):
    def send(self, records: Sequence[Record | Batch]) -> None:
        self.target.send([record for record in one_by_one(records) if record.topic != "history"])


def forgets_copies() -> Sequence[Patch]:
    return with_target(_WithoutCopies)


def _in_the_next_transaction(waits: Callable[[Record], bool]) -> Sequence[Patch]:
    original = Loop._close_tick

    class Later(BrokenTarget):
        """Keeps some records until the commit of what they were sent with is answered."""

        kept: tuple[Record, ...] = ()

        def send(self, records: Sequence[Record | Batch]) -> None:
            self.kept += tuple(record for record in one_by_one(records) if waits(record))
            self.target.send([record for record in one_by_one(records) if not waits(record)])

        def abort(self) -> None:
            self.kept = ()
            self.target.abort()

    def close_tick(self: Loop, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        assert isinstance(self._target, Later)
        kept, self._target.kept = self._target.kept, ()
        if kept:
            self._begin()
            self._sent += len(kept)
            self._target.target.send(kept)

    return [*with_target(Later), (Loop, "_close_tick", close_tick)]


def tombstones_in_a_transaction_of_their_own() -> Sequence[Patch]:
    return _in_the_next_transaction(lambda record: record.topic == "source")


def put_off_in_a_transaction_of_its_own() -> Sequence[Patch]:
    return _in_the_next_transaction(lambda record: any(name == RESTATED for name, _ in record.headers))


def forgets_what_is_on_its_way() -> Sequence[Patch]:
    original = IdTable._put_off

    def put_off(self: IdTable, schedule: Schedule, *arguments: Any, **keywords: Any) -> None:
        original(self, schedule, *arguments, **keywords)
        del self._in_transit[schedule.id or b""]

    return [(IdTable, "_put_off", put_off)]


def lets_go_of_the_offset() -> Sequence[Patch]:
    return [(IdTable, "held_from", property(lambda self: None))]


def does_not_look_ahead() -> Sequence[Patch]:
    return [(Takeover, "_look_ahead_until", lambda self, partition, plan: None)]


def says_no_withdrawal() -> Sequence[Patch]:
    original = IdTable.take_rewritten

    def take_rewritten(self: IdTable) -> Sequence[Rewritten]:
        return [each for each in original(self) if each.due_ms is not None or each.goes_on]

    return [(IdTable, "take_rewritten", take_rewritten)]


def tells_the_backlog() -> Sequence[Patch]:
    original = IdTable._put_off

    def put_off(self: IdTable, schedule: Schedule, state: IdState, position: int) -> None:
        original(self, schedule, state, position)
        name = schedule.id or b""
        self._keep(name, self._states[name]._replace(stored=state.stored), None)

    def entry(self: IdTable, name: bytes, state: IdState, position: int) -> IdEntry:
        # As one that is committed: any other would not be believed.
        return state.to_entry()

    return [(IdTable, "_put_off", put_off), (IdTable, "_entry", entry)]


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
    Mutant(
        "put-off-later",
        "what is put off is written into the source in the transaction after the one that calls it done",
        put_off_in_a_transaction_of_its_own,
        "Redelivery",
    ),
    Mutant(
        "put-off-forgotten",
        "forgets an id that is put off until it is read again: an END in between ends nothing",
        forgets_what_is_on_its_way,
        "Redelivery",
    ),
    Mutant(
        "put-off-not-held",
        "commits L past what lies in front of something that is put off and not read yet",
        lets_go_of_the_offset,
        "Redelivery",
    ),
    Mutant("put-off-unforeseen", "takes over without looking ahead", does_not_look_ahead, "Redelivery"),
    Mutant(
        "put-off-for-good",
        "says nothing behind what was put off and has been withdrawn on its way",
        says_no_withdrawal,
        "Redelivery",
    ),
    Mutant("put-off-told", "tells the backlog what is on its way", tells_the_backlog, "Redelivery"),
)
