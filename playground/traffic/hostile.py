"""Sends what no honest producer would: `python -m ...traffic.hostile BOOTSTRAP TOPIC ASSAULT`, and tells how much."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, Self

from confluent_kafka import KafkaException, Producer

from .telling import tell

Header = tuple[str, str | bytes | None]

DAY_MS: Final = 86_400_000
MANY_HEADERS: Final = 50_000
FLUSH_SECONDS: Final = 60


@dataclass(frozen=True)
class Assault:
    """An assault: its time and pace, and the topics of others that are aimed at."""

    seconds: int
    per_second: int
    victims: tuple[str, ...]
    seed: int = 1

    def encode(self) -> str:
        """Return it as one argument of a command."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str) -> Self:
        """Read what `encode` wrote."""
        fields: dict[str, Any] = json.loads(text)
        return cls(**{**fields, "victims": tuple(fields["victims"])})


class HostileRecord(NamedTuple):
    """A record to send; a timestamp of 0 is the producer's clock."""

    value: bytes | None
    headers: list[Header]
    timestamp_ms: int = 0


def hostile_records(assault: Assault, now_ms: int) -> Iterator[HostileRecord]:
    """Yield records without end, the costly ones rarely. Pure, but for the randomness that the seed decides."""
    rng = random.Random(assault.seed)
    kinds: list[tuple[Callable[[], HostileRecord], int]] = [
        (lambda: _aimed(rng, rng.choice(assault.victims)), 20),
        (lambda: _aimed(rng, f"team.no-such-topic-{rng.randrange(10_000)}"), 20),
        (lambda: _far_id(rng, now_ms), 30),
        (lambda: _from_the_future(rng, now_ms), 10),
        (lambda: _garbled(rng), 30),
        (lambda: _repeated(rng), 10),
        (lambda: HostileRecord(None, [("deliver-after", b"1"), ("x", rng.randbytes(20_000))]), 5),
        (lambda: HostileRecord(b"", [("deliver-after", b"100")] + [("", None)] * MANY_HEADERS), 1),
    ]
    makers, weights = zip(*kinds, strict=True)
    while True:
        yield rng.choices(makers, weights)[0]()


def _aimed(rng: random.Random, topic: str) -> HostileRecord:
    return HostileRecord(b"", [("deliver-to", topic.encode()), ("deliver-after", _digits(rng, 1_000))])


def _far_id(rng: random.Random, now_ms: int) -> HostileRecord:
    far_ms = now_ms + rng.randrange(DAY_MS, 20 * DAY_MS)
    return HostileRecord(b"", [("deliver-at", b"%d" % far_ms), ("deliver-id", rng.randbytes(4))])


def _from_the_future(rng: random.Random, now_ms: int) -> HostileRecord:
    return HostileRecord(b"", [("deliver-after", _digits(rng, 1_000))], now_ms + rng.randrange(3_650) * DAY_MS)


def _garbled(rng: random.Random) -> HostileRecord:
    name = rng.choice(
        ["deliver-at", "deliver-after", "deliver-expires-at", "deliver-action", "deliver-id", "deliver-cron"]
    )
    text = rng.choice(
        [b"", b"-1", b"9" * 5_000, b"1e9", b"\x1b]0;owned\x07", b"2026-13-45T99:99", rng.randbytes(300), None]
    )
    return HostileRecord(rng.randbytes(rng.randrange(50)), [(name, text)])


def _repeated(rng: random.Random) -> HostileRecord:
    return HostileRecord(b"", [("deliver-after", _digits(rng, 10))] * rng.randrange(2, 1_000))


def _digits(rng: random.Random, below: int) -> bytes:
    return b"%d" % rng.randrange(below)


def attack(bootstrap_servers: str, topic: str, assault: Assault) -> dict[str, Any]:
    """Send at the pace asked for, and return how many records and bytes the brokers took."""
    taken = {"records": 0, "bytes": 0, "refused": 0}

    def note(error: object, message: Any) -> None:
        taken["refused" if error else "records"] += 1
        if not error:
            taken["bytes"] += len(message)

    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "linger.ms": 5, "message.max.bytes": 900_000, "acks": "all"}
    )
    start_s = time.monotonic()
    for number, record in enumerate(hostile_records(assault, time.time_ns() // 1_000_000)):
        now_s = time.monotonic() - start_s
        if now_s > assault.seconds:
            break
        producer.poll(max(0.0, number / assault.per_second - now_s))
        try:
            producer.produce(
                topic, record.value, headers=record.headers, timestamp=record.timestamp_ms, on_delivery=note
            )
        except (BufferError, KafkaException):
            taken["refused"] += 1
    return {**taken, "unsent": producer.flush(FLUSH_SECONDS)}


if __name__ == "__main__":
    bootstrap, destination, assault_text = sys.argv[1:]
    tell(attack(bootstrap, destination, Assault.decode(assault_text)))
