"""Bucket topics in memory, where everything written is committed at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from delaytopic_relay.backlog.kafka.topics import BucketPortion, BucketRecord

PORTION = 2


class MemoryBucketLog:
    """A `BucketLog` that hands out few records at a time; `records` are those of each shard and bucket."""

    def __init__(self) -> None:
        self.records: dict[tuple[int, int], list[bytes]] = defaultdict(list)
        self.id_values: dict[int, dict[bytes, bytes]] = defaultdict(dict)
        self.read_to: dict[tuple[int, int], int] = {}
        self.closed = False

    def read(self, partition: int, bucket: int, offset: int) -> BucketPortion:
        records = self.records[partition, bucket]
        found = [BucketRecord(at, data) for at, data in enumerate(records)][offset : offset + PORTION]
        self.read_to[partition, bucket] = offset + len(found)
        return BucketPortion(found, len(found) < PORTION)

    def release(self, partition: int, bucket: int) -> None:
        """Nothing is kept here."""

    def ends(self, partition: int, buckets: int) -> list[int]:
        return [len(self.records[partition, bucket]) for bucket in range(buckets)]

    def ids(self, partitions: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        return {partition: dict(self.id_values[partition]) for partition in partitions}

    def close(self) -> None:
        self.closed = True
