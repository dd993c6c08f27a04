"""Reads source, target and dead letters of a run, and judges it: `python -m ...traffic.reader BOOTSTRAP WORK`.

It waits until every record has come, then some seconds more for those that come twice, and gives up on
those that are missing a while after the last one was due.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from .records import content_of, receipt_of
from .telling import tell
from .verdict import Arrival, Expected, Seen, Sent, awaited, judge, last_due_ms

SECONDS_BETWEEN_LOOKS = 1.0
DEAD_LETTER = ".dlq"


@dataclass(frozen=True)
class Work:
    """The plan of a reader: `quiet_s` is for how long nothing more may come, once everything has.

    `patience_s` is how long a record may be missing after the last one was due.
    """

    expected: Expected
    patience_s: int = 60
    quiet_s: int = 3

    def encode(self) -> str:
        """Return it as one argument of a command."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Self:
        """The inverse of `encode`."""
        fields: dict[str, Any] = json.loads(text)
        return cls(Expected(*fields.pop("expected")), **fields)


class Reader:
    """Sees committed records only, of all partitions, those that are added meanwhile included."""

    def __init__(self, bootstrap_servers: str, expected: Expected) -> None:
        self.seen = Seen()
        self._expected = expected
        self._topics = (expected.source, expected.target, expected.source + DEAD_LETTER)
        self._assigned: set[tuple[str, int]] = set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "traffic-reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.queue.backoff.ms": 5,
            }
        )

    def look(self) -> None:
        """Take in what is there now, for about a second."""
        self._assign()
        until_s = time.monotonic() + SECONDS_BETWEEN_LOOKS
        while (left_s := until_s - time.monotonic()) > 0:
            for message in self._consumer.consume(5_000, left_s):
                self._note(message)

    def close(self) -> None:
        """End the consumer."""
        self._consumer.close()

    def _assign(self) -> None:
        """Partitions that are new, from their beginning."""
        for topic in self._topics:
            try:
                found = self._consumer.list_topics(topic, timeout=10).topics[topic]
            except KafkaException:
                return  # the broker is away: the next look asks again
            new = {(topic, partition) for partition in found.partitions} - self._assigned
            if new and found.error is None:
                self._consumer.incremental_assign([TopicPartition(name, partition, 0) for name, partition in new])
                self._assigned |= new

    def _note(self, message: Message) -> None:
        if (error := message.error()) is not None:
            if error.fatal() or error.code() == KafkaError.OFFSET_OUT_OF_RANGE:
                raise KafkaException(error)
            return
        content = content_of(message.value())
        if content is None or content.run != self._expected.run:
            return
        place = (message.partition() or 0, message.offset() or 0)
        appended_ms = message.timestamp()[1]
        if message.topic() == self._expected.source:
            self.seen.sent.append(Sent(content.number, *place, content.due_ms, appended_ms))
        elif message.topic() == self._expected.target:
            headers = cast(list[tuple[str, bytes | None]], message.headers() or [])
            arrival = Arrival(content.number, content.due_ms or 0, receipt_of(headers), appended_ms)
            self.seen.arrivals.append(arrival)
        else:
            self.seen.refused.append(content.number)


def read(reader: Reader, work: Work) -> dict[str, Any]:
    """The verdict, once there is one."""
    started_s = time.time()
    complete_since_s: float | None = None
    while complete_since_s is None or time.time() < complete_since_s + work.quiet_s:
        reader.look()
        if not awaited(reader.seen, work.expected):
            complete_since_s = complete_since_s or time.time()
        elif time.time() > max(last_due_ms(reader.seen) / 1_000, started_s) + work.patience_s:
            break
    return judge(reader.seen, work.expected)


if __name__ == "__main__":
    bootstrap, work_text = sys.argv[1:]
    given = Work.decode(work_text)
    judging = Reader(bootstrap, given.expected)
    tell(read(judging, given))
    judging.close()
