"""Dead-letter topics that a test names, for a gateway's scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from delaytopic_api.records import DeadLetter, Headers, dead_letter_headers
from delaytopic_gateway.client.dead_letters import Choice, Outcome, Place, Progress, StoredRecord
from delaytopic_gateway.kafka.window import Before, Keep, Window

AT_MS = 1_795_269_000_000


def stored(
    place: str,
    source: str,
    reason: str = "expired",
    *,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Headers | None = None,
    **facts: Any,
) -> StoredRecord:
    """Return a dead letter as a relay writes it; the later its offset, the later it is."""
    at = Place.parse(place)
    letter = DeadLetter(reason, "why", source, 0, at.offset, AT_MS + at.offset)._replace(**facts)
    return StoredRecord(at, letter.at_ms, key, value, [*(headers or []), *dead_letter_headers(letter)])


@dataclass
class LettersOfAScene:
    """The `DeadLetterTopics` of a scene: what lies there, what is asked for, what is answered."""

    records: dict[str, list[StoredRecord]] = field(default_factory=dict)
    progress: Progress | None = field(default_factory=Progress)
    most: int = 1_000
    """Offsets of each partition that a window has."""
    asked: list[tuple[str, Choice, Sequence[Place] | None, bool]] = field(default_factory=list)
    outcome: Outcome = field(default_factory=lambda: Outcome([Place(0, 1), Place(0, 4)]))

    def window(self, topic: str, before: Before | None, keep: Keep) -> Window:
        found = self.records.get(topic, [])
        ends: dict[int, int] = {}
        for record in found:
            partition, offset = record.place
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        tops = ends if before is None else {each: min(end, before.get(each, 0)) for each, end in ends.items()}
        reached = {each: max(0, top - self.most) for each, top in tops.items()}
        kept = [
            keep(record, self.progress)
            for record in found
            if reached[record.place.partition] <= record.place.offset < tops[record.place.partition]
        ]
        looked_at = sum(tops.values()) - sum(reached.values())
        return Window([letter for letter in kept if letter], looked_at, reached, dict.fromkeys(ends, 0))

    def at(self, topic: str, place: Place) -> tuple[StoredRecord, Progress | None] | None:
        return next(((each, self.progress) for each in self.records.get(topic, []) if each.place == place), None)

    def send(self, topic: str, choice: Choice, places: Sequence[Place] | None, *, dry_run: bool) -> Outcome:
        self.asked.append((topic, choice, places, dry_run))
        return self.outcome
