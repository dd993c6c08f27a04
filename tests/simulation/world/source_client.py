"""The simulated consumer: implements `Source` over the simulated Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from tests.simulation.faults import Fault, Gate, What
from tests.simulation.world.group import Member
from tests.simulation.world.kafka import Kafka
from tests.simulation.world.source_log import SourceRecord

from delaytopic_process.open_transactions import OpenTransaction
from delaytopic_relay.core import membership
from delaytopic_relay.core.epochs import EpochStart
from delaytopic_relay.core.membership import Answer, Step, Unowned
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import Bounds
from delaytopic_relay.errors import KafkaUnavailable, TransactionAborted
from delaytopic_relay.ports import Assignment, Chunk, Committed, Place, ReadAll, Seen

T = TypeVar("T")


class SimulatedSource:
    """A member of the group; an evicted one learns it `deaf_ms` later, as its heartbeats go on in vain until then."""

    def __init__(
        self, kafka: Kafka, gate: Gate, name: str, chunk: int, deaf_ms: int, member_name: str | None = None
    ) -> None:
        """`name` is the process's own, `member_name` the one that it has in the group until another takes it."""
        self._kafka = kafka
        self._gate = gate
        self._name = name
        self._deaf_ms = deaf_ms
        self._member_name = member_name
        self.chunk = chunk
        self.member: Member | None = None
        self._assignment: Assignment | None = None
        self._owned: set[int] = set()
        self.positions: dict[int, int] = {}
        self.paused: set[int] = set()
        self._told_end: dict[int, int] = {}
        self._commits = 0
        self._unowned = Unowned()
        self._topic = kafka.topic
        self._epochs: dict[int, int] = {}
        """Of the last entry that was read of each shard, since it was last read from an offset."""

    def subscribe(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._join()

    def _join(self) -> None:
        group = self._kafka.group
        if group.named(self._member_name) is not None:
            again = self.member is not None
            self._kafka.counts["path: took its own name back" if again else "path: took a place in the group"] += 1
        self.member = group.join(self._member_name, self._kafka.now_ms)

    def poll(self, limit: int, timeout_ms: int, read: ReadAll) -> dict[int, Chunk]:
        return self._gate.call("poll", lambda: self._poll(limit, read), self._not_polled)

    def _not_polled(self, fault: Fault) -> dict[int, Chunk]:
        if fault.what is What.FATAL and self._member_name is not None:
            self._lose_name()
        else:
            self._answer(Answer.OFFSET_GONE if fault.what is What.FATAL else Answer.PASSING)
        return {}

    def _lose_name(self) -> None:
        """A broker has gone while this member joined: its name is that of the attempt which was lost."""
        group, now_ms = self._kafka.group, self._kafka.now_ms
        group.silent(group.join(self._member_name, now_ms), now_ms)
        self._answer(Answer.FENCED)

    def _poll(self, limit: int, read: ReadAll) -> dict[int, Chunk]:
        self._hear()
        if self._kafka.topic != self._topic:
            self._topic = self._kafka.topic
            raise TransactionAborted("the source was made anew")
        chunks: dict[int, Chunk] = {}
        for partition in sorted(self._owned):
            if partition in self.positions and partition not in self.paused:
                chunk = self._fetch(partition, min(limit, self.chunk), read)
                if chunk.commands or chunk.end is not None:
                    chunks[partition] = chunk
        return chunks

    def _hear(self) -> None:
        """Serve the group's decisions, as the client does inside of `poll`."""
        assert self._assignment is not None
        assert self.member is not None
        evicted_ms = self.member.evicted_at_ms
        if evicted_ms is not None and self._kafka.now_ms >= evicted_ms + self._deaf_ms:
            self._answer(self._kafka.group.answer_to(self.member))
        while self.member.news:
            kind, partitions = self.member.news.popleft()
            if kind == "assigned":
                self._owned.update(partitions)
                self._assignment.assigned(partitions)
                continue
            self._kafka.counts["path: revoked"] += 1
            self._assignment.revoked(partitions)
            self._disown(partitions)
            self._kafka.group.released(self.member, partitions)
        if self._member_name is not None and self._unowned.lasts(self._kafka.group.unowned(), self._kafka.now_ms):
            self._leave_and_join()

    def _leave_and_join(self) -> None:
        """Have the group assign what nobody has, as `KafkaSource` does."""
        assert self._assignment is not None
        assert self.member is not None
        self._kafka.counts["path: partitions without an owner"] += 1
        if self._owned:
            self._assignment.revoked(sorted(self._owned))
        self._disown(set(self._owned))
        self._kafka.group.leave(self.member)
        self._join()

    def _answer(self, heard: Answer) -> None:
        """Take the step that the relay decides on; the client takes a part of these by itself."""
        step = membership.next_step([heard])
        if step is Step.RECOVER:
            raise TransactionAborted(heard)
        if step is Step.GO_ON:
            return
        self._lose_all()
        if step is Step.JOIN_WITHOUT_NAME:
            self._kafka.counts["path: fenced by its name"] += 1
            self._member_name = None
        else:
            self._kafka.counts["path: evicted"] += 1
        self._join()

    def _lose_all(self) -> None:
        assert self._assignment is not None
        if self._owned:
            self._assignment.lost(sorted(self._owned))
        self._disown(set(self._owned))

    def _disown(self, partitions: Iterable[int]) -> None:
        for partition in list(partitions):
            self._owned.discard(partition)
            self.positions.pop(partition, None)
            self.paused.discard(partition)

    def _fetch(self, partition: int, limit: int, read: ReadAll) -> Chunk:
        log, position = self._kafka.source[partition], self.positions[partition]
        cut = log.end_of_epoch(self._epochs.get(partition, log.epoch)) < position
        if position < log.low or cut:
            del self.positions[partition]
            self._kafka.counts["path: offset out of range"] += 1
            self._answer(Answer.OFFSET_GONE)
            return Chunk([])
        messages, self.positions[partition] = log.read(position, limit)
        if self.positions[partition] > position:
            self._epochs[partition] = log.entries[self.positions[partition] - 1].epoch
        end = log.stable_end
        at_end = self.positions[partition] >= end and (bool(messages) or self._told_end.get(partition) != end)
        if at_end:
            self._told_end[partition] = end
        return Chunk(read(messages), end if at_end else None, _epochs_of(messages))

    def read_from(self, partition: int, offset: int) -> None:
        self._ask("read from", lambda: self._seek(partition, offset))

    def _seek(self, partition: int, offset: int) -> None:
        if partition not in self._owned:
            raise KafkaUnavailable(f"{partition} is not assigned")
        self.positions[partition] = offset
        self._epochs.pop(partition, None)
        self._told_end.pop(partition, None)
        self.paused.discard(partition)

    def pause(self, partitions: Iterable[int]) -> None:
        self.paused.update(partition for partition in partitions if partition in self._owned)

    def resume(self, partitions: Iterable[int]) -> None:
        self.paused.difference_update(list(partitions))

    def look(self, partitions: Sequence[int]) -> Callable[[], Seen]:
        epochs = {partition: self._kafka.source[partition].epoch for partition in partitions}
        seen = Seen(self._kafka.topic, epochs)
        return lambda: self._ask("look", lambda: seen)

    def cut_below(self, places: Mapping[int, Place]) -> dict[int, bool]:
        logs = self._kafka.source
        return self._ask(
            "look", lambda: {partition: logs[partition].is_cut_below(*place) for partition, place in places.items()}
        )

    def first_at(self, partition: int, time_ms: int) -> int | None:
        return self._ask("look", lambda: self._kafka.source[partition].first_at(time_ms))

    def bounds(self, partition: int) -> Bounds:
        log = self._kafka.source[partition]
        return self._ask("bounds", lambda: Bounds(log.low, log.stable_end))

    def end(self, partition: int) -> int:
        self._kafka.counts["path: looked ahead"] += 1
        return self._ask("bounds", lambda: len(self._kafka.source[partition].entries))

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        return {
            partition: self._kafka.source[partition].stable_end for partition in partitions if partition in self._owned
        }

    def open_transactions(self, partitions: Iterable[int]) -> dict[int, OpenTransaction]:
        return {}

    def last_committed(self, partitions: Sequence[int]) -> dict[int, Committed]:
        return self._ask("last committed", lambda: self._committed_of(partitions))

    def committed(self, partitions: Sequence[int]) -> dict[int, Committed]:
        return self._ask("committed", lambda: self._stable_of(partitions))

    def _stable_of(self, partitions: Sequence[int]) -> dict[int, Committed]:
        if self._kafka.transactions.in_doubt(partitions):
            self._kafka.counts["path: offsets in doubt"] += 1
            raise KafkaUnavailable("unstable offsets")
        return self._committed_of(partitions)

    def _committed_of(self, partitions: Sequence[int]) -> dict[int, Committed]:
        return {
            partition: self._kafka.committed[partition]
            for partition in partitions
            if partition in self._kafka.committed
        }

    def _ask(self, effect: str, act: Callable[[], T]) -> T:
        def no_answer(fault: Fault) -> T:
            raise KafkaUnavailable(f"{effect}: {fault.what}")

        return self._gate.call(effect, act, no_answer)

    def commit(self, progress: Mapping[int, Progress]) -> None:
        number, generation = self.group_metadata()
        self._commits += 1
        mine = self._commits

        def act() -> None:
            self._kafka.group.check(number, generation)
            if mine == self._commits:  # a connection keeps the order: a late request does not overtake
                self._kafka.commit_offsets(progress, self._name)

        def answer(fault: Fault) -> None:
            if fault.what is What.UNANSWERED:
                act()
            elif fault.what is What.LATE:
                self._kafka.later(fault.length_ms, lambda: _in_vain(act))
            raise TransactionAborted(f"the group refused the commit: {fault.what}")

        self._gate.call("source commit", act, answer)

    def group_metadata(self) -> tuple[int, int]:
        assert self.member is not None
        return (self.member.number, self.member.generation)

    def close(self) -> None:
        assert self._assignment is not None
        assert self.member is not None
        if self._owned:
            self._assignment.revoked(sorted(self._owned))
        self._kafka.group.leave(self.member)


def _epochs_of(messages: Sequence[SourceRecord]) -> list[EpochStart]:
    starts: list[EpochStart] = []
    for message in messages:
        if not starts or message.epoch != starts[-1].epoch:
            starts.append(EpochStart(message.place, message.epoch))
    return starts


def _in_vain(act: Callable[[], None]) -> None:
    """A late request whose refusal nobody hears."""
    try:
        act()
    except TransactionAborted:
        return
