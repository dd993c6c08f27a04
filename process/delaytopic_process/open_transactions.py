"""Partitions that can be read no further than the first record of an open transaction. Pure.

A relay reads what is committed: of a partition in which a producer has a transaction open, it gets nothing from that
transaction's first record on, whoever wrote it. Kafka calls that place the last stable offset.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

LASTS_MS: Final = 60_000
"""The age from which a transaction is worth a word: at that of a producer's defaults its coordinator aborts it."""


class OpenTransaction(NamedTuple):
    """A transaction that is open for longer than from one look to the next."""

    offset: int
    """The offset of its first record, which is the first that cannot be read."""
    since_ms: int
    """The time at which it was first seen; it may be older."""
    held_back: int
    """Offsets from there to the end of the partition."""

    def lasts(self, now_ms: int) -> bool:
        """Return whether it is open for longer than usual."""
        return now_ms - self.since_ms >= LASTS_MS

    def describe(self) -> str:
        """Return a sentence for people, without the partition: what is the matter, and what to do."""
        since = datetime.fromtimestamp(self.since_ms // 1_000, UTC)
        return (
            f"a producer's transaction holds back {self.held_back} source offsets from {self.offset} on, and is open "
            f"since {since:%Y-%m-%dT%H:%M:%SZ} at least; what is behind it is read once it ends. "
            "kafka-transactions.sh describe-producers tells whose it is, by this CurrentTransactionStartOffset: see "
            "the runbook DelaySourceHeldBack"
        )


class StableEnds:
    """The last stable offsets of partitions: one that is told twice as the same place is held there."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self._since: dict[int, tuple[int, int]] = {}
        self._held: set[int] = set()

    def __len__(self) -> int:
        """Return how many partitions are remembered."""
        return len(self._since)

    def told(self, partition: int, stable: int, now_ms: int) -> None:
        """Note up to where a partition can be read; one reading that is told twice is no second one."""
        offset, since_ms = self._since.get(partition, (None, 0))
        if offset == stable:
            if now_ms > since_ms:
                self._held.add(partition)
            return
        self._since[partition] = stable, now_ms
        self._held.discard(partition)

    def keep(self, partitions: Collection[int]) -> None:
        """Forget all others, which can be read to their ends."""
        for partition in self._since.keys() - partitions:
            del self._since[partition]
            self._held.discard(partition)

    def open(self, ends: Mapping[int, int]) -> dict[int, OpenTransaction]:
        """Return the transactions that are open in partitions with these ends."""
        return {
            partition: OpenTransaction(offset, since_ms, ends[partition] - offset)
            for partition, (offset, since_ms) in sorted(self._since.items())
            if partition in self._held and offset < ends.get(partition, 0)
        }
