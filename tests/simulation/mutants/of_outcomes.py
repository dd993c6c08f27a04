"""Mutants of outcomes, and of what the backlog is told of ids before it is committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.simulation.mutants.breaking import BrokenTarget, Mutant, Patch, with_target

from delaytopic_relay.core import ids
from delaytopic_relay.core.commands import Record
from delaytopic_relay.core.done import NOTHING_DONE
from delaytopic_relay.core.id_states import IdEntry, IdState, from_entry
from delaytopic_relay.core.ids import IdTable
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.delivery.outcomes import Outcomes, Places
from delaytopic_relay.ports import GroupMetadata


def believes_its_own_entries() -> Sequence[Patch]:
    def entry(self: IdTable, name: bytes, state: IdState, position: int) -> IdEntry:
        return state.to_entry()

    return [(IdTable, "_entry", entry)]


def forgets_what_was_before() -> Sequence[Patch]:
    return [(IdTable, "_keep_before", lambda self, name, state: None)]


def asks_an_entry_what_has_left() -> Sequence[Patch]:
    original = from_entry
    return [(ids, "from_entry", lambda entry, done=NOTHING_DONE: original(entry))]


def tells_twice_what_is_read_again() -> Sequence[Patch]:
    original = IdTable._note

    def note(self: IdTable, name: bytes, known: IdState | None, offset: int) -> bool:
        original(self, name, known, offset)
        return True

    return [(IdTable, "_note", note)]


def outcomes_in_a_transaction_of_their_own() -> Sequence[Patch]:
    class Later(BrokenTarget):
        """Keeps outcomes until the next transaction."""

        kept: tuple[Record, ...] = ()

        def store(self, records: Sequence[Record]) -> None:
            told = tuple(record for record in records if record.topic == "outcomes")
            self.kept += told
            self.target.store([record for record in records if record not in told])

        def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
            self.target.commit(progress, group)
            kept, self.kept = self.kept, ()
            self.target.begin()
            self.target.store(kept)
            self.target.flush()
            self.target.commit({}, group)

    return with_target(Later)


def takes_a_dead_letter_for_delivered() -> Sequence[Patch]:
    original = Outcomes.sent
    return [
        (
            Outcomes,
            "sent",
            lambda self, partition, schedules, rejects, ended_ms: original(self, partition, schedules, [], ended_ms),
        )
    ]


def knows_no_places() -> Sequence[Patch]:
    original = Outcomes.records

    def records(self: Outcomes, places: Places) -> list[Record]:
        return original(self, {sent: (place[0], place[1] + 1) for sent, place in places.items()})

    return [(Outcomes, "records", records)]


MUTANTS = (
    Mutant(
        "believes-its-own-entries",
        "writes entries of ids that do not say that they know of more than is committed",
        believes_its_own_entries,
        "Outcomes",
    ),
    Mutant(
        "forgets-what-was-before",
        "writes beside an entry that nothing was there before",
        forgets_what_was_before,
        "Outcomes",
    ),
    Mutant(
        "asks-an-entry-what-has-left",
        "takes a schedule for pending until its entry is written anew",
        asks_an_entry_what_has_left,
        "OutcomesBuckets",
    ),
    Mutant(
        "tells-twice-what-is-read-again",
        "has commands that are read again end what they ended before",
        tells_twice_what_is_read_again,
        "Outcomes",
    ),
    Mutant(
        "outcomes-in-a-transaction-of-their-own",
        "commits outcomes after what they tell",
        outcomes_in_a_transaction_of_their_own,
        "Outcomes",
    ),
    Mutant(
        "takes-a-dead-letter-for-delivered",
        "says of a dead letter that it was delivered",
        takes_a_dead_letter_for_delivered,
        "Outcomes",
    ),
    Mutant("knows-no-places", "names another record than the delivered one", knows_no_places, "Outcomes"),
)
