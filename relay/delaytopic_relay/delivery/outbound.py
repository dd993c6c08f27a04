"""From schedules to records: the receipt in, the control headers out, and where each record goes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, final
from zlib import crc32

from delaytopic_api.records import (
    CONTROL_HEADERS,
    DEAD_LETTER_SOURCE,
    RECEIPT,
    RESTATED,
    DeadLetter,
    DeadLetterReason,
    Headers,
    ReceiptForm,
    dead_letter_headers,
    receipt_parts,
)
from delaytopic_api.values import Partitioning, is_reserved
from delaytopic_relay.core.commands import (
    ANY_PARTITION,
    NO_CONTROL_HEADER,
    Record,
    Reject,
    Restated,
    Schedule,
    new_record,
)
from delaytopic_relay.core.entries import all_plain, size, sizes
from delaytopic_relay.delivery.reachability import Trouble
from delaytopic_relay.delivery.shrinking import may_shrink_to, shrunk_bytes
from delaytopic_relay.dialects import NATIVE_FORMS, Forms
from delaytopic_relay.dialects.reading import RecordError, TopicGlobs
from delaytopic_relay.dialects.writing import Draft, Sending

BATCH_OVERHEAD_BYTES = 61
"""A batch's own header: base offset and length (12 bytes), and what stands before the records (49)."""

_RECORD_FIXED_BYTES = 3
"""Attributes, timestamp delta and offset delta of the first record: a byte each, as both deltas are 0."""

_NULL_BYTES = 1
"""A null is the length -1, without content."""


