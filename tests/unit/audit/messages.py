"""Records as the Kafka client hands them over, without a Kafka; and what an audit would read of a `Truth`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.support.audit.delay_topics import Headers
from tests.support.audit.truth import Sent, Truth

from delaytopic_api.relay import RelayConfig
from delaytopic_audit.model.manifest import Role, RulesFrom
from delaytopic_audit.reading.decoding import Row, decoder_for
from delaytopic_relay.core import encode_rules
from delaytopic_relay.dialects import rules_of

LOG_APPEND_TIME = 2


@dataclass(frozen=True)
class FakeMessage:
    """With the methods of `confluent_kafka.Message`."""

    at: tuple[str, int, int]
    headers_: Any = None
    append_ms: int = 1_795_269_686_270
    kind: int = LOG_APPEND_TIME
    content: bytes | None = b"v"

    def topic(self) -> str:
        return self.at[0]

    def partition(self) -> int:
        return self.at[1]

    def offset(self) -> int:
        return self.at[2]

    def timestamp(self) -> tuple[int, int]:
        return self.kind, self.append_ms

    def key(self) -> bytes | None:
        return b"k"

    def value(self) -> bytes | None:
        return self.content

    def headers(self) -> Headers | None:
        if isinstance(self.headers_, BaseException):
            raise self.headers_
        headers: Headers | None = self.headers_
        return headers


def config_for(source: str, target: str, dead_letter: str, allowed: list[str] | None = None) -> RelayConfig:
    """A relay's configuration, as far as it decides what records mean."""
    return RelayConfig.model_validate(
        {
            "name": "orders",
            "namespace": "tests",
            "groupId": "g",
            "source": {"topic": source},
            "target": {"topic": target, "allowedTopics": allowed or []},
            "deadLetter": {"topic": dead_letter},
            "schedule": {"maxDelay": "87600h"},
            "precision": "1s",
            "guarantee": "ExactlyOnce",
            "backend": {"type": "KafkaBuckets", "id": "i"},
            "kafka": {"bootstrapServers": "127.0.0.1:1"},
        }
    )


def reading(partition: int, offset: int, **edited: Any) -> RulesFrom:
    """The rules of `config_for`, edited, from an offset of a partition on."""
    rules = rules_of(config_for("a", "b", "a.dlq", ["c"]))._replace(**edited)
    return RulesFrom(partition=partition, offset=offset, rules=encode_rules(rules))


def extract_of(truth: Truth, config: RelayConfig) -> list[tuple[int, Row]]:
    """Append time and row of everything that there is to read, in the order of the append times."""
    roles = {config.source.topic: Role.SOURCE, config.dead_letter.topic: Role.DEAD_LETTER}
    asked = [(sent, (sent.topic, sent.partition, offset)) for offset, sent in enumerate(truth.asked())]
    seen: Counter[tuple[str, int]] = Counter()
    found = [*asked, *((sent, _next(sent, seen)) for sent in truth.outcomes())]
    rows = []
    for sent, at in sorted(found, key=lambda pair: pair[0].append_ms):
        decode = decoder_for(roles.get(sent.topic, Role.TARGET), sent.topic, config)
        rows.append((sent.append_ms, decode(FakeMessage(at, sent.headers, sent.append_ms))))
    return rows


def _next(sent: Sent, seen: Counter[tuple[str, int]]) -> tuple[str, int, int]:
    seen[sent.topic, sent.partition] += 1
    return sent.topic, sent.partition, seen[sent.topic, sent.partition]
