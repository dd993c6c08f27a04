"""Mutants of what recurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.simulation.mutants.breaking import Mutant, Patch
from tests.simulation.mutants.of_dialects import (
    does_not_look_ahead,
    lets_go_of_the_offset,
    put_off_in_a_transaction_of_its_own,
    says_no_withdrawal,
)

from delaytopic_relay.core.commands import Cancel, Command, Reject, Schedule, written_again
from delaytopic_relay.core.entries import due_at
from delaytopic_relay.core.ids import IdTable
from delaytopic_relay.core.partition import ShardCore
from delaytopic_relay.dialects import native, recurring
from delaytopic_relay.dialects.reading import Policy, SourceRecord
from delaytopic_relay.engine import loop


def resolved_anew() -> Sequence[Patch]:
    original = recurring.written_by_relay
    times: Counter[tuple[int, int | None]] = Counter()

    def written_by_relay(policy: Policy, record: SourceRecord, controls: Mapping[str, bytes | None]) -> Command | None:
        command = original(policy, record, controls)
        if not isinstance(command, Schedule):
            return command
        times[command.offset, command.timestamp_ms] += 1
        return due_at(command, command.due_ms + 700 * times[command.offset, command.timestamp_ms])

    return [(native, "written_by_relay", written_by_relay)]


def says_nothing_of_withdrawals() -> Sequence[Patch]:
    return [(IdTable, "on_their_way", property(lambda self: len(self._in_transit)))]


def tells_ends_of_other_places() -> Sequence[Patch]:
    return [(IdTable, "_overtake", lambda self, command: None)]


def ends_rules_unforeseen() -> Sequence[Patch]:
    def end_rules(self: ShardCore) -> None:
        position, held = max(self.position, self.replay_until), self.ids.held_from
        self.rules.end_done(position if held is None else min(position, held), self.cursor)

    return [(ShardCore, "_end_rules", end_rules)]


def passes_over_what_is_refused() -> Sequence[Patch]:
    def only_schedules(command: Command) -> Schedule | Cancel | None:
        return written_again(command) if not isinstance(command, Reject) else None

    return [(loop, "written_again", only_schedules)]


MUTANTS = (
    Mutant(
        "recurs-later",
        "an occurrence is written into the source in the transaction after the delivery of the one before",
        put_off_in_a_transaction_of_its_own,
        "Recurrence",
    ),
    Mutant("recurs-anew", "what was resolved is resolved anew whenever it is read", resolved_anew, "Recurrence"),
    Mutant(
        "recurs-not-held",
        "commits L past what lies in front of an occurrence that is not read yet",
        lets_go_of_the_offset,
        "Recurrence",
    ),
    Mutant("recurs-unforeseen", "takes over without looking ahead to occurrences", does_not_look_ahead, "Recurrence"),
    Mutant(
        "recurs-after-its-cancel",
        "says nothing behind an occurrence that was withdrawn on its way",
        says_no_withdrawal,
        "Recurrence",
    ),
    Mutant(
        "recurs-uncounted",
        "commits as if no withdrawal were on its way",
        says_nothing_of_withdrawals,
        "Recurrence",
    ),
    Mutant(
        "recurs-ended-by-another",
        "does not remember which command has ended an occurrence on its way",
        tells_ends_of_other_places,
        "Recurrence",
    ),
    Mutant(
        "recurs-below-the-floor",
        "forgets former rules, and what they read, before it knows what is on its way",
        ends_rules_unforeseen,
        "Recurrence",
    ),
    Mutant(
        "recurs-refused-unforeseen",
        "looks ahead to no occurrence that later rules refuse",
        passes_over_what_is_refused,
        "RecurrenceBuckets",
    ),
)
