"""A backup of the relays' committed offsets while their group has no members, as text for a ConfigMap. Pure.

Kafka forgets what a group without members has committed after the brokers' `offsets.retention.minutes`, a week by
default. A relay that then finds nothing begins at the source's start, and delivers everything again.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from delaytopic_api.documents import Model
from delaytopic_operator.model.kafka_view import Committed

LONGEST_TEXT: Final = 700_000
"""The longest text: of the 1 MiB that a ConfigMap holds at most, the record and what scaling remembers need some,
too."""


@dataclass(frozen=True, slots=True)
class OffsetsBackup:
    """The commits of relays for one topic, by partition."""

    topic: str
    topic_id: str
    """Kafka's id: a topic that was made anew under the same name has nothing to do with these offsets."""
    partitions: Mapping[int, Committed] = field(default_factory=dict)
    read_ms: Mapping[int, int] = field(default_factory=dict)
    """The time up to which each commit tells what was delivered: nothing that was delivered before is missing in it."""

    def as_of_ms(self, partitions: Iterable[int]) -> int:
        """Return the time up to which these partitions' commits tell what was delivered; 0 where nobody knows."""
        return min((self.read_ms.get(number, 0) for number in partitions), default=0)


class OutdatedOffsets(Model):
    """Offsets that were restored although relays had delivered more since they were backed up."""

    restored_ms: int
    """The time at which they were restored."""
    since_ms: int
    """The time since which what was delivered comes again."""


def updated(kept: OffsetsBackup | None, read: OffsetsBackup | None, now_ms: int) -> OffsetsBackup | None:
    """Return what to keep now that `read` is committed: what Kafka forgot meanwhile stays as it was kept."""
    if read is None or not read.partitions:
        return kept
    before = kept if kept is not None and kept.topic_id == read.topic_id else OffsetsBackup(read.topic, read.topic_id)
    if all(before.partitions.get(number) == one for number, one in read.partitions.items()):
        # Nothing was delivered since.
        return before
    read_ms = {**before.read_ms, **dict.fromkeys(read.partitions, now_ms)}
    return OffsetsBackup(read.topic, read.topic_id, {**before.partitions, **read.partitions}, read_ms)


def forgotten(kept: OffsetsBackup | None, read: OffsetsBackup | None) -> bool:
    """Return whether Kafka no longer has something that is kept; `read` None: it is not known."""
    if kept is None or read is None or kept.topic_id != read.topic_id:
        return False
    return bool(kept.partitions.keys() - read.partitions.keys())


def is_too_large(kept: OffsetsBackup) -> bool:
    """Return whether a ConfigMap cannot hold it: thousands of partitions with bucket topics each."""
    return len(backup_text(kept)) > LONGEST_TEXT


def backup_text(kept: OffsetsBackup) -> str:
    """Write it as a ConfigMap holds it: compressed, some 30 bytes for a partition."""
    partitions = {
        number: [one.offset, one.metadata, kept.read_ms.get(number, 0)]
        for number, one in sorted(kept.partitions.items())
    }
    content = {"topic": kept.topic, "topicId": kept.topic_id, "partitions": partitions}
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
    return base64.b64encode(packed).decode()


def parse_backup(text: str) -> OffsetsBackup:
    """Read it back. Raises ValueError for what is damaged."""
    try:
        content = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
        found = {int(number): one for number, one in content["partitions"].items()}
        partitions = {number: Committed(int(offset), str(metadata)) for number, (offset, metadata, _) in found.items()}
        read_ms = {number: int(at_ms) for number, (_, _, at_ms) in found.items() if at_ms}
        return OffsetsBackup(str(content["topic"]), str(content["topicId"]), partitions, read_ms)
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise ValueError(f"no backup of offsets ({error!r})") from error
