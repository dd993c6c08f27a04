"""Edge: the reader of bucket topics, a consumer of its own that is never a member of a group."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from delaytopic_process.kafka_log import client_logger
from delaytopic_relay.backlog.kafka.topics import BucketNames, BucketPortion, BucketRecord
from delaytopic_relay.errors import KafkaUnavailable
from delaytopic_relay.kafka.settings import Settings

REQUEST_TIMEOUT_S = 10.0
IDS_TIMEOUT_S = 60.0
LEADERS_TIMEOUT_S = 0.5
"""The time to wait for an answer; without one by then, the client asks by itself."""
AT_ONCE = 500
MOST_PASSES = 4
PORTION = 50
"""Records in an answer at the most."""
ENOUGH_BYTES = 4 << 20
"""A partition of which so much waits here is not read on."""

RESTORE = "it has to exist, with as many partitions as the source has"

MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC})

log = structlog.get_logger()

Place = tuple[str, int]


class Stream:
    """One partition that is being read: what has arrived and was not taken."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.messages: deque[Message] = deque()
        self.size = 0
        self.at_end = False
        self.end = 0
        """The offset at which it was at its end."""
        self.paused = False
        self.trouble: str | None = None
        """The reason why it cannot be read now."""

    def add(self, message: Message) -> None:
        """One more has arrived."""
        self.at_end, self.trouble = False, None
        if (message.offset() or 0) >= self.offset:
            self.messages.append(message)
            self.size += len(message)

    def forget_before(self, offset: int) -> None:
        """The offset below which everything was taken."""
        self.offset = offset
        while self.messages and (self.messages[0].offset() or 0) < offset:
            self.size -= len(self.messages.popleft())


