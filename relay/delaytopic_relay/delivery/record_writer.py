"""Records of schedules that leave: the receipt comes in, control headers go out, and each record gets its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple
from zlib import crc32

from delaytopic_api.records import CONTROL_HEADERS, RECEIPT, DeadLetterReason, ReceiptForm, receipt_parts
from delaytopic_api.values import Partitioning
from delaytopic_relay.core.commands import (
    ANY_PARTITION,
    NO_CONTROL_HEADER,
    Record,
    Reject,
    Rewritten,
    Schedule,
    new_record,
)
from delaytopic_relay.core.entries import all_plain, size, sizes
from delaytopic_relay.delivery.batch_size import TopicLimit, record_batch_bytes
from delaytopic_relay.delivery.batches import Batch, again
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.reachability import Trouble
from delaytopic_relay.delivery.refusals import Place, Refusal, Refusals
from delaytopic_relay.dialects import NATIVE_FORMS, Forms
from delaytopic_relay.dialects.reading import RecordError
from delaytopic_relay.dialects.writing import Draft, Sending
from delaytopic_relay.errors import RecordsRefused


class Again(NamedTuple):
    """Records that are written into the source again, the schedules that cannot be, the offsets of those that have
    nothing after them, and how many slots of what recurs are passed over.
    """

    records: Sequence[Record]
    rejects: Sequence[Reject]
    ended: Sequence[int] = ()
    missed: int = 0


NOTHING_AGAIN: Final = Again((), ())

PartitionCount = Callable[[str], int | None]
"""The number of partitions of a topic; None where that is not known."""


class RecordWriter:
    """Turns schedules that leave a shard into records for the target, or for the source once more."""

    def __init__(
        self,
        source: str,
        target: str,
        partitioning: Partitioning,
        partitions: int,
        limit: TopicLimit,
        further: FurtherTargets,
        refusals: Refusals,
        forms: Forms = NATIVE_FORMS,
    ) -> None:
        """`partitions` is the target's count, for round robin; `limit` is asked for large records and other topics.

        What Kafka has refused is a dead letter. `forms` write what other dialects than the native one have read.
        """
        self._source = source
        self._target = target
        self._partitioning = partitioning
        self._same_partition = partitioning is Partitioning.SAME_PARTITION
        self._partitions = partitions
        self._limit = limit
        self._further = further
        self._writers, self._rewriters = forms.writers, forms.rewriters
        self.refusals = refusals
        self._refused = refusals.refused
        self._next_partition = 0
        self.certain_bytes = 0
        """Values up to this size need no check; set from the target's limit."""
        self.count: PartitionCount = lambda topic: None
        """Asked where a record chooses its partition."""
        self.may_write_source: Callable[[], bool] = lambda: True
        """Asked where something goes into the source again."""
        self.packs = False
        """True if plain schedules leave in batches; set where the target takes these."""
        self.unavailable: Mapping[str, Trouble] = {}
        """Further targets that do not answer: records for them are dead letters."""

    def packed(
        self, partition: int, schedules: Sequence[Schedule], sent_ms: int
    ) -> tuple[list[Record | Batch], list[Reject]]:
        """The records for the target in their order, plain ones in batches, and what cannot be delivered after all."""
        packed: list[Record | Batch] = []
        rejects: list[Reject] = []
        # What was refused before is looked at one by one, and in turn each record has a partition of its own.
        packs = self.packs and not self._refused and self._partitioning is not Partitioning.ROUND_ROBIN
        if not packs:
            records, rejects = self.records(partition, schedules, sent_ms)
            return [*records], rejects
        parts = receipt_parts(self._source, partition, sent_ms)
        if schedules and all_plain(schedules) and sizes(schedules).largest <= self.certain_bytes:
            return [Batch(self._target, self._partition(partition), [*schedules], parts)], rejects
        for plain, run in groupby(schedules, key=self._leaves_in_a_batch):
            if plain:
                packed.append(Batch(self._target, self._partition(partition), [*run], parts))
            else:
                records, refused = self.records(partition, [*run], sent_ms)
                packed += records
                rejects += refused
        return packed, rejects

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
        suspicious, writers = bool(self._refused), self._writers
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
        if not small or self._refused or schedule.expires_ms is not None or schedule.target is not None:
            objection = self._objection(sending.partition, schedule, record, sending.sent_ms)
            # What goes along is no larger than the record.
            for other in () if small else draft.along:
                objection = objection or self._too_large((sending.partition, schedule.offset), schedule, other)
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

    def rewritten(self, partition: int, rewritten: Sequence[Rewritten], sent_ms: int) -> Again:
        """The records for the source itself, and the schedules of which none is written there."""
        sending = Sending(self._source, partition, sent_ms)
        records: list[Record] = []
        rejects: list[Reject] = []
        ended: list[int] = []
        missed = 0
        for each in rewritten:
            record, passed_over = self._rewritten(each, sending)
            missed += passed_over
            if record is None:
                ended.append(each.schedule.offset)
            elif isinstance(record, Record):
                records.append(record)
            elif each.due_ms is not None or each.goes_on:
                rejects.append(record)
        return Again(records, rejects, ended, missed)

    def _rewritten(self, rewritten: Rewritten, sending: Sending) -> tuple[Record | Reject | None, int]:
        schedule = rewritten.schedule
        rewriter = self._rewriters.get(schedule.control)
        if rewriter is None:
            detail = "it was put off by a record of another dialect than its own"
            return _reject(schedule, DeadLetterReason.UNSUPPORTED, detail), 0
        refused = self.refusals.taken((sending.partition, again(schedule.offset)))
        if refused is not None:
            return _reject(schedule, refused.reason, refused.detail), 0
        try:
            record, missed = rewriter(rewritten, sending)
        except RecordError as error:
            return _reject(schedule, error.reason, error.detail), 0
        if record is not None and not self.may_write_source():
            detail = (
                f"it has to be written into {self._source} again, which this relay's user may not do: have the cluster"
                " allow WRITE there, and send the record again"
            )
            return _reject(schedule, DeadLetterReason.UNSUPPORTED, detail), 0
        place = (sending.partition, again(schedule.offset))
        return record and (self._too_large(place, schedule, record) or record), missed

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
        refused = self.refusals.taken((partition, schedule.offset))
        if refused is not None:
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
        return self._too_large((partition, schedule.offset), schedule, record)

    def _too_large(self, place: Place, schedule: Schedule, record: Record) -> Reject | None:
        limit = self._limit(record.topic)
        size = record_batch_bytes(record.key, record.value, record.headers)
        if limit is None or size <= limit or self.refusals.may_fit(place, record.value, limit):
            return None
        detail = f"it takes {size} bytes with its receipt, {record.topic} allows {limit} (max.message.bytes)"
        return _reject(schedule, DeadLetterReason.TOO_LARGE, detail)

    def note_refusals(self, found: Sequence[Refusal]) -> None:
        """Remember which records were refused, and give the tick up; raises `RecordsRefused` if there was any.

        Where the record is not known yet, the target sends the next ones one by one, and finds it then. After a refusal
        for its size no record is taken to fit without being measured, unless it was doubtful that this one fits.
        """
        if not found:
            return
        if self.refusals.note(found):
            self.certain_bytes = 0
        raise RecordsRefused(f"Kafka refused {len(found)} records: {found[0].error}")


def _reject(schedule: Schedule, reason: DeadLetterReason, detail: str) -> Reject:
    offset, key, value, headers = schedule.offset, schedule.key, schedule.value, schedule.headers
    timestamp_ms, name, due_ms = schedule.timestamp_ms, schedule.id, schedule.due_ms
    return Reject(offset, key, value, headers, reason, detail, timestamp_ms, name, due_ms)
