"""Batches of the source that cannot be read: a partition stands still in front of one until a person helps it over.

The client says at once what is damaged. By what unpacks to more memory than there is, a relay ends: its successors find
out by an `Examiner`.
"""

from __future__ import annotations

from collections.abc import Iterable

from delaytopic_api.relay import ShardReason
from delaytopic_relay.errors import StandsStill
from delaytopic_relay.ports import BadBatch, Chunk, TooLarge

AGAIN_MS = 5_000
"""The time between two attempts to read a batch that the client calls unreadable: somebody may have deleted it
meanwhile."""


def too_large(topic: str, partition: int, found: TooLarge) -> StandsStill:
    """Return the reason for which a partition stands still in front of a batch."""
    limit = f"{found.limit_bytes >> 20} MiB"
    return StandsStill(
        ShardReason.BATCH_UNREADABLE,
        f"relays have ended one after another as they read {topic}[{partition}] from offset {found.offset} on: to "
        f"unpack the batch of records up to offset {found.behind - 1} takes more than {limit} of memory, which is half "
        "of limits.memory. Nothing of the partition is delivered. Give relays more memory "
        "(spec.relay.resources.limits.memory; without an operator limits.memory), or skip these records: delete them "
        f"by kafka-delete-records up to offset {found.behind}",
    )


def _bad(partition: int, bad: BadBatch) -> StandsStill:
    return StandsStill(
        ShardReason.BATCH_UNREADABLE,
        f"the batch at offset {bad.offset} of partition {partition} cannot be read: {bad.reason}. It is damaged, "
        "compressed in a way that the client does not know, or unpacks to more than 100 MB. What was read before it is "
        "delivered in its time, nothing is read behind it. Skip it: delete its records by kafka-delete-records up to "
        "the offset behind it, which kafka-dump-log tells",
    )


class Unreadable:
    """The partitions of a loop whose next batch the client cannot read.

    One answer may have been damaged on its way: the second about the same offset counts.
    """

    def __init__(self) -> None:
        self.still: dict[int, StandsStill] = {}
        """The reasons why they stand still."""
        self._heard: dict[int, int] = {}
        self._again_at_ms: dict[int, int] = {}

    def note(self, partition: int, chunk: Chunk, now_ms: int) -> StandsStill | None:
        """Take note of what was read; return why the partition stands still from now on if it does."""
        if chunk.commands or chunk.end is not None:
            self.forget([partition])
        if chunk.bad is None:
            return None
        heard = self._heard.get(partition)
        self._heard[partition] = chunk.bad.offset
        if heard != chunk.bad.offset:
            return None
        self._again_at_ms[partition] = now_ms + AGAIN_MS
        self.still[partition] = _bad(partition, chunk.bad)
        return self.still[partition]

    def waits(self, partition: int, now_ms: int) -> bool:
        """Return whether a partition is not to be read for the moment."""
        return now_ms < self._again_at_ms.get(partition, 0)

    def forget(self, partitions: Iterable[int]) -> None:
        """Forget partitions that were read on, or leave."""
        for partition in partitions:
            self.still.pop(partition, None)
            self._heard.pop(partition, None)
            self._again_at_ms.pop(partition, None)
