"""Batches of plain schedules, and what a record says of the source record that it was made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, final

from delaytopic_api.records import DEAD_LETTER_SOURCE, RECEIPT, RESTATED, Headers
from delaytopic_relay.core.commands import NO_CONTROL_HEADER, Record, Schedule


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


def sender_of(record: Record | Batch) -> int:
    """Return the source partition that something is sent for; a backlog stores in a partition of that number."""
    if type(record) is Batch:
        return int(record.receipt[0].strip(b":"))
    partition, _, _ = source_of(record.headers)
    return record.partition if partition is None else partition


def again(offset: int) -> int:
    """Return the number that stands for what a record becomes in the source once more, and back: below zero."""
    return -1 - offset


def source_of(headers: Headers) -> tuple[int | None, int | None, bool]:
    """Find an outgoing record's source partition and offset, and whether it is a dead letter.

    It says so in its own provenance headers, of which the last is ours. The header of what goes into the source once
    more begins as a receipt does; its offset is told apart by `again`, as a delivery may be sent beside it.
    """
    for name, value in reversed(headers):
        if value is None:
            continue
        if name in (RECEIPT, RESTATED):
            _, partition, place, _ = value.split(b":", 3)
            at = int(place.partition(b"@")[0])
            return int(partition), at if name == RECEIPT else again(at), False
        if name == DEAD_LETTER_SOURCE:
            _, partition, offset = value.rsplit(b":", 2)
            return int(partition), int(offset), True
    return None, None, False
