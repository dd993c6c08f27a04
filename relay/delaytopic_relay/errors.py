"""Every error the relay raises: whose fault it is, and what happens next.

RelayError
+-- ConfigurationError     the operator's or user's: start fails, one line says what to change
|   +-- TopicForbidden
+-- Unavailable            the other side's, passing: the relay tries again
|   +-- BacklogUnavailable
|   |   +-- BacklogFull
|   +-- KafkaUnavailable
+-- StateInDoubt           nobody's: drop the shard's memory, read the committed state again
|   +-- BacklogMoved
|   +-- TransactionAborted
|   +-- RecordsRefused     by Kafka, for good: they are dead letters once they are read again
|   +-- Unanswered         names the partitions of topics that did not acknowledge what was sent to them
|   +-- ProducerOutdated   it cannot send what is due as it has to be sent: another one can
|   +-- CommitUnknown
|   +-- Fenced
|   +-- BucketLost
+-- CorruptState           what is stored cannot be read; names where, and what to do
|   +-- OversizedAnswer
|   +-- SegmentError
|   +-- ForeignRecord
|   +-- ProgressError
|   +-- UnknownRules       records wait that another version of the relay read by rules of its own
+-- StandsStill            a partition's progress is not of the source as it is, or a batch there cannot be read: it
|                          takes a person
+-- SourceReplaced         the source was made anew meanwhile: the relay begins anew, with the topic as it is
+-- QueueImpossible        nobody's: a fixed delay needs a backlog for a while, and the relay opens one
+-- BadRequest             the caller's of a page: the request says what is wrong with it, and nothing was done
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from delaytopic_api.relay import ShardReason


class RelayError(Exception):
    """Root of the tree."""


class ConfigurationError(RelayError):
    """The relay cannot run as configured; the message names the setting and what to change."""


class TopicForbidden(ConfigurationError):
    """The relay's user may not see a topic, whether it exists or not."""


class Unavailable(RelayError):
    """The other side did not answer; nothing is decided, the same call may be repeated."""


class BacklogUnavailable(Unavailable):
    """The backlog cannot be reached. A write may or may not have happened; repeating it is safe."""


class BacklogFull(BacklogUnavailable):
    """The backlog takes nothing more for the moment; what is there can be read, compared and dropped."""


class KafkaUnavailable(Unavailable):
    """Kafka cannot be reached, or answered that it is not ready."""


class StateInDoubt(RelayError):
    """The state in memory may no longer be true: drop it and recover from what is committed."""

    cause = "state-in-doubt"


class BacklogMoved(StateInDoubt):
    """The backlog's position is not ours: another owner claimed it, or it lost writes."""

    cause = "backlog-moved"


class TransactionAborted(StateInDoubt):
    """The transaction was aborted; nothing of it is visible to a `read_committed` reader."""

    cause = "aborted"


class RecordsRefused(StateInDoubt):
    """Kafka refused records of a transaction; nothing of it is committed, and its producer is not used any more."""

    cause = "refused"


class Unanswered(StateInDoubt):
    """Records were not acknowledged, and were given up; nothing was committed with them.

    `senders` are the source partitions whose records these were, by topic and partition. `acknowledged` tells whether
    others sent beside them were.
    """

    cause = "unanswered"

    def __init__(
        self, message: str, senders: Mapping[tuple[str, int], Collection[int]], *, acknowledged: bool = False
    ) -> None:
        super().__init__(message)
        self.senders = senders
        self.acknowledged = acknowledged


class ProducerOutdated(StateInDoubt):
    """The producer cannot send what is due as it has to be sent; nothing of the tick was committed."""

    cause = "producer-outdated"


class CommitUnknown(StateInDoubt):
    """The commit's outcome is unknown; only the committed state tells."""

    cause = "commit-unknown"


class Fenced(StateInDoubt):
    """A successor fenced this producer; it needs a new producer before it may go on."""

    cause = "fenced"


class BucketLost(StateInDoubt):
    """A bucket topic no longer has what was written to it: what it held is read again from the source."""

    cause = "bucket-lost"


class CorruptState(RelayError):
    """Stored state cannot be read; the message says where it is and what to do."""


class OversizedAnswer(CorruptState):
    """The backlog has more bytes in one place than relays put there; they were not read."""


class SegmentError(CorruptState):
    """A segment was written by a newer version."""


class ProgressError(CorruptState):
    """The metadata of a committed offset is not a progress text, or of a newer version."""


class UnknownRules(CorruptState):
    """Records that wait were read by rules that this version of the relay does not know; the message says which."""


class StandsStill(RelayError):
    """A partition may not go on: `reason` says why in a word, the message what was seen and what to do."""

    def __init__(self, reason: ShardReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class SourceReplaced(RelayError):
    """Another topic has the source's name since the relay began: it opens everything anew."""


class QueueImpossible(RelayError):
    """A partition holds records that do not wait equally long: the loop ends, and begins again with a backlog."""


class BadRequest(RelayError):
    """A page was asked for with parameters that it does not take; the message names the parameter."""


class ForeignRecord(CorruptState):
    """Something in a backend that no relay of it wrote: it is skipped, and the log gives its location."""
