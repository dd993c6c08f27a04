"""The simulated bucket topics: logs of committed and other records, and the reader that sees the committed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.simulation.faults import Fault, Gate
from tests.simulation.world.kafka import Kafka, Sent
from tests.simulation.world.transactions import State

from delaytopic_api.values import source_mark
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.backlog.kafka.topics import BucketNames, BucketPortion, BucketRecord
from delaytopic_relay.errors import KafkaUnavailable

T = TypeVar("T")

BUCKETS = 20
HORIZON_MS = 10_000
NAMES = BucketNames("source")
RULES = BucketRules(HORIZON_MS, BUCKETS, source_mark("source"), full_records=3, early_bytes=1_500)
"""A bound so small that ranges are split, and merged again, all the time; and two schedules are sent early."""
READ, ENDS, IDS = "bucket read", "bucket ends", "bucket ids"
EFFECTS = (READ, READ, READ, ENDS, IDS)


class SimulatedBucketLog:
    """Implements `BucketLog` for one relay; it reads few records at a time."""

    def __init__(self, kafka: Kafka, gate: Gate, portion: int) -> None:
        self._kafka = kafka
        self._gate = gate
        self._portion = portion

    def _log(self, topic: str, partition: int) -> list[Sent | None]:
        return self._kafka.stored.setdefault((topic, partition), [])

    def _stable_end(self, log: list[Sent | None]) -> int:
        for offset, sent in enumerate(log):
            transaction = sent.transaction if sent is not None else None
            if transaction is not None and transaction.state in (State.OPEN, State.DECIDED):
                return offset
        return len(log)

    def _committed(self, log: list[Sent | None], offset: int) -> list[tuple[int, Sent]]:
        end = self._stable_end(log)
        return [
            (place, sent)
            for place, sent in enumerate(log[offset:end], offset)
            if sent is not None and (sent.transaction is None or sent.transaction.state is State.COMMITTED)
        ]

    def read(self, partition: int, bucket: int, offset: int) -> BucketPortion:
        return self._gate.call(
            READ, lambda: self._read(partition, bucket, offset), lambda fault: BucketPortion((), False)
        )

    def _read(self, partition: int, bucket: int, offset: int) -> BucketPortion:
        found = self._committed(self._log(NAMES.bucket(bucket), partition), offset)
        self._kafka.counts["path: bucket read"] += 1
        records = [BucketRecord(place, sent.record.value) for place, sent in found[: self._portion]]
        return BucketPortion(records, len(found) <= self._portion)

    def release(self, partition: int, bucket: int) -> None:
        """Nothing is kept here."""

    def ends(self, partition: int, buckets: int) -> list[int]:
        return self._ask(
            ENDS, lambda: [len(self._log(topic, partition)) for topic in map(NAMES.bucket, range(buckets))]
        )

    def ids(self, partitions: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        return self._ask(IDS, lambda: {partition: self._ids(partition) for partition in partitions})

    def _ids(self, partition: int) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        log = self._log(NAMES.ids, partition)
        if self._stable_end(log) < len(log):
            self._kafka.counts["path: ids in doubt"] += 1
            raise KafkaUnavailable("the topic of ids is not read to its end")
        for _, sent in self._committed(log, 0):
            assert sent.record.key is not None
            if sent.record.value is None:
                found.pop(sent.record.key, None)
            else:
                found[sent.record.key] = sent.record.value
        return found

    def _ask(self, effect: str, act: Callable[[], T]) -> T:
        def no_answer(fault: Fault) -> T:
            raise KafkaUnavailable(f"{effect}: {fault.what}")

        return self._gate.call(effect, act, no_answer)

    def close(self) -> None:
        """Nothing to give back."""
