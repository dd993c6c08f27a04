"""The delivery receipt: the one header that every delivered record carries, and that the audit joins on."""

from __future__ import annotations

import re
from typing import NamedTuple

from delaytopic_api.errors import MalformedHeader

_RECEIPT = re.compile(rb"(-?[0-9]{1,19}):([0-9]{1,10}):([0-9]{1,19}):([0-9]{1,19}):([a-zA-Z0-9._-]{1,249})")


class Receipt(NamedTuple):
    """Due time, sending time and source coordinates of a delivered record."""

    due_ms: int
    partition: int
    offset: int
    sent_ms: int
    topic: str

    @property
    def lateness_ms(self) -> int:
        """Sent minus due; negative would be early, which never happens by the relay's clock."""
        return self.sent_ms - self.due_ms

    def encode(self) -> bytes:
        """The header's value, such as `1795269686270:3:12345:1795269686271:shop.reminders.delayed`."""
        return receipt_form(self.topic, self.partition, self.sent_ms) % (self.due_ms, self.offset)

    @classmethod
    def parse(cls, value: bytes | None) -> Receipt:
        """The inverse of `encode`; raises `MalformedHeader`."""
        match = _RECEIPT.fullmatch(value or b"")
        if match is None:
            raise MalformedHeader(f"{value!r} is not a delivery receipt: <due>:<partition>:<offset>:<sent>:<topic>")
        due, partition, offset, sent, topic = match.groups()
        return cls(int(due), int(partition), int(offset), int(sent), topic.decode("ascii"))


def receipt_form(topic: str, partition: int, sent_ms: int) -> bytes:
    """The receipt of what leaves a source partition in one instant; fill in the rest: `form % (due_ms, offset)`."""
    between, after = (part.replace(b"%", b"%%") for part in receipt_parts(topic, partition, sent_ms))
    return b"%d" + between + b"%d" + after


def receipt_parts(topic: str, partition: int, sent_ms: int) -> tuple[bytes, bytes]:
    """The same in two parts: a receipt is its due time, the first part, its offset, and the second."""
    return b":%d:" % partition, b":%d:" % sent_ms + topic.encode("ascii")
