"""The simulated producer: implements `Target`, and makes of Kafka's answers what `kafka.target` makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import NoReturn

from tests.simulation.faults import Fault, Gate, What
from tests.simulation.world.clocks import SimulatedClock
from tests.simulation.world.kafka import AGAIN, SOURCE, Kafka, Life, Sent, committed_of
from tests.simulation.world.refusing import refusal_of

from delaytopic_relay.core.commands import Record
from delaytopic_relay.core.entries import make_sender
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.delivery.batches import Batch, one_by_one, sender_of, source_of
from delaytopic_relay.delivery.outcomes import Places
from delaytopic_relay.delivery.outcomes import Sent as SentRecord
from delaytopic_relay.delivery.reachability import Destination
from delaytopic_relay.delivery.refusals import OneByOne, Refusal
from delaytopic_relay.errors import (
    CommitUnknown,
    Fenced,
    KafkaUnavailable,
    ProducerOutdated,
    StateInDoubt,
    TransactionAborted,
    Unanswered,
)
from delaytopic_relay.ports import GroupMetadata, InVain, never

LONGEST_WAIT_MS = 10_000


class Client(StrEnum):
    """The state of the client library's producer."""

    READY = "ready"
    OPEN = "open"
    ABORTABLE = "abortable"
    UNCLEAR = "unclear"  # it does not know whether the transaction has ended
    FATAL = "fatal"