def record_batch_bytes(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """Return the exact size of an uncompressed batch, in message format v2, that holds this one record.

    A broker compares the size of the whole batch: it accepts the record in a topic whose `max.message.bytes` is at
    least this, and refuses it below. A record that does not fit in a batch of its own can never be delivered, and must
    be found out before it is sent: refused later, it aborts the whole transaction.
    """
    fields = _RECORD_FIXED_BYTES + _nullable_bytes(key) + _nullable_bytes(value)
    fields += _varint_bytes(len(headers) if headers else 0)
    for name, content in headers or ():
        length = len(name) if name.isascii() else len(name.encode())
        fields += _varint_bytes(length) + length + _nullable_bytes(content)
    return BATCH_OVERHEAD_BYTES + _varint_bytes(fields) + fields


def _nullable_bytes(content: bytes | None) -> int:
    return _NULL_BYTES if content is None else _varint_bytes(len(content)) + len(content)


def _varint_bytes(length: int) -> int:
    # Kafka writes lengths zigzag-encoded, seven bits a byte: doubled, so 63 is the last that fits in one.
    return 1 if length < 64 else ((length << 1).bit_length() + 6) // 7


LARGEST_KEPT_KEY = 1_024
"""Of a dead letter that is too large for its topic, in bytes."""

TopicLimit = Callable[[str], int | None]
"""The largest record batch a topic takes, in bytes; None for a topic that nothing can be sent to."""


PartitionCount = Callable[[str], int | None]
"""The number of partitions of a topic; None where that is not known."""


class FurtherTargets:
    """The topics that a schedule may name instead of the target.

    Dialects ask the same globs when a record is read. What comes from a backlog is asked again when it is sent: the
    globs may be others by now, and who can write to a backlog can name any topic in it.
    """

    def __init__(self, globs: Sequence[str], backend_id: str) -> None:
        """`globs` as in `target.allowedTopics`; `backend_id` begins the names of the relay's own bucket topics."""
        self._allowed = TopicGlobs(globs)
        self._own = f"{backend_id}.delay."

    def objection(self, topic: str, target: str) -> str | None:
        """Return why nothing may be sent to a topic; None if something may. `target` is always allowed."""
        if topic == target:
            return None
        if topic.startswith(self._own) or is_reserved(topic):
            return f"it asks for topic {topic}, which belongs to Kafka or to a relay"
        if not self._allowed(topic):
            allowed = ", ".join((target, *self._allowed.globs))
            return f"it asks for topic {topic[:249]}, but this DelayTopic now allows {allowed} (target.allowedTopics)"
        return None


@final
class Batch(NamedTuple):
    """Plain schedules that leave for one topic one after another, each as its record with the receipt.

    `receipt` are the parts of theirs, as `receipt_parts` returns them.
    """

    topic: str
    partition: int
    schedules: list[Schedule]
    receipt: tuple[bytes, bytes]

    def record(self, schedule: Schedule) -> Record:
        """Return the record that one of them is."""
        headers, control = [*(schedule.headers or ())], schedule.control
        if control != NO_CONTROL_HEADER:
            del headers[control]
        between, after = self.receipt
        timestamp = b"@%d" % schedule.timestamp_ms if schedule.timestamp_ms is not None else b""
        headers.append((RECEIPT, b"%d%b%d%b%b" % (schedule.due_ms, between, schedule.offset, timestamp, after)))
        return Record(self.topic, schedule.value, schedule.key, headers, self.partition)


def one_by_one(records: Iterable[Record | Batch]) -> Iterator[Record]:
    """Yield each record, those of batches, too."""
    for record in records:
        if isinstance(record, Batch):
            yield from map(record.record, record.schedules)
        else:
            yield record


class Refused(NamedTuple):
    """A record that Kafka refused when it was produced; `dead_letter` when the dead letter was refused, too."""

    reason: DeadLetterReason
    detail: str
    dead_letter: bool = False


class Addressing:
    """Turns what leaves a shard into records for target and dead-letter topics."""

    def __init__(
        self,
        source: str,
        target: str,
        dead_letter: str,
        partitioning: Partitioning,
        partitions: int,
        limit: TopicLimit,
        further: FurtherTargets,
        forms: Forms = NATIVE_FORMS,
    ) -> None:
        """`partitions` is the target's count, for round robin; `limit` is asked for large records and other topics.

        `forms` write what other dialects than the native one have read.
        """
        self._source = source
        self._target = target
        self._dead_letter = dead_letter
        self._partitioning = partitioning
        self._same_partition = partitioning is Partitioning.SAME_PARTITION
        self._partitions = partitions
        self._limit = limit
        self._further = further
        self._writers, self._letter, self._restaters = forms
        self._next_partition = 0
        self.certain_bytes = 0
        """Values up to this size need no check; set from the target's limit."""
        self.count: PartitionCount = lambda topic: None
        """Asked where a record chooses its partition."""
        self.source_until: Callable[[int | None], str | None] = lambda timestamp_ms: None
        """Tells how long the source keeps a record with this timestamp, for a dead letter without its value."""
        self.packs = False
        """True if plain schedules leave in batches; set where the target takes these."""
        self.compress: Callable[[], None] | None = None
        """Has the target compress, if it does not yet; asked where something may fit only so. None if it may not."""
        self.doubtful: dict[tuple[int, int], int] = {}
        """Records that were sent, or refused and are not settled yet, although they fit only if they are compressed
        well, and the topic's limit."""
        self.unavailable: Mapping[str, Trouble] = {}
        """Further targets that do not answer: records for them are dead letters."""
        self.refused: dict[tuple[int, int], Refused] = {}
        self._used_refusals: set[tuple[int, int]] = set()

    def departing(
        self, partition: int, schedules: Sequence[Schedule], sent_ms: int
    ) -> tuple[list[Record | Batch], list[Reject]]:
        """The records for the target in their order, plain ones in batches, and what cannot be delivered after all."""
        departing: list[Record | Batch] = []
        rejects: list[Reject] = []
        # What was refused before is looked at one by one, and in turn each record has a partition of its own.
        packs = self.packs and not self.refused and self._partitioning is not Partitioning.ROUND_ROBIN
        if not packs:
            records, rejects = self.records(partition, schedules, sent_ms)
            return [*records], rejects
        parts = receipt_parts(self._source, partition, sent_ms)
        if schedules and all_plain(schedules) and sizes(schedules).largest <= self.certain_bytes:
            return [Batch(self._target, self._partition(partition), [*schedules], parts)], rejects
        for plain, run in groupby(schedules, key=self._leaves_in_a_batch):
            if plain:
                departing.append(Batch(self._target, self._partition(partition), [*run], parts))
            else:
                records, refused = self.records(partition, [*run], sent_ms)
                departing += records
                rejects += refused
        return departing, rejects

    def _leaves_in_a_batch(self, schedule: Schedule) -> bool:
        # It takes more memory than its value has bytes.
        return schedule.plain and size(schedule) <= self.certain_bytes

    def records(self, partition: int, schedules: Sequence[Schedule], sent_ms: int) -> tuple[list[Record], list[Reject]]:
        """The records for the target, and what cannot be delivered after all.

        The receipt comes last: a record that was delivered before keeps its older receipts in front of it.
        """
        target, certain, same = self._target, self.certain_bytes, self._partition(partition)
        timed, timeless = ReceiptForm.of(self._source, partition, sent_ms)
        records: list[Record] = []
        rejects: list[Reject] = []
        suspicious, writers = bool(self.refused), self._writers
        sending = Sending(self._source, partition, sent_ms)
        for schedule in schedules:
            # Without a call for each: `ReceiptForm.fill` takes longer.
            receipt = (
                (RECEIPT, timeless % (schedule.due_ms, schedule.offset))
                if (timestamp_ms := schedule.timestamp_ms) is None
                else (RECEIPT, timed % (schedule.due_ms, schedule.offset, timestamp_ms))
            )
            headers, control = schedule.headers, schedule.control
            key, value = schedule.key, schedule.value
            if control >= 0 and headers is not None and control < len(headers):
                headers = headers.copy()
                del headers[control]
                headers.append(receipt)
            elif control == NO_CONTROL_HEADER:
                headers = [*headers, receipt] if headers else [receipt]
            elif (write := writers.get(control)) is not None:
                try:
                    written = write(schedule, sending)
                except RecordError as error:
                    rejects.append(_reject(schedule, error.reason, error.detail))
                    continue
                if not isinstance(written, list):
                    written.headers.append(receipt)
                    self._add(records, rejects, schedule, sending, written)
                    continue
                headers = written
                headers.append(receipt)
            else:
                headers = [*(h for h in headers or () if h[0] not in CONTROL_HEADERS), receipt]
            if schedule.target is None:
                record = new_record(Record, (target, value, key, headers, same))
            else:
                record = Record(schedule.target, value, key, headers, ANY_PARTITION)
            if (
                suspicious
                or schedule.expires_ms is not None
                or schedule.target is not None
                or (value is not None and len(value) > certain)
            ):
                reject = self._objection(partition, schedule, record, sent_ms)
                if reject is not None:
                    rejects.append(reject)
                    continue
            records.append(record)
        return self._in_turn(records), rejects

    def _add(
        self,
        records: list[Record],
        rejects: list[Reject],
        schedule: Schedule,
        sending: Sending,
        draft: Draft,
    ) -> None:
        """Add the records that a schedule of another dialect becomes, if all of them fit, or why they do not."""
        topic, partition = self._target, sending.partition if self._same_partition else ANY_PARTITION
        if schedule.target is not None or draft.partition >= 0 or draft.partition_key is not None:
            topic = schedule.target or topic
            try:
                partition = self._partition_of(topic, draft, sending.partition)
            except RecordError as error:
                rejects.append(_reject(schedule, error.reason, error.detail))
                return
        headers, value = draft.headers, draft.value
        record = new_record(Record, (topic, value, draft.key, headers, partition))
        for other in draft.along:
            # It may have those of the delivery, receipt included.
            if other.headers is not headers:
                other.headers.append(headers[-1])
        small = value is None or len(value) <= self.certain_bytes
        if not small or self.refused or schedule.expires_ms is not None or schedule.target is not None:
            objection = self._objection(sending.partition, schedule, record, sending.sent_ms)
            # What goes along is no larger than the record.
            for other in () if small else draft.along:
                objection = objection or self._too_large(sending.partition, schedule, other)
            if objection is not None:
                rejects.append(objection)
                return
        records.append(record)
        records += draft.along

    def _in_turn(self, records: list[Record]) -> list[Record]:
        if self._partitioning is not Partitioning.ROUND_ROBIN:
            return records
        return [
            r._replace(partition=self._turn()) if r.topic == self._target and r.partition < 0 else r for r in records
        ]

    def restated(self, partition: int, restated: Sequence[Restated], sent_ms: int) -> tuple[list[Record], list[Reject]]:
        """The records for the source itself, and the schedules that cannot be written there once more."""
        sending = Sending(self._source, partition, sent_ms)
        records: list[Record] = []
        rejects: list[Reject] = []
        for each in restated:
            record = self._restated(each, sending)
            if isinstance(record, Record):
                records.append(record)
            elif each.due_ms is not None:
                rejects.append(record)
        return records, rejects

    def _restated(self, restated: Restated, sending: Sending) -> Record | Reject:
        schedule = restated.schedule
        restater = self._restaters.get(schedule.control)
        if restater is None:
            detail = "it was put off by a record of another dialect than its own"
            return _reject(schedule, DeadLetterReason.UNSUPPORTED, detail)
        refused = self.refused.get((sending.partition, schedule.offset))
        if refused is not None:
            self._used_refusals.add((sending.partition, schedule.offset))
            return _reject(schedule, refused.reason, refused.detail)
        try:
            record = restater(restated, sending)
        except RecordError as error:
            return _reject(schedule, error.reason, error.detail)
        return self._too_large(sending.partition, schedule, record) or record

    def _partition_of(self, topic: str, draft: Draft, partition: int) -> int:
        if draft.partition == ANY_PARTITION and draft.partition_key is None:
            return self._partition(partition) if topic == self._target else ANY_PARTITION
        count = self.count(topic)
        if count is None:
            return draft.partition
        if draft.partition == ANY_PARTITION:
            # As librdkafka's default partitioner chooses by a key.
            return crc32(draft.partition_key or b"") % count
        if draft.partition >= count:
            detail = f"it asks for partition {draft.partition} of topic {topic}, which has {count}"
            raise RecordError(DeadLetterReason.UNKNOWN_TARGET, detail)
        return draft.partition

    def _partition(self, partition: int) -> int:
        return partition if self._same_partition else ANY_PARTITION

    def _turn(self) -> int:
        self._next_partition = (self._next_partition + 1) % self._partitions
        return self._next_partition

    def _objection(self, partition: int, schedule: Schedule, record: Record, sent_ms: int) -> Reject | None:
        """Return why this schedule goes to the dead-letter topic instead; None if it does not."""
        refused = self.refused.get((partition, schedule.offset))
        if refused is not None:
            self._used_refusals.add((partition, schedule.offset))
            return _reject(schedule, refused.reason, refused.detail)
        if schedule.expires_ms is not None and sent_ms > schedule.expires_ms:
            return _reject(
                schedule, DeadLetterReason.EXPIRED, f"it expired at {schedule.expires_ms}, before it could be sent"
            )
        forbidden = self._further.objection(record.topic, self._target)
        if forbidden is not None:
            return _reject(schedule, DeadLetterReason.FORBIDDEN_TARGET, forbidden)
        trouble = self.unavailable.get(record.topic)
        if trouble is not None:
            return _reject(schedule, DeadLetterReason.TARGET_UNAVAILABLE, trouble.text)
        if self._limit(record.topic) is None:
            return _reject(
                schedule,
                DeadLetterReason.UNKNOWN_TARGET,
                f"the topic {record.topic} does not exist, or this relay's user may not describe it and write to it",
            )
        return self._too_large(partition, schedule, record)

    def _too_large(self, partition: int, schedule: Schedule, record: Record) -> Reject | None:
        limit = self._limit(record.topic)
        size = record_batch_bytes(record.key, record.value, record.headers)
        if limit is None or size <= limit or self._may_fit((partition, schedule.offset), record.value, limit):
            return None
        detail = f"it takes {size} bytes with its receipt, {record.topic} allows {limit} (max.message.bytes)"
        return _reject(schedule, DeadLetterReason.TOO_LARGE, detail)

    def _may_fit(self, place: tuple[int, int], value: bytes | None, limit: int) -> bool:
        """Return whether something of this place may fit into a topic once it is compressed.

        A broker compares the size that a batch has then, which nobody knows before: Kafka judges.
        """
        if self.compress is None or not may_shrink_to(value or b"", limit):
            return False
        self.compress()
        self.doubtful[place] = limit
        return True

    def dead_letters(self, partition: int, rejects: Sequence[Reject], sent_ms: int) -> list[Record]:
        """The records for the dead-letter topic: untouched, with reason and source coordinates appended.

        A dialect may put its own words between, or the record into a document of its own.
        """
        sending = Sending(self._source, partition, sent_ms)
        records: list[Record] = []
        for reject in rejects:
            records += self._dead_letter_of(sending, reject)
        return records

    def _dead_letter_of(self, sending: Sending, reject: Reject) -> Sequence[Record]:
        source, partition, sent_ms = sending
        letter = DeadLetter(reject.reason.value, reject.detail, source, partition, reject.offset, sent_ms)
        own = self._letter(reject, sending)
        headers = [*own.headers, *dead_letter_headers(letter)]
        refused = self.refused.get((partition, reject.offset))
        was_refused = refused is not None and refused.dead_letter
        if refused is not None:
            self._used_refusals.add((partition, reject.offset))
        if not was_refused and (
            self._fits(self._dead_letter, own.key, own.value, headers) or self._letter_may_fit(partition, reject)
        ):
            record = Record(self._dead_letter, own.value, own.key, headers)
            # Where Kafka refused one of them, nobody knows which: the letter goes alone.
            return [record] if refused is not None or not own.along else [record, *self._along(own.along)]
        omitted = letter._replace(
            omitted_bytes=len(reject.value or b""), source_until=self.source_until(reject.timestamp_ms)
        )
        headers = [*own.headers, *dead_letter_headers(omitted)]
        if was_refused or not self._fits(self._dead_letter, own.key, None, headers):
            key = own.key if own.key is not None and len(own.key) <= LARGEST_KEPT_KEY else None
            return [Record(self._dead_letter, None, key, dead_letter_headers(omitted))]
        return [Record(self._dead_letter, None, own.key, headers)]

    def _along(self, records: Sequence[Record]) -> list[Record]:
        return [record for record in records if self._fits(record.topic, record.key, record.value, record.headers)]

    def _letter_may_fit(self, partition: int, reject: Reject) -> bool:
        """Return whether a dead letter may fit once it is compressed.

        Of what Kafka has refused already only what is likely to fit is tried again, as each refusal costs a tick.
        """
        limit, place, value = self._limit(self._dead_letter), (partition, reject.offset), reject.value or b""
        if limit is None:
            return False
        refused = self.doubtful.get(place) if reject.reason is DeadLetterReason.TOO_LARGE else None
        if refused is not None and (limit <= refused or limit < shrunk_bytes(value)):
            return False
        return self._may_fit(place, value, limit)

    def _fits(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        limit = self._limit(topic)
        return limit is None or record_batch_bytes(key, value, headers) <= limit

    def forget_refusals(self, partitions: Collection[int]) -> None:
        """Forget what was refused of these: when they are read again, their offsets may mean other records."""
        for known in (self.refused, self.doubtful):
            for place in [place for place in known if place[0] in partitions]:
                del known[place]

    def refusals_settled(self, *, committed: bool) -> None:
        """The tick has ended: what became of refused records is committed, or has to be done again."""
        if committed:
            for place in self._used_refusals:
                self.refused.pop(place, None)
            # Other records may be committed before a dead letter is made of one that was refused.
            self.doubtful = {place: limit for place, limit in self.doubtful.items() if place in self.refused}
        self._used_refusals.clear()


def _reject(schedule: Schedule, reason: DeadLetterReason, detail: str) -> Reject:
    offset, key, value, headers = schedule.offset, schedule.key, schedule.value, schedule.headers
    return Reject(offset, key, value, headers, reason, detail, schedule.timestamp_ms)


def sender_of(record: Record | Batch) -> int:
    """Return the source partition that something is sent for; a backlog stores in a partition of that number."""
    if type(record) is Batch:
        return int(record.receipt[0].strip(b":"))
    partition, _, _ = source_of(record.headers)
    return record.partition if partition is None else partition


def source_of(headers: Headers) -> tuple[int | None, int | None, bool]:
    """Find an outgoing record's source partition and offset, and whether it is a dead letter.

    It says so in its own provenance headers, of which the last is ours. The header of what goes into the source once
    more begins as a receipt does.
    """
    for name, value in reversed(headers):
        if value is None:
            continue
        if name in (RECEIPT, RESTATED):
            _, partition, place, _ = value.split(b":", 3)
            return int(partition), int(place.partition(b"@")[0]), False
        if name == DEAD_LETTER_SOURCE:
            _, partition, offset = value.rsplit(b":", 2)
            return int(partition), int(offset), True
    return None, None, False
