"""Watches from outside what a relay has delivered and committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import NamedTuple

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec  # type: ignore[attr-defined]  # implicit re-exports

from bench.clock import now_ms
from bench.errors import Stalled
from bench.processes.quiet import QUIET
from bench.records import PARTITIONS
from delaytopic_gateway.client.topics import admin_client

EVERY_SECONDS = 0.02
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
MORE_SAMPLES = 5
REQUEST_SECONDS = 10.0
NOT_YET = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError._TIMED_OUT,
    }
)
"""A new partition or group, of which not all parts of the broker have heard."""


class Sample(NamedTuple):
    """The records visible at one moment."""

    at_ms: float
    target_ends: tuple[int, ...]
    """The offset of each target partition up to which a `read_committed` consumer could read."""
    committed: tuple[int, ...]
    """The relay's committed offset of each source partition; 0 before the first commit."""


class Watch:
    """Asks the broker every 20 ms, with two small requests, where the target ends and what a group has committed."""

    def __init__(self, bootstrap_servers: str, *, source: str, target: str, group: str) -> None:
        self.source = source
        self.target = target
        self._admin = admin_client(bootstrap_servers)
        self._member = Consumer(
            {"bootstrap.servers": bootstrap_servers, "group.id": group, "isolation.level": "read_uncommitted"},
            logger=QUIET,
        )
        self._targets = [TopicPartition(target, partition) for partition in range(PARTITIONS)]
        self._sources = [TopicPartition(source, partition) for partition in range(PARTITIONS)]
        self.samples: list[Sample] = []

    def until(
        self, done: Callable[[Sample], bool], what: str, *, timeout_s: float, healthy: Callable[[], None]
    ) -> Sample:
        """Take samples until one satisfies, and a few more: the markers of one transaction land at different moments.

        `healthy` raises when waiting is in vain. Raises `Stalled`.
        """
        deadline = time.monotonic() + timeout_s
        while not done(sample := self.sample()):
            healthy()
            if time.monotonic() > deadline:
                raise Stalled(f"{what}: not within {timeout_s:.0f} s; the last that was seen: {sample}")
            time.sleep(EVERY_SECONDS)
        for _ in range(MORE_SAMPLES):
            time.sleep(EVERY_SECONDS)
            self.sample()
        return sample

    def sample(self) -> Sample:
        """Ask now. The time is that of the answer, so that what is seen is never dated too early."""
        committed = self._committed()
        target_ends = self._target_ends()
        self.samples.append(Sample(now_ms(), target_ends, committed))
        return self.samples[-1]

    def _target_ends(self) -> tuple[int, ...]:
        futures = self._admin.list_offsets(
            dict.fromkeys(self._targets, LATEST), isolation_level=IsolationLevel.READ_COMMITTED
        )
        return tuple(_end(futures[partition]) for partition in self._targets)

    def _committed(self) -> tuple[int, ...]:
        """Ask by a consumer that never joins the group: the admin client crashes when the coordinator is not ready."""
        try:
            found = self._member.committed(self._sources, timeout=REQUEST_SECONDS)
        except KafkaException as error:
            _not_yet(error)
            return (0,) * PARTITIONS
        return tuple(max(0, partition.offset) for partition in found)


def _end(future: Future[ListOffsetsResultInfo]) -> int:
    try:
        return int(future.result(REQUEST_SECONDS).offset)
    except KafkaException as error:
        _not_yet(error)
        return 0


def _not_yet(error: KafkaException) -> None:
    """Go on if the error only says that it is too early to ask."""
    if error.args[0].code() not in NOT_YET:
        raise error


def seen_at_ms(samples: list[Sample], last_offsets: Mapping[int, int]) -> float:
    """Return when all of these target offsets were first seen. Raises `Stalled` if they never were."""
    for sample in samples:
        if all(sample.target_ends[partition] > offset for partition, offset in last_offsets.items()):
            return sample.at_ms
    raise Stalled(f"offsets {dict(last_offsets)} of the target were never seen")