class SimulatedTarget:
    """A producer; with an owner it is transactional. With `lingers` records leave when they are waited for."""

    def __init__(self, kafka: Kafka, gate: Gate, clock: SimulatedClock, name: str, *, transactional: bool) -> None:
        self._kafka = kafka
        self._gate = gate
        self._clock = clock
        self._name = name
        self.owner = name if transactional else ""
        self.lingers = False
        self.notes_places = False
        self._places: dict[SentRecord, tuple[int, int]] = {}
        self.recovered: dict[int, Progress] = {}
        """The recoveries of the relay's shards, to mark what it sends."""
        self._state = Client.READY
        self._buffer: list[Sent] = []
        self._failures: list[Refusal] = []
        self._silent: dict[tuple[str, int], set[int]] = {}
        self._acknowledged = False
        self._ended: set[str] = set()
        self._needs_another_id = False
        self._one_by_one = OneByOne()
        self._is_careful = False
        self._stored = False
        self._compresses = self._is_to_compress = False
        self._number = 1
        self._epoch = kafka.transactions.initialise(self.owner) if transactional else 0

    # -- records

    def begin(self) -> None:
        if self.owner:
            self._gate.call("begin", self._begin, self._refuse)

    def _begin(self) -> None:
        self._object_unless(Client.READY)
        self._stored = False
        self._state = Client.OPEN

    @property
    def packs(self) -> bool:
        return make_sender is not None and not self.notes_places

    def send(self, records: Sequence[Record | Batch]) -> None:
        if self.owner:
            self._object_unless(Client.OPEN)
        self._is_careful = self._one_by_one.holds(self._kafka.now_ms, may_begin=not self._failures)
        for record in one_by_one(records):
            if self.owner and self._failures:
                return
            self._gate.call("produce", partial(self._produce, record), self._refuse)

    def compress(self) -> None:
        if self._compresses:
            return
        self._is_to_compress = True
        self._kafka.counts["path: compresses from now on"] += 1
        if self.owner:
            raise ProducerOutdated("what is due fits only if it is compressed")
        self._flush()
        self._compresses = True

    def store(self, records: Sequence[Record]) -> None:
        self._kafka.counts["path: stored again before the commit"] += self._stored
        self._stored = True
        self.send(records)

    def _produce(self, record: Record) -> None:
        now_ms = self._kafka.now_ms
        refusal = self.refusal_of(record)
        if refusal is not None:
            self._kafka.counts["path: record refused"] += 1
            self._one_by_one.refused(known=refusal.partition is not None)
            self._failures.append(refusal)
            return
        life = Life(self._name, dict(self.recovered))
        self._buffer.append(Sent(record, now_ms, self._clock.shown_ms, self._clock.shift_ms, life, None))
        if not self.lingers:
            self._flush()

    def refusal_of(self, record: Record) -> Refusal | None:
        """Return why Kafka refuses a record for good; None for one that it takes."""
        return refusal_of(record, careful=self._is_careful, compresses=self._compresses)

    def _flush(self) -> None:
        """Let what was buffered reach the broker; it tells a fenced producer so only in the reports."""
        records, self._buffer = self._buffer, []
        silent = self._kafka.silent() if records else {}
        waits = bool(records) and self._waits_for_markers
        for sent in records:
            destination = destination_of(sent.record)
            if destination in silent or waits:
                self._silent.setdefault(destination, set()).add(sender_of(sent.record))
                self._kafka.counts["path: not acknowledged"] += 1
            else:
                self._acknowledged = True
            if not self.owner or waits:
                if destination not in silent and not waits:
                    self._take(sent)
                continue
            try:
                transaction = self._kafka.transactions.current(self.owner, self._epoch, self._kafka.now_ms)
            except Fenced as error:
                self._state = Client.FATAL
                self._failures.append(Refusal(str(error), too_large=False))
                return
            if destination in silent:
                self._kafka.transactions.join(self.owner, destination)
                continue
            moved = replace(sent, transaction=transaction)
            self._take(moved)

    def _take(self, sent: Sent) -> None:
        record = sent.record
        self._kafka.take(sent)
        source, offset, dead = source_of(record.headers)
        if self.notes_places and source is not None and offset is not None and record.topic != SOURCE:
            at = (max(0, record.partition), len(self._kafka.target) - 1)
            self._places[SentRecord(record.topic, source, offset, dead)] = at

    def take_places(self) -> Places:
        taken, self._places = self._places, {}
        return taken

    @property
    def _waits_for_markers(self) -> bool:
        """Return whether the id begins no transaction, as the last one cannot end."""
        return bool(self.owner) and self._kafka.transactions.cannot_end(self.owner)

    def flush(self, in_vain: InVain = never) -> list[Refusal]:
        return self._gate.call("flush", partial(self._flushed, in_vain), self._unsettled)

    def _flushed(self, in_vain: InVain = never) -> list[Refusal]:
        self._flush()
        if self._silent:
            self._tell_silence(in_vain)
        self._acknowledged = False
        failures, self._failures = self._failures, []
        if failures and self.owner and self._state is Client.OPEN:
            self._state = Client.UNCLEAR
        return failures

    def _tell_silence(self, in_vain: InVain) -> NoReturn:
        any(in_vain(silent_ms) for silent_ms in range(0, LONGEST_WAIT_MS, 500))
        self._needs_another_id = True
        self._ended.add(self.owner)
        senders = {each: frozenset(partitions) for each, partitions in self._silent.items()}
        raise Unanswered("not acknowledged", senders, acknowledged=self._acknowledged)

    def _unsettled(self, fault: Fault) -> list[Refusal]:
        if fault.what is What.RETRIABLE:  # half of it was not acknowledged in time
            self._buffer = self._buffer[: len(self._buffer) // 2]
            self._flushed()
            raise TransactionAborted("records were not acknowledged")
        self._refuse(fault)

    # -- the end of a transaction

    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        assert isinstance(group, tuple)
        if progress:
            add = partial(self._add_offsets, progress, group)
            self._gate.call("offsets", add, partial(self._in_doubt, add))
        self._gate.call("commit", self._commit, partial(self._in_doubt, self._commit))

    def _add_offsets(self, progress: Mapping[int, Progress], group: tuple[int, int]) -> None:
        self._object_unless(Client.OPEN)
        if self._waits_for_markers:
            self._state = Client.UNCLEAR
            raise CommitUnknown("the offsets were not taken into the transaction")
        self._ask_coordinator(lambda: self._offsets_arrive(progress, group, self._epoch))

    def _offsets_arrive(self, progress: Mapping[int, Progress], group: tuple[int, int], epoch: int) -> None:
        transaction = self._kafka.transactions.current(self.owner, epoch, self._kafka.now_ms)
        self._kafka.group.check(*group)
        transaction.offsets.update(committed_of(progress))

    def _commit(self) -> None:
        self._end(commit=True)

    def _end(self, *, commit: bool, markers_later: bool = False) -> None:
        self._object_unless(Client.OPEN, *([] if commit else [Client.ABORTABLE]))
        if commit:
            self._flush()
            if self._silent:
                raise TransactionAborted("records were not acknowledged")
        end = self._kafka.transactions.end
        self._ask_coordinator(lambda: end(self.owner, self._epoch, commit=commit, markers_later=markers_later))
        self._state = Client.READY

    def _in_doubt(self, act: Callable[[], None], fault: Fault) -> None:
        """Answers to what a commit asks for."""
        self._object_unless(Client.OPEN)
        if fault.what is What.DECIDED:
            self._end(commit=True, markers_later=True)
            self._kafka.later(fault.length_ms, self._kafka.transactions.write_markers)
            return
        if fault.what is What.UNANSWERED:
            act()
        elif fault.what is What.LATE:
            self._send_late(act, fault.length_ms)
        if fault.what in (What.LOST, What.UNANSWERED, What.LATE):
            self._state = Client.UNCLEAR
            self._kafka.counts["path: outcome unknown"] += 1
            raise CommitUnknown(f"no answer: {fault.what}")
        self._refuse(fault)

    def _send_late(self, act: Callable[[], None], delay_ms: int) -> None:
        """The request is on its way with the state that the client has now."""
        then = self.owner, self._epoch, self._state, self._buffer
        self._buffer = []

        def arrive() -> None:
            kept = self.owner, self._epoch, self._state, self._buffer
            self.owner, self._epoch, self._state, self._buffer = then
            try:
                act()
            except StateInDoubt:
                self._kafka.counts["path: late request refused"] += 1
            else:
                self._kafka.counts["path: late request carried out"] += 1
            finally:
                self.owner, self._epoch, self._state, self._buffer = kept

        self._kafka.later(delay_ms, arrive)

    def abort(self) -> None:
        self._failures.clear()
        self._buffer.clear()
        self._silent.clear()
        self._places.clear()
        self._acknowledged = False
        if self._state in (Client.OPEN, Client.ABORTABLE):
            abort = partial(self._end, commit=False)
            self._gate.call("abort", partial(self._try, abort), partial(self._not_aborted, abort))

    def _try(self, abort: Callable[[], None]) -> None:
        try:
            abort()
        except StateInDoubt:
            self._kafka.counts["path: not aborted"] += 1

    def _not_aborted(self, abort: Callable[[], None], fault: Fault) -> None:
        if fault.what is What.UNANSWERED:
            self._try(abort)
        elif fault.what is What.LATE:
            self._send_late(abort, fault.length_ms)
        self._state = Client.UNCLEAR

    # -- epochs

    def fence(self, owner: str) -> None:
        self._initialise("fence", owner)

    def replace(self) -> None:
        self._failures.clear()
        self._buffer.clear()
        self._silent.clear()
        self._places.clear()
        self._acknowledged = False
        self._kafka.counts["path: producer replaced"] += 1
        self._compresses = self._is_to_compress
        if self.owner and self._needs_another_id:
            self._number += 1
            self.owner = f"{self._name}{AGAIN}{self._number}"
            self._kafka.counts["path: another id"] += 1
        self._needs_another_id = True
        self._epoch = self._initialise("replace", self.owner) if self.owner else 0
        self._state = Client.READY
        self._needs_another_id = False

    def _initialise(self, effect: str, owner: str) -> int:
        initialise = partial(self._kafka.transactions.initialise, owner)
        if effect == "fence" and (owner in self._ended or self._kafka.transactions.cannot_end(owner)):
            return 0
        if self._kafka.transactions.cannot_end(owner):
            raise KafkaUnavailable(f"transactions of {owner}: the last one cannot end")

        def no_answer(fault: Fault) -> int:
            if fault.what is What.UNANSWERED:
                initialise()
            elif fault.what is What.LATE:
                self._kafka.later(fault.length_ms, initialise)
            raise KafkaUnavailable(f"transactions of {owner}: {fault.what}")

        return self._gate.call(effect, initialise, no_answer)

    def close(self) -> None:
        self._buffer.clear()

    # -- errors

    def _object_unless(self, *fine: Client) -> None:
        if self.owner and self._state not in fine:
            self._raise(self._state)

    def _ask_coordinator(self, request: Callable[[], None]) -> None:
        try:
            request()
        except Fenced:
            self._state = Client.FATAL
            raise
        except TransactionAborted:
            self._state = Client.ABORTABLE
            raise

    def _refuse(self, fault: Fault) -> NoReturn:
        states = {What.FATAL: Client.FATAL, What.ABORTABLE: Client.ABORTABLE}
        state = states.get(fault.what)
        if self.owner and state is not None and self._state is not Client.READY:
            self._state = state
        if not self.owner:
            raise Fenced("fatal") if fault.what is What.FATAL else TransactionAborted(fault.what)
        self._raise(state or Client.UNCLEAR)

    def _raise(self, state: Client) -> NoReturn:
        if state is Client.FATAL:
            raise Fenced("the producer failed for good")
        if state is Client.ABORTABLE:
            raise TransactionAborted("the transaction must be aborted")
        raise CommitUnknown("Local: Erroneous state")


def destination_of(record: Record) -> Destination:
    """The partition that a record goes to: of the target the source's, of others the one it names, or the first."""
    if record.topic in (SOURCE, "target"):
        return Destination(record.topic, sender_of(record))
    return Destination(record.topic, max(0, record.partition))
