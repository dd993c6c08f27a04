"""The plan of a new owner: whether it may start at all, and where, from what is committed, what the backlog holds, and
what the source is and still has. Pure.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from delaytopic_api.relay import ShardReason
from delaytopic_relay.core.progress import Identity, Progress, fresh_progress
from delaytopic_relay.errors import StandsStill

LONGEST_ACCEPTANCE_MS = 86_400_000
"""Ahead of the clock: repeats that are accepted for longer would one day be accepted by mistake."""
MOST_TAKEOVERS = 3
"""The number of relays that may end before they have moved the position: the last of them looks first at what is to be
read."""


class Bounds(NamedTuple):
    """The first offset that the source still has, and the one after its last."""

    low: int
    end: int


class SourceTopic(NamedTuple):
    """The topic that has the source's name now, by the whole ids; "" where brokers tell none."""

    name: str
    cluster_id: str = ""
    topic_id: str = ""

    @property
    def identity(self) -> Identity:
        """The identity to commit with progress in it."""
        return Identity.of(self.cluster_id, self.topic_id)

    def same_as(self, other: SourceTopic) -> bool:
        """Tell whether both are one topic, as far as that is known."""
        return changed(self.identity, other.identity) is None


class Acceptance(NamedTuple):
    """A person's word about a source that is not what progress was committed for.

    `topic_id` is the id of the topic that is the right one, whole. Until `repeats_until_ms`, partitions whose offsets
    are gone begin again although records will be delivered twice.
    """

    topic_id: str = ""
    repeats_until_ms: int = 0


NOTHING_ACCEPTED = Acceptance()


class FormerLife(NamedTuple):
    """The traces in a backlog of a former life of a partition of which nothing, or a bare offset, is committed."""

    shows: str
    other_topic: bool = False
    """True if that was with another topic of the source's name: brokers delete a group's offsets with a topic."""
    marks: tuple[str, ...] = ()
    """The marks of other topics, where they are known."""


class Found(NamedTuple):
    """The facts about one partition whose owner has changed."""

    partition: int
    group: str
    committed: Progress | None
    offset_reset: bool
    """True for a committed offset without metadata, which was set from outside."""
    end: int
    """The offset after the source's last."""
    truncated: bool = False
    """True if the source's records say that it was cut below the committed position."""
    former_life: FormerLife | None = None


class Begin(Enum):
    """The way in which a partition goes on."""

    AS_COMMITTED = auto()
    ANEW = auto()
    """The relay begins anew, and nothing counts that was committed or stored: a person said that this is another topic,
    and the right one."""
    WITH_REPEATS = auto()
    """It is not known what was delivered: a person said that records may be delivered again."""


def judge(found: Found, source: SourceTopic, accepted: Acceptance, now_ms: int) -> Begin:
    """Return how a partition goes on.

    Raises `StandsStill` where what is committed is of something else than the source, or is gone. An unknown identity
    is not another one.

    | committed | the source now | |
    | --- | --- | --- |
    | nothing, or an offset without metadata | any | as committed; stands still if the backlog shows a former life |
    | an offset without metadata | ends below it | stands still |
    | nothing | another topic than the backlog shows | stands still |
    | another cluster, another topic | any | stands still |
    | the same, or not known | ends below P, or its records say that it was cut below P | stands still |
    | the same, or not known | reaches P | as committed |
    """
    committed = found.committed
    if found.former_life is not None and found.former_life.other_topic:
        if source.topic_id and accepted.topic_id == source.topic_id:
            return Begin.ANEW
        seen = f"group {found.group} has nothing committed for {source.name}[{found.partition}], and "
        raise StandsStill(ShardReason.TOPIC_CHANGED, f"{seen}{found.former_life.shows}; {_way_on(source)}")
    if found.former_life is not None:
        if now_ms < accepted.repeats_until_ms <= now_ms + LONGEST_ACCEPTANCE_MS:
            return Begin.WITH_REPEATS
        raise StandsStill(ShardReason.OFFSETS_LOST, _offsets_lost(found, source, found.former_life.shows))
    if committed is None:
        return Begin.AS_COMMITTED
    wrong = _other_topic(found, committed, source) or _cut(found, committed, source)
    if wrong is None:
        return Begin.AS_COMMITTED
    if source.topic_id and accepted.topic_id == source.topic_id:
        return Begin.ANEW
    reason, seen = wrong
    raise StandsStill(reason, f"{seen}; {_way_on(source)}")


def is_foreign(committed: Progress, source: SourceTopic) -> bool:
    """Tell whether progress is of another cluster or topic than the source."""
    return changed(committed.identity, source.identity) is not None


def changed(was: Identity, now: Identity) -> ShardReason | None:
    """Return which of the known marks differ; None if none does."""
    if was.cluster and now.cluster and was.cluster != now.cluster:
        return ShardReason.CLUSTER_CHANGED
    if was.topic and now.topic and was.topic != now.topic:
        return ShardReason.TOPIC_CHANGED
    return None


