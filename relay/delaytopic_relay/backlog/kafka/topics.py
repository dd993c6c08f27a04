"""The bucket topics of a DelayTopic: what they are called, and how they are read. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from delaytopic_api.values import bucket_name, ids_name


class BucketNames(NamedTuple):
    """The names of one DelayTopic's bucket topics, the nearest first, and of its topic of ids."""

    backend_id: str

    def bucket(self, number: int) -> str:
        """Return the name of a bucket's topic, also of one that is not written to any more, because delays became
        shorter or the horizon longer.
        """
        return bucket_name(self.backend_id, number)

    @property
    def ids(self) -> str:
        """The compacted topic."""
        return ids_name(self.backend_id)


class BucketRecord(NamedTuple):
    """A record of a bucket topic."""

    offset: int
    value: bytes | None


class BucketPortion(NamedTuple):
    """Committed records in order; `at_end` says that nothing further can be read now."""

    records: Sequence[BucketRecord]
    at_end: bool


class BucketLog(Protocol):
    """The reader of bucket topics: it sees what is committed, and is no member of a group."""

    def read(self, partition: int, bucket: int, offset: int) -> BucketPortion:
        """Read what is there from this offset on, without waiting; the same again until a higher offset is asked for.

        Begins where the topic begins if that is later. Raises `KafkaUnavailable`.
        """
        ...

    def release(self, partition: int, bucket: int) -> None:
        """Give the memory of a bucket back, of which nothing is wanted for a while."""
        ...

    def ends(self, partition: int, buckets: int) -> list[int]:
        """The offset after the last record of each bucket's partition. Raises `KafkaUnavailable`."""
        ...

    def ids(self, partitions: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        """Read what the topic of ids holds for these partitions, by partition and id. Raises `KafkaUnavailable`."""
        ...

    def close(self) -> None:
        """Give back connections."""
        ...
