"""The delivery receipt: the one header that every delivered record carries, and that the audit joins on."""

from __future__ import annotations

import re
from typing import NamedTuple

from delaytopic_api.errors import MalformedHeader

_RECEIPT = re.compile(
    rb"(-?[0-9]{1,19}):([0-9]{1,10}):([0-9]{1,19})(?:@([0-9]{1,19}))?:([0-9]{1,19}):([a-zA-Z0-9._-]{1,249})"
)


class Receipt(NamedTuple):
    """Due time, sending time and source coordinates of a delivered record, and the timestamp that it had there.

    `timestamp_ms` is None where the source record has none between 1970 and the year 9999.
    """

    due_ms: int
    partition: int
    offset: int
    sent_ms: int
    topic: str
    timestamp_ms: int | None = None

    @property
    def lateness_ms(self) -> int:
        """Sent minus due; negative would be early, which never happens by the relay's clock."""
        return self.sent_ms - self.due_ms

    def encode(self) -> bytes:
        """The header's value, such as `1795269686270:3:12345@1795269600000:1795269686271:shop.reminders.delayed`."""
        form = ReceiptForm.of(self.topic, self.partition, self.sent_ms)
        return form.fill(self.due_ms, self.offset, self.timestamp_ms)

    @classmethod
    def parse(cls, value: bytes | None) -> Receipt:
        """The inverse of `encode`; raises `MalformedHeader`."""
        match = _RECEIPT.fullmatch(value or b"")
        if match is None:
            form = "<due>:<partition>:<offset>[@<timestamp>]:<sent>:<topic>"
            raise MalformedHeader(f"{value!r} is not a delivery receipt: {form}")
        due, partition, offset, timestamp, sent, topic = match.groups()
        timestamp_ms = int(timestamp) if timestamp is not None else None
        return cls(int(due), int(partition), int(offset), int(sent), topic.decode("ascii"), timestamp_ms)


class ReceiptForm(NamedTuple):
    """The receipts of what leaves a source partition in one instant, to be filled in with `%`."""

    timed: bytes
    """The form with due time, offset and timestamp."""
    timeless: bytes
    """The form with due time and offset, of a record without a timestamp."""

    @classmethod
    def of(cls, topic: str, partition: int, sent_ms: int) -> ReceiptForm:
        """Make the form of one instant."""
        between, after = (part.replace(b"%", b"%%") for part in receipt_parts(topic, partition, sent_ms))
        return cls(b"%d" + between + b"%d@%d" + after, b"%d" + between + b"%d" + after)

    def fill(self, due_ms: int, offset: int, timestamp_ms: int | None) -> bytes:
        """Return the receipt of one record."""
        if timestamp_ms is None:
            return self.timeless % (due_ms, offset)
        return self.timed % (due_ms, offset, timestamp_ms)


def receipt_parts(topic: str, partition: int, sent_ms: int) -> tuple[bytes, bytes]:
    """Return a receipt's parts that stay the same: a receipt is its due time, the first part, its offset, and the
    second.

    Between its offset and the second part stands `@` and its timestamp, if it has one.
    """
    return b":%d:" % partition, b":%d:" % sent_ms + topic.encode("ascii")
