"""Edge: the consumer of the source topic, a member of the relay's group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import wait
from functools import partial
from typing import Any, NamedTuple, NoReturn, cast

import structlog
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from delaytopic_process.kafka_log import client_logger
from delaytopic_process.open_transactions import OpenTransaction
from delaytopic_relay.core.commands import MAX_HEADERS, Command, SourceMessage
from delaytopic_relay.core.epochs import EpochStart
from delaytopic_relay.core.membership import Answer, Step, next_step
from delaytopic_relay.core.progress import Progress, encode_metadata, usual_id
from delaytopic_relay.core.recovery import Bounds, SourceTopic
from delaytopic_relay.errors import KafkaUnavailable, TransactionAborted
from delaytopic_relay.kafka.settings import Settings
from delaytopic_relay.kafka.truncation import Truncation, epoch_of, heard_in
from delaytopic_relay.kafka.watching import (
    AskEnds,
    AskTopic,
    GroupWatch,
    OpenGroup,
    OpenTransactions,
    PausedEnds,
    TopicWatch,
)
from delaytopic_relay.ports import Assignment, BadBatch, Chunk, Committed, GroupMetadata, Place, ReadAll, Seen

GATHER_S = 0.002
"""The wait for company once a first record is there: one pass for many costs less than many passes."""
LONGEST_GATHER_S = 0.02
"""The longest such wait, when records are large or full of headers: what is due does not wait for a thousand of
them.
"""
PORTION = 16
"""Records that the client hands over in one call. It parses the headers of all of them: of a record of a megabyte
that takes tens of megabytes, until `_limit_headers` has seen it. Larger ones are slower (0.7 us a
record at 1,000, 0.5 at 16)."""
REQUEST_TIMEOUT_S = 10.0
LEAVE_TIMEOUT_S = 2.0
MEMBER_NAME = "group.instance.id"
UNREADABLE = frozenset({KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG, KafkaError._NOT_IMPLEMENTED})
"""The client's errors for a batch that it cannot unpack or take apart, and fetches again twice a second for ever."""

Group = Sequence[SourceMessage]
log = structlog.get_logger()


class _Taken(NamedTuple):
    """The take of one poll: by partition its commands, the offset behind them, the source's end, the leader epochs and
    what cannot be read; and what was heard.
    """

    commands: dict[int, list[Command]]
    next: dict[int, int]
    ends: dict[int, int]
    heard: dict[Answer, str]
    epochs: dict[int, list[EpochStart]]
    bad: dict[int, BadBatch]


