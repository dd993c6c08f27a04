"""A backup of the relays' committed offsets while their group has no members, as text for a ConfigMap. Pure.

Kafka forgets what a group without members has committed after the brokers' `offsets.retention.minutes`, a week by
default. A relay that then finds nothing begins at the source's start, and delivers everything again.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from delaytopic_operator.model.kafka_view import Committed

LONGEST_TEXT: Final = 700_000
"""Of the 1 MiB that a ConfigMap holds at most, the record and what scaling remembers need some, too."""


@dataclass(frozen=True, slots=True)
class OffsetsBackup:
    """The commits of relays for one topic, by partition."""

    topic: str
    topic_id: str
    """Kafka's id: a topic that was made anew under the same name has nothing to do with these offsets."""
    partitions: Mapping[int, Committed] = field(default_factory=dict)


def updated(kept: OffsetsBackup | None, read: OffsetsBackup | None) -> OffsetsBackup | None:
    """Return what to keep now that `read` is committed: what Kafka forgot meanwhile stays as it was kept."""
    if read is None or not read.partitions:
        return kept
    if kept is None or kept.topic_id != read.topic_id:
        return read
    return OffsetsBackup(read.topic, read.topic_id, {**kept.partitions, **read.partitions})


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
    partitions = {number: [one.offset, one.metadata] for number, one in sorted(kept.partitions.items())}
    content = {"topic": kept.topic, "topicId": kept.topic_id, "partitions": partitions}
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
    return base64.b64encode(packed).decode()


def parse_backup(text: str) -> OffsetsBackup:
    """The same read back. Raises ValueError for what is damaged."""
    try:
        content = json.loads(zlib.decompress(base64.b64decode(text, validate=True)))
        partitions = {
            int(number): Committed(int(offset), str(metadata))
            for number, (offset, metadata) in content["partitions"].items()
        }
        return OffsetsBackup(str(content["topic"]), str(content["topicId"]), partitions)
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise ValueError(f"no backup of offsets ({error!r})") from error