class KafkaBuckets:
    """Implements `BucketLog` over one `read_committed` consumer with `assign`."""

    def __init__(self, settings: Settings, names: BucketNames) -> None:
        self._names = names
        self._consumer = Consumer(dict(settings), logger=client_logger("buckets"))
        self._streams: dict[Place, Stream] = {}
        self._asked_for: set[str] = set()

    def read(self, partition: int, bucket: int, offset: int) -> BucketPortion:
        """See `BucketLog.read`."""
        place = (self._names.bucket(bucket), partition)
        stream = self._streams.get(place)
        if stream is None or offset < stream.offset:
            stream = self._start(place, offset)
        stream.forget_before(offset)
        self._drain()
        self._throttle(place, stream)
        if stream.trouble is not None and not stream.messages:
            raise KafkaUnavailable(f"the topic {place[0]}[{place[1]}] cannot be read: {stream.trouble}; {RESTORE}")
        records = [BucketRecord(message.offset() or 0, message.value()) for message in islice(stream.messages, PORTION)]
        return BucketPortion(records, stream.at_end and len(stream.messages) <= PORTION)

    def _start(self, place: Place, offset: int) -> Stream:
        self._stop(place)
        self._ask_for_leaders(place[0])
        try:
            self._consumer.incremental_assign([TopicPartition(*place, offset)])
        except KafkaException as error:
            raise self._unavailable(place, error) from error
        stream = self._streams[place] = Stream(offset)
        return stream

    def _ask_for_leaders(self, topic: str) -> None:
        """Ask for a topic's leaders once: the client asks for those of an unknown topic only each second."""
        if topic not in self._asked_for:
            self._asked_for.add(topic)
            with suppress(KafkaException):
                self._consumer.list_topics(topic, LEADERS_TIMEOUT_S)

    def _stop(self, place: Place) -> None:
        if self._streams.pop(place, None) is not None:
            self._consumer.incremental_unassign([TopicPartition(*place)])

    def release(self, partition: int, bucket: int) -> None:
        """See `BucketLog.release`."""
        self._stop((self._names.bucket(bucket), partition))

    def _drain(self, timeout_s: float = 0) -> None:
        """Take what the client has fetched."""
        for _ in range(MOST_PASSES):
            messages = self._consumer.consume(AT_ONCE, timeout_s)
            for message in messages:
                self._sort(message)
            if len(messages) < AT_ONCE:
                return

    def _sort(self, message: Message) -> None:
        error, topic, partition = message.error(), message.topic(), message.partition()
        stream = self._streams.get((topic, partition)) if topic is not None and partition is not None else None
        if error is None:
            if stream is not None:
                stream.add(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            if stream is not None:
                stream.at_end, stream.end, stream.trouble = True, message.offset() or 0, None
        elif stream is not None:
            stream.trouble = error.str()
        else:
            log.warning("bucket not readable", topic=topic, partition=partition, reason=error.str())

    def _throttle(self, place: Place, stream: Stream) -> None:
        """Keep what waits here within bounds."""
        if stream.paused != (stream.size > ENOUGH_BYTES):
            stream.paused = not stream.paused
            act = self._consumer.pause if stream.paused else self._consumer.resume
            act([TopicPartition(*place)])

    def ends(self, partition: int, buckets: int) -> list[int]:
        """See `BucketLog.ends`; all of them are asked for at the same time."""
        places = [(self._names.bucket(number), partition) for number in range(buckets)]
        with ThreadPoolExecutor(buckets) as pool:
            return list(pool.map(self._end, places))

    def _end(self, place: Place) -> int:
        try:
            found = self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise self._unavailable(place, error) from error
        if found is None:
            raise KafkaUnavailable(f"offsets of {place[0]}[{place[1]}]: no answer within {REQUEST_TIMEOUT_S:.0f} s")
        return int(found[1])

    def ids(self, partitions: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        """See `BucketLog.ids`. Reads whole partitions, which compaction keeps short, all of them at the same time.

        Waits while a transaction is open in one, or its marker on the way: what is committed behind it counts.
        """
        try:
            # The first offset by number: the client would ask brokers for it, half a second after it met them.
            streams = {partition: self._start((self._names.ids, partition), 0) for partition in partitions}
            return self._read_to_the_end(streams)
        finally:
            for partition in partitions:
                self._stop((self._names.ids, partition))

    def _read_to_the_end(self, streams: Mapping[int, Stream]) -> dict[int, dict[bytes, bytes]]:
        found: dict[int, dict[bytes, bytes]] = {partition: {} for partition in streams}
        give_up_s = time.monotonic() + IDS_TIMEOUT_S
        while not all(self._has_all(partition, stream) for partition, stream in streams.items()):
            self._drain(0.005)
            for partition, stream in streams.items():
                while stream.messages:
                    _learn(found[partition], stream.messages.popleft())
            if time.monotonic() > give_up_s:
                open_ones = sorted(
                    partition for partition, stream in streams.items() if not self._has_all(partition, stream)
                )
                raise KafkaUnavailable(f"{self._names.ids}{open_ones} not read to its end in {IDS_TIMEOUT_S:.0f} s")
        return found

    def _has_all(self, partition: int, stream: Stream) -> bool:
        """Tell if all of a partition of ids was read: the end of what is stable may lie before the partition's own."""
        if not stream.at_end:
            return False
        bounds = self._consumer.get_watermark_offsets(TopicPartition(self._names.ids, partition), cached=True)
        return stream.end >= int(bounds[1])

    def _unavailable(self, place: Place, exception: KafkaException) -> KafkaUnavailable:
        error: KafkaError = exception.args[0]
        advice = f"; {RESTORE}" if error.code() in MISSING else ""
        return KafkaUnavailable(f"the topic {place[0]}[{place[1]}]: {error.str()}{advice}")

    def close(self) -> None:
        """See `BucketLog.close`."""
        self._consumer.close()


def _learn(found: dict[bytes, bytes], message: Message) -> None:
    name, value = message.key(), message.value()
    if name is None:
        return
    if value is None:
        found.pop(name, None)
    else:
        found[name] = value
