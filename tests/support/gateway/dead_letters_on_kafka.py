"""Dead letters on a real broker, and the command that sends them again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from tests.harness.names import unique
from tests.support.relay.records import Sent, produce

from delaytopic_api.records import DeadLetter, Headers, dead_letter_headers
from delaytopic_cli.__main__ import run
from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_gateway.client.topic_reader import read_topic
from delaytopic_gateway.client.topics import TopicPlan, create_topics

PARTITIONS: Final = 3
AT_MS: Final = 1_795_269_600_000
OWN: Final[Headers] = [("a", b"1"), ("deliver-at", b"soon")]


@dataclass
class Letters:
    """A source and its dead-letter topic on a broker, with letters as a relay writes them."""

    broker: str
    source: str
    topic: str
    written: list[str] = field(default_factory=list)

    def write(self, *reasons: str, partition: int = 0, headers: Headers = OWN, **changes: Any) -> None:
        """Write a dead letter for each reason, into one partition; their values are their numbers."""
        records = []
        for reason in reasons:
            number = len(self.written)
            letter = DeadLetter(reason, "why", self.source, number % PARTITIONS, number, AT_MS)._replace(**changes)
            value = f"{reason} {number}"
            records.append(Sent(b"k", value.encode(), [*headers, *dead_letter_headers(letter)], partition))
            self.written.append(value)
        produce(self.broker, self.topic, records)

    def resend(self, *arguments: str) -> int:
        """Run the command here, without a gateway."""
        return run(["dead-letters", "resend", self.source, "-o", "text", *arguments, *self.way])

    @property
    def way(self) -> list[str]:
        """The options by which the command asks Kafka itself."""
        return ["-b", self.broker, "--dead-letter", self.topic]

    def sent(self, topic: str | None = None) -> list[str]:
        """Return the values that arrived, sorted."""
        return sorted((record.value or b"").decode() for record in self.arrived(topic))

    def arrived(self, topic: str | None = None) -> list[RawRecord]:
        return read_topic({"bootstrap.servers": self.broker}, topic or self.source)


def letters_on(broker: str) -> Letters:
    """Make a source topic and its dead-letter topic, of two partitions."""
    source = unique("delayed")
    create_topics(broker, [TopicPlan(source, PARTITIONS), TopicPlan(f"{source}.dlq", 2)])
    return Letters(broker, source, f"{source}.dlq")