def _other_topic(found: Found, committed: Progress, source: SourceTopic) -> tuple[ShardReason, str] | None:
    reason = changed(committed.identity, source.identity)
    if reason is None:
        return None
    was = committed.identity
    if reason is ShardReason.CLUSTER_CHANGED:
        seen = f"of the cluster {was.cluster}..., and this one is {source.cluster_id} (topic id {source.topic_id})"
    else:
        seen = f"of a topic whose id begins with {was.topic}, and {source.name} has the id {source.topic_id} now"
    return (
        reason,
        f"the offset {committed.offset} that group {found.group} has for partition {found.partition} is {seen}",
    )


def _cut(found: Found, committed: Progress, source: SourceTopic) -> tuple[ShardReason, str] | None:
    where = f"{source.name}[{found.partition}]"
    if found.end < committed.position:
        what = "has the bare offset" if found.offset_reset else "has taken in all below"
        seen = f"{where} ends at offset {found.end}, and group {found.group} {what} {committed.position}"
        return ShardReason.LOG_TRUNCATED, seen
    if found.truncated:
        seen = (
            f"{where} was truncated below offset {committed.position}, up to which group {found.group} has taken it "
            "in, and has grown again: it has other records there, by their leader epochs"
        )
        return ShardReason.LOG_TRUNCATED, seen
    return None


def _way_on(source: SourceTopic) -> str:
    if not source.topic_id:
        return (
            "if it is the right one, stop all relays and set the group's offset by a tool, which begins without what "
            "was committed"
        )
    return (
        "nothing of the partition is delivered. If it is the right topic, start relays with --accept-source "
        f"{source.topic_id} (source.acceptedTopicId): they begin at its first record, and what waited of the former "
        "one is discarded. If not, give back the former topic, or the group's offsets"
    )


def _offsets_lost(found: Found, source: SourceTopic, former_life: str) -> str:
    what = "nothing" if found.committed is None else f"the bare offset {found.committed.offset}, set by a tool,"
    return (
        f"group {found.group} has {what} committed for {source.name}[{found.partition}], but {former_life}: what was "
        "delivered is not known, and nothing of the partition is delivered. Restore the group's offsets with their "
        "metadata; or accept that records are delivered twice, by --accept-repeats TIME (source.acceptRepeats), a time "
        "within a day until which relays begin such partitions again"
    )


class Plan(NamedTuple):
    """`progress` is to be committed first, then the backlog is opened, then reading begins at `progress.offset`."""

    progress: Progress
    missing_offsets: int = 0
    """Source offsets that should have been read again, and are no more on the source."""
    doubtful_offsets: int = 0
    """Further ones that are no more there, and were to be read again to fill an empty backlog: of these only what was
    not yet due is missed.
    """
    lost_records: int | None = None
    """The number, about, of pending records that were lost with a former topic in whose place this one was accepted;
    None where none was."""
    backend_changed: bool = False
    """The backlog is on another backend, from which it moves here by being read again."""
    rules_wait: str | None = None
    """The reason why the relay's own rules are not yet in force for what comes; None if they are."""

    @property
    def replay(self) -> int:
        """The number of source offsets that are read again."""
        return self.progress.position - self.progress.offset


def plan_recovery(
    committed: Progress | None, filled: int | None, bounds: Bounds, owner: str, *, offset_reset: bool = False
) -> Plan:
    """Start at the lower of the committed offset and `filled`; never deliver again what is done.

    The backlog holds what is not done below the source offset `filled`; None stands for a backlog that holds nothing.
    An offset that was reset from outside (it has no metadata of ours) is where somebody wants reading to start,
    whatever the backlog holds. Where nothing is committed, and the backlog is to go on, that is where it is filled.
    """
    was = committed or fresh_progress(bounds.low if filled is None else filled)
    # The lower offset is committed before the backlog is claimed: otherwise a crash in between would let a successor
    # believe that the backlog holds what only this memory held. Below the floor all is done.
    wished = was.offset if offset_reset or committed is None else max(min(was.offset, filled or 0), was.floor)
    start = min(max(wished, bounds.low), max(bounds.low, bounds.end))
    taken = max(min(was.position, bounds.end), start)
    needed = was.offset if filled is None else wished
    missing = max(0, start - needed) if committed is not None else 0
    doubtful = max(0, start - wished) - missing if committed is not None else 0
    return Plan(was._replace(offset=start, position=taken, owner=owner, buckets=None), missing, doubtful)


def count_takeovers(was: Progress | None, planned: Progress, end: int, *, again: bool) -> int:
    """Return the number of takeovers since the position was last moved, this one included.

    One is not counted where there is nothing to read up to `end`, nor `again`, by the relay that has the partition.
    """
    if was is None or was.position != planned.position or end <= planned.offset:
        return 0
    return was.takeovers + (0 if again else 1)


def oldest_needed_ms(progress: Progress) -> int:
    """Return the timestamp from which on records may not be done by the cursor: none waits longer than `maxDelay`."""
    longest_ms = max((each.rules.max_delay_ms + each.rules.shift_ms for each in progress.generations), default=0)
    return max(0, progress.cursor.due_ms - longest_ms)
