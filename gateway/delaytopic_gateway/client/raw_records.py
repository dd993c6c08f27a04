"""Records as Kafka gives them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class Coordinates(NamedTuple):
    """The coordinates of a source record; the identity of a schedule from end to end."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record as Kafka gives it; `timestamp_ms` is its Kafka timestamp."""

    at: Coordinates
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