class KafkaSource:
    """Implements `Source` over one consumer, and another that only asks."""

    def __init__(
        self,
        settings: Settings,
        connection: Settings,
        topic: SourceTopic,
        ask_ends: AskEnds,
        open_group: OpenGroup,
        ask_topic: AskTopic,
    ) -> None:
        """`settings` are those of the group's member, `connection` those of any client."""
        self._topic = topic.name
        self._source_topic = topic
        self._ask_ends = ask_ends
        self._ask_topic = ask_topic
        self._watch = TopicWatch(topic, ask_topic)
        self._paused_ends = PausedEnds(ask_ends)
        self._open_transactions = OpenTransactions(ask_ends)
        self._group_watch = GroupWatch(open_group)
        self._group = str(settings["group.id"])
        self._truncation = Truncation(connection, topic.name, self._group, lambda partition: self.bounds(partition).low)
        self._settings = dict(settings)
        self._consumer = Consumer(self._settings, logger=client_logger("source"))
        doubtful = {**connection, "group.id": self._group, "isolation.level": "read_uncommitted"}
        self._doubtful = Consumer({**doubtful, "enable.auto.commit": False}, logger=client_logger("source"))
        self._assigned: set[int] = set()
        self._ends: dict[int, int] = {}
        # Behind the last record that was handed out of each partition; none before one is read.
        self._next: dict[int, int] = {}
        self._assignment: Assignment | None = None

    def subscribe(self, assignment: Assignment) -> None:
        """Join the group; the assignment is told inside `poll`."""
        self._assignment = assignment

        def on_assign(consumer: Consumer, assigned: list[TopicPartition]) -> None:
            partitions = [each.partition for each in assigned]
            # Not at the end: to look that up may outlive the seek to where reading begins, and records in between are
            # lost. What is fetched from here by mistake is done, and known to be.
            consumer.incremental_assign([TopicPartition(self._topic, partition, 0) for partition in partitions])
            consumer.pause([TopicPartition(self._topic, partition) for partition in partitions])
            self._assigned.update(partitions)
            if MEMBER_NAME in self._settings:
                self._group_watch.watch()
            log.info("partitions assigned", partitions=partitions)
            assignment.assigned(partitions)

        def on_revoke(consumer: Consumer, revoked: list[TopicPartition]) -> None:
            partitions = [each.partition for each in revoked]
            log.info("partitions revoked", partitions=partitions)
            assignment.revoked(partitions)
            self._let_go(partitions)
            consumer.incremental_unassign(revoked)

        def on_lost(consumer: Consumer, lost: list[TopicPartition]) -> None:
            partitions = [each.partition for each in lost]
            log.warning("partitions lost", partitions=partitions)
            assignment.lost(partitions)
            self._let_go(partitions)
            consumer.incremental_unassign(lost)

        self._consumer.subscribe([self._topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)

    def _let_go(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self._assigned.discard(partition)
            self._next.pop(partition, None)
        self._paused_ends.resumed(partitions)

    def poll(self, limit: int, timeout_ms: int, read: ReadAll) -> dict[int, Chunk]:
        """Up to `limit` records by partition; the first is waited for, the others join it within two milliseconds.

        Each portion is read at once, while the processor still has it at hand (0.3 us a record less than all at the
        end, and 1.0 where records stay packed, as their messages are given back at once, too).
        """
        if self._group_watch.lacks_owners(time.monotonic()):
            self._leave_and_join()
        if self._watch.sees_another(time.monotonic()):
            raise TransactionAborted(f"the topic {self._topic} is another one than before: it was made anew")
        taken, count = _Taken({}, {}, {}, {}, {}, {}), 0
        if timeout_ms > 0:
            first = self._consumer.poll(timeout_ms / 1000)
            if first is None:
                return {}
            self._take([first], read, taken)
            count = 1
        begun_s = time.monotonic()
        wait_s = min(GATHER_S, timeout_ms / 1000)
        waited_s = 0.0
        while count < limit and waited_s < LONGEST_GATHER_S:
            portion = self._consumer.consume(min(PORTION, limit - count), max(0.0, wait_s - waited_s))
            self._take(portion, read, taken)
            count += len(portion)
            if len(portion) < PORTION:
                break
            waited_s = time.monotonic() - begun_s
        return self._chunks_of(taken)

    def _take(self, messages: Sequence[Message], read: ReadAll, taken: _Taken) -> None:
        """Read a portion of records, partition by partition."""
        groups: dict[int, list[Message]] = {}
        for message in map(_limit_headers, messages):
            if message.error() is not None:
                self._note(message, taken)
                continue
            partition = message.partition() or 0
            group = groups.get(partition)
            if group is None:
                groups[partition] = [message]
            else:
                group.append(message)
        for partition, group in groups.items():
            taken.next[partition] = (group[-1].offset() or 0) + 1
            _note_epochs(group, taken.epochs.setdefault(partition, []))
            taken.commands.setdefault(partition, []).extend(read(cast(Group, group)))

    def _chunks_of(self, taken: _Taken) -> dict[int, Chunk]:
        """Act on what was heard; return the chunks by partition, none if the member was replaced."""
        step = next_step(taken.heard)
        if step is Step.JOIN_WITHOUT_NAME:
            self._join_anew(taken.heard[Answer.FENCED])
            return {}
        if step is Step.RECOVER:
            reason = taken.heard[Answer.OFFSET_GONE]
            raise TransactionAborted(f"the source no longer has what is to be read next: {reason}")
        self._ends.update(taken.ends)
        self._next.update(taken.ends)
        self._next.update(taken.next)
        commands, ends, epochs, bad = taken.commands, taken.ends, taken.epochs, taken.bad
        partitions = commands.keys() | ends.keys() | bad.keys()
        return {
            partition: Chunk(
                commands.get(partition, []), ends.get(partition), epochs.get(partition, ()), bad.get(partition)
            )
            for partition in partitions
        }

    def _note(self, message: Message, taken: _Taken) -> None:
        error = message.error()
        assert error is not None
        partition, offset = message.partition(), message.offset()
        if error.code() == KafkaError._PARTITION_EOF and partition is not None and offset is not None:
            taken.ends[partition] = offset
            return
        if error.code() in UNREADABLE and partition is not None and offset is not None:
            taken.bad[partition] = BadBatch(offset, error.str())
            return
        answer = heard_in(error)
        taken.heard[answer] = error.str()
        if answer is Answer.PASSING:
            log.warning("source not readable", topic=self._topic, partition=partition, reason=error.str())

    def _join_anew(self, reason: str) -> None:
        """Replace a member that has failed for good by one without a name."""
        assert self._assignment is not None
        log.warning("joining the group anew, without a name", group=self._group, reason=reason)
        partitions = [*self._assigned]
        self._assignment.lost(partitions)
        self._let_go(partitions)
        self._consumer.close()
        self._settings.pop(MEMBER_NAME, None)
        self._group_watch.rest()
        self._consumer = Consumer(self._settings, logger=client_logger("source"))
        self.subscribe(self._assignment)

    def _leave_and_join(self) -> None:
        """Have the group assign what it has left without an owner: only who leaves or joins makes it do so."""
        assert self._assignment is not None
        log.warning("partitions without an owner, leaving the group and joining again", group=self._group)
        self._leave()
        self.subscribe(self._assignment)

    def read_from(self, partition: int, offset: int) -> None:
        """Seek and resume."""
        self._next[partition] = offset
        self._paused_ends.resumed([partition])
        self._act(lambda: self._seek(TopicPartition(self._topic, partition, offset)))
        self._act(lambda: self._consumer.resume(self._places([partition])))

    def _seek(self, place: TopicPartition) -> None:
        try:
            self._consumer.seek(place)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._STATE:
                raise
            # The client has stopped reading where an offset is gone, and seeks only where it reads.
            self._consumer.incremental_unassign([place])
            self._consumer.incremental_assign([place])

    def pause(self, partitions: Iterable[int]) -> None:
        """Stop reading these partitions, as far as they are ours."""
        places = self._places(partitions)
        self._act(lambda: self._consumer.pause(places))
        self._paused_ends.paused(place.partition for place in places)

    def resume(self, partitions: Iterable[int]) -> None:
        """Read on behind what was handed out, as far as they are ours and were read before."""
        known = [partition for partition in partitions if partition in self._assigned and partition in self._next]
        self._paused_ends.resumed(known)
        self._act(lambda: self._consumer.resume(self._places(known)))
        # The client's fetching thread sleeps for up to a second while all is paused, and only a seek wakes it.
        for partition in known:
            self._act(partial(self._consumer.seek, TopicPartition(self._topic, partition, self._next[partition])))

    def _places(self, partitions: Iterable[int]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, partition) for partition in partitions if partition in self._assigned]

    def _act(self, action: Callable[[], object]) -> None:
        try:
            action()
        except KafkaException as error:
            raise KafkaUnavailable(f"{self._topic}: {error.args[0].str()}") from error

    def look(self, partitions: Sequence[int]) -> Callable[[], Seen]:
        """Ask the brokers for the topic's id and the ends of its logs, side by side."""
        topic, ends = self._ask_topic(), self._ask_ends(partitions, IsolationLevel.READ_UNCOMMITTED)

        def seen() -> Seen:
            try:
                topic_id = usual_id(str(topic.result(REQUEST_TIMEOUT_S).topic_id))
            except (KafkaException, TimeoutError) as error:
                raise KafkaUnavailable(f"the id of the topic {self._topic} is not known: {error}") from error
            wait([*ends.values()], REQUEST_TIMEOUT_S)
            told = {partition: each for partition, each in ends.items() if each.done() and each.exception() is None}
            epochs = {partition: each.result().leader_epoch for partition, each in told.items()}
            known = {partition: epoch for partition, epoch in epochs.items() if epoch is not None and epoch >= 0}
            return Seen(self._source_topic._replace(topic_id=topic_id), known)

        return seen

    def cut_below(self, places: Mapping[int, Place]) -> Mapping[int, bool]:
        """Ask the brokers, by consumers of its own."""
        return self._truncation.cut_below(places)

    def first_at(self, partition: int, time_ms: int) -> int | None:
        """Ask the broker."""
        try:
            (found,) = self._doubtful.offsets_for_times(
                [TopicPartition(self._topic, partition, time_ms)], timeout=REQUEST_TIMEOUT_S
            )
        except KafkaException as error:
            raise KafkaUnavailable(f"offsets of {self._topic}[{partition}]: {error.args[0].str()}") from error
        return found.offset if found.offset >= 0 else None

    def bounds(self, partition: int) -> Bounds:
        """Ask the broker."""
        return self._bounds(self._consumer, partition)

    def end(self, partition: int) -> int:
        """Ask the broker, for what is not yet committed, too."""
        return self._bounds(self._doubtful, partition).end

    def _bounds(self, consumer: Consumer, partition: int) -> Bounds:
        try:
            found = consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise KafkaUnavailable(f"offsets of {self._topic}[{partition}]: {error.args[0].str()}") from error
        if found is None:
            raise KafkaUnavailable(f"offsets of {self._topic}[{partition}]: no answer within {REQUEST_TIMEOUT_S:.0f} s")
        return Bounds(*found)

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """The ends that came with the last fetches; of paused partitions, those that brokers told a few seconds ago."""
        found: dict[int, int] = {}
        for partition in self._assigned.intersection(partitions):
            bounds = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
            if bounds[1] >= 0:
                found[partition] = bounds[1]
        return found | self._paused_ends.known(time.monotonic())

    def open_transactions(self, partitions: Iterable[int]) -> dict[int, OpenTransaction]:
        """Ask the brokers, of partitions that have more than was read, and return what they told before."""
        ends = self.ends(partitions)
        ahead = {partition for partition, end in ends.items() if end > self._next.get(partition, end)}
        return self._open_transactions.known(ends, ahead, time.monotonic())

    def last_committed(self, partitions: Sequence[int]) -> dict[int, Committed]:
        """Through a `read_uncommitted` consumer that never joins the group: it does not wait for open transactions."""
        return self._committed_of(self._doubtful, partitions)

    def committed(self, partitions: Sequence[int]) -> dict[int, Committed]:
        """Through the `read_committed` consumer, which waits until no transaction is in doubt."""
        return self._committed_of(self._consumer, partitions)

    def _committed_of(self, consumer: Consumer, partitions: Sequence[int]) -> dict[int, Committed]:
        places = [TopicPartition(self._topic, partition) for partition in partitions]
        try:
            return _committed(consumer.committed(places, timeout=REQUEST_TIMEOUT_S))
        except KafkaException as error:
            raise KafkaUnavailable(f"committed offsets of group {self._group}: {error.args[0].str()}") from error

    def commit(self, progress: Mapping[int, Progress]) -> None:
        """Commit synchronously as this member of the group."""
        try:
            self._consumer.commit(offsets=offsets_of(self._topic, progress), asynchronous=False)
        except KafkaException as error:
            raise TransactionAborted(f"the group refused the commit: {error.args[0].str()}") from error

    def group_metadata(self) -> GroupMetadata:
        """The member's generation."""
        metadata: GroupMetadata = self._consumer.consumer_group_metadata()
        return metadata

    def close(self) -> None:
        """Leave the group at once, so that others take over without waiting for the session to end."""
        if MEMBER_NAME in self._settings:
            self._leave()
        self._consumer.close()
        self._doubtful.close()

    def _leave(self) -> None:
        # A static member that is merely closed stays in the group until its session ends.
        until_s = time.monotonic() + LEAVE_TIMEOUT_S
        try:
            self._consumer.unsubscribe()
            while self._consumer.memberid() and time.monotonic() < until_s:
                self._consumer.poll(0.02)
        except KafkaException as error:
            log.warning("could not leave the group", group=self._group, reason=error.args[0].str())


def _note_epochs(messages: Sequence[Message], starts: list[EpochStart]) -> None:
    """Note where leader epochs begin in consecutive records of a log, behind those that are noted."""
    # Epochs never go back in a log: where both ends are of the same, so is all between.
    same = epoch_of(messages[0]) == epoch_of(messages[-1])
    for message in messages[:1] if same else messages:
        epoch = epoch_of(message)
        if epoch >= 0 and (not starts or epoch != starts[-1].epoch):
            starts.append(EpochStart(message.offset() or 0, epoch))


class _Undecodable:
    """A record whose headers the client cannot decode: it may be asked for them only once, and was."""

    def __init__(self, message: Message) -> None:
        self._message = message

    def headers(self) -> NoReturn:
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "the name of a header")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)


def _limit_headers(message: Message) -> Message:
    """The record with no more headers than show that it has too many: no dialect takes it then."""
    try:
        headers = cast("list[tuple[str, bytes | None]] | None", message.headers())
    except (SystemError, UnicodeDecodeError):
        return cast(Message, _Undecodable(message))
    if headers is not None and len(headers) > MAX_HEADERS:
        message.set_headers([*headers[: MAX_HEADERS + 1]])
    return message


def offsets_of(topic: str, progress: Mapping[int, Progress]) -> list[TopicPartition]:
    """Progress as offsets with metadata."""
    return [TopicPartition(topic, partition, new.offset, encode_metadata(new)) for partition, new in progress.items()]


def _committed(partitions: Sequence[TopicPartition] | None) -> dict[int, Committed]:
    found: dict[int, Committed] = {}
    for partition in partitions or ():
        if partition.error is not None:
            raise KafkaException(partition.error)
        if partition.offset >= 0:
            found[partition.partition] = Committed(partition.offset, partition.metadata or "")
    return found
